//! Parts of grains: the first memory of pools that may stay small.
//!
//! A grain that is supplied here is shared between pools. It begins with a word for each of its steps, which says whose
//! the step is, so that the pool of an address is found in constant time, as in a grain that one pool has:
//!
//! ```text
//!   grain   | owners: a word a step | part | part | free | part | ...
//! ```
//!
//! Design: [`design/arena.md`](crate::design::arena) `.part`.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::arena::descriptor_memory::DescriptorMemory;
use crate::aver;
use crate::primitive::{AtomicU32, Ordering, fence};
use crate::traits::arena::{PART_ALIGN, PART_SIZE_MAX};
use crate::traits::block::Block;
use crate::values::addr::{Addr, AddrRange};
use crate::values::check::{CheckError, CheckLevel};
use crate::values::error::{Error, Result};
use crate::values::pool_id::PoolId;

/// The step between the sizes of parts, and the alignment of all of them, in bytes.
const STEP: usize = PART_ALIGN;

/// Whose a step is: the owner in 24 bits, then how many steps of its part lie before it, and how many behind it, in 4
/// bits each. Zero is a step in no part.
#[derive(Clone, Copy)]
struct Owner(u32);

impl Owner {
    const NONE: Self = Self(0);

    const fn new(pool: PoolId, before: u32, behind: u32) -> Self {
        Self(pool.get() | before << 24 | behind << 28)
    }

    const fn pool(self) -> Option<PoolId> {
        PoolId::new(self.0 & PoolId::MAX)
    }

    const fn before(self) -> usize {
        (self.0 >> 24 & 0xf) as usize
    }

    const fn behind(self) -> usize {
        (self.0 >> 28) as usize
    }
}

/// A grain that several pools have parts of.
#[derive(Clone, Copy, Debug)]
pub struct SharedGrain {
    grain: Block,
}

impl SharedGrain {
    /// The grain that this block is.
    ///
    /// # Safety
    /// - The block is a whole grain that was passed to [`PartMemory::supply`], and stays supplied.
    #[must_use]
    pub const unsafe fn new(grain: Block) -> Self {
        Self { grain }
    }

    /// The part that an address in the grain lies in, and whose it is. Needs no lock: for a part that is being
    /// allocated or freed at this moment, either answer may come.
    #[must_use]
    pub fn part_at(self, addr: Addr) -> Option<(PoolId, AddrRange)> {
        let base = self.grain.range().base().get();
        let step = addr.get().checked_sub(base)? / STEP;
        let owner = self.owner(step)?;
        let range = AddrRange::new(
            Addr::new(base + step.checked_sub(owner.before())? * STEP),
            Addr::new(base + (step + owner.behind() + 1) * STEP),
        )?;
        Some((owner.pool()?, range))
    }

    /// The first part of a pool that ends above `from`. Needs no lock, as [`SharedGrain::part_at`].
    #[must_use]
    pub fn next_part(self, pool: PoolId, from: Addr) -> Option<AddrRange> {
        let base = self.grain.range().base().get();
        let first = from.get().saturating_sub(base) / STEP;
        let step =
            (first..self.steps()).find(|&step| self.owner(step).and_then(Owner::pool) == Some(pool))?;
        self.part_at(Addr::new(base + step * STEP)).map(|(_, range)| range)
    }

    /// The memory of a part of the grain.
    #[must_use]
    pub fn block_of(self, part: AddrRange) -> Option<Block> {
        let before = part.base().get().checked_sub(self.grain.range().base().get())?;
        Some(self.grain.split_at(before)?.1.split_at(part.size())?.0)
    }

    const fn steps(self) -> usize {
        self.grain.size() / STEP
    }

    /// The bytes that the owners take.
    const fn head(self) -> usize {
        (self.steps() * size_of::<AtomicU32>()).next_multiple_of(STEP)
    }

    fn word(self, step: usize) -> Option<NonNull<AtomicU32>> {
        // SAFETY: the owners lie at the beginning of the grain, and there is one for each step.
        (step < self.steps()).then(|| unsafe { self.grain.base().cast::<AtomicU32>().add(step) })
    }

    fn owner(self, step: usize) -> Option<Owner> {
        // SAFETY: `supply` wrote the words, nothing else does but through them, and the grain stays supplied. A grain is
        // aligned to a page.
        self.word(step).map(|word| Owner(unsafe { word.as_ref() }.load(Ordering::Relaxed)))
    }

    fn set_owner(self, step: usize, owner: Owner) {
        if let Some(word) = self.word(step) {
            // SAFETY: as in `owner`: the word was written by `supply`, and the grain stays supplied.
            unsafe { word.as_ref() }.store(owner.0, Ordering::Relaxed);
        }
    }

    /// Sets or clears the owner of all steps of a part.
    fn set_part(self, part: AddrRange, pool: Option<PoolId>) {
        let first = (part.base().get() - self.grain.range().base().get()) / STEP;
        let count = (part.size() / STEP) as u32;
        for before in 0..count {
            let owner = pool.map_or(Owner::NONE, |pool| Owner::new(pool, before, count - 1 - before));
            self.set_owner(first + before as usize, owner);
        }
    }
}

/// The parts of the grains that an arena shares between its pools. It is not thread-safe by itself: it lies behind its
/// arena's lock.
///
/// Freed parts serve their own size again, as descriptors do, and grains are kept.
#[derive(Debug)]
pub struct PartMemory {
    memory: DescriptorMemory,
    /// The size of a grain.
    grain: usize,
    /// The bytes of the grains that were supplied.
    supplied: usize,
}

impl PartMemory {
    /// Has no grain yet.
    #[must_use]
    pub const fn new(grain: usize) -> Self {
        Self { memory: DescriptorMemory::new(), grain, supplied: 0 }
    }

    /// Allocates a part of `size` bytes, rounded up to steps. `None` if a grain must be [supplied](PartMemory::supply)
    /// first.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a size of zero, or above [`PART_SIZE_MAX`].
    pub fn alloc(&mut self, size: usize, pool: PoolId) -> Result<Option<Block>> {
        let Some(layout) = Self::layout(size) else {
            return Err(Error::Parameter("parts of a grain have 1 to 1024 bytes"));
        };
        let Some(base) = self.memory.alloc(layout)? else { return Ok(None) };
        // SAFETY: just allocated with this size.
        let part = unsafe { Block::new(base, layout.size()) };
        self.grain_of(part).set_part(part.range(), Some(pool));
        Ok(Some(part))
    }

    /// Shares a grain.
    ///
    /// # Safety
    /// - The block is a whole grain, valid for reads and writes for as long as this value is used, and nothing else uses
    ///   it from here on.
    /// - It is of the size that this value was made with, which is a multiple of 4,096, and its address is a multiple of
    ///   its size.
    pub unsafe fn supply(&mut self, grain: Block) {
        aver!(grain.size() == self.grain, "{grain:?} is supplied as a grain of {} bytes", self.grain);
        let shared = SharedGrain { grain };
        for word in (0..shared.steps()).filter_map(|step| shared.word(step)) {
            // SAFETY: the caller's memory, which nothing else uses; a grain is aligned to a page.
            unsafe { word.write(AtomicU32::new(Owner::NONE.0)) };
        }
        // A thread that looks up an address finds the owners if it finds the grain joined (`TractTable::first_shared`).
        fence(Ordering::Release);
        if let Some((_, parts)) = grain.split_at(shared.head()) {
            self.supplied += grain.size();
            // SAFETY: the caller's memory, which nothing else uses. Its address and size are multiples of a step.
            unsafe { self.memory.supply(parts) };
        }
    }

    /// Frees a part.
    ///
    /// # Safety
    /// - It came from [`PartMemory::alloc`] of this value, is freed once, and nothing uses it any more.
    pub unsafe fn free(&mut self, part: Block) {
        let Some(layout) = Self::layout(part.size()) else {
            aver!(false, "{part:?} is freed, which is no part of a grain");
            return;
        };
        self.grain_of(part).set_part(part.range(), None);
        // SAFETY: the caller's part, which was allocated with this layout, and which nothing uses.
        unsafe { self.memory.free(part.base(), layout) };
    }

    /// The memory of shared grains that is in no part, owners included, in bytes.
    #[must_use]
    pub const fn unused(&self) -> usize {
        self.supplied - self.memory.in_use()
    }

    /// Checks as far as `level` says. A deep check walks the free parts.
    ///
    /// # Errors
    /// The first rule that is found broken.
    pub fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.memory.check(level)
    }

    fn layout(size: usize) -> Option<Layout> {
        let size = size.checked_next_multiple_of(STEP).filter(|size| (1..=PART_SIZE_MAX).contains(size))?;
        Layout::from_size_align(size, DescriptorMemory::ALIGN.get()).ok()
    }

    /// The grain that a part lies in.
    fn grain_of(&self, part: Block) -> SharedGrain {
        let base = part.base().map_addr(|addr| {
            let base = addr.get() & !(self.grain - 1);
            base.try_into().unwrap_or(addr)
        });
        // SAFETY: parts lie in supplied grains, whose addresses are multiples of their size.
        SharedGrain { grain: unsafe { Block::new(base, self.grain) } }
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[repr(align(4096))]
    struct Grain([u8; 4096]);

    /// Parts are apart, each is found from every address in it, and from no other; freed ones serve again.
    #[test]
    fn parts_are_found_from_every_address() {
        let mut memory = Grain([0xa5; 4096]);
        let base = NonNull::from(&mut memory.0).cast::<u8>();
        // SAFETY: the array, which nothing else uses while it is used here.
        let block = unsafe { Block::new(base, 4096) };
        let mut parts = PartMemory::new(4096);
        let pool = |serial| PoolId::new(serial).unwrap();
        assert_eq!(parts.alloc(0, pool(2)).unwrap_err(), parts.alloc(1025, pool(2)).unwrap_err());
        assert!(parts.alloc(256, pool(2)).unwrap().is_none());
        // SAFETY: a grain of the right size, aligned to it.
        unsafe { parts.supply(block) };
        // SAFETY: just supplied.
        let grain = unsafe { SharedGrain::new(block) };
        let sizes = [1, 300, 1000, 256];
        let mut held: Vec<(PoolId, Block)> = Vec::new();
        for (serial, size) in (PoolId::MAX - 3..).zip(sizes) {
            held.push((pool(serial), parts.alloc(size, pool(serial)).unwrap().unwrap()));
        }
        assert_eq!(parts.unused(), 4096 - 256 - 512 - 1024 - 256);
        let at = |offset: usize| Addr::new(block.range().base().get() + offset);
        let look = |held: &[(PoolId, Block)]| {
            for addr in (0..4096).map(at) {
                let expected = held.iter().find(|(_, part)| part.range().contains(addr));
                assert_eq!(grain.part_at(addr), expected.map(|&(pool, part)| (pool, part.range())));
            }
            for &(pool, part) in held {
                assert_eq!(grain.next_part(pool, Addr::ZERO), Some(part.range()));
                assert_eq!(grain.next_part(pool, part.range().limit()), None);
                assert_eq!(grain.block_of(part.range()).map(Block::range), Some(part.range()));
            }
        };
        look(&held);
        let (_, freed) = held.remove(1);
        // SAFETY: allocated above, freed once, not used any more.
        unsafe { parts.free(freed) };
        look(&held);
        assert_eq!(parts.check(CheckLevel::Deep), Ok(()));
        let again = parts.alloc(512, pool(9)).unwrap().unwrap();
        assert_eq!(again.range(), freed.range());
        held.push((pool(9), again));
        look(&held);
    }
}
