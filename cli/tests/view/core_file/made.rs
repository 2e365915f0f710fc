//! Core files that no process wrote: of any size, and of 32 bits.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use tripoint_contract::ViolationClass;

/// Where the made memory is, and how long it is.
const ADDRESS: u64 = 0x10000;
const BYTES: usize = 0x2000;

/// The place of the layout. The magic of telemetry begins this one's, and is at the beginning of a segment.
const LAYOUT: usize = 64;

/// The place of the slot, and of a ring in it.
const SLOT: usize = 0x200;
const OWN: usize = 0x1000;
const SUPERVISED: usize = 0x1800;
const TAIL: usize = 0x400;

const RING_RECORDS: usize = 4;
const RECORD_WORDS: usize = 17;
const VERSION: u64 = 2;
const CLASSES: u64 = ViolationClass::ALL.len() as u64;

/// Memory whose words have 4 or 8 bytes.
struct Memory {
    word: usize,
    address: u64,
    bytes: Vec<u8>,
}

impl Memory {
    fn set(&mut self, at: usize, words: &[u64]) {
        for (index, word) in words.iter().enumerate() {
            let at = at + index * self.word;
            self.bytes[at..at + self.word].copy_from_slice(&word.to_le_bytes()[..self.word]);
        }
    }
}

/// A thread with an alarm and six records in a ring of four.
fn memory(word: usize, version: u64, classes: u64) -> Memory {
    let mut memory = Memory { word, address: ADDRESS, bytes: vec![0; BYTES] };
    let w = word as u64;
    memory.bytes[LAYOUT..LAYOUT + 16].copy_from_slice(b"tripointcontract");
    let [state, alarms, name, name_size, accounts] = [w, 2 * w, 3 * w, 3 * w + 32, 256];
    let account_size = w * (1 + RECORD_WORDS as u64);
    memory.set(
        LAYOUT + 16,
        &[
            version,
            ADDRESS + SLOT as u64,
            0,
            state,
            alarms,
            name,
            name_size,
            accounts,
            account_size,
            classes,
            0,
            w,
            OWN as u64,
            SUPERVISED as u64,
            0,
            TAIL as u64,
            TAIL as u64 + w,
            RING_RECORDS as u64,
            RECORD_WORDS as u64,
            2,
        ],
    );
    memory.set(SLOT + state as usize, &[2, 3]);
    memory.bytes[SLOT + name as usize..][..4].copy_from_slice(b"made");
    memory.set(SLOT + name_size as usize, &[4]);
    // The third class is dealloc.
    let dealloc = SLOT + (accounts + 2 * account_size) as usize;
    memory.set(dealloc, &[2, 3, 2, 0, 9, 1, 64]);
    for number in 0..6 {
        let cell = SLOT + OWN + number % RING_RECORDS * RECORD_WORDS * word;
        let number = number as u64;
        memory.set(cell, &[0, 0, 0, number, 1, 100 + number, 0, 0, 5, 7]);
    }
    memory.set(SLOT + OWN + TAIL, &[6, 9]);
    memory
}

pub(crate) fn core(path: &Path, word: usize, rest: u64) {
    write(path, &memory(word, VERSION, CLASSES), rest);
}

pub(super) fn core_with_version(path: &Path, version: u64) {
    write(path, &memory(8, version, CLASSES), 0);
}

pub(super) fn core_with_classes(path: &Path, classes: u64) {
    write(path, &memory(8, VERSION, classes), 0);
}

/// One with a listing of no heaps.
pub(crate) fn core_with_heaps(path: &Path, word: usize, version: u64) {
    let mut memory = Memory { word, address: ADDRESS, bytes: vec![0; BYTES] };
    memory.bytes[LAYOUT..LAYOUT + 16].copy_from_slice(b"tripointgc-heaps");
    memory.set(LAYOUT + 16, &[version]);
    write(path, &memory, 0);
}

/// One of 64 bits with this memory at an address.
pub(crate) fn core_with_memory(path: &Path, address: u64, bytes: Vec<u8>) {
    write(path, &Memory { word: 8, address, bytes }, 0);
}

/// Writes a core file with this memory, and after it as many bytes of zeros, which take no room on the disk.
fn write(path: &Path, memory: &Memory, rest: u64) {
    let Memory { word, address, bytes } = memory;
    let (word, segments) = (*word, 3_u16);
    let (header, program) = if word == 8 { (64, 56) } else { (52, 32) };
    let note = note(word, *address);
    let notes_at = header + 3 * program;
    let memory_at = 0x1000_u64;
    let rows = [
        (4_u32, 0, notes_at as u64, note.len() as u64),
        (1, *address, memory_at, bytes.len() as u64),
        (1, 0x4000_0000, memory_at + bytes.len() as u64, rest),
    ];
    let mut text = Vec::new();
    let mut put = |number: u64, size: usize| text.extend_from_slice(&number.to_le_bytes()[..size]);
    // Magic, class, little endian, version; ET_CORE.
    put(0x464c_457f, 4);
    put((word as u64 / 4) | (1 << 8) | (1 << 16), 4);
    put(0, 8);
    put(4, 2);
    put(if word == 8 { 62 } else { 3 }, 2);
    put(1, 4);
    put(0, word);
    put(header as u64, word);
    put(0, word);
    put(0, 4);
    [header as u64, program as u64, segments.into(), 0, 0, 0].into_iter().for_each(|number| put(number, 2));
    for (kind, address, offset, size) in rows {
        put(kind.into(), 4);
        if word == 8 {
            put(6, 4);
        }
        [offset, address, 0, size, size].into_iter().for_each(|number| put(number, word));
        if word == 4 {
            put(6, 4);
        }
        put(1, word);
    }
    assert_eq!(text.len(), notes_at);
    text.extend(note);
    let file = File::create(path).unwrap();
    file.write_all_at(&text, 0).unwrap();
    file.write_all_at(bytes, memory_at).unwrap();
    file.set_len(memory_at + bytes.len() as u64 + rest).unwrap();
}

/// The note that the memory is of a mapped file: what is not is not looked through.
fn note(word: usize, address: u64) -> Vec<u8> {
    let numbers = [1, 4096, address, address.saturating_add(BYTES as u64), 1];
    let mut about: Vec<u8> =
        numbers.iter().flat_map(|number: &u64| number.to_le_bytes()[..word].to_vec()).collect();
    about.extend(b"/none/made\0\0");
    about.resize(about.len().next_multiple_of(4), 0);
    let mut note: Vec<u8> =
        [5, about.len() as u32, 0x4649_4c45].iter().flat_map(|number| number.to_le_bytes()).collect();
    note.extend(b"CORE\0\0\0\0");
    note.extend(about);
    note
}
