//! Batches of free blocks, on a stack that any thread pushes to and takes from.
//!
//! A batch is a list of blocks of one size, through their first words. The second word of its
//! first block leads to the batch below, so that each batch is moved as one, however
//! many blocks it has (design/cache.md `.depot`).

use core::mem;
use core::ptr::NonNull;

use tripoint_core::{Block, Lock};

use crate::blocks::{FreeBlock, Link, peek_link, read_link, write_link};
use crate::link::{Damaged, LinkKey};
use crate::poison::poison;

/// The first block of a batch that is on a stack.
#[repr(C)]
struct Top {
    block: FreeBlock,
    below: *mut FreeBlock,
}

/// A stack of batches, which has a cache line to itself.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct BatchStack(Lock<Batches>);

/// ```text
/// batches == those that are reached from `top`
/// ```
#[derive(Debug)]
struct Batches {
    top: Link,
    batches: usize,
    /// Whether a batch was asked for since `take_idle` last looked.
    is_used: bool,
}

impl Batches {
    const EMPTY: Self = Self { top: None, batches: 0, is_used: false };

    fn pop(&mut self, key: LinkKey) -> Result<Option<NonNull<FreeBlock>>, Damaged> {
        let Some(first) = self.top else { return Ok(None) };
        let word = below_of(first);
        let left = self.batches.saturating_sub(1);
        // SAFETY: the first block of a batch on the stack has this word, which `push` wrote.
        let below = unsafe { read_link(word, align_of::<Top>(), key) };
        let below = below.ok().filter(|below| !LinkKey::CHECKS || below.is_none() == (left == 0));
        let Some(below) = below else {
            *self = Self::EMPTY;
            return Err(Damaged);
        };
        (self.top, self.batches) = (below, left);
        // SAFETY: a word of a free block, which is the caller's now.
        unsafe { poison(Block::new(word.cast(), size_of::<*mut FreeBlock>())) };
        Ok(Some(first))
    }
}

// SAFETY: the blocks of batches on a stack are the stack's alone, on whichever thread it is used.
unsafe impl Send for Batches {}

impl BatchStack {
    /// An empty stack.
    pub(crate) fn new() -> Self {
        Self(Lock::new(Batches::EMPTY))
    }

    /// Puts a batch on top.
    ///
    /// # Safety
    /// - `first` begins a list of free blocks that nothing uses. Each has two words, is aligned for them, and stays
    ///   valid as long as the stack, and the batches taken off it, are used. All batches of a stack have the same `key`.
    pub(crate) unsafe fn push(&self, first: NonNull<FreeBlock>, key: LinkKey) {
        let below = below_of(first);
        let mut stack = self.0.lock();
        // SAFETY: the second word of a free block, which nothing uses.
        unsafe { write_link(below, stack.top, key) };
        stack.top = Some(first);
        stack.batches += 1;
    }

    /// Takes the batch that was pushed last; `None` if the stack is empty.
    ///
    /// # Errors
    /// [`Damaged`] if what leads to the batch below is not what was written; the stack loses all its batches then.
    pub(crate) fn take(&self, key: LinkKey) -> Result<Option<NonNull<FreeBlock>>, Damaged> {
        let mut stack = self.0.lock();
        stack.is_used = true;
        stack.pop(key)
    }

    /// As [`take`](BatchStack::take), but only if `take` was not called since the last call of this.
    ///
    /// # Errors
    /// As `take`.
    pub(crate) fn take_idle(&self, key: LinkKey) -> Result<Option<NonNull<FreeBlock>>, Damaged> {
        let mut stack = self.0.lock();
        if mem::take(&mut stack.is_used) { Ok(None) } else { stack.pop(key) }
    }

    /// The number of batches.
    pub(crate) fn batches(&self) -> usize {
        self.0.lock().batches
    }

    /// Passes the first block of each batch to `visit`, until that refuses one, while the stack is locked.
    /// `reach` returns a pointer that may be followed to an address that a link leads to.
    ///
    /// # Errors
    /// Those of `visit`.
    pub(crate) fn visit<E>(
        &self,
        key: LinkKey,
        reach: impl Fn(NonNull<FreeBlock>) -> NonNull<FreeBlock>,
        mut visit: impl FnMut(NonNull<FreeBlock>) -> Result<(), E>,
    ) -> Result<(), E> {
        let stack = self.0.lock();
        let mut next = stack.top;
        for _ in 0..stack.batches {
            let Some(first) = next.map(&reach) else { return Ok(()) };
            visit(first)?;
            let word = below_of(first);
            // SAFETY: `visit` accepted the block, which is a batch's first.
            next = NonNull::new(unsafe { peek_link(word, key) });
        }
        Ok(())
    }
}

/// The word of a batch's first block that leads to the batch below.
fn below_of(first: NonNull<FreeBlock>) -> NonNull<*mut FreeBlock> {
    // SAFETY: blocks have two words, so this one is in bounds.
    unsafe { first.byte_add(core::mem::offset_of!(Top, below)).cast() }
}
