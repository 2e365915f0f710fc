//! The program by which the kernel stops the calls of some detectors
//! (design/contract.md `.call.filter`, `.call.waits`).

use crate::linux::calls::{self, ARCHITECTURE, COMPATIBLE, When};
use crate::linux::kernel::Instruction;
use crate::words::detector_set::DetectorSet;

/// The detectors that need the filter.
pub(super) const FILTERED: DetectorSet = DetectorSet::MEMORY_CALLS.union(DetectorSet::WAITS);

const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Where the filter's input has the number of the call, the architecture, and the arguments, of which each has the lower half
/// first.
const CALL_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;
const ARGUMENTS_OFFSET: u32 = 16;
const ARGUMENT_SIZE: u32 = 8;

const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;

/// The most instructions: so jumps, which are bytes, reach the end from anywhere.
const INSTRUCTIONS_MAX: usize = 256;

/// A program, in memory that need not be freed: to free some may be a memory call.
pub(super) struct Program {
    instructions: [Instruction; INSTRUCTIONS_MAX],
    size: usize,
}

/// The program: the calls of these detectors notify, all others pass. `None` if the numbers of the
/// calls are not known.
pub(super) fn program(wanted: DetectorSet) -> Option<Program> {
    let mut program = Program::new();
    program.load_word(ARCHITECTURE_OFFSET);
    program.add_block(ARCHITECTURE?, |program| {
        if wanted.contains(DetectorSet::MEMORY_CALLS) {
            calls::memory_calls().for_each(|call| program.stop(call));
        }
        if wanted.contains(DetectorSet::WAITS) {
            calls::waits().for_each(|(call, when)| program.stop_when(call, when));
        }
    });
    if let Some(architecture) = COMPATIBLE.filter(|_| wanted.contains(DetectorSet::MEMORY_CALLS)) {
        program.add_block(architecture, |program| {
            calls::compatible_memory_calls().for_each(|call| program.stop(call));
        });
    }
    program.end(ALLOW);
    Some(program)
}

impl Program {
    const fn new() -> Self {
        let end = Instruction { code: RETURN, if_true: 0, if_false: 0, operand: ALLOW };
        Self { instructions: [end; INSTRUCTIONS_MAX], size: 0 }
    }

    pub(super) fn instructions(&self) -> &[Instruction] {
        &self.instructions[..self.size]
    }

    fn add(&mut self, code: u16, if_false: u8, operand: u32) {
        self.instructions[self.size] = Instruction { code, if_true: 0, if_false, operand };
        self.size += 1;
    }

    fn load_word(&mut self, offset: u32) {
        self.add(LOAD_WORD, 0, offset);
    }

    fn end(&mut self, answer: u32) {
        self.add(RETURN, 0, answer);
    }

    /// Ends with this answer if the word is `value`.
    fn end_if(&mut self, value: u32, answer: u32) {
        self.add(JUMP_IF_EQUAL, 1, value);
        self.end(answer);
    }

    /// Skips what `write` writes unless the word is `value`.
    fn only_if(&mut self, value: u32, write: impl FnOnce(&mut Self)) {
        let test = self.size;
        self.add(JUMP_IF_EQUAL, 0, value);
        write(self);
        // All instructions are within reach.
        #[allow(clippy::cast_possible_truncation)]
        let skipped = (self.size - test - 1) as u8;
        self.instructions[test].if_false = skipped;
    }

    /// Lets calls of one architecture pass, except those that `stop` stops.
    fn add_block(&mut self, architecture: u32, stop: impl FnOnce(&mut Self)) {
        self.only_if(architecture, |program| {
            program.load_word(CALL_OFFSET);
            stop(program);
            program.end(ALLOW);
        });
    }

    fn stop(&mut self, call: u32) {
        self.end_if(call, NOTIFY);
    }

    fn stop_when(&mut self, call: u32, when: &When) {
        let offset = |argument| ARGUMENTS_OFFSET + argument * ARGUMENT_SIZE;
        match *when {
            When::Always => self.stop(call),
            When::Among { argument, bits, values } => self.only_if(call, |program| {
                program.load_word(offset(argument));
                program.add(AND, 0, bits);
                values.iter().for_each(|&value| program.end_if(value, NOTIFY));
                program.end(ALLOW);
            }),
            When::NotZero { argument } => self.only_if(call, |program| {
                program.load_word(offset(argument));
                program.end_if(0, ALLOW);
                program.end(NOTIFY);
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::class::ViolationClass;

    /// What the program answers to a call, as the kernel would run it.
    fn run(wanted: DetectorSet, architecture: u32, call: u32, arguments: [u32; 6]) -> u32 {
        let program = program(wanted).unwrap();
        let (mut at, mut word) = (0, 0);
        loop {
            let Instruction { code, if_true, if_false, operand } = program.instructions()[at];
            at += 1;
            match code {
                LOAD_WORD => {
                    word = match operand {
                        CALL_OFFSET => call,
                        ARCHITECTURE_OFFSET => architecture,
                        _ => arguments[((operand - ARGUMENTS_OFFSET) / ARGUMENT_SIZE) as usize],
                    }
                }
                AND => word &= operand,
                JUMP_IF_EQUAL => at += usize::from(if word == operand { if_true } else { if_false }),
                _ => return operand,
            }
        }
    }

    /// Whether the program of these detectors stops a native call.
    fn stops(wanted: DetectorSet, call: libc::c_long, arguments: [u32; 6]) -> bool {
        run(wanted, ARCHITECTURE.unwrap(), u32::try_from(call).unwrap(), arguments) == NOTIFY
    }

    fn has_numbers() -> bool {
        if ARCHITECTURE.is_none() {
            tripoint_oracle::skipped!("the numbers are not known here");
        }
        ARCHITECTURE.is_some()
    }

    #[test]
    fn memory_calls_notify_and_no_others() {
        if !has_numbers() {
            return;
        }
        let (native, wanted) = (ARCHITECTURE.unwrap(), DetectorSet::MEMORY_CALLS);
        for call in 0..1024 {
            let is_memory_call = calls::call_name(call as usize).is_some()
                && calls::class_of_call(call as usize) == ViolationClass::MemoryCall;
            for arguments in [[0; 6], [1; 6]] {
                let expected = if is_memory_call { NOTIFY } else { ALLOW };
                assert_eq!(run(wanted, native, call, arguments), expected, "{call}");
                assert_eq!(run(wanted, native ^ 1, call, arguments), ALLOW);
            }
        }
    }

    #[test]
    fn memory_calls_of_32_bit_code_notify() {
        let Some(compatible) = COMPATIBLE else {
            return tripoint_oracle::skipped!("there is no 32-bit code here");
        };
        for call in 0..1024 {
            let known = calls::compatible_memory_calls().any(|known| known == call);
            assert_eq!(run(FILTERED, compatible, call, [0; 6]) == NOTIFY, known, "{call}");
            assert_eq!(run(DetectorSet::WAITS, compatible, call, [0; 6]), ALLOW, "{call}");
        }
    }

    /// The arguments are those of the manual pages.
    #[test]
    fn calls_notify_that_ask_to_wait_and_no_others() {
        if !has_numbers() {
            return;
        }
        let forever = u32::MAX;
        let cases: &[(libc::c_long, [u32; 6], bool)] = &[
            (libc::SYS_futex, [7, 0, 7, 0, 0, 0], true),   // FUTEX_WAIT
            (libc::SYS_futex, [7, 128, 7, 0, 0, 0], true), // FUTEX_WAIT_PRIVATE
            (libc::SYS_futex, [7, 9 | 128 | 256, 7, 0, 0, 0], true), // FUTEX_WAIT_BITSET
            (libc::SYS_futex, [7, 6 | 128, 0, 0, 0, 0], true), // FUTEX_LOCK_PI
            (libc::SYS_futex, [7, 11, 0, 0, 0, 0], true),  // FUTEX_WAIT_REQUEUE_PI
            (libc::SYS_futex, [7, 13, 0, 0, 0, 0], true),  // FUTEX_LOCK_PI2
            (libc::SYS_futex, [7, 1, 1, 0, 0, 0], false),  // FUTEX_WAKE
            (libc::SYS_futex, [7, 1 | 128, 1, 0, 0, 0], false), // FUTEX_WAKE_PRIVATE
            (libc::SYS_futex, [7, 4, 1, 0, 0, 0], false),  // FUTEX_CMP_REQUEUE
            (libc::SYS_futex, [7, 7, 0, 0, 0, 0], false),  // FUTEX_UNLOCK_PI
            (libc::SYS_futex, [7, 8, 0, 0, 0, 0], false),  // FUTEX_TRYLOCK_PI
            (libc::SYS_futex, [7, 10, 1, 0, 0, 0], false), // FUTEX_WAKE_BITSET
            (libc::SYS_nanosleep, [7, 0, 0, 0, 0, 0], true),
            (libc::SYS_clock_nanosleep, [0; 6], true),
            (libc::SYS_sched_yield, [0; 6], true),
            (libc::SYS_ppoll, [7, 1, 0, 0, 0, 0], true),
            (libc::SYS_pselect6, [1, 0, 0, 0, 0, 0], true),
            (libc::SYS_epoll_pwait, [7, 7, 1, forever, 0, 0], true),
            (libc::SYS_epoll_pwait, [7, 7, 1, 10, 0, 0], true),
            (libc::SYS_epoll_pwait, [7, 7, 1, 0, 0, 0], false),
            (libc::SYS_wait4, [forever, 0, 0, 0, 0, 0], true),
            (libc::SYS_wait4, [forever, 0, 2, 0, 0, 0], true), // WUNTRACED
            (libc::SYS_wait4, [forever, 0, 1, 0, 0, 0], false), // WNOHANG
            (libc::SYS_wait4, [forever, 0, 3, 0, 0, 0], false),
            (libc::SYS_waitid, [0, 0, 0, 4, 0, 0], true), // WEXITED
            (libc::SYS_waitid, [0, 0, 0, 5, 0, 0], false),
            (libc::SYS_rt_sigtimedwait, [0; 6], true),
            (libc::SYS_rt_sigsuspend, [0; 6], true),
            (libc::SYS_flock, [7, 1, 0, 0, 0, 0], true), // LOCK_SH
            (libc::SYS_flock, [7, 2, 0, 0, 0, 0], true), // LOCK_EX
            (libc::SYS_flock, [7, 2 | 4, 0, 0, 0, 0], false), // LOCK_NB
            (libc::SYS_flock, [7, 8, 0, 0, 0, 0], false), // LOCK_UN
            (libc::SYS_fcntl, [7, 7, 0, 0, 0, 0], true), // F_SETLKW
            (libc::SYS_fcntl, [7, 38, 0, 0, 0, 0], true), // F_OFD_SETLKW
            (libc::SYS_fcntl, [7, 6, 0, 0, 0, 0], false), // F_SETLK
            (libc::SYS_fcntl, [7, 3, 0, 0, 0, 0], false), // F_GETFL
            (libc::SYS_read, [0, 7, 1, 0, 0, 0], false),
            (libc::SYS_write, [1, 7, 1, 0, 0, 0], false),
            (libc::SYS_getppid, [0; 6], false),
            (libc::SYS_mmap, [0; 6], false),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_poll, [7, 1, forever, 0, 0, 0], true),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_poll, [7, 1, 0, 0, 0, 0], false),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_epoll_wait, [7, 7, 1, 1, 0, 0], true),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_epoll_wait, [7, 7, 1, 0, 0, 0], false),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_select, [1, 0, 0, 0, 0, 0], true),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_pause, [0; 6], true),
        ];
        for &(call, arguments, waits) in cases {
            assert_eq!(stops(DetectorSet::WAITS, call, arguments), waits, "{call} {arguments:?}");
            let is_memory = call == libc::SYS_mmap;
            assert_eq!(stops(FILTERED, call, arguments), waits || is_memory, "{call} {arguments:?}");
            assert_eq!(stops(DetectorSet::MEMORY_CALLS, call, arguments), is_memory, "{call} {arguments:?}");
        }
        for call in 0..1024 {
            let is_wait = calls::waits().any(|(known, _)| known == call);
            assert!(is_wait || !stops(DetectorSet::WAITS, call.into(), [2; 6]), "{call}");
        }
    }
}
