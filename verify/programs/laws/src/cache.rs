//! The sums of caches.

#[path = "../../../../pools/src/cache/sums.rs"]
mod sums;

use crate::law::laws;
use sums::{
    BLOCK_ALIGN, LARGEST_IN_SLAB, SLAB_SIZE, SLAB_WORDS, batch_of, blocks_in_slab, first_portion,
    header_in_slab, index_in_slab, may_keep_more, offset_in_slab, place_in_slab, portion_within, reciprocal,
    smaller_portion, step_of,
};

laws! {
    /// A table with an entry for each step finds the class that a search for the size itself would find: no class lies between.
    fn a_step_has_the_class_of_its_sizes(size: usize, class: usize)
    given size <= isize::MAX as usize && class <= isize::MAX as usize && class.is_multiple_of(BLOCK_ALIGN); {
        (class < size) == (class < step_of(size) * BLOCK_ALIGN)
    }

    /// So a block of the class that is found has room for the size.
    fn a_step_is_no_smaller_than_its_sizes(size: usize) given size <= isize::MAX as usize; {
        step_of(size) * BLOCK_ALIGN >= size && step_of(size) * BLOCK_ALIGN - size < BLOCK_ALIGN
    }

    fn larger_sizes_have_no_lower_steps(size: usize, larger: usize)
    given size <= larger && larger <= isize::MAX as usize; { step_of(size) <= step_of(larger) }

    /// Two batches are never more than may be kept, and fit into a magazine each.
    fn two_batches_are_what_may_be_kept(count: usize, most: usize) given true; {
        let batch = batch_of(count, most);
        batch <= most && batch <= count - batch && (batch == most || count - batch - batch <= 1)
    }

    fn a_portion_is_kept_without_loss(portion: usize, count: usize, most: usize) given most <= 1 << 16; {
        portion_within(portion, batch_of(count, most)) as usize == portion.min(batch_of(count, most))
    }

    /// Blocks of any size pass on, one at least, and no more than eight.
    fn a_first_portion_is_never_none(size: u16) given size != 0; {
        let first = first_portion(size as usize);
        (1..=8).contains(&first) && (first == 1 || first * size as usize <= 4096)
    }

    fn small_blocks_pass_on_eight(size: u16) given size != 0 && size <= 512; { first_portion(size as usize) == 8 }

    fn large_blocks_pass_on_one_by_one(size: usize) given size > 2048; { first_portion(size) == 1 }

    /// Larger blocks have no larger portion.
    fn larger_blocks_have_no_larger_portion(size: u16, larger: u16) given size != 0 && size <= larger; {
        first_portion(size as usize) >= first_portion(larger as usize)
    }

    /// What is left is half at least.
    fn a_portion_shrinks_by_half_at_most(portion: u32, size: u16) given size != 0; {
        2 * smaller_portion(portion as usize, size as usize) as u64 >= portion as u64
    }

    /// A portion shrinks to the first, and not below.
    fn a_portion_shrinks_to_the_first(portion: u32, size: u16) given size != 0 && portion != 0; {
        let (portion, first) = (portion as usize, first_portion(size as usize));
        let smaller = smaller_portion(portion, size as usize);
        smaller >= first && (smaller < portion || smaller == first || portion == 1)
    }

    /// A thirty-second of the pool, or of a pool of less than 16 MiB a quarter, but no more than 512 KiB.
    fn a_cache_keeps_no_more_than_its_share(cached: usize, total: usize) given true; {
        let is_share = |times: usize| cached.checked_mul(times).is_some_and(|times| times <= total);
        may_keep_more(cached, total) == (is_share(32) || is_share(4) && cached <= 512 << 10)
    }

    /// A block of a slab lies in it, aligned, behind the header and the bits of any slab.
    fn a_block_of_a_slab_lies_behind_its_front(base: usize, size: u16, index: u16)
    given size != 0 && (size as usize).is_multiple_of(BLOCK_ALIGN) && size as usize <= LARGEST_IN_SLAB
        && (index as usize) < blocks_in_slab(size as usize); {
        let place = place_in_slab(size as usize, index as usize);
        let front = header_in_slab(base) + (4 + SLAB_WORDS) * size_of::<usize>();
        front <= place && place.is_multiple_of(BLOCK_ALIGN) && place + size as usize <= SLAB_SIZE
    }

    /// As it is documented: blocks of up to 1 KiB are cut from slabs of 64 KiB.
    fn small_blocks_are_cut_from_slabs(size: usize, addr: usize) given true; {
        (size <= LARGEST_IN_SLAB) == (size <= 1 << 10) && offset_in_slab(addr) == addr & 0xffff
    }

    fn a_slab_has_several_blocks(size: u16) given size != 0 && size as usize <= LARGEST_IN_SLAB; {
        blocks_in_slab(size as usize) > 32
    }

    /// Headers of slabs that lie side by side begin on different cache lines.
    fn headers_of_slabs_share_no_place(base: usize, slabs: u8) given slabs != 0 && slabs < 8; {
        let next = base.wrapping_add(slabs as usize * SLAB_SIZE);
        header_in_slab(base) != header_in_slab(next) && header_in_slab(base).is_multiple_of(64)
    }

    /// What is found from the address of a block is its slab.
    fn a_block_leads_to_its_slab(base: usize, place: usize)
    given base.is_multiple_of(SLAB_SIZE) && place < SLAB_SIZE; { offset_in_slab(base + place) == place }

    /// Of every size, which is that many steps: the index of a block is found by its place, and has a bit. Sizes are tried one
    /// after the other.
    fn every_block_has_its_bit(step: usize, index: u16)
    given step != 0 && step <= LARGEST_IN_SLAB / BLOCK_ALIGN && (index as usize) < blocks_in_slab(step * BLOCK_ALIGN); {
        let size = step * BLOCK_ALIGN;
        let found = index_in_slab(reciprocal(size), place_in_slab(size, index as usize));
        found == index as usize && found < SLAB_WORDS * usize::BITS as usize
    }
}
