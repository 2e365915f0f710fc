//! The walks that there are. Without a walker they find nothing.

use core::hint::black_box;

use crate::site::Site;
#[cfg(all(feature = "walker", target_os = "linux", not(miri)))]
use crate::unwinder;

impl Site {
    /// Where the caller is: its innermost frame is the return address of this call.
    #[must_use]
    #[inline(never)]
    pub fn here() -> Self {
        let anchor = 0_u8;
        Self::above(core::ptr::from_ref(black_box(&anchor)).addr())
    }

    /// Where the function was called that has a local variable at the address `local`: the stack
    /// of the calling thread, without that function's own frame and all that it called.
    ///
    /// `local` is only compared with.
    #[must_use]
    pub fn above(local: usize) -> Self {
        #[cfg(all(feature = "walker", target_os = "linux", not(miri)))]
        return unwinder::above(local);
        #[cfg(not(all(feature = "walker", target_os = "linux", not(miri))))]
        {
            let _ = local;
            Self::UNKNOWN
        }
    }

    /// Where a signal came, for its handler: the stack of the calling thread from `instruction` on, which
    /// is the address at which it was interrupted. If the walk does not come past it, the site is this
    /// address alone.
    #[must_use]
    pub fn interrupted(instruction: usize) -> Self {
        #[cfg(all(feature = "walker", target_os = "linux", not(miri)))]
        return unwinder::interrupted(instruction);
        #[cfg(not(all(feature = "walker", target_os = "linux", not(miri))))]
        Self::new([instruction.saturating_add(1)])
    }
}
