//! Words that need not be initialised, by architecture. Elsewhere than on x86-64 and AArch64, and under an interpreter or a
//! model, [`peek`] finds zeros.

pub(crate) use machine::peek;

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(any(miri, tripoint_loom, tripoint_shuttle))
))]
mod machine {
    use core::arch::asm;

    /// The word at `place`, which need not be initialised: then it is any.
    ///
    /// # Safety
    /// - `place` is aligned, and valid for the read of a word, which no thread writes meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn peek(place: *const usize) -> usize {
        let word;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this reads a word that the caller promises may be read, and changes nothing else. The compiler knows
        // nothing of what it reads, so that may be uninitialised.
        unsafe {
            asm!("mov {}, [{}]", out(reg) word, in(reg) place, options(readonly, nostack, preserves_flags));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: this reads a word that the caller promises may be read, and changes nothing else. The compiler knows
        // nothing of what it reads, so that may be uninitialised.
        unsafe {
            asm!("ldr {}, [{}]", out(reg) word, in(reg) place, options(readonly, nostack, preserves_flags));
        }
        word
    }
}

#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(any(miri, tripoint_loom, tripoint_shuttle))
)))]
mod machine {
    /// # Safety
    /// - None: nothing is read.
    pub(crate) const unsafe fn peek(_place: *const usize) -> usize {
        0
    }
}
