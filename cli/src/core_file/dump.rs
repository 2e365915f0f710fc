//! The memory that a core file has. What it does not have is not read, so a sparse file of any size is open at once.

use core::error::Error;
use core::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use object::elf::{EM_AARCH64, EM_X86_64, ET_CORE, FileHeader32, FileHeader64, PT_LOAD, PT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader as _};
use object::{Endianness, FileKind, ReadCache};

use tripoint_telemetry::reader::{LoadedObject, Table};

use crate::core_file::notes::Notes;
use crate::mapped;
use crate::memory::{Extent, Memory, Processor, Thread};

/// The most bytes of notes that are read. A thread takes some 3,000.
const MAX_NOTES: u64 = 256 << 20;

/// Why a file is not read as a core file.
#[derive(Debug)]
pub(crate) enum NotCore {
    System(io::Error),
    /// It does not begin as a core file does.
    Other,
    /// Its header makes no sense.
    Damaged(String),
    /// It is the number of a process.
    Number,
    /// It has nothing of ours.
    WithoutUs {
        program: Option<String>,
    },
}

impl fmt::Display for NotCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(f, "it cannot be read: {error}"),
            Self::Other => f.write_str("this is not a core file; `tripoint report` shows telemetry and captures"),
            Self::Damaged(why) => write!(f, "this core file is damaged, or cut off within its header: {why}"),
            Self::Number => f.write_str(
                "this is the number of a process, for `tripoint report`; a core file of this name is ./NUMBER",
            ),
            Self::WithoutUs { program } => {
                let program = program.as_deref().unwrap_or("a program that it does not name");
                write!(
                    f,
                    "this core file is of {program}, and has neither telemetry nor threads of a contract; programs have \
                     one if they use tripoint, and begin with it before they crash; `tripoint heap` shows heaps, if it has any"
                )
            }
        }
    }
}

impl Error for NotCore {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::System(error) => Some(error),
            _ => None,
        }
    }
}

/// A part of memory, as far as it was dumped.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    /// How many bytes the process had there.
    size: u64,
    /// How many of them the file should have, and where.
    dumped: u64,
    offset: u64,
}

/// A core file that is open.
pub(crate) struct CoreFile {
    file: File,
    pub(crate) bytes: u64,
    endian: Endianness,
    /// The bytes of a word of the process.
    word: usize,
    /// By address.
    segments: Vec<Segment>,
    pub(crate) notes: Notes,
    /// `None` if its registers are not known.
    processor: Option<Processor>,
}

impl CoreFile {
    pub(crate) fn open(path: &Path) -> Result<Self, NotCore> {
        let file = File::open(path).map_err(NotCore::System)?;
        let about = file.metadata().map_err(NotCore::System)?;
        // Reading a folder or a pipe would fail or wait.
        if !about.is_file() {
            return Err(NotCore::Other);
        }
        let cache = ReadCache::new(file.try_clone().map_err(NotCore::System)?);
        match FileKind::parse(&cache) {
            Ok(FileKind::Elf32) => Self::parse::<FileHeader32<Endianness>>(file, about.len(), &cache, 4),
            Ok(FileKind::Elf64) => Self::parse::<FileHeader64<Endianness>>(file, about.len(), &cache, 8),
            _ => Err(NotCore::Other),
        }
    }

    fn parse<H: FileHeader<Endian = Endianness>>(
        file: File,
        bytes: u64,
        cache: &ReadCache<File>,
        word: usize,
    ) -> Result<Self, NotCore> {
        let damaged = |error: object::Error| NotCore::Damaged(error.to_string());
        let header = H::parse(cache).map_err(damaged)?;
        let endian = header.endian().map_err(damaged)?;
        if header.e_type(endian) != ET_CORE {
            return Err(NotCore::Other);
        }
        let processor = match header.e_machine(endian) {
            EM_X86_64 => Some(Processor::X86),
            EM_AARCH64 => Some(Processor::Arm),
            _ => None,
        };
        let (segments, notes) = (Vec::new(), Notes::default());
        let mut core = Self { file, bytes, endian, word, segments, notes, processor };
        for program in header.program_headers(endian, cache).map_err(damaged)? {
            let (dumped, address) = (program.p_filesz(endian).into(), program.p_vaddr(endian).into());
            // No memory lies behind the last address.
            let room = u64::MAX - address;
            match program.p_type(endian) {
                PT_LOAD => core.segments.push(Segment {
                    address,
                    size: room.min(program.p_memsz(endian).into()),
                    dumped: room.min(dumped),
                    offset: program.p_offset(endian).into(),
                }),
                PT_NOTE if dumped <= MAX_NOTES => {
                    // Notes that are cut off are no notes; that the file is cut off is said in any case.
                    if let Ok(Some(mut notes)) = program.notes(endian, cache) {
                        while let Ok(Some(note)) = notes.next() {
                            core.notes.add(note.n_type(endian), note.desc(), word, endian);
                        }
                    }
                }
                _ => {}
            }
        }
        core.segments.sort_by_key(|segment| segment.address);
        Ok(core)
    }

    /// How many bytes the file should have, if it has fewer.
    pub(crate) fn expected(&self) -> Option<u64> {
        let ends = self.segments.iter().map(|segment| segment.offset.saturating_add(segment.dumped));
        ends.max().filter(|expected| *expected > self.bytes)
    }

    /// The program and its libraries; the program is the first.
    pub(crate) fn objects(&self) -> Table<LoadedObject> {
        mapped::objects(&self.notes.mapped, |file| {
            let mut head = vec![0; mapped::HEAD];
            let read = self.read_some(file.start, &mut head);
            head.truncate(read);
            Some(head)
        })
    }

    /// Whether memory at an address was there and not dumped.
    pub(crate) fn is_left_out(&self, address: u64) -> bool {
        let has_it =
            |segment: &Segment| address.checked_sub(segment.address).is_some_and(|at| at < segment.size);
        self.segments.iter().filter(|segment| has_it(segment)).all(|segment| segment.dumped == 0)
    }
}

impl Memory for CoreFile {
    fn word(&self) -> usize {
        self.word
    }

    fn endian(&self) -> Endianness {
        self.endian
    }

    /// A static is in memory of a file that was mapped; only if no file is known, it is anywhere.
    fn statics(&self) -> Vec<Extent> {
        let is_of_file = |address: u64| {
            let files = &self.notes.mapped;
            files.is_empty() || files.iter().any(|file| (file.start..file.end).contains(&address))
        };
        let segments = self.segments.iter().filter(|segment| is_of_file(segment.address));
        segments.map(|segment| Extent { address: segment.address, size: segment.dumped }).collect()
    }

    fn threads(&self) -> Vec<Thread> {
        let Some(processor) = self.processor else { return Vec::new() };
        self.notes.registers.iter().filter_map(|words| Thread::new(processor, words.clone())).collect()
    }

    fn read_some(&self, address: u64, bytes: &mut [u8]) -> usize {
        let segment = self.segments.partition_point(|segment| segment.address <= address).checked_sub(1);
        let Some(segment) = segment.map(|index| self.segments[index]) else { return 0 };
        let at = address - segment.address;
        let there = usize::try_from(segment.dumped.saturating_sub(at)).unwrap_or(usize::MAX);
        let Some(from) = segment.offset.checked_add(at) else { return 0 };
        let length = bytes.len().min(there);
        let mut read = 0;
        while read < length {
            match self.file.read_at(&mut bytes[read..length], from.saturating_add(read as u64)) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        read
    }
}
