//! The pools of a heap, with their segments and what buffers hold (design/inspection.md `.pools`).

use std::collections::{BTreeMap, HashSet};

use crate::heaps::faults::Faults;
use crate::heaps::layout::{HeapOutline, KINDS, Listing, PoolOutline, TYPED, structure, text};
use crate::heaps::segments::Segment;
use crate::memory::Memory;

/// No heap has more pools, no pool more generations, buffers or segments, and no class a longer name. Lists of more go
/// round.
const MOST_POOLS: usize = 1 << 16;
const MOST_GENERATIONS: u64 = 64;
const MOST_BUFFERS: usize = 1 << 20;
const MOST_CLASS: u64 = 64;

/// A pool.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// Its number in its arena.
    pub(crate) number: u64,
    pub(crate) class: String,
    pub(super) outline: PoolOutline,
    /// Objects that mutators made since the pool last looked: from one address to another.
    pub(super) held: Vec<(u64, u64)>,
}

impl Pool {
    /// Whether it is known how its objects are laid out.
    pub(crate) fn is_described(&self) -> bool {
        self.outline.form >= TYPED
    }
}

/// What was read of a heap's pools.
#[derive(Debug, Default)]
pub(super) struct Pools {
    pub(super) pools: Vec<Pool>,
    /// By their bases. They do not overlap.
    pub(super) segments: BTreeMap<u64, Segment>,
}

impl Pools {
    pub(super) fn read(
        memory: &dyn Memory,
        listing: &Listing,
        heap: &HeapOutline,
        faults: &mut Faults,
    ) -> Self {
        let mut found = Self::default();
        let mut seen = HashSet::new();
        let mut next = memory.word_at(heap.pools, 0).unwrap_or_else(|| {
            faults.add(format!("the list of pools at {:#x} is not there", heap.pools));
            0
        });
        while next != 0 && seen.len() < MOST_POOLS && seen.insert(next) {
            let Some(outline) = structure!(PoolOutline, memory, next) else {
                faults
                    .add(format!("the pool at {next:#x} is not there: it and those behind it are left out"));
                break;
            };
            let class = text(memory, outline.class, outline.class_size, MOST_CLASS);
            if outline.generations > MOST_GENERATIONS || outline.form > KINDS {
                faults.add(format!("the pool at {next:#x} makes no sense: its objects are left out"));
            } else {
                let class = class.unwrap_or_else(|| "a class without a name".to_owned());
                found.pools.push(Pool { number: outline.id, class, outline, held: Vec::new() });
                found.read_segments(memory, listing, faults);
                found.read_buffers(memory, listing, faults);
            }
            next = outline.next;
        }
        found
    }

    /// The segments of the last pool.
    fn read_segments(&mut self, memory: &dyn Memory, listing: &Listing, faults: &mut Faults) {
        let index = self.pools.len() - 1;
        let PoolOutline { id, segments, segments_step, generations, aside, .. } = self.pools[index].outline;
        let lists = (0..generations).map(|number| segments.checked_add(segments_step.checked_mul(number)?));
        for list in lists.chain([Some(aside)]) {
            let Some(mut next) = list.and_then(|list| memory.word_at(list, 0)) else {
                faults.add(format!("a list of segments of pool {id} is not there"));
                continue;
            };
            while next != 0 {
                let Some(segment) = Segment::read(memory, listing, index, next) else {
                    faults.add(format!(
                        "pool {id} has no segment at {next:#x}, where its list says: that and those behind it are left out"
                    ));
                    break;
                };
                next = segment.next;
                let base = segment.base;
                if !self.add(segment) {
                    faults.add(format!(
                        "the segment at {base:#x} of pool {id} overlaps another: it and those behind it are left out"
                    ));
                    break;
                }
            }
        }
    }

    /// Adds a segment, unless it overlaps another.
    fn add(&mut self, segment: Segment) -> bool {
        let before = self.segments.range(..segment.limit).next_back();
        let is_free = before.is_none_or(|(_, before)| before.limit <= segment.base);
        if is_free {
            self.segments.insert(segment.base, segment);
        }
        is_free
    }

    /// What the buffers of the last pool hold.
    fn read_buffers(&mut self, memory: &dyn Memory, listing: &Listing, faults: &mut Faults) {
        let Some(pool) = self.pools.last_mut() else { return };
        let PoolOutline { id, buffers, held_base, held_limit, .. } = pool.outline;
        let word = |base: u64, offset: u64| memory.word_at(base, offset);
        let Some((mut node, operations)) =
            word(buffers, listing.registry_head).zip(word(buffers, listing.registry_operations))
        else {
            faults.add(format!("the buffers of pool {id} are not there"));
            return;
        };
        let mut seen = HashSet::new();
        while node != 0 && seen.len() < MOST_BUFFERS && seen.insert(node) {
            let held = || {
                let class = node.checked_add(word(operations, listing.class_offset)?)?;
                let init = word(node, word(operations, listing.init_offset)?)?;
                let is_claimed = memory.read(node.checked_add(listing.node_claimed)?, 1)?[0] != 0;
                let (base, limit) = (word(class, held_base)?, word(class, held_limit)?.min(init));
                Some((base, if is_claimed { limit } else { base }))
            };
            let Some(((base, limit), next)) = held().zip(word(node, listing.node_next)) else {
                faults.add(format!(
                    "the buffer at {node:#x} of pool {id} is not there: what it and those behind it hold is left out"
                ));
                break;
            };
            if base < limit {
                pool.held.push((base, limit));
            }
            node = next;
        }
    }
}
