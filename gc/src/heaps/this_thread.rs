//! Which thread this is, so that none waits for a stop of its own (design/gc.md `.own.thread`).
//!
//! The thread pointer of the platform: it is another one in each thread that there is. Where it is not known how to read
//! it, or there is no C library, a thread that waits for itself waits without end.

use core::num::NonZeroUsize;

/// What no other thread has that exists at the same time; `None` if that is not known here.
pub(crate) fn this_thread() -> Option<NonZeroUsize> {
    machine::thread_pointer()
}

#[cfg(all(
    any(all(target_os = "linux", not(target_env = "")), target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(any(miri, tripoint_loom, tripoint_shuttle))
))]
mod machine {
    use core::arch::asm;
    use core::num::NonZeroUsize;

    pub(super) fn thread_pointer() -> Option<NonZeroUsize> {
        let pointer: usize;
        // SAFETY: the word at the base of the segment `fs` is in every thread of a C library of this system, and is its own
        // address. This reads it, and changes nothing.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
        }
        // SAFETY: programs may read this register, which has the thread's pointer on this system. It changes nothing.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
        }
        NonZeroUsize::new(pointer)
    }
}

#[cfg(not(all(
    any(all(target_os = "linux", not(target_env = "")), target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(any(miri, tripoint_loom, tripoint_shuttle))
)))]
mod machine {
    use core::num::NonZeroUsize;

    pub(super) const fn thread_pointer() -> Option<NonZeroUsize> {
        None
    }
}

#[cfg(all(test, not(any(miri, tripoint_loom, tripoint_shuttle))))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn threads_are_told_apart() {
        let here = this_thread();
        let (there, again) = thread::spawn(|| (this_thread(), this_thread())).join().unwrap();
        assert_eq!((here, there), (this_thread(), again));
        assert_eq!(here.is_some(), there.is_some());
        let is_known = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));
        assert_eq!(here.is_some(), is_known);
        // The other thread is gone, so its pointer may be that of the next one, but not of this one.
        assert!(here.is_none() || here != there);
    }
}
