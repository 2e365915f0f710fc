//! For code that passes pool objects between threads without a lock: loom tries every
//! interleaving of *your* protocol with tripoint's own atomics, not with a mock of them.
//!
//! A producer allocates messages and posts them to a consumer, which may ask it to slow down.
//!
//! ```text
//!   producer                              consumer
//!   point.boxed ── Mailbox::post ───────► Mailbox::take, drop
//!   Throttle::tripped ◄── Tripper::trip ─ Brake::pull
//! ```
//!
//! The recipe has three steps: take your atomics from one module ([`sync`]) that loom can
//! replace, build with the cfg that replaces tripoint's, and give each model a twin with a bug.
//! For a crate of your own, copy `Cargo.toml` (tripoint without its default features and with
//! `loom`, loom for the cfg, and the lint that knows the cfg), `sync.rs`, and `Memory`, `check` and `spawn` of
//! `models.rs`.
//!
//! ```sh
//! cargo test                                             # the code as it ships
//! RUSTFLAGS="--cfg tripoint_loom" cargo test --release   # every interleaving of the models
//! ```

use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use sync::{AtomicBool, AtomicPtr, Ordering};
use tripoint::points::Control;
use tripoint::{ManualPool, PoolBox, Tripper};

#[cfg(all(test, tripoint_loom))]
mod models;
pub mod sync;

/// Room for one message on its way from one thread to another.
#[derive(Debug)]
pub struct Mailbox<'pool, T, P: ManualPool> {
    message: AtomicPtr<T>,
    pool: &'pool P,
    owns: PhantomData<T>,
}

impl<'pool, T, P: ManualPool> Mailbox<'pool, T, P> {
    /// An empty mailbox for messages from `pool`.
    pub fn new(pool: &'pool P) -> Self {
        Self { message: AtomicPtr::new(ptr::null_mut()), pool, owns: PhantomData }
    }

    /// Posts a message from the pool of the mailbox; returns it if the mailbox is full.
    ///
    /// # Errors
    /// The message, if the mailbox is full.
    pub fn post(&self, message: PoolBox<'pool, T, P>) -> Result<(), PoolBox<'pool, T, P>> {
        self.post_with(message, Ordering::Release) // taking it sees what was written to it
    }

    fn post_with(&self, message: PoolBox<'pool, T, P>, order: Ordering) -> Result<(), PoolBox<'pool, T, P>> {
        assert!(ptr::eq(PoolBox::store(&message), self.pool), "a message of another pool");
        let message = PoolBox::into_raw(message);
        match self.message.compare_exchange(ptr::null_mut(), message.as_ptr(), order, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            // SAFETY: it came from a box of this pool, and was not posted.
            Err(_) => Err(unsafe { PoolBox::from_raw_in(message, self.pool) }),
        }
    }

    /// Takes the message out, if there is one.
    pub fn take(&self) -> Option<PoolBox<'pool, T, P>> {
        let message = NonNull::new(self.message.swap(ptr::null_mut(), Ordering::Acquire))?;
        // SAFETY: it came from a box of this pool, and the swap took it from every other thread.
        Some(unsafe { PoolBox::from_raw_in(message, self.pool) })
    }
}

impl<T, P: ManualPool> Drop for Mailbox<'_, T, P> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// How the consumer asks the producer to slow down.
#[derive(Debug, Default)]
pub struct Brake {
    pulled: AtomicBool,
}

impl Brake {
    /// Asks the owner of the tripped allocation point to slow down.
    pub fn pull(&self, producer: &Tripper<'_>) {
        self.pulled.store(true, Ordering::Relaxed); // before the trip, which publishes it
        producer.trip();
    }
}

/// The producer's side, called by its allocation point after a trip.
#[derive(Debug)]
pub struct Throttle<'brake> {
    brake: &'brake Brake,
    /// Whether the producer should slow down.
    pub slow: bool,
}

impl<'brake> Throttle<'brake> {
    /// Full speed, until the brake is pulled.
    pub fn new(brake: &'brake Brake) -> Self {
        Self { brake, slow: false }
    }
}

impl Control for Throttle<'_> {
    fn tripped(&mut self, _requests: usize) {
        self.slow |= self.brake.pulled.load(Ordering::Relaxed);
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use std::thread;

    use tripoint::{
        AllocationPoint, BufferKind, ClientArena, ClientArenaOptions, Mvff, MvffOptions, PoolClass,
    };

    use super::*;

    #[test]
    fn messages_arrive_in_order_and_the_brake_is_seen() {
        let mut memory = Box::new_uninit_slice(64 << 10);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let pool = Mvff::create(&arena, MvffOptions { extend_by: 4 << 10, ..Default::default() }).unwrap();
        let (mailbox, brake) = (Mailbox::new(&pool), Brake::default());
        let mut point =
            AllocationPoint::create_with(&pool, BufferKind::Mutator, Throttle::new(&brake)).unwrap();
        let tripper = point.tripper();
        thread::scope(|scope| {
            scope.spawn(|| {
                for expected in 0..1_000_u64 {
                    let message = core::iter::repeat_with(|| mailbox.take()).flatten().next().unwrap();
                    assert_eq!(*message, expected);
                }
                brake.pull(&tripper);
            });
            for number in 0..1_000 {
                let mut message = point.boxed(number).unwrap();
                while let Err(returned) = mailbox.post(message) {
                    message = returned;
                    thread::yield_now();
                }
            }
        });
        drop(point.boxed(0_u64).unwrap()); // answers the trip
        assert!(point.control().slow);
        drop(point);
        assert_eq!(pool.sizes().free, pool.sizes().total, "every message was freed");
    }
}
