//! How much memory a pool takes, and which part of it is what (design/packets.md `.plan`).

use tripoint_core::internal::AtomicU32;
use tripoint_core::{Block, Error, Lock, Result};

use crate::depot::Depot;
use crate::holders::Holders;
use crate::slots::Slot;
use crate::table::Table;
use crate::{PacketPoolOptions, PacketRegion};

const TOO_LARGE: Error = Error::Parameter("the units or the caches together are above isize::MAX");

/// The bytes of the region and of the tables beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) region: usize,
    pub(crate) tables: usize,
}

/// The tables of a pool.
pub(crate) struct Tables {
    pub(crate) depot: Lock<Depot>,
    pub(crate) holders: Table<AtomicU32>,
    pub(crate) slots: Table<Slot>,
}

impl Plan {
    /// The plan for these options.
    pub(crate) fn of<const SIZE: usize>(options: &PacketPoolOptions) -> Result<Self> {
        const { PacketRegion::<SIZE>::SIZE_IS_VALID };
        if options.count == 0 || options.cache_size == 0 {
            return Err(Error::Parameter(
                "a pool of packets has at least one unit, and its caches keep at least one",
            ));
        }
        if options.headroom as usize > SIZE {
            return Err(Error::Parameter("the headroom is larger than a unit"));
        }
        let is_possible = |bytes: &usize| *bytes <= isize::MAX as usize;
        let region = (options.count as usize).checked_mul(SIZE).filter(is_possible).ok_or(TOO_LARGE)?;
        let tables = Self::tables(options).filter(is_possible).ok_or(TOO_LARGE)?;
        Ok(Self { region, tables })
    }

    fn tables(options: &PacketPoolOptions) -> Option<usize> {
        let (count, caches) = (options.count as usize, options.caches as usize);
        let cached = Table::<u32>::bytes(options.cache_size as usize)?.checked_mul(caches)?;
        let slots = Table::<Slot>::bytes(caches)?;
        let units = Table::<u32>::bytes(count)?.checked_add(Table::<AtomicU32>::bytes(count)?)?;
        units.checked_add(slots)?.checked_add(cached)
    }
}

impl Tables {
    /// Makes the tables in `memory`; `None` if it has fewer bytes than planned.
    ///
    /// # Safety
    /// - `memory` begins at a multiple of [`TABLE_ALIGN`](crate::table::TABLE_ALIGN).
    /// - Nothing else uses it, and it stays valid for as long as the tables.
    pub(crate) unsafe fn make(mut memory: Block, options: &PacketPoolOptions) -> Option<Self> {
        let count = options.count as usize;
        // SAFETY: the caller gives aligned memory that nothing else uses, for as long as the tables. Each is cut off the
        // front of what is left, in multiples of the alignment.
        unsafe {
            // The first unit is on top.
            let numbers = Table::cut(&mut memory, count, |index| Some((count - 1 - index) as u32))?;
            let holders = Table::cut(&mut memory, count, |_| Some(Holders::at_home()))?;
            let (mut slots, mut cached) = memory.split_at(Table::<Slot>::bytes(options.caches as usize)?)?;
            let slots = Table::cut(&mut slots, options.caches as usize, |_| {
                Table::cut(&mut cached, options.cache_size as usize, |_| Some(0)).map(Slot::new)
            })?;
            Some(Self { depot: Lock::new(Depot::new(numbers, count)), holders, slots })
        }
    }
}
