//! The stack of blocks that a buffer keeps: its top in the buffer, the rest in the
//! blocks themselves.
//!
//! ```text
//!   buffer: top --+
//!                 v
//!   block    +--------+------+---------------------------------+
//!            | below  | size |  the part that is filled from   |
//!            +--|-----+------+---------------------------------+
//!               v
//!            +--------+------+---------------------------------+
//!            | none   | size |                                 |
//! ```

use core::ptr::{self, NonNull};

use tripoint_core::primitive::{AtomicPtr, Ordering};
use tripoint_core::{Block, BufferClass};

use crate::land::GRANULE;

/// What lies at the base of a block in a stack.
#[derive(Clone, Copy, Debug)]
struct Head {
    below: *mut Head,
    size: usize,
}

/// The bytes of a block that its stack takes.
pub(super) const HEAD_SIZE: usize = size_of::<Head>();
const _: () = assert!(HEAD_SIZE == GRANULE, "what is filled from begins at a granule");

/// The class of a stack pool's buffers: they know their topmost block.
///
/// Only the pool looks into it, and only on behalf of the buffer's owner.
#[derive(Debug)]
pub struct StackBuffer {
    top: AtomicPtr<Head>,
}

impl BufferClass for StackBuffer {
    /// Nothing to take on: the stack of a buffer without owner is empty.
    unsafe fn renew(&self, _fresh: Self) {}
}

impl StackBuffer {
    /// A buffer with an empty stack.
    pub(super) fn new() -> Self {
        Self { top: AtomicPtr::new(ptr::null_mut()) }
    }

    fn top(&self) -> *mut Head {
        self.top.load(Ordering::Relaxed)
    }

    /// Where the part begins that the topmost block is filled from.
    pub(super) fn top_base(&self) -> Option<NonNull<u8>> {
        // SAFETY: a block in a stack is larger than its head.
        NonNull::new(self.top()).map(|head| unsafe { head.add(1) }.cast())
    }

    /// Puts a block on top; gives the part of it to fill from.
    ///
    /// # Safety
    /// - `block` is aligned to granules, is larger than a head, and is the stack's
    ///   alone until it is popped.
    /// - The caller is the buffer's owner, or asked by it.
    pub(super) unsafe fn push(&self, block: Block) -> Block {
        let head = block.base().cast::<Head>();
        // SAFETY: the block has room for a head, aligned, and is the stack's.
        unsafe { head.write(Head { below: self.top(), size: block.size() }) };
        self.top.store(head.as_ptr(), Ordering::Relaxed);
        filled_part(block)
    }

    /// The part that the topmost block is filled from, and whether the block is the
    /// lowest too.
    ///
    /// # Safety
    /// - The caller is the buffer's owner, or asked by it.
    pub(super) unsafe fn peek(&self) -> Option<(Block, bool)> {
        // SAFETY: the caller's duty.
        unsafe { self.top_block() }.map(|(block, below)| (filled_part(block), below.is_null()))
    }

    /// Takes the topmost block off, whole.
    ///
    /// # Safety
    /// - The caller is the buffer's owner, or asked by it.
    pub(super) unsafe fn pop(&self) -> Option<Block> {
        // SAFETY: the caller's duty.
        let (block, below) = unsafe { self.top_block() }?;
        self.top.store(below, Ordering::Relaxed);
        Some(block)
    }

    /// The topmost block, whole, and the head below it.
    ///
    /// # Safety
    /// - The caller is the buffer's owner, or asked by it.
    unsafe fn top_block(&self) -> Option<(Block, *mut Head)> {
        let head = NonNull::new(self.top())?;
        // SAFETY: the head of a block that `push` was given, which wrote it.
        let Head { below, size } = unsafe { head.read() };
        // SAFETY: as above; the head says how large the block is.
        Some((unsafe { Block::new(head.cast(), size) }, below))
    }
}

/// A block without its head.
fn filled_part(block: Block) -> Block {
    // SAFETY: a block in a stack is larger than its head.
    unsafe { Block::new(block.base().add(HEAD_SIZE), block.size() - HEAD_SIZE) }
}
