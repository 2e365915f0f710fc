//! The filter of memory calls: which calls, and the program that stops them
//! (design/contract.md `.call.filter`).

use core::ffi::c_long;

use numbers::{ARCHITECTURE, COMPATIBLE, MEMORY_CALLS};

use crate::linux::kernel::Instruction;

/// A memory call that the filter stops.
struct MemoryCall {
    number: c_long,
    /// Its number in 32-bit code (`int 0x80`), which 64-bit programs may use too.
    compatible: u32,
    name: &'static str,
}

/// A number that no call has.
const NONE: u32 = u32::MAX;

/// The numbers of the architectures on which the filter is known to work.
#[cfg(all(
    target_pointer_width = "64",
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))
))]
mod numbers {
    use core::ffi::c_long;

    use super::MemoryCall;

    /// The kernel's number of this architecture.
    pub(super) const ARCHITECTURE: Option<u32> =
        Some(if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 });

    /// The architecture whose calls programs of this one may also make: `int 0x80`.
    pub(super) const COMPATIBLE: Option<u32> =
        if cfg!(target_arch = "x86_64") { Some(0x4000_0003) } else { None };

    const fn call(number: c_long, compatible: u32, name: &'static str) -> MemoryCall {
        MemoryCall { number, compatible, name }
    }

    /// Not in libc. It maps memory for a shadow stack.
    const SYS_MAP_SHADOW_STACK: c_long = 453;
    /// Not in older versions of libc.
    const SYS_MSEAL: c_long = 462;

    /// The calls that are stopped. The old form of a call has a row of its own.
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
}

/// No numbers: there is no filter, and the detector is not live. Nor has `libc` a number for each of these calls
/// on every architecture.
#[cfg(not(all(
    target_pointer_width = "64",
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))
)))]
mod numbers {
    use super::MemoryCall;

    pub(super) const ARCHITECTURE: Option<u32> = None;
    pub(super) const COMPATIBLE: Option<u32> = None;
    pub(super) const MEMORY_CALLS: &[MemoryCall] = &[];
}

/// The name of a memory call by its number.
#[must_use]
pub fn memory_call_name(call: usize) -> Option<&'static str> {
    let known = |known: &&MemoryCall| usize::try_from(known.number) == Ok(call);
    MEMORY_CALLS.iter().find(known).map(|known| known.name)
}

/// The bytes that a memory call is about: its second argument if that is a size, as the kernel
/// reads it. Other calls have flags or an address there, or whatever was in the register.
pub(super) fn size_of_call(call: usize, second: usize) -> usize {
    match memory_call_name(call) {
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

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Where the filter's input has the number of the call, and the architecture.
const CALL_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;

const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;

/// The instructions for one architecture: test for it, load the call, compare it with each
/// call, pass.
const BLOCK_SIZE: usize = MEMORY_CALLS.len() + 3;

/// All instructions: one to load the architecture, two blocks, and the two ends.
pub(super) const PROGRAM_SIZE: usize = 2 * BLOCK_SIZE + 3;

/// The program: memory calls notify, all others pass. `None` if the numbers of the memory
/// calls are not known.
pub(super) fn program() -> Option<[Instruction; PROGRAM_SIZE]> {
    let plain = |code, operand| Instruction { code, if_true: 0, if_false: 0, operand };
    let mut program = [plain(RETURN, ALLOW); PROGRAM_SIZE];
    let block = |number: fn(&MemoryCall) -> u32| MEMORY_CALLS.iter().map(number);
    let native = block(|call| u32::try_from(call.number).unwrap_or(NONE));
    let compatible = block(|call| call.compatible);
    program[0] = plain(LOAD_WORD, ARCHITECTURE_OFFSET);
    write_block(&mut program, 1, ARCHITECTURE?, native);
    write_block(&mut program, 1 + BLOCK_SIZE, COMPATIBLE.unwrap_or(NONE), compatible);
    program[PROGRAM_SIZE - 1] = plain(RETURN, NOTIFY);
    Some(program)
}

/// Writes the block of one architecture, from `at` on. For others it goes on after the block.
fn write_block(
    program: &mut [Instruction; PROGRAM_SIZE],
    at: usize,
    architecture: u32,
    calls: impl Iterator<Item = u32>,
) {
    // The end is within 256 instructions, so the jumps fit.
    #[allow(clippy::cast_possible_truncation)]
    let to = |target: usize, from: usize| (target - from - 1) as u8;
    let jump = |operand, if_true, if_false| Instruction { code: JUMP_IF_EQUAL, if_true, if_false, operand };
    program[at] = jump(architecture, 0, to(at + BLOCK_SIZE, at));
    program[at + 1] = Instruction { code: LOAD_WORD, if_true: 0, if_false: 0, operand: CALL_OFFSET };
    for (index, call) in (at + 2..).zip(calls) {
        program[index] = jump(call, to(PROGRAM_SIZE - 1, index), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const _: () = assert!(PROGRAM_SIZE <= 256, "jumps are bytes");

    /// What the program answers, as the kernel would run it.
    fn run(architecture: u32, call: u32) -> u32 {
        let program = program().unwrap();
        let (mut at, mut word) = (0, 0);
        loop {
            let Instruction { code, if_true, if_false, operand } = program[at];
            at += 1;
            match code {
                LOAD_WORD => word = if operand == CALL_OFFSET { call } else { architecture },
                JUMP_IF_EQUAL => at += usize::from(if word == operand { if_true } else { if_false }),
                _ => return operand,
            }
        }
    }

    #[test]
    fn memory_calls_notify_and_no_others() {
        let Some(native) = ARCHITECTURE else {
            return tripoint_oracle::skipped!("the numbers are not known here");
        };
        for call in 0..1024 {
            let is_memory_call = memory_call_name(call as usize).is_some();
            assert_eq!(run(native, call), if is_memory_call { NOTIFY } else { ALLOW }, "{call}");
            assert_eq!(run(native ^ 1, call), ALLOW);
        }
    }

    #[test]
    fn calls_of_32_bit_code_notify_and_are_named() {
        let Some(compatible) = COMPATIBLE else {
            return tripoint_oracle::skipped!("there is no 32-bit code here");
        };
        for call in 0..1024 {
            let known = MEMORY_CALLS.iter().find(|known| known.compatible == call);
            assert_eq!(run(compatible, call) == NOTIFY, known.is_some(), "{call}");
            let name = memory_call_name(native_number(compatible, call as usize));
            assert!(known.is_none_or(|known| Some(known.name) == name), "{call}");
        }
        assert_eq!(memory_call_name(native_number(compatible, 192)), Some("mmap"));
        assert_eq!(native_number(ARCHITECTURE.unwrap(), 192), 192, "another call");
    }
}
