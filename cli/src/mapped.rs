//! Files that are mapped in a process, and which of them are its program and libraries.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use object::elf::{ET_DYN, ET_EXEC, FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader as _};
use object::{Endianness, FileKind};
use tripoint_telemetry::reader::{LoadedObject, Table};

/// The bytes of a file in which its headers and its build identifier are looked for: a core file has its first page.
pub(crate) const HEAD: usize = 4096;

/// A file that is mapped, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) path: PathBuf,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where in the file it begins, in bytes.
    pub(crate) offset: u64,
}

/// The files that are mapped in a running process; none if it has ended.
pub(crate) fn of_process(process: u32) -> Vec<Mapped> {
    let text = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(of_line).collect()
}

/// A line as the system writes it: `start-end rights offset device inode path`.
fn of_line(line: &[u8]) -> Option<Mapped> {
    let path = line.iter().position(|byte| *byte == b'/').map(|at| OsStr::from_bytes(&line[at..]))?;
    let mut words = line.split(|byte| *byte == b' ').map(core::str::from_utf8);
    let (start, end) = words.next()?.ok()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let offset = number(words.nth(1)?.ok()?)?;
    Some(Mapped { path: path.into(), start: number(start)?, end: number(end)?, offset })
}

/// The program and its libraries; the program is the first, because it lies below them. The first bytes of each are what
/// `head` returns, or else those of the file.
pub(crate) fn objects(files: &[Mapped], head: impl Fn(&Mapped) -> Option<Vec<u8>>) -> Table<LoadedObject> {
    let mut ends = BTreeMap::<&Path, u64>::new();
    for file in files {
        let end = ends.entry(&file.path).or_default();
        *end = file.end.max(*end);
    }
    let mut entries = Vec::new();
    for first in files.iter().filter(|file| file.offset == 0) {
        let end = ends.get(first.path.as_path()).copied().unwrap_or(first.end);
        let head = head(first).filter(|head| FileKind::parse(&**head).is_ok());
        entries.extend(head.or_else(|| first_bytes(&first.path)).and_then(|head| object(first, end, &head)));
    }
    // A file may be mapped several times.
    entries.dedup_by(|one, other| one.path == other.path);
    Table { entries, left_out: 0, unsteady: 0 }
}

fn first_bytes(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    // Opening a pipe or a device may wait, or do more.
    if !path.is_file() {
        return None;
    }
    std::fs::File::open(path).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
    Some(head)
}

/// An object of which a file is mapped from its first byte on.
fn object(file: &Mapped, end: u64, head: &[u8]) -> Option<LoadedObject> {
    let (first, build_id) = match FileKind::parse(head).ok()? {
        FileKind::Elf32 => about::<FileHeader32<Endianness>>(head),
        FileKind::Elf64 => about::<FileHeader64<Endianness>>(head),
        _ => None,
    }?;
    let (path, start) = (file.path.clone(), file.start);
    Some(LoadedObject { path, is_path_cut: false, build_id, base: start.checked_sub(first)?, start, end })
}

/// The address of an object's first segment in its file, and its build identifier.
fn about<H: FileHeader<Endian = Endianness>>(head: &[u8]) -> Option<(u64, Vec<u8>)> {
    let header = H::parse(head).ok()?;
    let endian = header.endian().ok()?;
    if ![ET_DYN, ET_EXEC].contains(&header.e_type(endian)) {
        return None;
    }
    let programs = header.program_headers(endian, head).ok()?;
    let first = programs.iter().find(|program| program.p_type(endian) == PT_LOAD)?;
    let mut build_id = Vec::new();
    for program in programs {
        let Ok(Some(mut notes)) = program.notes(endian, head) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == b"GNU" && note.n_type(endian) == NT_GNU_BUILD_ID {
                build_id = note.desc().to_vec();
            }
        }
    }
    Some((first.p_vaddr(endian).into(), build_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_the_first_object_of_this_process() {
        let objects = objects(&of_process(std::process::id()), |_| None).entries;
        assert_eq!(objects[0].path, std::env::current_exe().unwrap());
        let here = this_program_is_the_first_object_of_this_process as fn();
        let here = (here as *const ()).addr() as u64;
        assert!((objects[0].start..objects[0].end).contains(&here), "{here:#x} {objects:?}");
        assert!(of_process(u32::MAX).is_empty());
    }

    #[test]
    fn lines_without_a_file_are_left_out_and_paths_may_have_spaces() {
        let line = b"7f00-8f00 r-xp 00002000 fe:00 12    /lib/a b.so (deleted)";
        let expected =
            Mapped { path: "/lib/a b.so (deleted)".into(), start: 0x7f00, end: 0x8f00, offset: 0x2000 };
        assert_eq!(of_line(line), Some(expected));
        for line in ["", "7f00-8f00 rw-p 0 00:00 0 [heap]", "x /a", "7f00 r-xp 0 0 0 /a"] {
            assert_eq!(of_line(line.as_bytes()), None, "{line}");
        }
    }
}
