//! A heap with its objects, and where references lead.

use crate::heaps::layout::{HeapOutline, Listing};
use crate::heaps::pools::Pool;
use crate::heaps::segments::{Fate, Segment};
use crate::heaps::types::{Type, Types};
use crate::memory::Memory;

/// An object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) base: u64,
    /// In bytes, header included.
    pub(crate) size: u64,
    pub(super) kind: u32,
    pub(super) segment: u32,
}

impl Object {
    /// The index of its segment.
    pub(crate) fn segment_index(&self) -> usize {
        self.segment as usize
    }
}

/// Objects that collections do not look at, from one address to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frozen {
    pub(crate) base: u64,
    pub(crate) limit: u64,
}

/// Where a reference leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// To the object with this index.
    Object(usize),
    /// Into a pool of which no object is known.
    Undescribed,
    /// Into the heap, where no object begins.
    Nowhere,
    /// Not into this heap.
    Elsewhere,
}

/// A heap.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) address: u64,
    pub(super) outline: HeapOutline,
    pub(super) listing: Listing,
    pub(crate) pools: Vec<Pool>,
    /// By address.
    pub(crate) segments: Vec<Segment>,
    /// By address.
    pub(crate) objects: Vec<Object>,
    pub(super) types: Types,
    pub(crate) frozen: Vec<Frozen>,
}

impl Heap {
    /// What a collection was doing.
    pub(crate) fn doing(&self) -> &'static str {
        match self.outline.doing {
            0 => "nothing",
            1 => "moving objects",
            _ => "freeing dead objects",
        }
    }

    /// The index of the segment that an address is in.
    pub(super) fn segment_of(&self, address: u64) -> Option<usize> {
        let index = self.segments.partition_point(|segment| segment.base <= address).checked_sub(1)?;
        self.segments[index].encloses(address).then_some(index)
    }

    /// Whether any segment has a byte in front of `limit` and not in front of `base`.
    pub(super) fn has_segments_between(&self, base: u64, limit: u64) -> bool {
        let index = self.segments.partition_point(|segment| segment.limit <= base);
        self.segments.get(index).is_some_and(|segment| segment.base < limit)
    }

    /// The index of the object that begins at an address.
    pub(super) fn object_from(&self, base: u64) -> Option<usize> {
        self.objects.binary_search_by_key(&base, |object| object.base).ok()
    }

    /// The index of the object that has a byte.
    pub(crate) fn object_with(&self, address: u64) -> Option<usize> {
        let index = self.objects.partition_point(|object| object.base <= address).checked_sub(1)?;
        let object = self.objects[index];
        (address - object.base < object.size).then_some(index)
    }

    /// The type of an object.
    pub(crate) fn type_of(&self, object: &Object) -> &Type {
        self.types.get(object.kind as usize)
    }

    /// The segment of an object.
    pub(crate) fn segment(&self, object: &Object) -> &Segment {
        &self.segments[object.segment_index()]
    }

    /// Where an exact reference leads: if its object has moved, to the copy.
    pub(super) fn lead(&self, memory: &dyn Memory, reference: u64) -> Lead {
        let Some(segment) = self.segment_of(reference).map(|index| &self.segments[index]) else {
            return Lead::Elsewhere;
        };
        if !self.pools[segment.pool].is_described() {
            return Lead::Undescribed;
        }
        let Some(base) = reference.checked_sub(segment.header) else { return Lead::Nowhere };
        let copied = || copy_of(memory, segment, base).and_then(|copy| self.object_from(copy));
        self.object_from(base).or_else(copied).map_or(Lead::Nowhere, Lead::Object)
    }

    /// Where a word leads that may be a reference: to the object that begins at or in front of that address in the segment.
    pub(super) fn lead_around(&self, word: u64) -> Lead {
        let Some(index) = self.segment_of(word) else { return Lead::Elsewhere };
        let segment = &self.segments[index];
        if !self.pools[segment.pool].is_described() {
            return Lead::Undescribed;
        }
        let object = self.objects.partition_point(|object| object.base <= word).checked_sub(1);
        let is_here = |object: &usize| self.objects[*object].segment as usize == index;
        object.filter(is_here).map_or(Lead::Nowhere, Lead::Object)
    }
}

/// Where the copy is of the object that began at `base`, if it has moved.
pub(super) fn copy_of(memory: &dyn Memory, segment: &Segment, base: u64) -> Option<u64> {
    let word = memory.word_at(base, 0).filter(|word| segment.fate == Fate::Moves && word & 1 != 0)?;
    Some(word & !1)
}
