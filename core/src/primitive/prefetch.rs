//! Memory that will soon be needed, by architecture.

/// Whether [`prefetch`] does anything: on x86-64 and AArch64, but not under an interpreter.
pub const PREFETCHES: bool = cfg!(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)));

/// Has the processor load the line at `place` into its caches, and does not wait for it. Any address may be passed.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction is a hint. It changes no register, no flag and no memory, and does not fault.
    unsafe {
        core::arch::asm!("prefetcht0 [{}]", in(reg) place.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the instruction is a hint. It changes no register, no flag and no memory, and does not fault.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) place.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = place;
}
