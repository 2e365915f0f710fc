//! Pairs of memory barriers: a light one for commit, a heavy one for flip.
//!
//! Commit stores `init` and then loads `limit`; flip stores `limit` and then
//! loads `init`. At least one of the two must see the other's store (Dekker's
//! algorithm), so both need a store-load barrier between their two accesses.
// (design/ap.md `.flip.order`)

use crate::primitive::{Ordering, compiler_fence, fence};

/// A light and a heavy barrier that work together.
///
/// The pair is chosen by type. So a light barrier is never combined with the wrong heavy
/// one, and the fast path has no branch for the choice.
///
/// # Safety
/// For any two threads that may run `light` and `heavy` of the same type at the
/// same time: if one stores X, runs `light`, then loads Y, and the other stores
/// Y, runs `heavy`, then loads X, at least one of the loads must return the
/// other thread's store or a later one.
pub unsafe trait BarrierPair: Copy + Send + Sync + core::fmt::Debug {
    /// The barrier of commit, which is as cheap as the platform allows.
    fn light(self);

    /// The barrier of flip, which may be slow and may call the operating system.
    fn heavy(self);
}

/// A sequentially consistent fence on both sides. It works everywhere.
///
/// It costs about 2 ns for each commit on x86-64, and `Membarrier` (crate
/// `tripoint-arena-vm`) costs nothing. Manual pools have no barrier in commit and
/// pay nothing for either.
#[derive(Clone, Copy, Debug, Default)]
pub struct SymmetricFence;

// SAFETY: two `SeqCst` fences are totally ordered. Each side has one between its store and its
// load, so the load of the side whose fence is later returns the store of the other side, or a
// later one (C++20 [atomics.order]/4, which Rust adopts).
unsafe impl BarrierPair for SymmetricFence {
    #[inline(always)]
    fn light(self) {
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn heavy(self) {
        fence(Ordering::SeqCst);
    }
}

/// Compiler fences on both sides: for a single core, on which the other side is an interrupt
/// or signal handler.
#[derive(Clone, Copy, Debug)]
pub struct SingleCore(());

impl SingleCore {
    /// Creates the single-core pair.
    ///
    /// A flip must not interrupt another flip of the same buffer: it would wait for it forever.
    /// If two handlers flip, mask each in the other.
    ///
    /// # Safety
    /// - Every flip of a buffer that uses this pair must run on the core of the buffer's owner
    ///   (in a hosted program, on its thread), as an interrupt or signal handler does.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

// SAFETY: both sides run on a single core (the promise of `SingleCore::new`), which sees its own
// stores in program order, and compiler fences keep the compiler from changing that order. So a
// load returns the store of the other side if that came before, and one of the two did.
unsafe impl BarrierPair for SingleCore {
    #[inline(always)]
    fn light(self) {
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn heavy(self) {
        compiler_fence(Ordering::SeqCst);
    }
}
