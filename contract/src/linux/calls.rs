//! The system calls that the filter stops: those about memory, and those that wait
//! (design/contract.md `.call.filter`, `.call.waits`).

use core::ffi::c_long;

use numbers::{MEMORY_CALLS, WAITS};

use crate::words::class::ViolationClass;

pub(super) use numbers::{ARCHITECTURE, COMPATIBLE};

/// A call about memory.
pub(super) struct MemoryCall {
    number: c_long,
    /// Its number in 32-bit code (`int 0x80`), which 64-bit programs may use too.
    compatible: u32,
    name: &'static str,
}

/// A call that waits.
pub(super) struct WaitCall {
    number: c_long,
    name: &'static str,
    pub(super) when: When,
}

/// Which calls of a number wait, as far as their arguments say so: a filter cannot read memory.
#[cfg_attr(not(target_pointer_width = "64"), allow(dead_code, reason = "no number is known there"))]
pub(super) enum When {
    Always,
    /// If these bits of an argument are one of the values.
    Among {
        argument: u32,
        bits: u32,
        values: &'static [u32],
    },
    /// If an argument is not zero.
    NotZero {
        argument: u32,
    },
}

/// A number that no call has.
const NONE: u32 = u32::MAX;

/// The numbers of the architectures on which the filter is known to work.
#[cfg(all(
    target_pointer_width = "64",
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))
))]
mod numbers {
    use core::ffi::{c_int, c_long};

    use super::{MemoryCall, WaitCall, When};

    /// The kernel's number of this architecture.
    pub(in crate::linux) const ARCHITECTURE: Option<u32> =
        Some(if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 });

    /// The architecture whose calls programs of this one may also make: `int 0x80`.
    pub(in crate::linux) const COMPATIBLE: Option<u32> =
        if cfg!(target_arch = "x86_64") { Some(0x4000_0003) } else { None };

    const fn call(number: c_long, compatible: u32, name: &'static str) -> MemoryCall {
        MemoryCall { number, compatible, name }
    }

    /// Not in libc. It maps memory for a shadow stack.
    const SYS_MAP_SHADOW_STACK: c_long = 453;
    /// Not in older versions of libc.
    const SYS_MSEAL: c_long = 462;

    /// The calls about memory. The old form of a call has a row of its own.
    pub(super) const MEMORY_CALLS: &[MemoryCall] = &[
        call(libc::SYS_mmap, 192, "mmap"),
        call(libc::SYS_mmap, 90, "mmap"),
        call(libc::SYS_munmap, 91, "munmap"),
        call(libc::SYS_mremap, 163, "mremap"),
        call(libc::SYS_brk, 45, "brk"),
        call(libc::SYS_mprotect, 125, "mprotect"),
        call(libc::SYS_madvise, 219, "madvise"),
        call(libc::SYS_mlock, 150, "mlock"),
        call(libc::SYS_munlock, 151, "munlock"),
        call(libc::SYS_mlockall, 152, "mlockall"),
        call(libc::SYS_munlockall, 153, "munlockall"),
        call(libc::SYS_shmat, 397, "shmat"),
        call(libc::SYS_shmdt, 398, "shmdt"),
        // In 32-bit code one call serves all of System V: queues and semaphores too.
        call(libc::SYS_shmat, 117, "shmat"),
        call(libc::SYS_remap_file_pages, 257, "remap_file_pages"),
        call(libc::SYS_mbind, 274, "mbind"),
        call(libc::SYS_fallocate, 324, "fallocate"),
        call(libc::SYS_memfd_create, 356, "memfd_create"),
        call(libc::SYS_mlock2, 376, "mlock2"),
        call(libc::SYS_pkey_mprotect, 380, "pkey_mprotect"),
        call(libc::SYS_io_uring_setup, 425, "io_uring_setup"),
        call(libc::SYS_process_madvise, 440, "process_madvise"),
        call(SYS_MSEAL, 462, "mseal"),
        call(SYS_MAP_SHADOW_STACK, 453, "map_shadow_stack"),
        call(libc::SYS_userfaultfd, 374, "userfaultfd"),
    ];

    const fn wait(number: c_long, name: &'static str, when: When) -> WaitCall {
        WaitCall { number, name, when }
    }

    /// If one bit of the options is not set: the one by which a call does not wait.
    const fn without(argument: u32, option: c_int) -> When {
        When::Among { argument, bits: option.cast_unsigned(), values: &[0] }
    }

    /// Not in older versions of libc, as the next two.
    const SYS_EPOLL_PWAIT2: c_long = 441;
    const SYS_FUTEX_WAITV: c_long = 449;
    const SYS_FUTEX_WAIT: c_long = 455;
    const FUTEX_LOCK_PI2: c_int = 13;

    /// The operations of `futex` that wait, without their options.
    const FUTEX_WAITS: When = When::Among {
        argument: 1,
        bits: libc::FUTEX_CMD_MASK.cast_unsigned(),
        values: &[
            libc::FUTEX_WAIT.cast_unsigned(),
            libc::FUTEX_LOCK_PI.cast_unsigned(),
            libc::FUTEX_WAIT_BITSET.cast_unsigned(),
            libc::FUTEX_WAIT_REQUEUE_PI.cast_unsigned(),
            FUTEX_LOCK_PI2.cast_unsigned(),
        ],
    };

    /// The calls whose purpose is to wait. On aarch64 those that are missing are made of others.
    pub(super) const WAITS: &[WaitCall] = &[
        wait(libc::SYS_futex, "futex", FUTEX_WAITS),
        wait(SYS_FUTEX_WAITV, "futex_waitv", When::Always),
        wait(SYS_FUTEX_WAIT, "futex_wait", When::Always),
        wait(libc::SYS_nanosleep, "nanosleep", When::Always),
        wait(libc::SYS_clock_nanosleep, "clock_nanosleep", When::Always),
        wait(libc::SYS_sched_yield, "sched_yield", When::Always),
        #[cfg(target_arch = "x86_64")]
        wait(libc::SYS_poll, "poll", When::NotZero { argument: 2 }),
        wait(libc::SYS_ppoll, "ppoll", When::Always),
        #[cfg(target_arch = "x86_64")]
        wait(libc::SYS_select, "select", When::Always),
        wait(libc::SYS_pselect6, "pselect6", When::Always),
        #[cfg(target_arch = "x86_64")]
        wait(libc::SYS_epoll_wait, "epoll_wait", When::NotZero { argument: 3 }),
        wait(libc::SYS_epoll_pwait, "epoll_pwait", When::NotZero { argument: 3 }),
        wait(SYS_EPOLL_PWAIT2, "epoll_pwait2", When::Always),
        wait(libc::SYS_wait4, "wait4", without(2, libc::WNOHANG)),
        wait(libc::SYS_waitid, "waitid", without(3, libc::WNOHANG)),
        #[cfg(target_arch = "x86_64")]
        wait(libc::SYS_pause, "pause", When::Always),
        wait(libc::SYS_rt_sigtimedwait, "rt_sigtimedwait", When::Always),
        wait(libc::SYS_rt_sigsuspend, "rt_sigsuspend", When::Always),
        wait(
            libc::SYS_flock,
            "flock",
            When::Among {
                argument: 1,
                bits: u32::MAX,
                values: &[libc::LOCK_SH.cast_unsigned(), libc::LOCK_EX.cast_unsigned()],
            },
        ),
        wait(
            libc::SYS_fcntl,
            "fcntl",
            When::Among {
                argument: 1,
                bits: u32::MAX,
                values: &[libc::F_SETLKW.cast_unsigned(), libc::F_OFD_SETLKW.cast_unsigned()],
            },
        ),
    ];
}

/// No numbers: there is no filter, and its detectors are not live. Nor has `libc` a number for each of these calls
/// on every architecture.
#[cfg(not(all(
    target_pointer_width = "64",
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))
)))]
mod numbers {
    use super::{MemoryCall, WaitCall};

    pub(in crate::linux) const ARCHITECTURE: Option<u32> = None;
    pub(in crate::linux) const COMPATIBLE: Option<u32> = None;
    pub(super) const MEMORY_CALLS: &[MemoryCall] = &[];
    pub(super) const WAITS: &[WaitCall] = &[];
}

fn native(number: c_long) -> u32 {
    u32::try_from(number).unwrap_or(NONE)
}

/// The numbers of the calls about memory.
pub(super) fn memory_calls() -> impl Iterator<Item = u32> {
    MEMORY_CALLS.iter().map(|call| native(call.number))
}

/// Their numbers in 32-bit code.
pub(super) fn compatible_memory_calls() -> impl Iterator<Item = u32> {
    MEMORY_CALLS.iter().map(|call| call.compatible)
}

/// The numbers of the calls that wait, and which calls of a number do.
pub(super) fn waits() -> impl Iterator<Item = (u32, &'static When)> {
    WAITS.iter().map(|call| (native(call.number), &call.when))
}

/// The class and the name of a stopped call.
fn known(call: usize) -> Option<(ViolationClass, &'static str)> {
    let is = |number| usize::try_from(number) == Ok(call);
    let memory = MEMORY_CALLS.iter().find(|known| is(known.number));
    let wait = WAITS.iter().find(|known| is(known.number));
    memory
        .map(|known| (ViolationClass::MemoryCall, known.name))
        .or_else(|| wait.map(|known| (ViolationClass::Wait, known.name)))
}

/// The name of a stopped call by its number.
pub(crate) fn call_name(call: usize) -> Option<&'static str> {
    known(call).map(|(_, name)| name)
}

/// The class of a stopped call.
pub(super) fn class_of_call(call: usize) -> ViolationClass {
    known(call).map_or(ViolationClass::MemoryCall, |(class, _)| class)
}

/// The bytes that a call is about: its second argument if that is a size, as the kernel
/// reads it. Other calls have flags or an address there, or whatever was in the register.
pub(super) fn size_of_call(call: usize, second: usize) -> usize {
    match call_name(call) {
        Some(
            "mmap" | "munmap" | "mremap" | "mprotect" | "pkey_mprotect" | "madvise" | "mlock" | "mlock2"
            | "munlock" | "remap_file_pages" | "mbind" | "mseal" | "map_shadow_stack",
        ) => second,
        _ => 0,
    }
}

/// The native number of a call that the filter stopped, in whichever way it was made.
pub(super) fn native_number(architecture: u32, number: usize) -> usize {
    let same = |known: &&MemoryCall| known.compatible as usize == number;
    let known = MEMORY_CALLS.iter().find(same).filter(|_| Some(architecture) == COMPATIBLE);
    known.and_then(|known| usize::try_from(known.number).ok()).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_of_two_classes() {
        for (number, _) in waits() {
            assert!(memory_calls().all(|other| other != number), "{number}");
            assert_eq!(class_of_call(number as usize), ViolationClass::Wait);
        }
        for number in memory_calls() {
            assert_eq!(class_of_call(number as usize), ViolationClass::MemoryCall);
        }
    }

    #[test]
    fn calls_of_32_bit_code_are_named() {
        let Some(compatible) = COMPATIBLE else {
            return tripoint_oracle::skipped!("there is no 32-bit code here");
        };
        for call in 0..1024 {
            let known = MEMORY_CALLS.iter().find(|known| known.compatible == call);
            let name = call_name(native_number(compatible, call as usize));
            assert!(known.is_none_or(|known| Some(known.name) == name), "{call}");
        }
        assert_eq!(call_name(native_number(compatible, 192)), Some("mmap"));
        assert_eq!(native_number(ARCHITECTURE.unwrap(), 192), 192, "another call");
    }
}
