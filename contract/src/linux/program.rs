//! Finds the program's code in the kernel's list of mappings, so that code addresses can be
//! handed to tools. It allocates nothing, and works in a signal handler.

use core::fmt;

use crate::kernel::Kernel;
use crate::record::Site;

/// The bytes that are read: enough for the program's own mappings, which come first.
const MAPS_READ: usize = 4096;

/// The kind of an ELF file that is linked to fixed addresses.
const FIXED: u8 = 2;

/// The program's file, and the addresses it is mapped at.
struct Program<'maps> {
    path: &'maps str,
    start: usize,
    end: usize,
    /// An address in memory minus the same address in the file.
    base: usize,
}

impl<'maps> Program<'maps> {
    /// Reads the file of the first mapping, which is the program's.
    fn read<K: Kernel>(kernel: K, buffer: &'maps mut [u8]) -> Option<Self> {
        let size = kernel.read_into("/proc/self/maps", buffer).ok()?;
        // The last line may be truncated.
        let text = core::str::from_utf8(&buffer[..size]).ok()?;
        let mut lines = text.lines().filter_map(mapping);
        let (start, mut end, path) = lines.next()?;
        lines.take_while(|&(_, _, of)| of == path).for_each(|(_, to, _)| end = to);
        let mut header = [0; 18];
        let read = kernel.read_into(path, &mut header).ok()?;
        let base = if read == header.len() && header[16] == FIXED { 0 } else { start };
        Some(Self { path, start, end, base })
    }

    fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// The beginning, the end, and the file of a line of the kernel's list.
fn mapping(line: &str) -> Option<(usize, usize, &str)> {
    let (start, rest) = line.split_once('-')?;
    let end = rest.split(' ').next()?;
    let path = line.find('/').map(|from| &line[from..])?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?, path))
}

/// Writes the code addresses of `site`, innermost first, as the command that turns those in
/// the program's own code into lines. If the program's file is not known, writes the plain
/// addresses.
pub(crate) fn describe<K: Kernel>(kernel: K, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result {
    if site.frames().is_empty() {
        return out.write_str("at an unknown place");
    }
    let mut buffer = [0; MAPS_READ];
    let program = Program::read(kernel, &mut buffer);
    let own = |frame: &&usize| program.as_ref().is_some_and(|program| program.contains(**frame));
    match &program {
        Some(Program { path, base, .. }) if site.frames().iter().any(|frame| own(&frame)) => {
            write!(out, "lines by: addr2line -Cfipe {path}")?;
            // A return address is behind the call.
            site.frames().iter().filter(own).try_for_each(|frame| write!(out, " {:#x}", frame - 1 - base))
        }
        _ => {
            out.write_str("frames")?;
            site.frames().iter().try_for_each(|frame| write!(out, " {frame:#x}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;

    use super::*;
    use crate::kernel::failing::{Calls, Failing};
    use crate::linux::Native;

    const MAPS: &str = "/proc/self/maps";

    fn described(files: &'static [(&'static str, &'static str)], frames: &[usize]) -> String {
        let mut text = String::new();
        let kernel = Failing::new(Native, Calls::empty()).with_files(files);
        describe(kernel, &Site::new(frames.iter().copied()), &mut text).unwrap();
        text
    }

    const MOVED: &[(&str, &str)] = &[
        (
            MAPS,
            "5000-6000 r--p 00000000 fe:00 1    /opt/a program\n6000-8000 r-xp 00001000 fe:00 1    /opt/a program\n\
             9000-a000 rw-p 00000000 00:00 0\n7f00000-7f01000 r-xp 00000000 fe:00 2    /lib/libc.so.6\n7f0",
        ),
        ("/opt/a program", "0123456789abcdef\x03\0"),
    ];

    #[test]
    fn frames_of_the_program_are_a_command_and_others_are_left_out() {
        let expected = "lines by: addr2line -Cfipe /opt/a program 0x10ff 0x2000";
        assert_eq!(described(MOVED, &[0x7f0_0010, 0x6100, 0x7001]), expected);
    }

    #[test]
    fn a_program_at_fixed_addresses_keeps_them() {
        const FIXED: &[(&str, &str)] = &[
            (MAPS, "400000-500000 r-xp 00000000 fe:00 1 /opt/fixed\n"),
            ("/opt/fixed", "0123456789abcdef\x02\0"),
        ];
        assert_eq!(described(FIXED, &[0x40_0101]), "lines by: addr2line -Cfipe /opt/fixed 0x400100");
    }

    #[test]
    fn what_is_not_known_is_said() {
        assert_eq!(described(MOVED, &[]), "at an unknown place");
        assert_eq!(described(MOVED, &[0x7f0_0010]), "frames 0x7f00010", "of another object");
        let blind = Failing::new(Native, Calls::READ);
        let mut text = String::new();
        describe(blind, &Site::new([0x10, 0x20]), &mut text).unwrap();
        assert_eq!(text, "frames 0x10 0x20");
        assert_eq!(described(&[(MAPS, "nothing\n")], &[0x10]), "frames 0x10");
    }

    /// This very program, as the kernel has it mapped.
    #[test]
    fn this_program_is_found() {
        let here = this_program_is_found as fn() as usize;
        let mut text = String::new();
        describe(Native, &Site::new([here + 1]), &mut text).unwrap();
        let program = std::env::current_exe().unwrap();
        let start = std::format!("lines by: addr2line -Cfipe {} 0x", program.display());
        assert!(text.starts_with(&start), "{text}");
    }
}
