//! Segments, and the bits that say where objects begin (design/gc.md `.segment`, `.segment.color`).

use crate::heaps::layout::Listing;
use crate::memory::Memory;

/// No segment is larger, in bytes.
const MOST_SIZE: u64 = 1 << 44;

/// No object is aligned to more.
const MOST_ALIGN: u64 = 1 << 20;

/// What a collection does with the objects of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    Marks,
    /// Each object is here, or its first word says where it is.
    Moves,
    /// Those that are not marked are dead.
    Waits,
}

/// A segment of a pool.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Which of the heap's pools it is of.
    pub(crate) pool: usize,
    pub(crate) base: u64,
    pub(crate) limit: u64,
    pub(crate) generation: u8,
    pub(super) fate: Fate,
    pub(super) align: u64,
    /// The bytes in front of the address by which references know an object.
    pub(super) header: u64,
    payload: u64,
    maps: u64,
    words: u64,
    /// Objects that lie one after the other, and whose bits say nothing.
    pub(super) unrecorded: (u64, u64),
    pub(super) next: u64,
}

impl Segment {
    /// The segment at an address; `None` if none is there, or if it makes no sense.
    pub(super) fn read(memory: &dyn Memory, listing: &Listing, pool: usize, address: u64) -> Option<Self> {
        let word = |offset| memory.word_at(address, offset);
        let byte = |offset: u64| memory.read(address.checked_add(offset)?, 1).map(|bytes| bytes[0]);
        let segment = Self {
            pool,
            base: word(listing.segment_base)?,
            limit: word(listing.segment_limit)?,
            generation: byte(listing.segment_generation)?,
            fate: [Fate::Stays, Fate::Marks, Fate::Moves, Fate::Waits]
                .get(usize::from(byte(listing.segment_fate)?))
                .copied()?,
            align: word(listing.segment_align)?,
            header: word(listing.segment_header)?,
            payload: word(listing.segment_payload)?,
            maps: word(listing.segment_maps)?,
            words: word(listing.segment_words)?,
            unrecorded: (word(listing.unrecorded_base)?, word(listing.unrecorded_limit)?),
            next: word(listing.segment_next)?,
        };
        (segment.base == address && segment.makes_sense(memory)).then_some(segment)
    }

    fn makes_sense(&self, memory: &dyn Memory) -> bool {
        let Self { base, limit, align, payload, maps, words, .. } = *self;
        let word = memory.word() as u64;
        let is_range = base < payload && payload <= limit && limit - base < MOST_SIZE;
        let is_shape =
            align.is_power_of_two() && (word..=MOST_ALIGN).contains(&align) && self.header < MOST_ALIGN;
        if !is_range || !is_shape {
            return false;
        }
        let (room, bits) = (limit - payload, 8 * word);
        // The maps have a bit for each place, and a few more for those that their own memory takes.
        let is_map = words.checked_mul(bits * align).is_some_and(|places| places >= room)
            && words <= (limit - base) / (bits * align) + 1
            && maps.checked_add(2 * words * word).is_some_and(|end| end <= payload - base);
        let (first, last) = self.unrecorded;
        let is_empty = first == last;
        is_map && (is_empty || payload <= first && first < last && last <= limit)
    }

    pub(crate) fn size(&self) -> u64 {
        self.limit - self.base
    }

    pub(super) fn encloses(&self, address: u64) -> bool {
        self.base <= address && address < self.limit
    }

    /// Whether a place has a bit, as each has where an object begins, or may begin; `None` if it is no place.
    pub(super) fn has_bit(&self, memory: &dyn Memory, place: u64) -> Option<bool> {
        let (unit, bits) = (place.checked_sub(self.payload)? / self.align, 8 * memory.word() as u64);
        let word = |map: u64| {
            let index = map * self.words + unit / bits;
            memory.word_at(self.base, index.checked_mul(memory.word() as u64)?.checked_add(self.maps)?)
        };
        let both = word(0)? | word(1)?;
        (unit / bits < self.words).then_some(both >> (unit % bits) & 1 != 0)
    }

    /// Where objects begin, as the bits say it; `None` if these are not known.
    pub(super) fn places(&self, memory: &dyn Memory) -> Option<Vec<u64>> {
        let words = memory.words(self.base.checked_add(self.maps)?, usize::try_from(2 * self.words).ok()?)?;
        let (starts, marks) = words.split_at(self.words as usize);
        let is_of_mark = self.fate == Fate::Waits;
        let (bits, mut places) = (8 * memory.word() as u64, Vec::new());
        for (index, (start, mark)) in (0..).zip(starts.iter().zip(marks)) {
            let mut word = if is_of_mark { *mark } else { start | mark };
            while word != 0 {
                let unit = index * bits + u64::from(word.trailing_zeros());
                places.extend(unit.checked_mul(self.align).and_then(|at| at.checked_add(self.payload)));
                word &= word - 1;
            }
        }
        let (first, last) = self.unrecorded;
        places.retain(|place| *place < self.limit && !(first <= *place && *place < last));
        Some(places)
    }
}
