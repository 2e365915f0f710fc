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

use crate::memory::Extent;

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
    Mappings::read(&format!("/proc/{process}/maps")).0.into_iter().map(|(mapped, _)| mapped).collect()
}

/// What may be done with mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rights {
    /// Whether it may be read, and is the process's own.
    is_own: bool,
    is_writable: bool,
}

/// The files that are mapped in a running process, with what may be done with their memory.
pub(crate) struct Mappings(Vec<(Mapped, Rights)>);

impl Mappings {
    fn read(path: &str) -> Self {
        let text = std::fs::read(path).unwrap_or_default();
        Self(text.split(|byte| *byte == b'\n').filter_map(of_line).collect())
    }

    /// Those that a thread has; none if it has ended.
    pub(crate) fn of_thread(process: u32, thread: i32) -> Self {
        Self::read(&format!("/proc/{process}/task/{thread}/maps"))
    }

    /// The program's file, if any is known.
    pub(crate) fn program(&self) -> Option<String> {
        self.0.first().map(|(mapped, _)| mapped.path.display().to_string())
    }

    /// Where the statics of the program and its libraries are that may change. Files of data and devices are not read, except
    /// the first bytes of what is mapped for one process alone, which are what `head` returns.
    pub(crate) fn statics(&self, head: impl Fn(u64) -> Vec<u8>) -> Vec<Extent> {
        let is_device = |path: &Path| path.starts_with("/dev");
        let own = self.0.iter().filter(|(mapped, rights)| rights.is_own && !is_device(&mapped.path));
        let files: Vec<_> = own.clone().map(|(mapped, _)| mapped.clone()).collect();
        let objects = objects(&files, |mapped| Some(head(mapped.start))).entries;
        let is_object = |mapped: &Mapped| objects.iter().any(|object| object.path == mapped.path);
        let statics = own.filter(|(mapped, rights)| rights.is_writable && is_object(mapped));
        statics.map(|(mapped, _)| Extent { address: mapped.start, size: mapped.end - mapped.start }).collect()
    }
}

/// A line as the system writes it: `start-end rights offset device inode path`.
fn of_line(line: &[u8]) -> Option<(Mapped, Rights)> {
    let path = line.iter().position(|byte| *byte == b'/').map(|at| OsStr::from_bytes(&line[at..]))?;
    let mut words = line.split(|byte| *byte == b' ').map(core::str::from_utf8);
    let (start, end) = words.next()?.ok()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let rights = words.next()?.ok()?;
    let rights = Rights {
        is_own: rights.starts_with('r') && rights.ends_with('p'),
        is_writable: rights.contains('w'),
    };
    let offset = number(words.next()?.ok()?)?;
    Some((Mapped { path: path.into(), start: number(start)?, end: number(end)?, offset }, rights))
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
    fn statics_are_where_a_program_writes_for_itself_and_nothing_else_is_read() {
        let head = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let head = &head[..HEAD.min(head.len())];
        let text = "1000-2000 r--p 0 00:00 1 /a\n2000-3000 rw-p 1000 00:00 1 /a\n3000-4000 ---p 2000 00:00 1 /a\n\
                    5000-6000 rw-s 0 00:00 2 /memfd:b (deleted)\n6000-7000 r--p 0 00:00 3 /c\n\
                    7000-8000 rw-p 1000 00:00 3 /c\n8000-9000 rw-p 0 00:00 4 /dev/d\n9000-a000 rw-s 0 00:00 1 /a\n\
                    a000-b000 ---p 0 00:00 5 /e\n";
        let mappings = Mappings(text.as_bytes().split(|byte| *byte == b'\n').filter_map(of_line).collect());
        let statics = mappings.statics(|address| match address {
            0x1000 => head.to_vec(),
            0x6000 => b"data".to_vec(),
            _ => panic!("memory at {address:#x} was read"),
        });
        assert_eq!(statics, [Extent { address: 0x2000, size: 0x1000 }]);
    }

    #[test]
    fn lines_without_a_file_are_left_out_and_paths_may_have_spaces() {
        let line = b"7f00-8f00 r-xp 00002000 fe:00 12    /lib/a b.so (deleted)";
        let expected =
            Mapped { path: "/lib/a b.so (deleted)".into(), start: 0x7f00, end: 0x8f00, offset: 0x2000 };
        assert_eq!(of_line(line), Some((expected, Rights { is_own: true, is_writable: false })));
        for line in ["", "7f00-8f00 rw-p 0 00:00 0 [heap]", "x /a", "7f00 r-xp 0 0 0 /a"] {
            assert_eq!(of_line(line.as_bytes()), None, "{line}");
        }
    }
}
