//! Pairs of memory barriers: a light one for commit, a heavy one for flip.
//!
//! Commit stores `init` and then loads `limit`; flip stores `limit` and then
//! loads `init`. At least one of the two must see the other's store (Dekker's
//! algorithm), so both need a store-load barrier between their two accesses
//! (design/ap.md `.flip.order`).

use crate::primitive::{Ordering, compiler_fence, fence};

/// A light and a heavy barrier that work together.
///
/// The pair is chosen by type, so that no light barrier meets the wrong heavy
/// one and the fast path has no branch on the choice.
///
/// # Safety
/// For any two threads that may run `light` and `heavy` of the same type at the
/// same time: if one stores X, runs `light`, then loads Y, and the other stores
/// Y, runs `heavy`, then loads X, at least one of the loads must return the
/// other thread's store or a later one.
pub unsafe trait BarrierPair: Copy + Send + Sync + core::fmt::Debug {
    /// The barrier of commit: as cheap as the platform allows.
    fn light(self);

    /// The barrier of flip: may be slow, may call the operating system.
    fn heavy(self);
}

/// A sequentially consistent fence on both sides: works everywhere.
///
/// Costs about 2 ns per commit on x86-64 where `Membarrier` (crate
/// `tripoint-arena-vm`) costs none. Manual pools have no barrier in commit and
/// pay nothing for either.
#[derive(Clone, Copy, Debug, Default)]
pub struct SymmetricFence;

// SAFETY: two `SeqCst` fences are totally ordered, and a fence between a store
// and a load on each side makes the load of the later fence's thread see the
// store of the earlier one's (C++20 [atomics.order]/4, which Rust adopts).
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

/// Compiler fences only: for one core, where the other party is an interrupt or
/// signal handler on the same core.
#[derive(Clone, Copy, Debug)]
pub struct SingleCore(());

impl SingleCore {
    /// The single-core pair.
    ///
    /// # Safety
    /// - Whoever flips a buffer that uses this pair must run on the core (or, in
    ///   a hosted program, the thread) of the buffer's owner, as an interrupt or
    ///   signal handler does.
    ///
    /// A flip must not interrupt another flip of the same buffer: it would wait for
    /// it for ever. Mask one handler in the other where both flip.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

// SAFETY: a core sees its own stores in program order; compiler fences keep the
// program order the source has, and `SingleCore::new` promises a single core.
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
