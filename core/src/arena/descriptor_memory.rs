//! Memory for an arena's own descriptors: small, never moved, freed one by one.
//!
//! The descriptor of an allocation point must stay in place while any thread may trip it, so
//! it cannot lie in the pool that it serves, and without an operating system an arena has no
//! other place for it than its own grains. Descriptor memory is not thread-safe by itself: it
//! lies behind its arena's lock.
//!
//! Design: [`design/arena.md`](crate::design::arena) `.descriptors`.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use crate::aver;
use crate::traits::block::Block;
use crate::values::addr::Addr;
use crate::values::align::Align;
use crate::values::check::{CheckError, CheckLevel, ensure};
use crate::values::describe::line;
use crate::values::error::{Error, Result};
use crate::values::pool_id::PoolId;

/// Refuses [`PoolId::ARENA`], so that no client allocates tracts in its name: arenas count
/// those themselves.
///
/// # Errors
/// [`Error::Parameter`] for [`PoolId::ARENA`].
pub fn refuse_arena_pool(pool: PoolId) -> Result<()> {
    match pool == PoolId::ARENA {
        true => Err(Error::Parameter("tracts are allocated for a registered pool, not for PoolId::ARENA")),
        false => Ok(()),
    }
}

/// The step between the sizes of descriptors, and the alignment of all of them, in bytes.
const STEP: usize = 64;

/// The number of sizes of descriptors, each of which has a list.
const SIZES: usize = DescriptorMemory::SIZE_MAX / STEP;

/// The name of the structure in check results.
const MEMORY: &str = "DescriptorMemory";

/// The freed descriptors of one size: each holds the address of the next.
type FreeList = Option<NonNull<u8>>;

/// Memory for descriptors: a free list for each size, and the block that is being cut up.
///
/// A descriptor takes its size rounded up to 64 bytes. Freed memory serves that size again,
/// and no other. So the memory never exceeds the sum, over the sizes, of the most descriptors
/// that there were at one time, plus the ends of blocks.
#[derive(Debug)]
pub struct DescriptorMemory {
    free: [FreeList; SIZES],
    /// What is left of the block that was supplied last: a multiple of 64 bytes.
    rest: Option<Block>,
    /// Whether all bytes of that are zero.
    rest_is_zero: bool,
    supplied: usize,
    in_use: usize,
}

// SAFETY: the pointers in the free lists and the block lead to memory that only this value uses
// (`supply`, `free`). No thread has a part of it, so the value may move between threads.
unsafe impl Send for DescriptorMemory {}

impl Default for DescriptorMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl DescriptorMemory {
    /// The alignment of every descriptor, in bytes.
    pub const ALIGN: Align = Align::new(STEP).unwrap();

    /// The largest descriptor, in bytes. The atomics of loom and of shuttle are larger.
    pub const SIZE_MAX: usize = if cfg!(any(tripoint_loom, tripoint_shuttle)) { 8192 } else { 1024 };

    /// Has no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { free: [None; SIZES], rest: None, rest_is_zero: false, supplied: 0, in_use: 0 }
    }

    /// The bytes that a descriptor of `layout` takes. An aligned block of this size is the least
    /// to [supply](DescriptorMemory::supply) if [`DescriptorMemory::alloc`] returns `None`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a layout of size zero, larger than
    /// [`DescriptorMemory::SIZE_MAX`], or aligned to more than
    /// [`DescriptorMemory::ALIGN`].
    pub const fn size(layout: Layout) -> Result<usize> {
        if layout.align() > STEP {
            return Err(Error::Parameter("descriptors are aligned to at most 64 bytes"));
        }
        if layout.size() == 0 || layout.size() > Self::SIZE_MAX {
            return Err(Error::Parameter("descriptors have 1 to 1024 bytes"));
        }
        Ok(layout.size().next_multiple_of(STEP))
    }

    /// Returns memory for a descriptor, or `None` if a block must be
    /// [supplied](DescriptorMemory::supply) first. The memory is not initialised.
    ///
    /// # Errors
    /// Those of [`DescriptorMemory::size`].
    pub fn alloc(&mut self, layout: Layout) -> Result<Option<NonNull<u8>>> {
        let size = Self::size(layout)?;
        let descriptor = self.pop(size).or_else(|| self.cut(size));
        if descriptor.is_some() {
            self.in_use += size;
        }
        Ok(descriptor)
    }

    /// As [`DescriptorMemory::alloc`]; all bytes of the descriptor are zero. Nothing is written to memory that
    /// [was zero](DescriptorMemory::supply_zeroed).
    ///
    /// # Errors
    /// Those of [`DescriptorMemory::size`].
    pub fn alloc_zeroed(&mut self, layout: Layout) -> Result<Option<NonNull<u8>>> {
        let size = Self::size(layout)?;
        let freed = self.pop(size);
        let is_zero = freed.is_none() && self.rest_is_zero;
        let descriptor = freed.or_else(|| self.cut(size));
        if let Some(descriptor) = descriptor {
            self.in_use += size;
            if !is_zero {
                // SAFETY: memory of this value with room for the descriptor, which nothing uses.
                unsafe { descriptor.write_bytes(0, size) };
            }
        }
        Ok(descriptor)
    }

    /// As [`DescriptorMemory::supply`], for a block whose bytes are all zero.
    ///
    /// # Safety
    /// - As [`DescriptorMemory::supply`]. All bytes of the block are zero.
    pub unsafe fn supply_zeroed(&mut self, block: Block) {
        // SAFETY: nothing else uses the block (the caller's promise).
        unsafe { self.supply(block) };
        self.rest_is_zero = true;
    }

    /// Adds a block to cut descriptors from. At either end, bytes that do not fill a step of 64
    /// are left unused.
    ///
    /// # Safety
    /// - Nothing else uses the memory of `block` while this value, or a descriptor
    ///   from it, is in use.
    pub unsafe fn supply(&mut self, block: Block) {
        let skip = block.base().addr().get().wrapping_neg() & Self::ALIGN.mask();
        let Some((_, aligned)) = block.split_at(skip) else { return };
        let size = Self::ALIGN.round_down(aligned.size());
        let Some((steps, _)) = aligned.split_at(size) else {
            aver!(false, "{aligned:?} has no first {size} bytes");
            return;
        };
        while let Some(piece) = self.rest_piece() {
            self.push(piece);
        }
        self.supplied += steps.size();
        self.rest = Some(steps);
        self.rest_is_zero = false;
    }

    /// Frees the memory of a descriptor.
    ///
    /// # Safety
    /// - `descriptor` came from [`DescriptorMemory::alloc`] of this value with this
    ///   `layout`, is freed once, and nothing uses it any more.
    pub unsafe fn free(&mut self, descriptor: NonNull<u8>, layout: Layout) {
        let Ok(size) = Self::size(layout) else {
            aver!(false, "a descriptor of {layout:?} is freed, which none can have");
            return;
        };
        self.in_use -= size;
        // SAFETY: the descriptor was allocated with this layout (the caller's promise), so it has
        // `size` bytes, all in one block that was supplied.
        self.push(unsafe { Block::new(descriptor, size) });
    }

    /// The memory that was supplied so far, in bytes.
    #[must_use]
    pub const fn supplied(&self) -> usize {
        self.supplied
    }

    /// The memory in descriptors at this moment, in bytes.
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
        // SAFETY: memory in a free list is used only by this value and aligned to 64, and `push`
        // wrote a `FreeList` to its beginning.
        *list = unsafe { descriptor.cast::<FreeList>().read() };
        Some(descriptor)
    }

    /// Puts memory into the list of its size: a multiple of 64 bytes, and at most the size of
    /// the largest descriptor.
    fn push(&mut self, memory: Block) {
        let list = self.list(memory.size());
        // SAFETY: only this value uses the memory (`supply`, `free`), which has at least 64 bytes
        // for a link and is aligned to 64.
        unsafe { memory.base().cast::<FreeList>().write(*list) };
        *list = Some(memory.base());
    }

    /// Cuts `size` bytes from the block that was supplied last.
    fn cut(&mut self, size: usize) -> Option<NonNull<u8>> {
        let (descriptor, rest) = self.rest?.split_at(size)?;
        self.rest = Some(rest);
        Some(descriptor.base())
    }

    /// Cuts a piece for a free list from what is left of that block.
    fn rest_piece(&mut self) -> Option<Block> {
        let rest = self.rest.filter(|rest| rest.size() > 0)?;
        let (piece, rest) = rest.split_at(rest.size().min(Self::SIZE_MAX))?;
        self.rest = Some(rest);
        Some(piece)
    }

    /// The memory that is in no descriptor, in bytes.
    fn unused(&self) -> usize {
        self.supplied - self.in_use
    }

    /// Checks as far as `level` says. A deep check walks the free lists.
    ///
    /// # Errors
    /// The first rule that is found broken.
    pub fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        if level >= CheckLevel::Shallow {
            ensure(MEMORY, self.in_use <= self.supplied, "descriptors lie in memory supplied")?;
        }
        if level >= CheckLevel::Deep {
            let mut unused = self.rest.map_or(0, Block::size);
            for (index, list) in self.free.iter().enumerate() {
                unused = self.check_list(*list, (index + 1) * STEP, unused)?;
            }
            ensure(MEMORY, unused == self.unused(), "all memory is in descriptors or free")?;
        }
        Ok(())
    }

    /// Adds the memory in a list to `unused`.
    fn check_list(&self, list: FreeList, size: usize, mut unused: usize) -> Result<usize, CheckError> {
        let mut next = list;
        while let Some(descriptor) = next {
            unused += size;
            ensure(MEMORY, unused <= self.unused(), "free lists end")?;
            let aligned = Addr::of(descriptor.as_ptr()).is_aligned(Self::ALIGN);
            ensure(MEMORY, aligned, "free memory is aligned")?;
            // SAFETY: memory in a free list is used only by this value, and `push` wrote a
            // `FreeList` to its beginning. It was found aligned.
            next = unsafe { descriptor.cast::<FreeList>().read() };
        }
        Ok(unused)
    }

    /// Writes the state, each line indented by `depth` steps of two spaces.
    ///
    /// # Errors
    /// Those of `out`, and no others.
    pub fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        line(
            out,
            depth,
            "descriptors",
            format_args!("{} bytes supplied, {} in use", self.supplied, self.in_use),
        )
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    /// Descriptors that are asked for as zero are zero, and nothing is written to those that were never used.
    #[test]
    fn zeroed_descriptors_are_zero() {
        #[repr(align(64))]
        struct Memory([u8; 512]);
        let layout = Layout::new::<[u64; 16]>();
        let is_zero = |descriptor: NonNull<u8>| {
            // SAFETY: a descriptor of that many bytes, of an array that is written.
            unsafe { core::slice::from_raw_parts(descriptor.as_ptr(), layout.size()) }
                .iter()
                .all(|&byte| byte == 0)
        };
        // What is supplied as zero is believed to be: the second round shows that nothing was written.
        for (content, believed) in [(0, true), (0xa5, true), (0xa5, false)] {
            let mut array = Memory([content; 512]);
            let mut memory = DescriptorMemory::new();
            // SAFETY: the array, which nothing else uses and which outlives `memory`. In the second round it is not zero.
            unsafe {
                let block = Block::new(NonNull::from(&mut array.0).cast::<u8>(), 512);
                if believed { memory.supply_zeroed(block) } else { memory.supply(block) }
            }
            let fresh = memory.alloc_zeroed(layout).unwrap().unwrap();
            assert_eq!(is_zero(fresh), content == 0 || !believed);
            // SAFETY: a descriptor of this layout, written and freed once.
            unsafe {
                fresh.write_bytes(0xa5, layout.size());
                memory.free(fresh, layout);
            }
            let again = memory.alloc_zeroed(layout).unwrap().unwrap();
            assert!(again == fresh && is_zero(again));
            assert_eq!(memory.in_use(), 128);
        }
    }

    #[test]
    fn checks_name_the_rule_that_was_broken() {
        #[repr(align(64))]
        struct Memory([u8; 512]);
        let mut array = Memory([0; 512]);
        let base = NonNull::from(&mut array.0).cast::<u8>();
        let mut memory = DescriptorMemory::new();
        // SAFETY: the array, which nothing else uses and which outlives `memory`.
        unsafe { memory.supply(Block::new(base, 512)) };
        let layout = Layout::new::<[u64; 8]>();
        let descriptor = memory.alloc(layout).unwrap().unwrap();
        assert_eq!((memory.in_use(), memory.supplied()), (64, 512));
        assert_eq!(memory.check(CheckLevel::Deep), Ok(()));
        let found = |memory: &DescriptorMemory, level| memory.check(level).map_err(|error| error.rule);
        memory.in_use = 576;
        let more = "descriptors lie in memory supplied";
        assert_eq!(found(&memory, CheckLevel::Cheap), Ok(()));
        assert_eq!(found(&memory, CheckLevel::Shallow), Err(more));
        assert_eq!(found(&memory, CheckLevel::Deep), Err(more));
        memory.in_use = 0;
        assert_eq!(found(&memory, CheckLevel::Shallow), Ok(()));
        assert_eq!(found(&memory, CheckLevel::Deep), Err("all memory is in descriptors or free"));
        memory.in_use = 64;
        // SAFETY: allocated above, with this layout, once.
        unsafe { memory.free(descriptor, layout) };
        assert_eq!(found(&memory, CheckLevel::Deep), Ok(()));
        // The link leads to itself.
        //
        // SAFETY: the descriptor is memory of the test's own, large enough and aligned for a link.
        unsafe { descriptor.cast::<FreeList>().write(Some(descriptor)) };
        assert_eq!(found(&memory, CheckLevel::Deep), Err("free lists end"));
        let astray = FreeList::Some(base.map_addr(|addr| addr | 8));
        // SAFETY: the descriptor is memory of the test's own, large enough and aligned for a link.
        unsafe { descriptor.cast::<FreeList>().write(astray) };
        memory.rest = None;
        assert_eq!(found(&memory, CheckLevel::Deep), Err("free memory is aligned"));
    }
}
