//! Packets that own a share of their pool (design/packets.md `.owned`).

use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::thread;

use tripoint_core::{ClientArena, ClientArenaOptions};
use tripoint_packets::{OwnedPacket, PacketPool};

use super::{OPTIONS, SIZE};

/// A pool that keeps the only share of its arena's memory, which is there as long as the process.
type Pool = PacketPool<ClientArena<'static>, SIZE>;

type Packet = OwnedPacket<ClientArena<'static>, SIZE>;

fn pool() -> Arc<Pool> {
    let memory = Box::leak(Box::new_uninit_slice(64 << 10));
    let arena = ClientArena::create(memory, ClientArenaOptions::default()).unwrap();
    Arc::new(Pool::create(arena, OPTIONS).unwrap())
}

fn packet(pool: &Arc<Pool>, data: &[u8]) -> Packet {
    let mut packet = pool.take().unwrap();
    packet.extend_from_slice(data).unwrap();
    packet.into_owned(pool).unwrap()
}

/// All units are free.
fn assert_whole(pool: &Pool) {
    use tripoint_core::{Check, CheckLevel};
    let counts = pool.counts();
    assert_eq!((counts.depot, counts.taken), (counts.units, counts.given), "{counts:?}");
    assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
}

#[test]
fn the_pool_is_there_until_its_last_packet_is_dropped() {
    let pool = pool();
    let weak = Arc::downgrade(&pool);
    let mut packet = packet(&pool, b"data");
    drop(pool);
    packet[0] = b'D';
    assert_eq!((&packet[..], packet.as_ref().len()), (&b"Data"[..], 4));
    assert!(weak.upgrade().is_some_and(|pool| pool.counts().boxed() == 1));
    drop(packet);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_packet_is_the_same_as_a_box_again() {
    let pool = pool();
    let (number, packet) = {
        let packet = packet(&pool, b"data").into_box(&pool).unwrap();
        (packet.number(), packet.into_owned(&pool).unwrap())
    };
    let mut packet = packet.into_box(&pool).unwrap();
    assert_eq!((packet.number(), &packet[..], packet.headroom()), (number, &b"data"[..], 64));
    packet.prepend(1).unwrap()[0] = b'-';
    assert_eq!(packet[..], *b"-data");
    drop(packet);
    assert_eq!(Arc::strong_count(&pool), 1);
    assert_whole(&pool);
}

#[test]
fn a_packet_of_another_pool_is_returned() {
    let (pool, other) = (pool(), pool());
    let owned = packet(&pool, b"data").into_box(&other).unwrap_err();
    let boxed = owned.into_box(&pool).unwrap().into_owned(&other).unwrap_err();
    assert_eq!(boxed[..], *b"data");
    drop(boxed);
    assert_eq!([&pool, &other].map(Arc::strong_count), [1, 1]);
    [pool, other].iter().for_each(|pool| assert_whole(pool));
}

/// What executors ask of a task.
fn spawn<T>(task: impl Future<Output = T> + Send + 'static) -> impl Future<Output = T> + Send + 'static {
    task
}

#[test]
fn a_packet_goes_with_its_task_to_another_thread() {
    let pool = pool();
    let packet = packet(&pool, b"data");
    let mut task = Box::pin(spawn(async move {
        let mut is_over = false;
        let pause = core::future::poll_fn(|_| match core::mem::replace(&mut is_over, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        pause.await;
        packet.len()
    }));
    let mut context = Context::from_waker(Waker::noop());
    assert!(task.as_mut().poll(&mut context).is_pending());
    let length = thread::spawn(move || pin!(task).as_mut().poll(&mut Context::from_waker(Waker::noop())));
    assert_eq!(length.join().unwrap(), Poll::Ready(4));
    assert_whole(&pool);
}

#[cfg(feature = "bytes")]
#[test]
fn bytes_are_the_packet_itself() {
    let pool = pool();
    let packet = packet(&pool, b"data");
    let place = packet.as_ptr();
    let bytes = bytes::Bytes::from(packet);
    let (clone, rest) = (bytes.clone(), bytes.slice(1..));
    drop(bytes);
    assert_eq!((clone.as_ptr(), &clone[..], &rest[..]), (place, &b"data"[..], &b"ata"[..]));
    drop(clone);
    assert_eq!(pool.counts().boxed(), 1);
    // By another thread.
    thread::spawn(move || drop(rest)).join().unwrap();
    assert_eq!(Arc::strong_count(&pool), 1);
    assert_whole(&pool);
}
