//! Finds a telemetry file in the core file of a process
//! ([design/telemetry.md `.reader.core`](crate::design::telemetry)).

use core::ops::Range;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use object::elf::{
    self, FileHeader32, FileHeader64, ProgramHeader32, ProgramHeader64, SectionHeader32, SectionHeader64,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, Pod, pod};

use crate::format::{BYTE_ORDER, HeaderWord, MAGIC, WORD_BYTES};

/// The bytes of the largest header that is read in one piece.
const HEADER_BYTES: usize = 64;

/// A segment of memory in a core file.
struct Segment {
    address: u64,
    bytes: Range<u64>,
}

/// Where in a core file a telemetry file lies: the first that is complete, or the first if none is.
/// `None` if the file is not a core file, or contains no telemetry file.
pub(super) fn find(file: &File) -> io::Result<Option<Range<u64>>> {
    let Some(header) = read::<HEADER_BYTES>(file, 0)? else { return Ok(None) };
    if let Ok(header) = FileHeader64::<Endianness>::parse(&header[..]) {
        return in_core::<FileHeader64<Endianness>, ProgramHeader64<Endianness>, SectionHeader64<Endianness>>(
            file, header,
        );
    }
    if let Ok(header) = FileHeader32::<Endianness>::parse(&header[..]) {
        return in_core::<FileHeader32<Endianness>, ProgramHeader32<Endianness>, SectionHeader32<Endianness>>(
            file, header,
        );
    }
    Ok(None)
}

/// The bytes at a place; `None` if the file ends before.
fn read<const BYTES: usize>(file: &File, at: u64) -> io::Result<Option<[u8; BYTES]>> {
    let mut bytes = [0; BYTES];
    match file.read_exact_at(&mut bytes, at) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// A structure of the format at a place; `None` if the file ends before.
fn structure<T: Pod + Copy>(file: &File, at: u64) -> io::Result<Option<T>> {
    // The buffer is larger than any structure; the bytes after a structure are not used.
    let mut bytes = [0_u64; HEADER_BYTES / 8];
    let bytes = pod::bytes_of_slice_mut(&mut bytes);
    let bytes = &mut bytes[..size_of::<T>()];
    match file.read_exact_at(bytes, at) {
        Ok(()) => Ok(pod::from_bytes::<T>(bytes).ok().map(|(structure, _)| *structure)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn in_core<H, P, S>(file: &File, header: &H) -> io::Result<Option<Range<u64>>>
where
    H: FileHeader<Endian = Endianness, ProgramHeader = P, SectionHeader = S>,
    P: ProgramHeader<Elf = H, Endian = Endianness> + Pod + Copy,
    S: SectionHeader<Elf = H, Endian = Endianness> + Pod + Copy,
{
    let Ok(endian) = header.endian() else { return Ok(None) };
    if header.e_type(endian) != elf::ET_CORE || usize::from(header.e_phentsize(endian)) != size_of::<P>() {
        return Ok(None);
    }
    let table: u64 = header.e_phoff(endian).into();
    let mut count = u64::from(header.e_phnum(endian));
    if count == u64::from(elf::PN_XNUM) {
        // There are more segments than the header can count: the first section has the number.
        let section = structure::<S>(file, header.e_shoff(endian).into())?;
        count = section.map_or(0, |section| u64::from(section.sh_info(endian)));
    }
    // A segment, joined with those that follow it both in memory and in the file: for instance parts of a
    // mapping that differ in their protection.
    let mut found: Option<Segment> = None;
    for index in 0..count {
        let at = index.checked_mul(size_of::<P>() as u64).and_then(|bytes| bytes.checked_add(table));
        // A core that was cut off ends here at the latest.
        let Some(program) = at.map_or(Ok(None), |at| structure::<P>(file, at))? else { break };
        let (offset, bytes): (u64, u64) = (program.p_offset(endian).into(), program.p_filesz(endian).into());
        // What was not dumped is at the same place in the file as the segment that follows it.
        if program.p_type(endian) != elf::PT_LOAD || bytes == 0 {
            continue;
        }
        let address: u64 = program.p_vaddr(endian).into();
        let Some(end) = offset.checked_add(bytes) else { continue };
        if let Some(found) = &mut found {
            let size = found.bytes.end - found.bytes.start;
            if found.address.checked_add(size) == Some(address) && found.bytes.end == offset {
                found.bytes.end = end;
                continue;
            }
            if is_complete(file, found.bytes.start)? {
                break;
            }
        }
        if begins_telemetry(file, offset)? && (found.is_none() || is_complete(file, offset)?) {
            found = Some(Segment { address, bytes: offset..end });
        }
    }
    Ok(found.map(|found| found.bytes))
}

fn begins_telemetry(file: &File, at: u64) -> io::Result<bool> {
    Ok(read::<WORD_BYTES>(file, at)? == Some(MAGIC))
}

/// Whether the header at this place seems to be complete.
fn is_complete(file: &File, at: u64) -> io::Result<bool> {
    let Some(words) = read::<{ WORD_BYTES * 5 }>(file, at)? else { return Ok(false) };
    let word = |word: HeaderWord| {
        words.as_chunks::<WORD_BYTES>().0.get(word as usize).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    };
    Ok(word(HeaderWord::State) != 0 && word(HeaderWord::ByteOrder) == BYTE_ORDER)
}
