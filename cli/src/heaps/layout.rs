//! Words that the program has for readers outside of it, by their names (gc/src/outlines).

use crate::memory::{Memory, of_words};

/// What the listing of heaps begins with (gc/src/heaps/listing.rs).
pub(super) const MAGIC: &[u8] = b"tripointgc-heaps";

/// The version of the listing that this program reads.
const VERSION: u64 = 1;

/// The forms of formats: of typed objects, and of objects that say of which kind they are. Nothing is known of a format with
/// a lower one.
pub(super) const TYPED: u64 = 1;
pub(super) const KINDS: u64 = 2;

/// No listing has more places.
const MOST_PLACES: u64 = 1 << 12;

/// No part of what is listed is longer, in bytes: then offsets make no sense.
const MOST_OFFSET: u64 = 1 << 16;

of_words! {
    /// The words after the magic. Places are in bytes, from the beginning of what has them. The addresses of outlines of
    /// heaps follow.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Listing {
        version,
        segment_base,
        segment_limit,
        segment_align,
        segment_header,
        segment_payload,
        segment_maps,
        segment_words,
        segment_fate,
        segment_generation,
        segment_next,
        unrecorded_base,
        unrecorded_limit,
        registry_head,
        registry_operations,
        node_next,
        node_claimed,
        init_offset,
        class_offset,
        frozen_first,
        frozen_limit,
        root_next,
        root_place,
        cold_end,
        hot_end,
        left_out,
        places,
    }
}

of_words! {
    /// The outline of a heap.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct HeapOutline {
        this,
        pools,
        roots,
        frozen,
        doing,
    }
}

of_words! {
    /// The outline of a pool, with that of its format, whose words depend on its form (gc/src/outlines/format_outline.rs).
    #[derive(Clone, Copy, Debug)]
    pub(super) struct PoolOutline {
        next,
        id,
        class,
        class_size,
        segments,
        segments_step,
        generations,
        aside,
        buffers,
        held_base,
        held_limit,
        form,
        first,
        second,
        third,
        fourth,
        fifth,
        sixth,
        seventh,
        kinds,
    }
}

of_words! {
    /// A kind of objects of a format.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct KindOutline {
        value,
        name,
        name_size,
        size,
        references,
        reference_count,
        count,
        shift,
        item,
        item_references,
        item_reference_count,
    }
}

of_words! {
    /// The outline of a type.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct TypeOutline {
        form,
        name,
        name_size,
        size,
        align,
        parts,
        part_count,
    }
}

of_words! {
    /// The outline of typed roots.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct RootsOutline {
        strong,
        pinned,
        generations,
        next,
        slots,
        slot_count,
        slot_size,
        object,
    }
}

impl Listing {
    /// Whether words can be a listing of any version: otherwise the magic is there alone, as a program has it that looks
    /// for one.
    pub(super) fn is_likely(words: &[u64]) -> bool {
        words.first().is_some_and(|version| (1..1000).contains(version))
    }

    /// `Err` with what is wrong.
    pub(super) fn of(words: &[u64]) -> Result<Self, String> {
        let listing = Self::of_words(words).ok_or("the listing of heaps is cut off")?;
        if listing.version != VERSION {
            return Err(format!(
                "the heaps are laid out by version {}, and this program knows version {VERSION}: take the tripoint that \
                 the program was built with",
                listing.version
            ));
        }
        let offsets = &words[1..Self::WORDS - 2];
        if listing.places > MOST_PLACES || offsets.iter().any(|offset| *offset > MOST_OFFSET) {
            return Err("the listing of heaps makes no sense".to_owned());
        }
        Ok(listing)
    }
}

/// The structure of words at an address.
macro_rules! structure {
    ($of:ty, $memory:expr, $address:expr) => {
        $memory.words($address, <$of>::WORDS).and_then(|words| <$of>::of_words(&words))
    };
}

pub(super) use structure;

/// A text of at most this many bytes, as people read it; `None` if it is longer or not there.
pub(super) fn text(memory: &dyn Memory, address: u64, size: u64, most: u64) -> Option<String> {
    let bytes = memory.read(address, usize::try_from(size).ok().filter(|_| size <= most)?)?;
    Some(String::from_utf8_lossy(&bytes).escape_debug().to_string())
}
