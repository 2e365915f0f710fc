//! The barrier pair that makes commit free: `membarrier(2)` (Linux 4.14).
//!
//! Commit and flip are Dekker's algorithm, and both halves need a store-load
//! barrier. A flip is rare and a commit is not, so the flip's half asks the
//! kernel to run a full barrier on every thread of the process that is running;
//! a thread that is not running passed one when it was switched out. Commit's
//! half then only has to keep the compiler from reordering
//! (design/arena-vm.md `.barrier`).

use tripoint_core::internal::{Ordering, compiler_fence};
use tripoint_core::{BarrierPair, Error, Result};

use crate::platform::membarrier::{Command, membarrier};

/// Proof that this process is registered for `membarrier` PRIVATE_EXPEDITED.
///
/// Takes no space: a descriptor that holds one is no larger. Where registration
/// is refused (kernels before 4.14, system call filters), and on platforms other
/// than Linux, use [`SymmetricFence`](tripoint_core::SymmetricFence), which costs
/// about 2 ns more per commit.
///
/// Registration holds for the whole process, for threads started later, and for
/// children by `fork`; it ends with `exec`.
///
/// ```
/// use tripoint_arena_vm::Membarrier;
/// use tripoint_core::BarrierPair;
///
/// // At Init, once. Where the kernel refuses, `SymmetricFence` serves.
/// if let Ok(barrier) = Membarrier::register() {
///     barrier.light(); // at each commit: no instruction
///     barrier.heavy(); // at a flip: a system call
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Membarrier(());

impl Membarrier {
    /// Registers the process. Registering again is harmless.
    ///
    /// The first registration in a process with several threads waits for every
    /// processor once, some milliseconds: do it at Init.
    ///
    /// # Errors
    /// [`Error::Resource`] where the kernel does not offer it.
    pub fn register() -> Result<Self> {
        if membarrier(Command::RegisterPrivateExpedited) && membarrier(Command::PrivateExpedited) {
            Ok(Self(()))
        } else {
            Err(Error::Resource)
        }
    }
}

// SAFETY: while `heavy` runs, every other thread of the process passes a full
// memory barrier: by interrupt where it runs, by a context switch where it does
// not (membarrier(2), PRIVATE_EXPEDITED). Take a thread that stores X, runs
// `light`, loads Y, in that order in its code, since `light` is a compiler fence.
// If its barrier comes after its store, X is visible to the heavy side's load,
// which comes after all barriers. If it comes before its store, its load comes
// later still, and sees Y, stored before `heavy` began. Two threads that both run
// `heavy` each pass full barriers, which order them as `SeqCst` fences do. The
// value cannot be had unless the process is registered.
unsafe impl BarrierPair for Membarrier {
    #[inline(always)]
    fn light(self) {
        compiler_fence(Ordering::SeqCst);
    }

    #[cold]
    fn heavy(self) {
        compiler_fence(Ordering::SeqCst);
        if !membarrier(Command::PrivateExpedited) && !membarrier(Command::Global) {
            // The kernel did both before and refuses now: a system call filter
            // came in between. Going on without a barrier would corrupt memory.
            // SAFETY: ends the process and has no duties.
            unsafe { libc::abort() };
        }
        compiler_fence(Ordering::SeqCst);
    }
}
