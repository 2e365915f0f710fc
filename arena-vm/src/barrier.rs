//! The barrier pair whose light side costs a commit no instruction:
//! `membarrier(2)` (Linux 4.14).
//!
//! Commit and flip are Dekker's algorithm, and both halves need a store-load
//! barrier. A flip is rare and a commit is not, so the flip's half asks the
//! kernel to run a full barrier on every thread of the process that is running.
//! A thread that is not running passed one when it was switched out. Commit's
//! half then only has to keep the compiler from reordering
//! ([design/arena-vm.md `.barrier`](crate::design::arena_vm)).

use tripoint_core::internal::{Ordering, compiler_fence};
use tripoint_core::{BarrierPair, Error, Result};

use crate::platform::membarrier::{Command, membarrier};

/// Proof that this process is registered for `membarrier` PRIVATE_EXPEDITED.
///
/// It has no size, so a descriptor that contains one is no larger. If registration is
/// refused (kernels before 4.14, system call filters), and on platforms other than
/// Linux, use [`SymmetricFence`](tripoint_core::SymmetricFence), which costs about
/// 2 ns more per commit.
///
/// Registration holds for the whole process, for threads started later, and for
/// children by `fork`; it ends with `exec`.
///
/// ```
/// use tripoint_arena_vm::Membarrier;
/// use tripoint_core::BarrierPair;
///
/// // Once, at Init. If the kernel refuses, use `SymmetricFence`.
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
    /// [`Error::Resource`] if the kernel does not have the call, or refuses it.
    pub fn register() -> Result<Self> {
        if membarrier(Command::RegisterPrivateExpedited) && membarrier(Command::PrivateExpedited) {
            Ok(Self(()))
        } else {
            Err(Error::Resource)
        }
    }
}

// SAFETY: while `heavy` runs, every other thread of the process passes a full memory barrier: a
// running thread by an interrupt, any other by a context switch (membarrier(2),
// PRIVATE_EXPEDITED). Take a thread that stores X, runs `light` and loads Y; the compiler keeps
// that order, because `light` is a compiler fence. If the thread passes its barrier after the
// store, X is visible to the heavy side's load, which follows all barriers. If it passes it
// before the store, its load follows too, and sees Y, which was stored before `heavy` began. Two
// threads that both run `heavy` each pass full barriers, which order them as `SeqCst` fences do.
// A value exists only if the process is registered.
unsafe impl BarrierPair for Membarrier {
    #[inline(always)]
    fn light(self) {
        compiler_fence(Ordering::SeqCst);
    }

    #[cold]
    fn heavy(self) {
        compiler_fence(Ordering::SeqCst);
        if !membarrier(Command::PrivateExpedited) && !membarrier(Command::Global) {
            // The kernel allowed this call at registration and refuses it now, because of a
            // system call filter set up in between. Without a barrier memory would be corrupted.
            //
            // SAFETY: `abort` ends the process; it can be called at any time.
            unsafe { libc::abort() };
        }
        compiler_fence(Ordering::SeqCst);
    }
}
