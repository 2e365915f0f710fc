//! Loom models of the words that threads share without a lock.
//!
//! Empty unless built with `--cfg tripoint_loom`, which replaces every atomic in
//! `tripoint-core::primitive`:
//!
//! ```text
//! RUSTFLAGS="--cfg tripoint_loom" cargo test -p tests-loom --profile loom
//! ```
//!
//! Every model has a twin with one step broken or left out, marked
//! `should_panic`: a model that could not find its bug would prove nothing.
//! What loom cannot see (membarrier, compiler fences) is in `design/ap.md`
//! `.barrier.hardware` and stressed on hardware by `arena-vm/tests`.
#![cfg(tripoint_loom)]

use std::sync::Arc;

use tripoint_ap::{Buffer, Owner};
use tripoint_core::primitive::{Ordering, fence};
use tripoint_core::{BarrierPair, BufferKind, RankSet};

/// Preemptions a model may use at one point of a run. The models here have at
/// most three threads and a handful of shared accesses each; without a bound the
/// two-thread ones are exhausted all the same.
pub const PREEMPTION_BOUND: usize = 3;

/// Runs a model under the stated bound.
pub fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTION_BOUND);
    builder.check(run);
}

/// An address to put in a descriptor. Models follow no pointer.
pub fn addr(value: usize) -> *mut u8 {
    core::ptr::without_provenance_mut(value)
}

/// Where the modelled buffer begins.
pub const BASE: usize = 0x1000;
/// Where it ends.
pub const LIMIT: usize = 0x2000;
/// The size of the modelled objects.
pub const SIZE: usize = 0x10;

/// A flippable descriptor to share.
pub fn flippable_buffer() -> Arc<Buffer> {
    Arc::new(Buffer::new(BufferKind::Mutator, RankSet::EXACT))
}

/// Attaches `[BASE, LIMIT)` to the buffer of `owner` and arms it.
pub fn attach(owner: &mut Owner<'_>) {
    owner.attach(addr(BASE), addr(BASE), addr(LIMIT));
    owner.rearm(addr(LIMIT), &mut |_| {});
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
