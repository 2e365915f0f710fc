//! The free blocks that a class keeps: a list through their first words, the block freed last in front.
//!
//! The caller owns the cache: only its thread changes the words.

use core::ptr::{self, NonNull};

use tripoint_core::Magazine;
use tripoint_core::internal::{Ordering, prefetch};

use super::classes::BLOCK_ALIGN;
use super::descriptor::ClassWords;
use crate::blocks::{FreeBlock, Link};
use crate::link::{Damaged, LinkKey, Watch};

impl ClassWords {
    /// Takes the block that was freed last. `rest` blocks are left then.
    ///
    /// # Errors
    /// [`Damaged`]
    ///
    /// # Safety
    /// - The class keeps `rest + 1` blocks, linked by the key of `watch`, and the caller owns the cache.
    #[inline(always)]
    pub(super) unsafe fn pop(&self, rest: usize, watch: Watch<'_>) -> Result<NonNull<u8>, Damaged> {
        // SAFETY: the head of a class that keeps blocks is one, so not null.
        let block = unsafe { self.head.first().unwrap_unchecked() };
        // SAFETY: the caller owns the cache, and `rest` blocks follow the head.
        let next = unsafe { unlink(block, rest, watch) }?;
        prefetch(next.map_or(ptr::null(), |next| next.as_ptr().cast_const()));
        self.head.set(next);
        self.count.store(rest, Ordering::Relaxed);
        Ok(block.cast())
    }

    /// Keeps a block, in addition to the `count` that the class keeps.
    ///
    /// # Safety
    /// - `object` is a block of the class that nothing uses; the class keeps `count`
    ///   blocks, and the caller owns the cache.
    #[inline(always)]
    pub(super) unsafe fn push(&self, object: NonNull<u8>, count: usize, key: LinkKey) {
        // SAFETY: a block of the class that nothing uses. The caller owns the cache.
        unsafe { self.head.push(object, key) };
        self.count.store(count + 1, Ordering::Relaxed);
    }

    /// Takes up to `most` blocks, but no more than a magazine, out of a class. Returns also whether all links
    /// were sound.
    ///
    /// # Safety
    /// - The class keeps as many blocks as are counted, linked by the key of `watch`, and the caller owns the cache.
    pub(super) unsafe fn take_out(&self, most: usize, watch: Watch<'_>) -> (Magazine, Result<(), Damaged>) {
        let mut magazine = Magazine::up_to(most);
        let (mut head, mut count) = (self.head.first(), self.count.load(Ordering::Relaxed));
        let mut outcome = Ok(());
        let blocks = (0..count).map_while(|_| {
            // SAFETY: the head of a list that is not empty is a block.
            let block = unsafe { head.unwrap_unchecked() };
            // SAFETY: the class keeps `count` blocks, of which `block` is the first.
            match unsafe { unlink(block, count - 1, watch) } {
                Ok(next) => (head, count) = (next, count - 1),
                Err(damaged) => {
                    outcome = Err(damaged);
                    return None;
                }
            }
            Some(block.cast())
        });
        magazine.extend(blocks);
        self.head.set(head);
        self.count.store(count, Ordering::Relaxed);
        (magazine, outcome)
    }

    /// Keeps the blocks of a magazine as well. What was allocated first, and so lies lowest, is allocated first.
    ///
    /// # Safety
    /// - They are blocks of the class that nothing uses, and the caller owns the cache.
    pub(super) unsafe fn put_back(&self, blocks: &Magazine, key: LinkKey) {
        // Read now: the pool may have called a hook, which may have used this cache.
        let mut head = self.head.first();
        let count = self.count.load(Ordering::Relaxed);
        for block in blocks.as_slice().iter().rev() {
            // SAFETY: a block of the class that nothing uses.
            head = Some(unsafe { FreeBlock::link(*block, head, key) });
        }
        self.head.set(head);
        self.count.store(count + blocks.len(), Ordering::Relaxed);
    }
}

/// Takes a block out of its list, and returns what follows it there.
///
/// # Errors
/// [`Damaged`]
///
/// # Safety
/// - The block is the first of a class, in which `rest` blocks follow it, and the caller owns the cache.
#[inline(always)]
unsafe fn unlink(block: NonNull<FreeBlock>, rest: usize, watch: Watch<'_>) -> Result<Link, Damaged> {
    // SAFETY: a free block of the class begins with its link.
    let next = unsafe { FreeBlock::read(block, BLOCK_ALIGN, watch.key) };
    let next = watch.sound(next, |next| next.is_none() == (rest == 0))?;
    // It is given out only once for each time it is put.
    //
    // SAFETY: a free block of the class, whose link is sound; it is the cache's own.
    unsafe { FreeBlock::forget(block, watch.key) };
    Ok(next)
}
