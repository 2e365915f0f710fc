//! Telemetry that is found in a core file.

use std::fs;

use tripoint_oracle::NaiveFile;
use tripoint_telemetry::format::HeaderWord;
use tripoint_telemetry::reader::{Item, OpenError, Reader};

use crate::objects::object_entry;
use crate::{TemporaryFile, items, with_word, write_events};

/// A program header of a core file of 64 bits.
fn program_header(kind: u32, offset: usize, address: u64, bytes: usize) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(kind.to_ne_bytes());
    header.extend(6_u32.to_ne_bytes());
    for word in [offset as u64, address, 0, bytes as u64, bytes as u64, 4_096] {
        header.extend(word.to_ne_bytes());
    }
    header
}

/// A core file of 64 bits with these segments.
fn core_file(segments: &[(u64, &[u8])]) -> Vec<u8> {
    let mut core = b"\x7fELF\x02".to_vec();
    core.push(if cfg!(target_endian = "little") { 1 } else { 2 });
    core.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    core.extend(4_u16.to_ne_bytes()); // a core
    core.extend(62_u16.to_ne_bytes());
    core.extend(1_u32.to_ne_bytes());
    for word in [0_u64, 64, 0] {
        core.extend(word.to_ne_bytes()); // entry, program headers, section headers
    }
    core.extend(0_u32.to_ne_bytes());
    for half in [64_u16, 56, 1 + segments.len() as u16, 64, 0, 0] {
        core.extend(half.to_ne_bytes());
    }
    let mut offset = (64 + 56 * (1 + segments.len())).next_multiple_of(4_096);
    core.extend(program_header(4, 0, 0, 0)); // notes
    for (address, bytes) in segments {
        core.extend(program_header(1, offset, *address, bytes.len()));
        offset += bytes.len();
    }
    core.resize((64 + 56 * (1 + segments.len())).next_multiple_of(4_096), 0);
    segments.iter().for_each(|(_, bytes)| core.extend(*bytes));
    core
}

#[test]
fn a_core_file_is_searched_for_the_file() {
    let mut file = NaiveFile::new(1, 2);
    write_events(&mut file, 0, 20);
    file.objects.push(object_entry(0x1000, 0x1000..0x2000, &[5; 8], "/bin/program"));
    let bytes = file.bytes();
    let unfinished = with_word(HeaderWord::State, 0);
    let (front, back) = bytes.split_at(4_096);
    let stack = [7_u8; 8_192];
    let core = core_file(&[
        (0x1000, &stack),
        (0x10_0000, &unfinished),
        (0x18_0000, &[]),   // not dumped, and so at the same place in the file as the next
        (0x20_0000, front), // in two pieces, for instance because one is locked
        (0x20_0000 + 4_096, back),
        (0x90_0000, &stack),
    ]);
    let path = TemporaryFile::new("core", &core);
    let reader = Reader::open(&path.0).unwrap();
    assert_eq!(items(&reader).len(), 20);
    assert_eq!(reader.objects().unwrap().place(0x1801).unwrap().to_string(), "/bin/program+0x800");
    // Cut off: what is there is read.
    fs::write(&path.0, &core[..core.len() - 8_192 - 4_096]).unwrap();
    let readable = Reader::open(&path.0).unwrap_err().into_readable().unwrap();
    let read = items(&readable).iter().filter(|item| matches!(item, Item::Event(_))).count();
    assert!(read > 5, "{read}");
    for length in [0, 5, 63, 64, 100, 4_096, 20_000] {
        fs::write(&path.0, &core[..length]).unwrap();
        Reader::open(&path.0).unwrap_err();
    }
    fs::write(&path.0, core_file(&[(0x1000, &stack)])).unwrap();
    assert!(matches!(Reader::open(&path.0).unwrap_err(), OpenError::NotTelemetry { .. }));
}
