//! Locks what the process has mapped. Code that a hot thread runs for the first time then does
//! not fault, and nothing that was brought in is swapped out
//! (design/contract.md `.lock`).

use core::fmt;
use core::ops::Range;
use std::string::String;
use std::vec::Vec;

use tripoint_core::Arena;

use crate::linux::kernel::{Errno, Kernel, Residence};
use crate::linux::system_calls::LinuxKernel;

/// The outcome of locking the process's memory. All sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockedMemory {
    /// Programs and libraries: brought in and locked.
    pub code: usize,
    /// Programs and libraries that the kernel refused to lock: brought in, but they may be
    /// swapped out again.
    pub brought_in: usize,
    /// Everything else: what is there is locked now, and the rest once it is touched.
    pub data: usize,
    /// What the kernel refused to lock or bring in.
    pub refused: usize,
    /// The first refusal.
    pub error: Option<Errno>,
}

impl LockedMemory {
    /// Whether everything is locked.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.brought_in == 0 && self.error.is_none()
    }
}

impl fmt::Display for LockedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, brought_in, data, refused, error } = self;
        write!(f, "{code} bytes of code and {data} of data locked")?;
        let Some(Errno(number)) = error else { return Ok(()) };
        write!(
            f,
            ", {brought_in} of code brought in only, {refused} refused with code {number}{}",
            advice(*number)
        )
    }
}

/// What to do about an error number, if something helps.
const fn advice(number: i32) -> &'static str {
    match number {
        libc::ENOMEM | libc::EPERM | libc::EAGAIN => ": raise the limit of locked memory (ulimit -l)",
        // The list of the mappings was not opened.
        libc::EMFILE => ": raise the limit of open files (ulimit -n)",
        libc::ENOENT => ": mount /proc",
        _ => "",
    }
}

/// Locks what the process has mapped now, except `arenas`, which have an option for this.
/// Raises the limit of locked memory as far as the process may.
///
/// Programs and libraries are brought in whole, so that code does not fault when it first
/// runs. All other memory is locked as it is touched, because stacks and heaps are larger
/// than what they use. The coordinator calls this at the end of Init or of the warm-up.
/// What is mapped later (threads, libraries) is not locked; locking again does no harm.
///
/// This never fails: the return value says what could not be locked.
///
/// ```
/// use tripoint_contract::linux::lock_memory;
///
/// let locked = lock_memory(&[]);
/// if !locked.is_whole() {
///     eprintln!("{locked}");
/// }
/// ```
#[must_use = "what could not be locked may fault"]
pub fn lock_memory(arenas: &[&dyn Arena]) -> LockedMemory {
    lock_memory_on(&LinuxKernel, arenas)
}

/// As [`lock_memory`], on another kernel.
#[must_use = "what could not be locked may fault"]
pub fn lock_memory_on<K: Kernel>(kernel: &K, arenas: &[&dyn Arena]) -> LockedMemory {
    let mut locked = LockedMemory::default();
    let maps = match kernel.read("/proc/self/maps").map(String::from_utf8) {
        Ok(Ok(maps)) => maps,
        Ok(Err(_)) => return locked.refuse(0, Errno(libc::EILSEQ)),
        Err(error) => return locked.refuse(0, error),
    };
    // If this fails, less can be locked, and the locking reports that.
    let _ = kernel.raise_lock_limit();
    let mappings: Vec<_> = maps.lines().filter_map(Mapping::parse).collect();
    let programs: Vec<_> =
        mappings.iter().filter(|mapping| mapping.is_code).map(|mapping| mapping.path).collect();
    let reserved: Vec<_> = arenas.iter().map(|arena| reserved_by(*arena)).collect();
    for mapping in mappings.iter().filter(|mapping| !mapping.is_within(&reserved)) {
        let range = mapping.range.clone();
        if mapping.path.starts_with('/') && programs.contains(&mapping.path) {
            locked.lock_code(kernel, range);
        } else {
            locked.lock_data(kernel, range);
        }
    }
    locked
}

impl LockedMemory {
    fn lock_code<K: Kernel>(&mut self, kernel: &K, range: Range<usize>) {
        let size = range.len();
        match kernel.keep_resident(range.clone(), Residence::Locked) {
            Ok(()) => self.code += size,
            Err(error) if kernel.keep_resident(range, Residence::BroughtIn).is_ok() => {
                self.brought_in += size;
                self.error.get_or_insert(error);
            }
            Err(error) => *self = self.refuse(size, error),
        }
    }

    fn lock_data<K: Kernel>(&mut self, kernel: &K, range: Range<usize>) {
        let size = range.len();
        match kernel.keep_resident(range, Residence::LockedOnceTouched) {
            Ok(()) => self.data += size,
            Err(error) => *self = self.refuse(size, error),
        }
    }

    fn refuse(mut self, size: usize, error: Errno) -> Self {
        self.refused += size;
        self.error.get_or_insert(error);
        self
    }
}

/// A readable mapping of the process.
struct Mapping<'a> {
    range: Range<usize>,
    is_code: bool,
    /// The path of its file; empty or in brackets if it has none.
    path: &'a str,
}

impl<'a> Mapping<'a> {
    /// Parses a line of `/proc/self/maps`. Returns `None` if there is nothing to lock:
    /// addresses without access, and what the kernel itself provides.
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let access = words.next()?;
        let path = words.nth(3).unwrap_or_default().trim_start();
        let address = |digits| usize::from_str_radix(digits, 16).ok();
        let range = address(start)?..address(end)?;
        let lent = path.starts_with("[v");
        (access.starts_with('r') && !lent).then_some(Self { range, is_code: access.contains('x'), path })
    }

    fn is_within(&self, reserved: &[Range<usize>]) -> bool {
        reserved.iter().any(|reserved| reserved.contains(&self.range.start))
    }
}

/// What an arena has of its range. Behind that others may have mappings.
fn reserved_by(arena: &dyn Arena) -> Range<usize> {
    let (range, reserved) = (arena.range(), arena.sizes().reserved);
    range.base().get()..range.base().get() + reserved.min(range.size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_as_the_kernel_writes_them() {
        let parse = |line| Mapping::parse(line).map(|mapping| (mapping.range, mapping.is_code, mapping.path));
        let program = "55d0c0000000-55d0c0001000 r-xp 00001000 fe:00 1234                       /usr/bin/a b";
        assert_eq!(parse(program), Some((0x55d0_c000_0000..0x55d0_c000_1000, true, "/usr/bin/a b")));
        let heap = "55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                          [heap]";
        assert_eq!(parse(heap), Some((0x55d0_c100_0000..0x55d0_c102_1000, false, "[heap]")));
        assert_eq!(
            parse("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 "),
            Some((0x7f00_0000_0000..0x7f00_0000_1000, false, ""))
        );
        assert_eq!(parse("7f0000000000-7f0000001000 ---p 00000000 00:00 0 "), None, "without access");
        assert_eq!(
            parse("7ffd00000000-7ffd00004000 r--p 00000000 00:00 0                          [vvar]"),
            None
        );
        assert_eq!(parse("damaged"), None);
    }

    #[test]
    fn each_refusal_has_its_own_advice() {
        use std::string::ToString;

        let told = |number| LockedMemory::default().refuse(0, Errno(number)).to_string();
        let start = "0 bytes of code and 0 of data locked, 0 of code brought in only, 0 refused with code";
        for (number, advice) in [
            (libc::ENOMEM, ": raise the limit of locked memory (ulimit -l)"),
            (libc::EPERM, ": raise the limit of locked memory (ulimit -l)"),
            (libc::EAGAIN, ": raise the limit of locked memory (ulimit -l)"),
            (libc::EMFILE, ": raise the limit of open files (ulimit -n)"),
            (libc::ENOENT, ": mount /proc"),
            (libc::EILSEQ, ""),
        ] {
            assert_eq!(told(number), std::format!("{start} {number}{advice}"));
        }
    }
}
