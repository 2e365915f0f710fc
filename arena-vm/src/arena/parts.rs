//! Parts of grains, for pools that may stay small ([design/arena-vm.md `.part`](crate::design::arena_vm)).
//!
//! A shared grain is one that the arena's own pool has joined to a segment: so the table tells it from those that
//! descriptors have, which are joined to none.

use tripoint_core::internal::{SharedGrain, TractTable};
use tripoint_core::{Addr, AddrRange, Block, Error, PoolId, Result};

use super::state::ArenaVm;
use crate::platform::Platform;

impl<P: Platform> ArenaVm<P> {
    /// Allocates a part. If there is none, shares one more grain.
    pub(super) fn take_part(&self, size: usize, pool: PoolId) -> Result<Block> {
        if self.options.guard {
            return Err(Error::Limit);
        }
        loop {
            let part = self.parts.lock().alloc(size, pool)?;
            match part {
                Some(part) => return Ok(part),
                None => self.share_grain()?,
            }
        }
    }

    /// Shares a spare grain, or a new one, permanently. Several threads may do so at once: then there are more parts.
    #[cold]
    fn share_grain(&self) -> Result<()> {
        let index = match self.take_spare(1, PoolId::ARENA) {
            Some(index) => index,
            // Refused without a count: the pool then asks for tracts, and that is counted.
            None if self.is_frozen() => return Err(Error::Frozen),
            None => self.grow(1, PoolId::ARENA)?,
        };
        // SAFETY: the grain is committed, and the table has assigned it to the arena's own pool, which the block is for.
        let grain = unsafe { self.block(index, 1) };
        let mut parts = self.parts.lock();
        // SAFETY: a whole grain, aligned to its size. The arena's own pool has it from here on, and never frees it.
        unsafe { parts.supply(grain) };
        TractTable::join(self.entries(), index, 1);
        Ok(())
    }

    /// The shared grain that has this index; `None` if it is not shared.
    #[cold]
    fn shared_grain(&self, index: u32) -> Option<SharedGrain> {
        let first = TractTable::first_shared(self.entries(), index)?;
        // SAFETY: the arena's own pool has the grain, which is committed for good.
        let grain = unsafe { self.block(first, 1) };
        // SAFETY: grains of the arena's own pool are joined once they were supplied (`share_grain`), and stay supplied.
        Some(unsafe { SharedGrain::new(grain) })
    }

    /// The part that an address lies in, and the pool that has it.
    #[cold]
    pub(super) fn part_at(&self, addr: Addr) -> Option<(PoolId, AddrRange)> {
        self.shared_grain(self.grain_of(addr)?)?.part_at(addr)
    }

    /// Whose an address in a grain of the arena's own pool is: that pool's, or if the grain is shared the pool's that
    /// has the part.
    #[cold]
    pub(super) fn owner_in_grain(&self, index: u32, addr: Addr) -> Option<PoolId> {
        let part = self.shared_grain(index).and_then(|grain| grain.part_at(addr));
        Some(part.map_or(PoolId::ARENA, |(pool, _)| pool))
    }

    /// The first parts in a row of a pool that end above `from`, among the grains before `end`, and `tracts` if the parts
    /// touch it.
    pub(super) fn parts_before(
        &self,
        pool: PoolId,
        from: Addr,
        end: u32,
        tracts: Option<Block>,
    ) -> Option<Block> {
        let first = self.next_part(pool, from, end)?;
        let mut limit = first.range().limit();
        while let Some((owner, part)) = self.part_at(limit)
            && owner == pool
        {
            limit = part.limit();
        }
        limit = tracts
            .filter(|tracts| tracts.range().base() == limit)
            .map_or(limit, |tracts| tracts.range().limit());
        // SAFETY: the pool has all that lies between, and parts have the provenance of the range, as tracts have.
        Some(unsafe { Block::new(first.base(), limit.get() - first.range().base().get()) })
    }

    /// The first part of a pool that ends above `from`, among the grains before `end`.
    fn next_part(&self, pool: PoolId, from: Addr, end: u32) -> Option<Block> {
        let entries = self.entries_in_use();
        let entries = &entries[..entries.len().min(end as usize)];
        let mut index = self.grain_of(from)?;
        while let Some((first, count)) = TractTable::next_owned(entries, index, PoolId::ARENA) {
            index = first + count;
            let mut shared = (first..index).filter_map(|index| self.shared_grain(index));
            if let Some(part) = shared.find_map(|grain| grain.block_of(grain.next_part(pool, from)?)) {
                return Some(part);
            }
        }
        None
    }

    /// Frees all parts that a pool has.
    pub(super) fn free_parts(&self, pool: PoolId) {
        let mut from = self.base_of(0);
        while let Some(part) = self.next_part(pool, from, u32::MAX) {
            from = part.range().limit();
            // SAFETY: a part of the pool, which is being dismissed: nothing uses it.
            unsafe { self.parts.lock().free(part) };
        }
    }
}
