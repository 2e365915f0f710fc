//! The registers that a call preserves, and where the stack ends: machine code for each architecture.
//!
//! A reference that a thread has nowhere else may be in a register. If the value of a register that calls do not
//! preserve is needed after a call, it is on the stack during the call. So only the registers that calls preserve have
//! to be stored.
//!
//! | architecture | registers |
//! |---|---|
//! | x86-64 | `rbx`, `rbp`, `r12` to `r15`; on Windows also `rdi`, `rsi` |
//! | x86 | `ebx`, `ebp`, `esi`, `edi` |
//! | AArch64 | `x19` to `x30` |
//! | Arm, Thumb too | `r4` to `r11` |
//! | RISC-V, 32 and 64 bits | `s0` to `s11` |
//! | others, models, interpreters | none: [`spill`] returns `None` |
//!
//! On all of these the stack grows to lower addresses.

use core::ptr::NonNull;

/// The most registers that a call preserves.
const COUNT: usize = 12;

/// The registers that calls preserve, as they were when they were spilled.
pub(crate) type Registers = [usize; COUNT];

/// Stores the registers that calls preserve in `registers`, and returns the stack pointer of the function that this is
/// inlined into; `None` if there is no machine code for the architecture.
#[inline(always)]
pub(crate) fn spill(registers: &mut Registers) -> Option<NonNull<usize>> {
    // SAFETY: the array has room for the registers of each architecture.
    NonNull::new(unsafe { machine::spill(registers.as_mut_ptr()) })
}

#[cfg(all(
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(any(miri, tripoint_loom, tripoint_shuttle))
))]
mod machine {
    use core::arch::asm;

    /// # Safety
    /// - There is room for eight words at `registers`.
    #[inline(always)]
    pub(super) unsafe fn spill(registers: *mut usize) -> *mut usize {
        let hot_end;
        // SAFETY: this stores eight registers where the caller promises room, and changes nothing else.
        unsafe {
            asm!(
                "mov [{0}], rbx",
                "mov [{0} + 8], rbp",
                "mov [{0} + 16], r12",
                "mov [{0} + 24], r13",
                "mov [{0} + 32], r14",
                "mov [{0} + 40], r15",
                "mov [{0} + 48], rdi",
                "mov [{0} + 56], rsi",
                "mov {1}, rsp",
                in(reg) registers,
                out(reg) hot_end,
                options(nostack, preserves_flags),
            );
        }
        hot_end
    }
}

#[cfg(all(target_arch = "x86", not(any(miri, tripoint_loom, tripoint_shuttle))))]
mod machine {
    use core::arch::asm;

    /// # Safety
    /// - There is room for four words at `registers`.
    #[inline(always)]
    pub(super) unsafe fn spill(registers: *mut usize) -> *mut usize {
        let hot_end;
        // SAFETY: this stores four registers where the caller promises room, and changes nothing else.
        unsafe {
            asm!(
                "mov [{0}], ebx",
                "mov [{0} + 4], ebp",
                "mov [{0} + 8], esi",
                "mov [{0} + 12], edi",
                "mov {1}, esp",
                in(reg) registers,
                out(reg) hot_end,
                options(nostack, preserves_flags),
            );
        }
        hot_end
    }
}

#[cfg(all(
    target_arch = "aarch64",
    target_pointer_width = "64",
    not(any(miri, tripoint_loom, tripoint_shuttle))
))]
mod machine {
    use core::arch::asm;

    /// # Safety
    /// - There is room for twelve words at `registers`.
    #[inline(always)]
    pub(super) unsafe fn spill(registers: *mut usize) -> *mut usize {
        let hot_end;
        // SAFETY: this stores twelve registers where the caller promises room, and changes nothing else.
        unsafe {
            asm!(
                "stp x19, x20, [{0}]",
                "stp x21, x22, [{0}, 16]",
                "stp x23, x24, [{0}, 32]",
                "stp x25, x26, [{0}, 48]",
                "stp x27, x28, [{0}, 64]",
                "stp x29, x30, [{0}, 80]",
                "mov {1}, sp",
                in(reg) registers,
                out(reg) hot_end,
                options(nostack, preserves_flags),
            );
        }
        hot_end
    }
}

#[cfg(all(target_arch = "arm", not(any(miri, tripoint_loom, tripoint_shuttle))))]
mod machine {
    use core::arch::asm;

    /// # Safety
    /// - There is room for eight words at `registers`.
    #[inline(always)]
    pub(super) unsafe fn spill(registers: *mut usize) -> *mut usize {
        let hot_end;
        // SAFETY: this stores eight registers where the caller promises room, and changes nothing else.
        unsafe {
            asm!(
                "stm {0}, {{r4-r11}}",
                "mov {1}, sp",
                in(reg) registers,
                out(reg) hot_end,
                options(nostack, preserves_flags),
            );
        }
        hot_end
    }
}

#[cfg(all(
    any(target_arch = "riscv32", target_arch = "riscv64"),
    not(any(miri, tripoint_loom, tripoint_shuttle))
))]
mod machine {
    use core::arch::asm;

    /// The instructions, with the one that stores a word.
    macro_rules! spill {
        ($store:literal, $size:literal, $registers:expr, $hot_end:expr) => {
            asm!(
                concat!($store, " s0, 0*", $size, "({0})"),
                concat!($store, " s1, 1*", $size, "({0})"),
                concat!($store, " s2, 2*", $size, "({0})"),
                concat!($store, " s3, 3*", $size, "({0})"),
                concat!($store, " s4, 4*", $size, "({0})"),
                concat!($store, " s5, 5*", $size, "({0})"),
                concat!($store, " s6, 6*", $size, "({0})"),
                concat!($store, " s7, 7*", $size, "({0})"),
                concat!($store, " s8, 8*", $size, "({0})"),
                concat!($store, " s9, 9*", $size, "({0})"),
                concat!($store, " s10, 10*", $size, "({0})"),
                concat!($store, " s11, 11*", $size, "({0})"),
                "mv {1}, sp",
                in(reg) $registers,
                out(reg) $hot_end,
                options(nostack, preserves_flags),
            )
        };
    }

    /// # Safety
    /// - There is room for twelve words at `registers`.
    #[inline(always)]
    pub(super) unsafe fn spill(registers: *mut usize) -> *mut usize {
        let hot_end;
        #[cfg(target_arch = "riscv32")]
        // SAFETY: this stores twelve registers where the caller promises room, and changes nothing else.
        unsafe {
            spill!("sw", "4", registers, hot_end)
        };
        #[cfg(target_arch = "riscv64")]
        // SAFETY: this stores twelve registers where the caller promises room, and changes nothing else.
        unsafe {
            spill!("sd", "8", registers, hot_end)
        };
        hot_end
    }
}

/// Everywhere else registers cannot be read, so no stack can be a root (design/gc.md `.stack.refused`).
#[cfg(any(
    miri,
    tripoint_loom,
    tripoint_shuttle,
    not(any(
        all(target_arch = "x86_64", target_pointer_width = "64"),
        target_arch = "x86",
        all(target_arch = "aarch64", target_pointer_width = "64"),
        target_arch = "arm",
        target_arch = "riscv32",
        target_arch = "riscv64",
    ))
))]
mod machine {
    /// Returns null: it is not known where the stack ends.
    ///
    /// # Safety
    /// - None.
    #[inline(always)]
    pub(super) unsafe fn spill(_registers: *mut usize) -> *mut usize {
        core::ptr::null_mut()
    }
}
