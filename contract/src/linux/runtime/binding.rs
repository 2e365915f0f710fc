//! Whether an executable wants all its functions bound when it starts.

const PROGRAM_HEADER_DYNAMIC: u32 = 2;
const TAG_END: u64 = 0;
const TAG_BIND_NOW: u64 = 24;
const TAG_FLAGS: u64 = 30;
const TAG_FLAGS_1: u64 = 0x6fff_fffb;
const FLAG_BIND_NOW: u64 = 8;
const FLAG_1_NOW: u64 = 1;

/// Whether this ELF file, 64-bit and of this machine's byte order, binds now.
/// `None` where it is no such file. A static file has nothing to bind.
pub(super) fn binds_now(file: &[u8]) -> Option<bool> {
    let class_64 = 2;
    if file.get(..5)? != [0x7f, b'E', b'L', b'F', class_64] {
        return None;
    }
    let headers = usize::try_from(long(file, 32)?).ok()?;
    let (size, count) = (usize::from(half(file, 54)?), usize::from(half(file, 56)?));
    for index in 0..count {
        let header = file.get(headers.checked_add(index * size)?..)?;
        if word(header, 0)? == PROGRAM_HEADER_DYNAMIC {
            let offset = usize::try_from(long(header, 8)?).ok()?;
            return Some(entries_bind_now(file.get(offset..)?));
        }
    }
    Some(true)
}

fn entries_bind_now(entries: &[u8]) -> bool {
    let (entries, _) = entries.as_chunks::<16>();
    entries
        .iter()
        .map(|entry| (long(entry, 0).unwrap_or(TAG_END), long(entry, 8).unwrap_or(0)))
        .take_while(|&(tag, _)| tag != TAG_END)
        .any(|(tag, value)| match tag {
            TAG_BIND_NOW => true,
            TAG_FLAGS => value & FLAG_BIND_NOW != 0,
            TAG_FLAGS_1 => value & FLAG_1_NOW != 0,
            _ => false,
        })
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// A file with one dynamic header and these entries.
    fn elf(entries: &[(u64, u64)]) -> Vec<u8> {
        let mut file = std::vec![0; 64 + 56];
        file[..5].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2]);
        file[32..40].copy_from_slice(&64_u64.to_ne_bytes());
        file[54..56].copy_from_slice(&56_u16.to_ne_bytes());
        file[56..58].copy_from_slice(&1_u16.to_ne_bytes());
        file[64..68].copy_from_slice(&PROGRAM_HEADER_DYNAMIC.to_ne_bytes());
        file[72..80].copy_from_slice(&120_u64.to_ne_bytes());
        for (tag, value) in entries {
            file.extend(tag.to_ne_bytes());
            file.extend(value.to_ne_bytes());
        }
        file
    }

    #[test]
    fn each_way_of_saying_now_is_understood() {
        for entry in [(TAG_BIND_NOW, 0), (TAG_FLAGS, FLAG_BIND_NOW), (TAG_FLAGS_1, 0x0800_0001)] {
            assert_eq!(binds_now(&elf(&[(1, 1), entry])), Some(true), "{entry:?}");
            assert_eq!(binds_now(&elf(&[(TAG_END, 0), entry])), Some(false), "{entry:?}");
        }
        assert_eq!(binds_now(&elf(&[(TAG_FLAGS, 4), (TAG_FLAGS_1, 2)])), Some(false));
    }

    #[test]
    fn damaged_files_are_refused() {
        let whole = elf(&[(TAG_BIND_NOW, 0)]);
        assert_eq!(binds_now(b"#!/bin/sh\n"), None);
        for size in 0..120 {
            assert_eq!(binds_now(&whole[..size]), None, "{size}");
        }
    }
}
