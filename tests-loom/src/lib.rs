//! Models of the words that threads share without a lock.
//!
//! Empty unless built with one of two cfgs, which replace every atomic and lock in
//! `tripoint-core::primitive`. The same models then run
//!
//! - under loom, which tries every interleaving and every value that the memory
//!   model allows a load, within the bound that each model states;
//! - under shuttle, which draws interleavings at random, sequentially consistent
//!   ones only, as many as there is time for (`verify/random-models`).
//!
//! ```text
//! RUSTFLAGS="--cfg tripoint_loom" cargo test -p tests-loom --profile loom
//! RUSTFLAGS="--cfg tripoint_shuttle" cargo test -p tests-loom --profile loom
//! ```
//!
//! Every model has a twin with one step broken or left out, marked `should_panic`:
//! a model that could not find its bug would prove nothing. Twins in which only an
//! ordering is missing are marked so for loom alone: shuttle cannot find their
//! bug, so they pass under it.
//!
//! What neither can see (membarrier, compiler fences) is in `design/ap.md`
//! `.barrier.hardware` and stressed on hardware by `arena-vm/tests`
//! (design/verification.md `.model`, `.random`).
#![cfg(any(tripoint_loom, tripoint_shuttle))]

#[cfg(tripoint_loom)]
mod exhaustive;
#[cfg(tripoint_shuttle)]
mod random;

use core::time::Duration;
use std::sync::Arc;

use tripoint_ap::Buffer;
use tripoint_ap::internal::{Owner, buffer_without_pool};
use tripoint_core::internal::{AtomicU32, Ordering, fence};
use tripoint_core::{BarrierPair, BufferKind, ClientArena, ClientArenaOptions, Parking, RankSet};

#[cfg(tripoint_loom)]
pub use exhaustive::{
    Condvar, Mutex, UnsafeCell, model, model_bounded, model_unbounded, on_large_stack, thread,
};
#[cfg(tripoint_shuttle)]
pub use random::{Condvar, Mutex, UnsafeCell, model, model_bounded, model_unbounded, on_large_stack, thread};

/// An address to put in a descriptor. Models follow no pointer.
pub fn addr(value: usize) -> *mut u8 {
    core::ptr::without_provenance_mut(value)
}

/// The address at which the modelled buffer begins.
pub const BASE: usize = 0x1000;
/// The address at which it ends.
pub const LIMIT: usize = 0x2000;
/// The size of the modelled objects.
pub const SIZE: usize = 0x10;

/// A flippable descriptor to share.
pub fn flippable_buffer() -> Arc<Buffer> {
    Arc::new(buffer_without_pool(BufferKind::Mutator, RankSet::EXACT))
}

/// Attaches `[BASE, LIMIT)` to the buffer of `owner` and arms it.
pub fn attach(owner: &mut Owner<'_>) {
    owner.attach(addr(BASE), addr(BASE), addr(LIMIT));
    owner.rearm(addr(LIMIT), &mut |_| {});
}

/// Lends a value to a model and its threads. It is leaked if the model fails,
/// since threads are dropped after it.
///
/// # Safety
/// - What `run` lends it to has ended when it returns.
pub unsafe fn lend<T: ?Sized + 'static>(value: Box<T>, run: impl FnOnce(&'static mut T)) {
    let value = Box::into_raw(value);
    // SAFETY: the pointer is from a box, which is freed below, after its last
    // use.
    run(unsafe { &mut *value });
    // SAFETY: the pointer is from a box, and the caller says that nothing uses it
    // any more.
    drop(unsafe { Box::from_raw(value) });
}

/// Runs a model with an arena for its threads, which end before it does.
pub fn with_arena(run: impl FnOnce(&'static ClientArena<'static>)) {
    let lend_arena = |memory| {
        let options = ClientArenaOptions { grain: Some(4 << 10), event_hook: None };
        let arena = Box::new(ClientArena::create(memory, options).unwrap());
        // SAFETY: the threads of a model have ended when it ends.
        unsafe { lend(arena, |arena| run(arena)) };
    };
    // SAFETY: the threads of a model have ended when it ends, and the arena is dropped.
    unsafe { lend(Box::new_uninit_slice(64 << 10), lend_arena) };
}

/// Lets another thread run: models have no time.
#[derive(Debug)]
pub struct Yield;

// SAFETY: nothing is done to the word. If a model ends a thread here, it ends all of them.
unsafe impl Parking for Yield {
    fn wait(&self, _word: &AtomicU32, _value: u32, _patience: Duration) -> Duration {
        thread::yield_now();
        Duration::ZERO
    }

    fn wake(&self, _word: &AtomicU32) {}
}

/// A broken pair: no barrier in commit.
#[derive(Clone, Copy, Debug)]
pub struct NoLight;

// SAFETY: not upheld, on purpose: models that use it must fail.
unsafe impl BarrierPair for NoLight {
    fn light(self) {}
    fn heavy(self) {
        fence(Ordering::SeqCst);
    }
}

/// A broken pair: no barrier in flip.
#[derive(Clone, Copy, Debug)]
pub struct NoHeavy;

// SAFETY: not upheld, on purpose: models that use it must fail.
unsafe impl BarrierPair for NoHeavy {
    fn light(self) {
        fence(Ordering::SeqCst);
    }
    fn heavy(self) {}
}
