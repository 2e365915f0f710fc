//! Memory with a heap that no program made, word by word: of any shape, also one that makes no sense.

use std::path::Path;

use crate::core_file::made;

/// Where the memory begins.
pub(super) const ADDRESS: u64 = 0x1000_0000;

/// Where the first object of a segment is, behind its base.
const PAYLOAD: u64 = 0x1000;

/// Where things are in what the listing describes, in the order of its words.
const OFFSETS: [u64; 24] =
    [0, 8, 16, 24, 32, 40, 48, 56, 57, 64, 72, 80, 0, 8, 0, 8, 0, 8, 8, 16, 0, 8, 0, 8];

/// The forms of the outlines of types.
pub(super) const LEAF: u64 = 0;
pub(super) const STRONG: u64 = 1;
pub(super) const PARTS: u64 = 3;
pub(super) const ITEMS: u64 = 4;
pub(super) const WORDS: u64 = 5;

/// The memory of a program with one pool, which has one segment.
pub(super) struct Crafted {
    bytes: Vec<u8>,
    top: u64,
    /// The address of the segment, and the bytes of it.
    segment: u64,
    size: u64,
    /// The addresses of the first of these, or zero.
    pub(super) roots: u64,
    pub(super) buffers: u64,
    pub(super) frozen: u64,
}

impl Crafted {
    pub(super) fn new(size: u64) -> Self {
        let mut crafted = Self {
            bytes: Vec::new(),
            top: ADDRESS + 0x1000,
            segment: 0,
            size,
            roots: 0,
            buffers: 0,
            frozen: 0,
        };
        crafted.segment = crafted.room(size + PAYLOAD, 4096);
        let words = size / 512 + 1;
        let (segment, limit) = (crafted.segment, crafted.segment + PAYLOAD + size);
        // The second word of the bits is that of marks: behind the first map.
        crafted.put(segment, &[segment, limit, 8, 8, segment + PAYLOAD, 256, words, 0, 0, 0, 0]);
        assert!(256 + 16 * words <= PAYLOAD);
        crafted
    }

    fn room(&mut self, bytes: u64, align: u64) -> u64 {
        let address = self.top.next_multiple_of(align);
        self.top = address + bytes;
        address
    }

    pub(super) fn put(&mut self, address: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put_bytes(address, &bytes);
    }

    fn put_bytes(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - ADDRESS) as usize;
        self.bytes.resize(self.bytes.len().max(at + bytes.len()), 0);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Words at a new address, which is returned.
    pub(super) fn words(&mut self, words: &[u64]) -> u64 {
        let address = self.room(8 * words.len() as u64, 16);
        self.put(address, words);
        address
    }

    fn text(&mut self, text: &str) -> u64 {
        let address = self.room(text.len() as u64, 8);
        self.put_bytes(address, text.as_bytes());
        address
    }

    /// The outline of a type, with its parts by their offsets.
    pub(super) fn outline(&mut self, form: u64, size: u64, name: &str, parts: &[(u64, u64)]) -> u64 {
        let words: Vec<u64> = parts.iter().flat_map(|(offset, part)| [*offset, *part]).collect();
        let (name_at, parts_at) = (self.text(name), self.words(&words));
        self.words(&[form, name_at, name.len() as u64, size, 8, parts_at, parts.len() as u64])
    }

    /// The table of objects of 16 bytes with such a value.
    pub(super) fn table(&mut self, outline: u64) -> u64 {
        self.words(&[16, 16, 0, 1, 0, outline, 0])
    }

    /// Where in memory the object with this number is, and how a reference to it looks.
    pub(super) fn object(&self, number: u64) -> u64 {
        self.segment + PAYLOAD + 16 * number
    }

    /// Objects of 16 bytes with these tables, from the first of the segment on. Whether bits say that they are there.
    pub(super) fn objects(&mut self, tables: &[u64], have_bits: bool) {
        let mut bits = vec![0; (self.size / 512 + 1) as usize];
        for (number, table) in (0..).zip(tables) {
            self.put(self.object(number), &[*table, 0]);
            bits[number as usize / 32] |= u64::from(have_bits) << (number % 32 * 2);
        }
        self.put(self.segment + 256, &bits);
    }

    /// A root before the others, of this kind: a table of references, or an ambiguous area.
    pub(super) fn root(&mut self, kind: u64, first: u64, count: u64) {
        self.roots = self.words(&[self.roots, kind, first, count, 0, 0]);
    }

    /// Writes the core file.
    pub(super) fn write(mut self, path: &Path) {
        let name = self.text("AMC");
        let segments = self.words(&[self.segment]);
        let (aside, operations) = (self.words(&[0]), self.words(&[16, 24]));
        let buffers = self.words(&[self.buffers, operations]);
        let frozen = self.words(&[self.frozen, 0]);
        let pool =
            self.words(&[0, 1, name, 3, segments, 8, 1, aside, buffers, 0, 8, 1, 0, 8, 16, 24, 32, 40, 8, 0]);
        let (pools, roots) = (self.words(&[pool]), self.words(&[self.roots]));
        let heap = self.words(&[0, pools, roots, frozen, 0]);
        self.put(heap, &[heap]);
        self.put_bytes(ADDRESS, b"tripointgc-heaps");
        let listing: Vec<u64> = [1].into_iter().chain(OFFSETS).chain([0, 60, heap]).collect();
        self.put(ADDRESS + 16, &listing);
        self.bytes.resize((self.top - ADDRESS) as usize, 0);
        made::core_with_memory(path, ADDRESS, self.bytes);
    }
}
