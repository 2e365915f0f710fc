//! Finds the program's code in the kernel's list of mappings, so that code addresses can be
//! handed to tools. It allocates nothing, and works in a signal handler.

use core::fmt;

use tripoint_stack::Site;

use crate::linux::kernel::Kernel;

/// The bytes that are read: enough for the program's own mappings, which are among the first.
const MAPS_READ: usize = 4096;

/// The kind of an ELF file that is linked to fixed addresses.
const FIXED: u8 = 2;

/// A file, and the addresses it is mapped at.
struct Mapping<'maps> {
    path: &'maps str,
    start: usize,
    end: usize,
}

impl<'maps> Mapping<'maps> {
    /// Parses a line of the kernel's list. Returns `None` if it is of no file.
    fn parse(line: &'maps str) -> Option<Self> {
        let (start, rest) = line.split_once('-')?;
        let end = rest.split(' ').next()?;
        let path = line.find('/').map(|from| &line[from..])?;
        let address = |digits| usize::from_str_radix(digits, 16).ok();
        Some(Self { path, start: address(start)?, end: address(end)? })
    }

    /// The neighbouring mappings of one file, of which one contains `address`.
    fn around(address: usize, list: &'maps str) -> Option<Self> {
        let mut found: Option<Self> = None;
        for line in list.lines() {
            match (Self::parse(line), &mut found) {
                (Some(next), Some(found)) if next.path == found.path => found.end = next.end,
                (_, Some(found)) if found.contains(address) => break,
                (next, found) => *found = next,
            }
        }
        found.filter(|found| found.contains(address))
    }

    fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// The program's file, and an address in memory minus the same address in the file.
struct Program<'maps> {
    file: Mapping<'maps>,
    base: usize,
}

impl<'maps> Program<'maps> {
    /// Finds the file that the code at `own` is mapped from. It need not be the first: a file
    /// may be mapped below it, or the loader may have been started with its path.
    fn read<K: Kernel>(kernel: K, own: usize, buffer: &'maps mut [u8]) -> Option<Self> {
        let size = kernel.read_into("/proc/self/maps", buffer).ok()?;
        // The last line may be truncated.
        let whole = buffer[..size].iter().rposition(|&byte| byte == b'\n')?;
        let file = Mapping::around(own, core::str::from_utf8(&buffer[..whole]).ok()?)?;
        let mut header = [0; 18];
        let read = kernel.read_into(file.path, &mut header).ok()?;
        let base = if read == header.len() && header[16] == FIXED { 0 } else { file.start };
        Some(Self { file, base })
    }

    /// Where in the file the call is that returns to `frame`, if it is the program's: the
    /// return address is behind the call.
    fn call(&self, frame: usize) -> Option<usize> {
        let call = frame.checked_sub(1)?;
        self.file.contains(call).then(|| call - self.base)
    }
}

/// Writes the code addresses of `site`, innermost first, as the command that turns those in
/// the program's own code into lines. If the program's file is not known, writes the plain
/// addresses, and that of this function: it says where the program is mapped.
pub(crate) fn describe<K: Kernel>(kernel: K, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result {
    describe_in(kernel, (describe::<K> as *const ()).addr(), site, out)
}

/// As [`describe`], in the program whose code is at `own`.
fn describe_in<K: Kernel>(kernel: K, own: usize, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result {
    if site.frames().is_empty() {
        return out.write_str("at an unknown place");
    }
    let mut buffer = [0; MAPS_READ];
    let program = Program::read(kernel, own, &mut buffer);
    let calls = || site.frames().iter().filter_map(|&frame| program.as_ref()?.call(frame));
    match &program {
        Some(program) if calls().next().is_some() => {
            out.write_str("lines by: addr2line -Cfipe ")?;
            quote(program.file.path, out)?;
            calls().try_for_each(|call| write!(out, " {call:#x}"))
        }
        _ => {
            out.write_str("frames")?;
            site.frames().iter().try_for_each(|frame| write!(out, " {frame:#x}"))?;
            write!(out, " (with {} at {own:#x})", concat!(module_path!(), "::describe"))
        }
    }
}

/// Writes a word of a shell's command.
fn quote(word: &str, out: &mut dyn fmt::Write) -> fmt::Result {
    out.write_char('\'')?;
    for (index, part) in word.split('\'').enumerate() {
        out.write_str(if index == 0 { "" } else { "'\\''" })?;
        out.write_str(part)?;
    }
    out.write_char('\'')
}

#[cfg(test)]
mod tests {
    use std::string::String;

    use super::*;
    use crate::linux::failing::{Calls, Failing};
    use crate::linux::system_calls::LinuxKernel;

    const MAPS: &str = "/proc/self/maps";

    fn described(files: &'static [(&'static str, &'static str)], frames: &[usize]) -> String {
        let mut text = String::new();
        let kernel = Failing::new(LinuxKernel, Calls::empty()).with_files(files);
        describe_in(kernel, OWN, &Site::new(frames.iter().copied()), &mut text).unwrap();
        text
    }

    /// Where the lists here have the program's code.
    const OWN: usize = 0x7800;

    const BARE: &str = "(with tripoint_contract::linux::program::describe at 0x7800)";

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
        let expected = "lines by: addr2line -Cfipe '/opt/a program' 0x10ff 0x2000";
        assert_eq!(described(MOVED, &[0x7f0_0010, 0x6100, 0x7001]), expected);
    }

    #[test]
    fn a_program_at_fixed_addresses_keeps_them() {
        const FIXED: &[(&str, &str)] = &[
            (MAPS, "4000-8000 r-xp 00000000 fe:00 1 /opt/fixed\n"),
            ("/opt/fixed", "0123456789abcdef\x02\0"),
        ];
        assert_eq!(described(FIXED, &[0x5101]), "lines by: addr2line -Cfipe '/opt/fixed' 0x5100");
    }

    #[test]
    fn what_is_not_known_is_said() {
        assert_eq!(described(MOVED, &[]), "at an unknown place");
        let bare = std::format!("frames 0x7f00010 {BARE}");
        assert_eq!(described(MOVED, &[0x7f0_0010]), bare, "of another object");
        let blind = Failing::new(LinuxKernel, Calls::READ);
        let mut text = String::new();
        describe_in(blind, OWN, &Site::new([0x10, 0x20]), &mut text).unwrap();
        assert_eq!(text, std::format!("frames 0x10 0x20 {BARE}"));
        for maps in ["nothing\n", "", "7000-9000 r-xp 00000000 fe:00 1    /opt/truncat"] {
            let files: &[_] = std::boxed::Box::leak(std::boxed::Box::new([(MAPS, maps)]));
            assert_eq!(described(files, &[0x10]), std::format!("frames 0x10 {BARE}"));
        }
    }

    /// The loader below the program, and a file mapped beside it.
    #[test]
    fn the_program_need_not_be_mapped_first() {
        const LOADED: &[(&str, &str)] = &[
            (
                MAPS,
                "1000-2000 r-xp 00000000 fe:00 3    /lib/ld.so\n3000-4000 rw-p 00000000 00:00 0    [heap]\n\
                 5000-6000 rw-s 00000000 00:01 4    /memfd:orders (deleted)\n\
                 7000-8000 r-xp 00000000 fe:00 1    /opt/Ann's\n8000-9000 rw-p 00001000 fe:00 1    /opt/Ann's\n\
                 9000-a000 r-xp 00000000 fe:00 2    /lib/libc.so.6\n",
            ),
            ("/opt/Ann's", "0123456789abcdef\x03\0"),
        ];
        let expected = "lines by: addr2line -Cfipe '/opt/Ann'\\''s' 0xff 0x1fff";
        assert_eq!(described(LOADED, &[0x1100, 0x5100, 0x7100, 0x9000, 0x9100]), expected);
    }

    /// No call returns to the first byte of a program.
    #[test]
    fn a_frame_at_the_beginning_is_not_of_the_program() {
        assert_eq!(described(MOVED, &[0x5000]), std::format!("frames 0x5000 {BARE}"));
        assert_eq!(described(MOVED, &[0x5001]), "lines by: addr2line -Cfipe '/opt/a program' 0x0");
    }

    /// The function that is named to find the program is there under this name.
    #[cfg(feature = "symbols")]
    #[test]
    fn the_named_function_has_that_name() {
        let blind = Failing::new(LinuxKernel, Calls::READ);
        let mut text = String::new();
        describe(blind, &Site::new([0x10]), &mut text).unwrap();
        let (_, own) = text.trim_end_matches(')').split_once(" at 0x").unwrap();
        // What is resolved is the byte before, as of a return address.
        let own = core::ptr::without_provenance_mut(usize::from_str_radix(own, 16).unwrap() + 1);
        let mut name = String::new();
        backtrace::resolve(own, |symbol| name = std::format!("{:#}", symbol.name().unwrap()));
        assert!(name.starts_with("tripoint_contract::linux::program::describe"), "{name}");
    }

    /// This very program, as the kernel has it mapped.
    #[test]
    fn this_program_is_found() {
        let here = this_program_is_found as fn() as usize;
        let mut text = String::new();
        describe(LinuxKernel, &Site::new([here + 1]), &mut text).unwrap();
        let program = std::env::current_exe().unwrap();
        let start = std::format!("lines by: addr2line -Cfipe '{}' 0x", program.display());
        assert!(text.starts_with(&start), "{text}");
    }
}
