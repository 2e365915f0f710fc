//! Finds all heaps of a process, and reads them.

use std::collections::HashSet;

use crate::heaps::faults::Faults;
use crate::heaps::heap::{Frozen, Heap};
use crate::heaps::layout::{HeapOutline, Listing, MAGIC, structure};
use crate::heaps::objects;
use crate::heaps::pools::Pools;
use crate::heaps::types::Types;
use crate::memory::Memory;

/// No heap has more frozen segments, and none is larger, in bytes.
const MOST_FROZEN: usize = 1 << 16;
const MOST_FROZEN_SIZE: u64 = 1 << 44;

/// The heaps of a process.
#[derive(Debug, Default)]
pub(crate) struct Heaps {
    pub(crate) heaps: Vec<Heap>,
    /// What could not be read.
    pub(crate) faults: Vec<String>,
}

impl Heaps {
    /// Reads all heaps that are listed.
    pub(crate) fn read(memory: &dyn Memory) -> Self {
        let mut found = Self::default();
        for at in memory.magics(MAGIC) {
            let after = at + MAGIC.len() as u64;
            let words = memory.words(after, Listing::WORDS).unwrap_or_default();
            if !Listing::is_likely(&words) {
                continue;
            }
            if memory.word() != 8 {
                found.faults.push(format!(
                    "this process has words of {} bytes: heaps are read of processes with words of 8 bytes",
                    memory.word()
                ));
                continue;
            }
            match Listing::of(&words) {
                Ok(listing) => {
                    found.read_listed(memory, &listing, after.saturating_add(8 * Listing::WORDS as u64));
                }
                Err(fault) => found.faults.push(fault),
            }
        }
        found
    }

    fn read_listed(&mut self, memory: &dyn Memory, listing: &Listing, places: u64) {
        if listing.left_out > 0 {
            self.faults
                .push(format!("{} heaps are not listed, because there were too many", listing.left_out));
        }
        let Some(heaps) = memory.words(places, listing.places as usize) else {
            self.faults.push("the listing of heaps is cut off".to_owned());
            return;
        };
        let mut seen = HashSet::new();
        for address in heaps.into_iter().filter(|address| *address != 0 && seen.insert(*address)) {
            match structure!(HeapOutline, memory, address).filter(|outline| outline.this == address) {
                Some(outline) => {
                    let (heap, faults) = read_heap(memory, listing, outline);
                    self.faults.extend(faults.of(&format!("heap {address:#x}")));
                    self.heaps.push(heap);
                }
                None => self.faults.push(format!(
                    "no heap is at {address:#x}, where one was listed: it moved or was leaked, and its memory is of others"
                )),
            }
        }
    }
}

/// The heap with an outline.
fn read_heap(memory: &dyn Memory, listing: &Listing, outline: HeapOutline) -> (Heap, Faults) {
    let mut faults = Faults::default();
    if outline.doing == 2 {
        faults.add(
            "a collection was freeing dead objects: segments that it had in hand are left out".to_owned(),
        );
    }
    let Pools { pools, segments } = Pools::read(memory, listing, &outline, &mut faults);
    let mut heap = Heap {
        address: outline.this,
        outline,
        listing: *listing,
        pools,
        segments: segments.into_values().collect(),
        objects: Vec::new(),
        types: Types::default(),
        frozen: Vec::new(),
    };
    heap.frozen = frozen(memory, &heap, &mut faults);
    objects::find_all(memory, &mut heap, &mut faults);
    (heap, faults)
}

/// The frozen segments of a registry.
fn frozen(memory: &dyn Memory, heap: &Heap, faults: &mut Faults) -> Vec<Frozen> {
    let listing = &heap.listing;
    let (mut found, mut seen) = (Vec::<Frozen>::new(), HashSet::new());
    let mut node = memory.word_at(heap.outline.frozen, listing.registry_head);
    while let Some(at) = node.filter(|node| *node != 0) {
        if seen.len() >= MOST_FROZEN || !seen.insert(at) {
            break;
        }
        let range = memory.word_at(at, listing.frozen_first).zip(memory.word_at(at, listing.frozen_limit));
        if let Some((base, limit)) = range.filter(|(base, limit)| base < limit) {
            found.push(Frozen { base, limit });
        }
        node = memory.word_at(at, listing.node_next);
    }
    if node.is_none() {
        faults.add("not all frozen segments are there".to_owned());
    }
    found.sort_by_key(|frozen| frozen.base);
    let mut end = 0;
    found.retain(|frozen| {
        let Frozen { base, limit } = *frozen;
        let makes_sense =
            end <= base && limit - base < MOST_FROZEN_SIZE && !heap.has_segments_between(base, limit);
        if makes_sense {
            end = limit;
        } else {
            faults.add(format!(
                "the frozen segment from {base:#x} to {limit:#x} is too long or overlaps another segment: it is left out"
            ));
        }
        makes_sense
    });
    found
}
