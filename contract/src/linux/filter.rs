//! The filter of memory calls: which calls, and the program that stops them.

use core::ffi::c_long;

use crate::kernel::Instruction;

/// The calls that are stopped, with their names.
const MEMORY_CALLS: [(c_long, &str); 12] = [
    (libc::SYS_mmap, "mmap"),
    (libc::SYS_munmap, "munmap"),
    (libc::SYS_mremap, "mremap"),
    (libc::SYS_brk, "brk"),
    (libc::SYS_mprotect, "mprotect"),
    (libc::SYS_madvise, "madvise"),
    (libc::SYS_mlock, "mlock"),
    (libc::SYS_munlock, "munlock"),
    (libc::SYS_mlockall, "mlockall"),
    (libc::SYS_munlockall, "munlockall"),
    (libc::SYS_shmat, "shmat"),
    (libc::SYS_shmdt, "shmdt"),
];

/// The name of a memory call by its number.
#[must_use]
pub fn memory_call_name(call: usize) -> Option<&'static str> {
    let known = |(number, _): &&(c_long, &str)| usize::try_from(*number) == Ok(call);
    MEMORY_CALLS.iter().find(known).map(|(_, name)| *name)
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// No architecture: the filter lets everything through, and is found not live.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Where the filter's input has the number of the call, and the architecture.
const CALL_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;

const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;

/// Instructions: two for the architecture, one to load the call, one for each
/// call, and the two ends.
pub(super) const PROGRAM_SIZE: usize = MEMORY_CALLS.len() + 5;

/// The program: memory calls notify, all others pass.
pub(super) fn program() -> [Instruction; PROGRAM_SIZE] {
    let plain = |code, operand| Instruction { code, if_true: 0, if_false: 0, operand };
    let mut program = [plain(RETURN, ALLOW); PROGRAM_SIZE];
    // The end is within 256 instructions, so the jumps fit.
    #[allow(clippy::cast_possible_truncation)]
    let to_allow = |from: usize| (PROGRAM_SIZE - 2 - from - 1) as u8;
    program[0] = plain(LOAD_WORD, ARCHITECTURE_OFFSET);
    program[1] =
        Instruction { code: JUMP_IF_EQUAL, if_true: 0, if_false: to_allow(1), operand: ARCHITECTURE };
    program[2] = plain(LOAD_WORD, CALL_OFFSET);
    for (index, (call, _)) in (3..).zip(MEMORY_CALLS) {
        program[index] = Instruction {
            code: JUMP_IF_EQUAL,
            if_true: to_allow(index) + 1,
            if_false: 0,
            operand: u32::try_from(call).unwrap_or(u32::MAX),
        };
    }
    program[PROGRAM_SIZE - 1] = plain(RETURN, NOTIFY);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program answers, as the kernel would run it.
    fn run(architecture: u32, call: u32) -> u32 {
        let program = program();
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
        for call in 0..1024 {
            let is_memory_call = memory_call_name(call as usize).is_some();
            assert_eq!(run(ARCHITECTURE, call), if is_memory_call { NOTIFY } else { ALLOW }, "{call}");
            assert_eq!(run(ARCHITECTURE ^ 1, call), ALLOW);
        }
    }
}
