//! Memory for an arena's own descriptors: small, never moved, freed one by one.
//!
//! Allocation point descriptors must stay in place while anybody may trip them,
//! so they cannot live in the pool they serve, and an arena without an operating
//! system has no other place for them than its own grains. Not thread safe by
//! itself: it lives under its arena's lock (design/arena.md `.control`).

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use crate::meeting::block::Block;
use crate::words::addr::Addr;
use crate::words::align::Align;
use crate::words::check::{CheckError, CheckLevel, ensure};
use crate::words::describe::line;
use crate::words::error::{Error, Result};
use crate::words::pool_id::PoolId;

/// Refuses [`PoolId::CONTROL`], so that no client takes tracts in its name: arenas count
/// those themselves.
///
/// # Errors
/// [`Error::Parameter`] for [`PoolId::CONTROL`].
pub fn refuse_control_pool(pool: PoolId) -> Result<()> {
    match pool == PoolId::CONTROL {
        true => Err(Error::Parameter("tracts are allocated for a registered pool, not for PoolId::CONTROL")),
        false => Ok(()),
    }
}

/// The step between the sizes of descriptors, and the alignment of all.
const STEP: usize = 64;

/// One list for each size of descriptor.
const CLASSES: usize = ControlMemory::SIZE_MAX / STEP;

const CONTROL: &str = "ControlMemory";

/// Descriptors of one size that were freed, each holding the next.
type FreeList = Option<NonNull<u8>>;

/// Memory for descriptors: a free list per size, and the block being cut up.
///
/// A descriptor takes its size rounded up to 64 bytes, for good: freed memory
/// serves that size again and no other. So the memory in use never passes the
/// sum, over the sizes, of the most descriptors there were at one time, and the
/// ends of blocks.
#[derive(Debug)]
pub struct ControlMemory {
    free: [FreeList; CLASSES],
    /// What is left of the block supplied last, a multiple of 64 bytes.
    rest: Option<Block>,
    supplied: usize,
    in_use: usize,
}

// SAFETY: the free lists and the block are claims on memory that nobody else
// uses (`supply`, `free`); moving them to another thread moves the claims.
unsafe impl Send for ControlMemory {}

impl Default for ControlMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl ControlMemory {
    /// The alignment of every descriptor, in bytes.
    pub const ALIGN: Align = Align::new(STEP).unwrap();

    /// The largest descriptor, in bytes. Shuttle's atomics are many times as large.
    pub const SIZE_MAX: usize = if cfg!(tripoint_shuttle) { 8192 } else { 512 };

    /// No memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { free: [None; CLASSES], rest: None, supplied: 0, in_use: 0 }
    }

    /// The bytes that a descriptor of `layout` takes: the least, aligned to
    /// [`ControlMemory::ALIGN`], to [supply](ControlMemory::supply) when
    /// [`ControlMemory::alloc`] has none.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a layout without size, above
    /// [`ControlMemory::SIZE_MAX`], or aligned to more than
    /// [`ControlMemory::ALIGN`].
    pub const fn size(layout: Layout) -> Result<usize> {
        if layout.align() > STEP {
            return Err(Error::Parameter("descriptors are aligned to at most 64 bytes"));
        }
        if layout.size() == 0 || layout.size() > Self::SIZE_MAX {
            return Err(Error::Parameter("descriptors have 1 to 512 bytes"));
        }
        Ok(layout.size().next_multiple_of(STEP))
    }

    /// Gives memory for a descriptor, or `None` where a block must be
    /// [supplied](ControlMemory::supply) first. The memory is not initialised.
    ///
    /// # Errors
    /// Those of [`ControlMemory::size`].
    pub fn alloc(&mut self, layout: Layout) -> Result<Option<NonNull<u8>>> {
        let size = Self::size(layout)?;
        let descriptor = self.pop(size).or_else(|| self.cut(size));
        if descriptor.is_some() {
            self.in_use += size;
        }
        Ok(descriptor)
    }

    /// Adds a block to cut descriptors from. What does not fill a step of 64
    /// bytes at either end is left unused.
    ///
    /// # Safety
    /// - Nobody else uses the memory of `block` while this value, or a descriptor
    ///   from it, is in use.
    pub unsafe fn supply(&mut self, block: Block) {
        let skip =
            Self::ALIGN.round_up(block.base().addr().get()).unwrap_or(usize::MAX) - block.base().addr().get();
        let Some((_, aligned)) = block.split_at(skip) else { return };
        let Some((steps, _)) = aligned.split_at(Self::ALIGN.round_down(aligned.size())) else { return };
        while let Some(piece) = self.rest_piece() {
            self.push(piece);
        }
        self.supplied += steps.size();
        self.rest = Some(steps);
    }

    /// Takes the memory of a descriptor back.
    ///
    /// # Safety
    /// - `descriptor` came from [`ControlMemory::alloc`] of this value with this
    ///   `layout`, is freed once, and nobody uses it any more.
    pub unsafe fn free(&mut self, descriptor: NonNull<u8>, layout: Layout) {
        // A layout that was allocated has a size.
        let Ok(size) = Self::size(layout) else { return };
        self.in_use -= size;
        // SAFETY: the descriptor has `size` bytes, which its holder gave up.
        self.push(unsafe { Block::new(descriptor, size) });
    }

    /// Memory supplied so far, in bytes.
    #[must_use]
    pub const fn supplied(&self) -> usize {
        self.supplied
    }

    /// Memory in descriptors at this moment, in bytes.
    #[must_use]
    pub const fn in_use(&self) -> usize {
        self.in_use
    }

    /// The list of free memory of `size` bytes, a multiple of 64.
    fn list(&mut self, size: usize) -> &mut FreeList {
        &mut self.free[size / STEP - 1]
    }

    /// Takes a freed descriptor of `size` bytes.
    fn pop(&mut self, size: usize) -> Option<NonNull<u8>> {
        let list = self.list(size);
        let descriptor = (*list)?;
        // SAFETY: memory in a free list is this value's, is aligned to 64, and
        // `push` wrote a `FreeList` to its beginning.
        *list = unsafe { descriptor.cast::<FreeList>().read() };
        Some(descriptor)
    }

    /// Puts memory, a multiple of 64 bytes and at most the largest descriptor,
    /// into the list of its size.
    fn push(&mut self, memory: Block) {
        let list = self.list(memory.size());
        // SAFETY: the memory is this value's alone, has room for a link and is
        // aligned to 64.
        unsafe { memory.base().cast::<FreeList>().write(*list) };
        *list = Some(memory.base());
    }

    /// Cuts `size` bytes from the block supplied last.
    fn cut(&mut self, size: usize) -> Option<NonNull<u8>> {
        let (descriptor, rest) = self.rest?.split_at(size)?;
        self.rest = Some(rest);
        Some(descriptor.base())
    }

    /// Cuts what is left of that block into pieces for the free lists.
    fn rest_piece(&mut self) -> Option<Block> {
        let rest = self.rest.filter(|rest| rest.size() > 0)?;
        let (piece, rest) = rest.split_at(rest.size().min(Self::SIZE_MAX))?;
        self.rest = Some(rest);
        Some(piece)
    }

    /// Memory that could be in descriptors and is not, in bytes.
    fn unused(&self) -> usize {
        self.supplied - self.in_use
    }

    /// Checks as far as `level` says. A deep check walks the free lists.
    ///
    /// # Errors
    /// The first rule found broken.
    pub fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        if level >= CheckLevel::Shallow {
            ensure(CONTROL, self.in_use <= self.supplied, "descriptors lie in memory supplied")?;
        }
        if level >= CheckLevel::Deep {
            let mut unused = self.rest.map_or(0, Block::size);
            for (class, list) in self.free.iter().enumerate() {
                unused = self.check_list(*list, (class + 1) * STEP, unused)?;
            }
            ensure(CONTROL, unused == self.unused(), "all memory is in descriptors or free")?;
        }
        Ok(())
    }

    /// Adds the memory in a list to `unused`.
    fn check_list(&self, list: FreeList, size: usize, mut unused: usize) -> Result<usize, CheckError> {
        let mut next = list;
        while let Some(descriptor) = next {
            unused += size;
            ensure(CONTROL, unused <= self.unused(), "free lists end")?;
            let aligned = Addr::of(descriptor.as_ptr()).is_aligned(Self::ALIGN);
            ensure(CONTROL, aligned, "free memory is aligned")?;
            // SAFETY: as in `pop`.
            next = unsafe { descriptor.cast::<FreeList>().read() };
        }
        Ok(unused)
    }

    /// Writes the state, each line indented by `depth` steps of two spaces.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        line(out, depth, "control", format_args!("{} bytes supplied, {} in use", self.supplied, self.in_use))
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn checks_name_the_rule_that_was_broken() {
        #[repr(align(64))]
        struct Memory([u8; 512]);
        let mut memory = Memory([0; 512]);
        let base = NonNull::from(&mut memory.0).cast::<u8>();
        let mut control = ControlMemory::new();
        // SAFETY: the array, which nobody else uses and which outlives `control`.
        unsafe { control.supply(Block::new(base, 512)) };
        let layout = Layout::new::<[u64; 8]>();
        let descriptor = control.alloc(layout).unwrap().unwrap();
        assert_eq!((control.in_use(), control.supplied()), (64, 512));
        assert_eq!(control.check(CheckLevel::Deep), Ok(()));
        let found = |control: &ControlMemory, level| control.check(level).map_err(|error| error.rule);
        control.in_use = 576;
        let more = "descriptors lie in memory supplied";
        assert_eq!(found(&control, CheckLevel::Cheap), Ok(()));
        assert_eq!(found(&control, CheckLevel::Shallow), Err(more));
        assert_eq!(found(&control, CheckLevel::Deep), Err(more));
        control.in_use = 0;
        assert_eq!(found(&control, CheckLevel::Shallow), Ok(()));
        assert_eq!(found(&control, CheckLevel::Deep), Err("all memory is in descriptors or free"));
        control.in_use = 64;
        // SAFETY: allocated above, with this layout, once.
        unsafe { control.free(descriptor, layout) };
        assert_eq!(found(&control, CheckLevel::Deep), Ok(()));
        // SAFETY: the memory is the test's, and holds a link, which here leads to itself.
        unsafe { descriptor.cast::<FreeList>().write(Some(descriptor)) };
        assert_eq!(found(&control, CheckLevel::Deep), Err("free lists end"));
        let astray = FreeList::Some(base.map_addr(|addr| addr | 8));
        // SAFETY: the memory is the test's.
        unsafe { descriptor.cast::<FreeList>().write(astray) };
        control.rest = None;
        assert_eq!(found(&control, CheckLevel::Deep), Err("free memory is aligned"));
    }
}
