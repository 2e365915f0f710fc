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

use core::ptr::{self, NonNull, without_provenance_mut};

use tripoint_core::internal::{AtomicPtr, Ordering};
use tripoint_core::{Block, BufferClass, OwnBuffer};

use crate::land::GRANULE;
use crate::link::{Damaged, LinkKey};

/// What lies at the base of a block in a stack: words that are encoded if hardened
/// (design/hardening.md `.stack`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Head {
    below: *mut Head,
    size: *mut u8,
}

/// The bytes of a block that its stack takes.
pub(super) const HEAD_SIZE: usize = size_of::<Head>();
const _: () = assert!(HEAD_SIZE == GRANULE, "what is filled from begins at a granule");

/// The class of a stack pool's buffers: they know their topmost block.
///
/// Only the pool looks into it, and only for the buffer's owner.
#[derive(Debug)]
pub struct StackBuffer {
    top: AtomicPtr<Head>,
    /// The key of the pool that made the buffer, which is the pool it serves (design/ap.md
    /// `.class.own`).
    key: LinkKey,
}

impl BufferClass for StackBuffer {
    /// Nothing to take on: the stack of a buffer without owner is empty.
    unsafe fn renew(&self, _fresh: Self) {}
}

impl StackBuffer {
    /// A buffer with an empty stack.
    pub(super) fn new(key: LinkKey) -> Self {
        Self { top: AtomicPtr::new(ptr::null_mut()), key }
    }

    fn top(&self) -> *mut Head {
        self.top.load(Ordering::Relaxed)
    }

    /// Where the part begins that the topmost block is filled from.
    pub(super) fn top_base(&self) -> Option<NonNull<u8>> {
        // SAFETY: a block in a stack is larger than its head.
        NonNull::new(self.top()).map(|head| unsafe { head.add(1) }.cast())
    }

    /// Puts a block on top; returns the part of it to fill from.
    ///
    /// # Safety
    /// - `block` is aligned to granules, is larger than a head, and is the stack's
    ///   alone until it is popped.
    pub(super) unsafe fn push<P>(own: OwnBuffer<'_, P, Self>, block: Block) -> Block {
        let this = own.kept();
        let head = block.base().cast::<Head>();
        let [below, size] = slots(head);
        let stored = Head {
            below: this.key.encode(below, this.top()),
            size: this.key.encode(size, without_provenance_mut(block.size())),
        };
        // SAFETY: the block has room for a head, aligned, and is the stack's.
        unsafe { head.write(stored) };
        this.top.store(head.as_ptr(), Ordering::Relaxed);
        filled_part(block)
    }

    /// The part that the topmost block is filled from, and whether the block is the
    /// lowest too.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline]
    pub(super) fn peek<P>(own: OwnBuffer<'_, P, Self>) -> Result<Option<(Block, bool)>, Damaged> {
        let top = Self::top_block(own)?;
        Ok(top.map(|(block, below)| (filled_part(block), below.is_null())))
    }

    /// Takes the topmost block off, whole.
    ///
    /// # Errors
    /// [`Damaged`], with nothing changed.
    #[inline]
    pub(super) fn pop<P>(own: OwnBuffer<'_, P, Self>) -> Result<Option<Block>, Damaged> {
        let Some((block, below)) = Self::top_block(own)? else { return Ok(None) };
        own.kept().top.store(below, Ordering::Relaxed);
        Ok(Some(block))
    }

    /// The topmost block, whole, and the head below it.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline]
    fn top_block<P>(own: OwnBuffer<'_, P, Self>) -> Result<Option<(Block, *mut Head)>, Damaged> {
        let StackBuffer { key, .. } = own.kept();
        let Some(head) = NonNull::new(own.kept().top()) else { return Ok(None) };
        // SAFETY: the head of a block that `push` was given, which wrote it. `own` is the owner's.
        let stored = unsafe { head.read() };
        let slots = slots(head);
        let below = key.decode(slots[0], stored.below);
        let size = key.decode(slots[1], stored.size).addr();
        let is_sound = size > HEAD_SIZE
            && size.is_multiple_of(GRANULE)
            && key.is_size(size, head.addr().get())
            && key.is_link(below.addr(), GRANULE);
        if LinkKey::CHECKS && !is_sound {
            return Err(Damaged);
        }
        // SAFETY: the head lies at the base of a block, and says how large that is.
        Ok(Some((unsafe { Block::new(head.cast(), size) }, below)))
    }
}

/// Where the words of a head lie.
#[inline]
fn slots(head: NonNull<Head>) -> [usize; 2] {
    let below = head.addr().get();
    [below, below + size_of::<usize>()]
}

/// A block without its head.
fn filled_part(block: Block) -> Block {
    // SAFETY: a block in a stack is larger than its head.
    unsafe { Block::new(block.base().add(HEAD_SIZE), block.size() - HEAD_SIZE) }
}
