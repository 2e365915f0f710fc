//! The walks. Without the walker they find nothing.

use core::hint::black_box;

use crate::site::Site;
#[cfg(all(feature = "walker", target_os = "linux", not(any(target_arch = "arm", miri))))]
use crate::unwinder;

impl Site {
    /// Where the caller is: its innermost frame is the return address of this call.
    #[must_use]
    #[inline(never)]
    pub fn here() -> Self {
        let anchor = 0_u8;
        Self::above(core::ptr::from_ref(black_box(&anchor)).addr())
    }

    /// Where a function was called: the stack of the calling thread, without the frame of the function
    /// that has a local variable at the address `local`, and without those of the functions that it called.
    ///
    /// The address is only compared with others; nothing is read there.
    #[must_use]
    pub fn above(local: usize) -> Self {
        #[cfg(all(feature = "walker", target_os = "linux", not(any(target_arch = "arm", miri))))]
        return unwinder::above(local);
        #[cfg(not(all(feature = "walker", target_os = "linux", not(any(target_arch = "arm", miri)))))]
        {
            let _ = local;
            Self::UNKNOWN
        }
    }

    /// Where a signal interrupted the calling thread, for the signal's handler: the stack from
    /// `instruction` on, the address of the interrupted instruction. If the walk does not pass it, the site
    /// is this address alone, as the frame of an interrupted instruction.
    #[must_use]
    pub fn interrupted(instruction: usize) -> Self {
        #[cfg(all(feature = "walker", target_os = "linux", not(any(target_arch = "arm", miri))))]
        return unwinder::interrupted(instruction);
        #[cfg(not(all(feature = "walker", target_os = "linux", not(any(target_arch = "arm", miri)))))]
        Self::new([instruction.saturating_add(1)])
    }
}
