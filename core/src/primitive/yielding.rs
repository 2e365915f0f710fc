//! How a thread that waits for a lock lets others run, where there is an operating system (design/core.md `.lock.yield`).

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A `fn()`, or null.
static YIELD: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// From now on, threads that wait for a lock for long call this, which lets other threads of the processor run. An arena of an operating system
/// says how.
pub fn yield_by(function: fn()) {
    YIELD.store(function as *mut (), Ordering::Release);
}

/// Lets other threads run, if it is known how. Otherwise it is a hint to the processor.
#[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
pub fn yield_now() {
    let function = YIELD.load(Ordering::Acquire);
    if function.is_null() {
        core::hint::spin_loop();
    } else {
        // SAFETY: what is stored is null, which this is not, or a function of this type.
        let function = unsafe { core::mem::transmute::<*mut (), fn()>(function) };
        function();
    }
}

#[cfg(tripoint_loom)]
pub use loom::thread::yield_now;
#[cfg(tripoint_shuttle)]
pub use shuttle::thread::yield_now;
