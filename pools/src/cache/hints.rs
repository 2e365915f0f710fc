//! Where the blocks of a batch are, written in the blocks themselves.
//!
//! The links of a batch lead from block to block, so a thread that follows them waits for the memory of each in turn, and
//! that memory was last written by another processor, or long ago. Hints lead to many blocks at once, so that their
//! memory is on its way before the first is allocated (design/cache.md `.depot.hints`):
//!
//! ```text
//!   first block  [ link | below | hint | hint | hint | hint | hint | hint ]      one cache line of words
//!                                  v to the second block, and to each eighth from there
//!   second block [ link | hint | hint | hint | hint | hint | hint | hint ]
//!                           v to the seven that follow
//! ```
//!
//! Nothing depends on a hint: a wrong one costs time. There are none in blocks of less than a cache line, of which
//! one load brings several; with the feature `hardening`, which leaves no plain address in free memory; nor with `poison`.

use core::ptr::{self, NonNull};

use tripoint_core::internal::{PREFETCHES, prefetch};

use crate::blocks::FreeBlock;
use crate::link::LinkKey;

/// The words of a cache line.
const WORDS: usize = 8;
/// The words of a batch's first block before its hints: its link, and that of the batch.
const LINKS: usize = 2;

type Hint = *mut FreeBlock;

/// Whether batches of blocks of this many bytes have hints.
const fn has_hints(size: usize) -> bool {
    (PREFETCHES || cfg!(miri))
        && !LinkKey::CHECKS
        && cfg!(not(feature = "poison"))
        && size >= WORDS * size_of::<Hint>()
}

/// Writes the hints of a batch, whose blocks of `size` bytes are passed in their order.
///
/// # Safety
/// - Nothing uses the blocks, which are aligned for words.
pub(super) unsafe fn write_hints(blocks: &[NonNull<FreeBlock>], size: usize) {
    let Some((first, rest)) = blocks.split_first().filter(|_| has_hints(size)) else { return };
    let groups = rest.chunks(WORDS);
    // SAFETY: the first block, which nothing uses, has room for a line of words.
    unsafe { write(*first, LINKS, groups.clone().filter_map(<[_]>::first)) };
    for group in groups {
        if let Some((leader, others)) = group.split_first() {
            // SAFETY: this block, which nothing uses, has room for a line of words.
            unsafe { write(*leader, 1, others.iter()) };
        }
    }
}

/// Writes hints into a block, from the word `from` to the last of the line; null if there are fewer.
///
/// # Safety
/// - Nothing uses the block, which has [`WORDS`] words and is aligned for them.
unsafe fn write<'a>(
    block: NonNull<FreeBlock>,
    from: usize,
    mut hints: impl Iterator<Item = &'a NonNull<FreeBlock>>,
) {
    for word in from..WORDS {
        let hint = hints.next().map_or(ptr::null_mut(), |hint| hint.as_ptr());
        // SAFETY: one of the words of the block.
        unsafe { block.cast::<Hint>().add(word).write(hint) };
    }
}

/// Has the blocks of a batch loaded, as far as its hints lead to them.
///
/// # Safety
/// - As [`for_each_hint`].
#[inline]
pub(super) unsafe fn prefetch_batch(first: NonNull<FreeBlock>, size: usize) {
    // SAFETY: `first` begins a batch that has its hints, and that changed only in the two words of links.
    unsafe { for_each_hint(first, size, prefetch) };
}

/// Shows the hints of a batch: first those of its first block, so that these are on their way before they are read.
///
/// # Safety
/// - `first` is the first block of a batch of blocks of `size` bytes, on which [`write_hints`] was called, and which was
///   not changed since, except for the two words of links.
#[inline]
unsafe fn for_each_hint(first: NonNull<FreeBlock>, size: usize, mut visit: impl FnMut(*const FreeBlock)) {
    if !has_hints(size) {
        return;
    }
    // SAFETY: a word of the first block, which has hints.
    let leaders: [Hint; WORDS - LINKS] =
        core::array::from_fn(|word| unsafe { first.cast::<Hint>().add(LINKS + word).read() });
    for leader in leaders {
        visit(leader);
    }
    for leader in leaders.into_iter().filter_map(NonNull::new) {
        for word in 1..WORDS {
            // SAFETY: a word of a block that a hint leads to, which has hints too.
            visit(unsafe { leader.cast::<Hint>().add(word).read() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    /// The blocks of a batch of `count`, by number, that its hints lead to.
    fn hinted(count: usize) -> BTreeSet<usize> {
        let mut memory: Vec<[usize; WORDS]> = std::vec![[usize::MAX; WORDS]; count];
        let base = memory.as_mut_ptr();
        // Every eleventh block comes next, so that the order is not that of the addresses.
        let place = |number: usize| number * 11 % count;
        let blocks: Vec<_> = (0..count)
            // SAFETY: a place in the array.
            .map(|number| NonNull::new(unsafe { base.add(place(number)) }.cast::<FreeBlock>()).unwrap())
            .collect();
        // SAFETY: blocks of the array, which nothing else uses.
        unsafe { write_hints(&blocks, size_of::<[usize; WORDS]>()) };
        let mut found = BTreeSet::new();
        let mut visit = |hint: *const FreeBlock| {
            if !hint.is_null() {
                let number = blocks.iter().position(|block| ptr::eq(block.as_ptr(), hint));
                assert!(found.insert(number.expect("a hint leads to a block")), "twice");
            }
        };
        // SAFETY: the hints were written above.
        unsafe { for_each_hint(blocks[0], size_of::<[usize; WORDS]>(), &mut visit) };
        found
    }

    #[test]
    fn hints_lead_to_every_block_of_six_groups() {
        let groups = (WORDS - LINKS) * WORDS;
        for count in [1, 2, 8, 10, 49, 50, 64] {
            let all = if has_hints(size_of::<[usize; WORDS]>()) { 1..count.min(1 + groups) } else { 1..1 };
            assert_eq!(hinted(count), all.collect(), "of {count}");
        }
        assert!(!has_hints(size_of::<[usize; WORDS]>() - 1));
    }
}
