//! Patterns in memory: fences behind objects, splats where nothing is.
//!
//! ```text
//!     object          fence
//!    +---------------+--------------------+------+------+
//!    | size bytes    | FENCE FENCE FENCE  | seal | size |
//!    +---------------+--------------------+------+------+
//!     <-------------- reserved bytes ------------------->
//! ```
//!
//! The seal is made of address, size and alignment, so that the fence also knows
//! what the object was allocated with (design/debug.md `.debug.fence`).

use core::alloc::Layout;

use tripoint_core::{Addr, Block};

use super::fence_seal::FenceSeal;

const WORD: usize = size_of::<usize>();

/// The least bytes of a fence: the seal and the size.
pub(super) const FENCE_SIZE: usize = 2 * WORD;

const FENCE: u8 = 0xfd;

/// What new objects and fills are filled with, so that a client that reads what it
/// did not write gets the same each time.
pub(super) const FRESH: u8 = 0xcd;

/// What freed memory is filled with.
pub(super) const FREED: u8 = 0xdd;

/// What a fence says, or where it is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// The object was allocated with this layout.
    Whole(Layout),
    /// The first byte that changed, and the size if that is known.
    Damaged {
        /// Its address.
        at: Addr,
        /// The size of the object, if the fence still knows it.
        size: Option<usize>,
    },
}

/// Fills memory with a byte.
///
/// # Safety
/// - Nothing else uses the block.
pub(super) unsafe fn splat(block: Block, byte: u8) {
    // SAFETY: nothing else uses the block; a block is valid for writes.
    unsafe { block.base().write_bytes(byte, block.size()) };
}

/// The first byte of a block that is not `byte`.
///
/// # Safety
/// - All of the block was written once, and nothing writes to it meanwhile.
pub(super) unsafe fn first_change(block: Block, byte: u8) -> Option<Addr> {
    // SAFETY: all of the block was written, and nothing writes to it now; a block is valid for
    // reads.
    let bytes = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), block.size()) };
    let offset = bytes.iter().position(|&here| here != byte)?;
    block.range().base().checked_add(offset)
}

/// Writes the fence of an object that has all of `reserved`.
///
/// # Safety
/// - Nothing else uses `reserved`, which is word-aligned in address and size and
///   has room for the object and [`FENCE_SIZE`] bytes.
pub(super) unsafe fn write_fence(reserved: Block, layout: Layout) {
    let Some((_, fence)) = reserved.split_at(layout.size()) else { return };
    // SAFETY: the fence is a part of `reserved`, which nothing else uses.
    unsafe { splat(fence, FENCE) };
    let seal =
        FenceSeal { addr: reserved.range().base().get(), size: layout.size() }.of_align(layout.align());
    // SAFETY: the fence has two words at the end, aligned as the limit is.
    unsafe {
        let words = fence.limit().cast::<usize>();
        words.sub(2).write(seal);
        words.sub(1).write(layout.size());
    }
}

/// Reads the fence of an object.
///
/// # Safety
/// - [`write_fence`] was given `reserved`, and nothing writes to the fence meanwhile.
pub(super) unsafe fn read_fence(reserved: Block) -> Fence {
    let words = reserved.limit().cast::<usize>();
    // SAFETY: `write_fence` left two words at the end, aligned as the limit is; nothing writes to
    // them now.
    let (seal, size) = unsafe { (words.sub(2).read(), words.sub(1).read()) };
    let end = reserved.size() - FENCE_SIZE;
    let footer = Addr::of(words.as_ptr().wrapping_sub(2));
    let known = FenceSeal { addr: reserved.range().base().get(), size }.align_in(seal);
    let layout = known.filter(|_| size <= end).and_then(|align| Layout::from_size_align(size, align).ok());
    let Some(layout) = layout else { return Fence::Damaged { at: footer, size: None } };
    let Some((_, fence)) = reserved.split_at(size) else { return Fence::Damaged { at: footer, size: None } };
    let Some((padding, _)) = fence.split_at(end - size) else { return Fence::Whole(layout) };
    // SAFETY: `write_fence` wrote the padding.
    match unsafe { first_change(padding, FENCE) } {
        None => Fence::Whole(layout),
        Some(at) => Fence::Damaged { at, size: Some(size) },
    }
}
