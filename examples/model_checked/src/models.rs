//! The models, each with a twin that has a bug and must fail: a model that could not find it
//! would prove nothing.

use core::mem::MaybeUninit;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread::{self, JoinHandle};
use tripoint::{
    AllocationPoint, BufferKind, ClientArena, ClientArenaOptions, Mfs, MfsOptions, PoolClass, UnitOf,
};

use super::*;

/// Loom reports every access to this that no ordering allows.
type Payload = UnsafeCell<u64>;
type Pool = Mfs<&'static ClientArena<'static>, UnitOf<Payload>>;

/// Memory that is always aligned alike: loom needs executions that depend on nothing but its own
/// choices.
#[repr(align(4096))]
struct Memory([MaybeUninit<u8>; 8 << 10]);

/// Runs `model` in every interleaving. What it leaks is the price for threads that need
/// `'static`: a few KiB in each execution.
fn check(model: impl Fn(&'static Pool) + Sync + Send + 'static) {
    loom::model(move || {
        let memory = Box::leak(Box::new(Memory([MaybeUninit::uninit(); 8 << 10])));
        let arena =
            Box::leak(Box::new(ClientArena::create(&mut memory.0, ClientArenaOptions::default()).unwrap()));
        let options = MfsOptions { extend_by: 256, ..MfsOptions::default() };
        model(Box::leak(Box::new(Mfs::create(&*arena, UnitOf::new(), options).unwrap())));
    });
}

/// Starts a thread that runs in every order with the rest of the model. Loom starts threads
/// late, and looks for another order only where two threads use one word: here is such a word.
fn spawn(run: impl FnOnce() + 'static) -> JoinHandle<()> {
    let turn = Arc::new(AtomicUsize::new(0));
    let its_turn = Arc::clone(&turn);
    let thread = thread::spawn(move || {
        its_turn.fetch_add(1, Ordering::Relaxed);
        run();
    });
    turn.fetch_add(1, Ordering::Relaxed);
    thread
}

/// A message is posted while another thread takes it, reads it and frees it.
fn hand_over(order: Ordering) {
    check(move |pool| {
        let mailbox = Box::leak(Box::new(Mailbox::<Payload, _>::new(pool)));
        let mailbox = &*mailbox;
        let consumer = spawn(move || {
            if let Some(message) = mailbox.take() {
                // SAFETY: the message is this thread's. Loom checks that it is.
                assert_eq!(message.with(|value| unsafe { *value }), 7);
            }
        });
        let mut point = AllocationPoint::create(pool).unwrap();
        let message = point.boxed(UnsafeCell::new(0)).unwrap();
        // SAFETY: the message is this thread's until it is posted.
        message.with_mut(|value| unsafe { *value = 7 });
        mailbox.post_with(message, order).expect("the mailbox is empty");
        consumer.join().unwrap();
        drop(mailbox.take());
        drop(point);
        assert_eq!(pool.sizes().free, pool.sizes().total, "a message was lost");
    });
}

#[test]
fn a_message_arrives_whole() {
    hand_over(Ordering::Release);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn twin_without_release() {
    hand_over(Ordering::Relaxed);
}

/// The brake is pulled while the producer allocates; the allocation after that sees it.
fn brake(pull: fn(&Brake, &Tripper<'_>)) {
    check(move |pool| {
        let brake: &'static Brake = Box::leak(Box::default());
        let mut point =
            AllocationPoint::create_with(pool, BufferKind::Mutator, Throttle::new(brake)).unwrap();
        drop(point.boxed(UnsafeCell::new(0)).unwrap());
        let tripper = point.tripper();
        let consumer = spawn(move || pull(brake, &tripper));
        drop(point.boxed(UnsafeCell::new(1)).unwrap()); // before the trip, after it, or meanwhile
        consumer.join().unwrap();
        drop(point.boxed(UnsafeCell::new(2)).unwrap());
        assert!(point.control().slow, "the trip was answered, and the brake not seen");
    });
}

#[test]
fn a_pulled_brake_is_seen() {
    brake(Brake::pull);
}

#[test]
#[should_panic(expected = "the brake not seen")]
fn twin_that_trips_first() {
    brake(|brake, producer| {
        producer.trip();
        brake.pulled.store(true, Ordering::Relaxed);
    });
}
