//! Batches in the class of a cache: how one is cut off its list, and how it becomes the list (design/cache.md `.depot`).

use core::ptr::NonNull;

use tripoint_core::Magazine;
use tripoint_core::internal::Ordering;

use super::classes::{BLOCK_ALIGN, CacheClass};
use super::descriptor::ClassWords;
use super::hints::{prefetch_batch, write_hints};
use crate::blocks::{FreeBlock, Link};
use crate::link::{Damaged, Watch};

/// Makes a batch the list of a class that keeps nothing.
///
/// # Safety
/// - `first` is the first block of a batch that [`cut_batch`] made, in a class like this one. Nothing uses its blocks, and nothing changed
///   them since, except for the second word of the first.
pub(super) unsafe fn fill_with_batch(words: &ClassWords, class: &CacheClass, first: NonNull<FreeBlock>) {
    // SAFETY: `cut_batch` wrote the hints; the caller promises the rest.
    unsafe { prefetch_batch(first, class.size) };
    words.head.set(Some(first));
    words.count.store(class.batch(), Ordering::Relaxed);
}

/// Cuts the batch that was freed last off the list of a class. `None` if the class keeps less than a batch.
///
/// # Errors
/// [`Damaged`], with the class as it was.
///
/// # Safety
/// - The caller owns the cache. The class keeps as many blocks as are counted, linked by the key of `watch`.
pub(super) unsafe fn cut_batch(
    words: &ClassWords,
    class: &CacheClass,
    watch: Watch<'_>,
) -> Result<Option<NonNull<FreeBlock>>, Damaged> {
    let batch = class.batch();
    let Some(rest) = words.count.load(Ordering::Relaxed).checked_sub(batch) else { return Ok(None) };
    let Some(first) = words.head.first() else { return Ok(None) };
    let mut blocks = [first; Magazine::MAX];
    let Some(blocks) = blocks.get_mut(..batch) else { return Ok(None) };
    // SAFETY: the class keeps that many blocks, which the caller owns.
    let next = unsafe { follow(blocks, rest, watch) }?;
    if let Some(last) = blocks.last() {
        // SAFETY: a free block of the class, which is the caller's.
        unsafe { FreeBlock::link(last.cast(), None, watch.key) };
    }
    // SAFETY: free blocks of the class, which are the caller's; each begins with its link.
    unsafe { write_hints(blocks, class.size) };
    words.head.set(next);
    words.count.store(rest, Ordering::Relaxed);
    Ok(Some(first))
}

/// Notes the blocks that follow the first, and returns the one after them; none if `rest`, the number of
/// blocks that are in the list besides, is zero.
///
/// # Errors
/// [`Damaged`]
///
/// # Safety
/// - The list of the first block has as many blocks as there are places, and `rest` more. They are the caller's.
unsafe fn follow(blocks: &mut [NonNull<FreeBlock>], rest: usize, watch: Watch<'_>) -> Result<Link, Damaged> {
    let mut next = None;
    let mut left = rest + blocks.len();
    for place in blocks {
        *place = next.unwrap_or(*place);
        left -= 1;
        // SAFETY: a block of the pool, aligned for words, which the caller has: the first of the list, or where a link led that was
        // checked. Any word makes a link; whether it is one that was written here is checked next.
        let link = unsafe { FreeBlock::read(*place, BLOCK_ALIGN, watch.key) };
        next = watch.sound(link, |next| next.is_none() == (left == 0))?;
    }
    Ok(next)
}
