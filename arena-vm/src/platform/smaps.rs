//! The mappings of this process with the sizes of their pages, as `/proc/self/smaps` has them.
//!
//! ```text
//! 7ef9d8e00000-7efdd8e00000 rw-p 00000000 00:11 1099683     /anon_hugepage (deleted)
//! KernelPageSize:     2048 kB
//! AnonHugePages:         0 kB
//! VmFlags: rd wr mr mw me de nr ht
//! ```
//! The flags come last.

use tripoint_core::{Addr, AddrRange};

use super::kernel_file::KernelFile;
use crate::chosen_memory::PageSizes;

/// As much of a line as is looked at; only paths are longer.
const LINE: usize = 64;

/// Passes the accessible mappings that have a part in `range`, in order; false if the file cannot be read.
pub(super) fn visit(range: AddrRange, visit: &mut dyn FnMut(PageSizes)) -> bool {
    let mut reader = Reader { range, mapping: None };
    KernelFile::open(c"/proc/self/smaps")
        .is_some_and(|file| file.each_line::<LINE>(&mut |line| reader.read_line(line, visit)))
}

/// Reads line by line.
struct Reader {
    range: AddrRange,
    /// The mapping whose lines come, if it is one to pass.
    mapping: Option<PageSizes>,
}

impl Reader {
    fn read_line(&mut self, line: &[u8], visit: &mut dyn FnMut(PageSizes)) {
        // Paths need not be UTF-8, and come last.
        let line = line.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let mut words = line.split_ascii_whitespace();
        let (Some(first), second) = (words.next(), words.next().unwrap_or_default()) else { return };
        let bytes = || second.parse::<usize>().ok()?.checked_mul(1024);
        match (first, &mut self.mapping) {
            ("KernelPageSize:", Some(mapping)) => mapping.page_size = bytes().unwrap_or(0),
            ("AnonHugePages:", Some(mapping)) => mapping.transparent = bytes().unwrap_or(0),
            ("VmFlags:", mapping) => {
                if let Some(mapping) = mapping.take().filter(|mapping| mapping.page_size > 0) {
                    visit(mapping);
                }
            }
            _ => {
                if let Some(range) = addresses(first) {
                    let is_wanted = second.starts_with('r') && has_a_part_in(range, self.range);
                    self.mapping = is_wanted.then_some(PageSizes { range, page_size: 0, transparent: 0 });
                }
            }
        }
    }
}

/// The addresses that a mapping's first line begins with.
fn addresses(word: &str) -> Option<AddrRange> {
    let (base, limit) = word.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let (base, limit) = (number(base)?, number(limit)?);
    AddrRange::with_size(Addr::new(base), limit.checked_sub(base)?)
}

fn has_a_part_in(one: AddrRange, other: AddrRange) -> bool {
    one.base() < other.limit() && other.base() < one.limit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn read(range: (usize, usize), text: &[u8]) -> Vec<(usize, usize, usize)> {
        let range = AddrRange::with_size(Addr::new(range.0), range.1 - range.0).unwrap();
        let mut reader = Reader { range, mapping: None };
        let mut found = Vec::new();
        for line in text.split(|&byte| byte == b'\n') {
            reader.read_line(&line[..line.len().min(LINE)], &mut |mapping| {
                found.push((mapping.range.base().get(), mapping.page_size, mapping.transparent));
            });
        }
        found
    }

    const TEXT: &[u8] = b"1000-3000 r--p 00000000 fe:00 12  /a path with 2000-9000 rw-p and \xff, and which is longer than a line\n\
        KernelPageSize:        4 kB\nAnonHugePages:         0 kB\nVmFlags: rd\n\
        3000-4000 ---p 00000000 00:00 0 \nKernelPageSize:        4 kB\nVmFlags: mr\n\
        200000-600000 rw-p 00000000 00:11 9 /anon_hugepage (deleted)\nKernelPageSize:     2048 kB\nVmFlags: rd wr ht\n\
        600000-800000 rw-p 00000000 00:00 0 \nKernelPageSize:        4 kB\nAnonHugePages:      2048 kB\nVmFlags: rd wr\n\
        800000-900000 rw-p 00000000 00:00 0 \nKernelPageSize:        4 kB\n";

    #[test]
    fn accessible_mappings_with_a_part_in_the_range_are_found() {
        let all = [(0x1000, 4096, 0), (0x20_0000, 2 << 20, 0), (0x60_0000, 4096, 2 << 20)];
        assert_eq!(read((0, 0x100_0000), TEXT), all, "the last one has no end");
        assert_eq!(read((0x2fff, 0x20_0000), TEXT), all[..1]);
        assert_eq!(read((0x3000, 0x20_0001), TEXT), all[1..2]);
        assert_eq!(read((0x80_0000, 0x90_0000), TEXT), []);
    }

    #[test]
    fn this_process_is_found_in_the_file() {
        let here = [0_u8; 8];
        let range = AddrRange::with_size(Addr::of(here.as_ptr()), 1).unwrap();
        let mut count = 0;
        assert!(visit(range, &mut |mapping| count += usize::from(mapping.range.covers(range))));
        assert_eq!(count, 1);
    }
}
