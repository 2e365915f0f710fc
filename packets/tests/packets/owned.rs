//! Packets that own a share of their pool (design/packets.md `.owned`).

use core::mem::{ManuallyDrop, MaybeUninit};
use core::pin::pin;
use core::sync::atomic::AtomicPtr;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex};
use std::thread;

use tripoint_core::{ClientArena, ClientArenaOptions};
use tripoint_packets::{OwnedPacket, PacketPool};

use super::{OPTIONS, SIZE};

/// A pool that keeps the only share of its arena's memory, which is there as long as the process.
type Pool = PacketPool<ClientArena<'static>, SIZE>;

type Packet = OwnedPacket<ClientArena<'static>, SIZE>;

fn pool() -> Arc<Pool> {
    /// What was leaked, so that it is known to be kept on purpose.
    static KEPT: Mutex<Vec<AtomicPtr<MaybeUninit<u8>>>> = Mutex::new(Vec::new());
    const BYTES: usize = 64 << 10;
    let memory = Box::into_raw(Box::<[u8]>::new_uninit_slice(BYTES)).cast();
    KEPT.lock().unwrap().push(AtomicPtr::new(memory));
    // SAFETY: memory of that many bytes that is never freed, and that nothing but this arena uses.
    let memory = unsafe { core::slice::from_raw_parts_mut(memory, BYTES) };
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

/// Whichever thread drops the last share, and in whichever order: the pool is dropped there, once.
#[test]
fn packets_of_several_threads_end_their_pool_in_any_order() {
    for last in 0..3 {
        let pool = pool();
        let weak = Arc::downgrade(&pool);
        let packets: Vec<Packet> = (0..3).map(|number| packet(&pool, &[number; 9])).collect();
        drop(pool);
        let (mut early, mut late) = (Vec::new(), None);
        for (number, packet) in packets.into_iter().enumerate() {
            if number == last { late = Some(packet) } else { early.push(packet) }
        }
        let threads: Vec<_> = early
            .into_iter()
            .map(|mut packet| thread::spawn(move || packet.iter_mut().for_each(|byte| *byte += 1)))
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let late = late.unwrap();
        assert!(weak.upgrade().is_some_and(|pool| pool.counts().boxed() == 1));
        assert_eq!(late[..], [last as u8; 9]);
        thread::spawn(move || drop(late)).join().unwrap();
        assert!(weak.upgrade().is_none());
    }
}

/// A thread that panics while it has packets, and writes to one of them, gives their units back.
#[test]
fn a_panic_gives_units_back() {
    let pool = pool();
    let mut held = packet(&pool, b"data");
    let (owned, boxes) = (packet(&pool, b"more"), Arc::clone(&pool));
    let panicked = thread::spawn(move || {
        let _boxed = owned.into_box(&boxes).unwrap();
        held[0] = 0;
        held[4] = 0;
    });
    assert!(panicked.join().is_err());
    assert_eq!(Arc::strong_count(&pool), 1);
    assert_whole(&pool);
}

/// A packet that is leaked keeps its pool, and that is all.
#[test]
fn a_packet_that_is_leaked_keeps_the_pool() {
    let pool = pool();
    let leaked = ManuallyDrop::new(packet(&pool, b"data"));
    assert_eq!((Arc::strong_count(&pool), pool.counts().boxed()), (2, 1));
    let weak = Arc::downgrade(&pool);
    drop(pool);
    let pool = weak.upgrade().expect("the leaked share");
    let (one, empty) = (packet(&pool, b"x"), packet(&pool, b""));
    assert_eq!((one.len(), empty.len()), (1, 0));
    drop((one, empty));
    assert_eq!(pool.counts().boxed(), 1);
    drop((pool, ManuallyDrop::into_inner(leaked)));
    assert!(weak.upgrade().is_none());
}

/// Each part of the data to a thread of its own, while others make and drop clones of all of it.
#[cfg(feature = "bytes")]
#[test]
fn bytes_fan_out_to_threads() {
    let pool = pool();
    let weak = Arc::downgrade(&pool);
    let bytes = bytes::Bytes::from(packet(&pool, &[0, 1, 2, 3, 4, 5, 6, 7]));
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let (all, mut part) = (bytes.clone(), bytes.slice(2 * number..));
            thread::spawn(move || {
                let rest = part.split_off(2);
                drop((all.clone(), all));
                assert_eq!(part[..], [2 * number as u8, 2 * number as u8 + 1]);
                drop(part);
                rest.len()
            })
        })
        .collect();
    // What is to be changed is copied: others may read the packet.
    let mut own = bytes::BytesMut::from(bytes.clone());
    own[0] = 9;
    assert_eq!(bytes[0], 0);
    drop((bytes, pool));
    let rest: Vec<usize> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(rest, [6, 4, 2, 0]);
    assert!(weak.upgrade().is_none(), "the pool is gone with the last part");
    assert_eq!(own[..2], [9, 1]);
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
