//! Manual variable first fit: objects of any size, freed in any order.
//!
//! All free memory is one [`Land`], with bins in front of it, under one lock (design/pool-mvff.md `.mvff`).

use core::ptr::NonNull;

use tripoint_core::{Addr, AddrRange, Align, Arena, Block, Error, Owned, PoolHeader, Result, Shared};

use crate::land::Land;
use crate::link::Damaged;
use crate::variable::{Figures, FitMemory, Freed, Variable, VariableOptions};

/// Options for an [`Mvff`]. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct MvffOptions {
    /// By how much the pool extends itself, unless a request needs more or the
    /// arena has only what the request needs. Default: 64 KiB.
    pub extend_by: usize,
    /// The most that one fill takes, rounded down to granules, unless the request
    /// needs more. Default: 64 KiB.
    pub fill_size: usize,
    /// How much free memory the pool keeps. If a free leaves more, whole grains are returned to
    /// the arena: first of the block that the free made, then of the largest block. Later
    /// frees continue with what this one leaves. Default: `usize::MAX`, everything, so that
    /// what was allocated once can be allocated again without the arena
    /// (design/pool-mvff.md `.req.steady`).
    pub spare: usize,
    /// How many freed blocks of up to 64 granules wait for an object of their size before they join their neighbours. A request
    /// that nothing else serves has them join first, which takes at most the time of that many frees; so does reading the sizes of the
    /// pool. None wait if this is zero, or if `spare` is not `usize::MAX`. Default: 2,048 (design/land.md `.bins`).
    pub bin_blocks: usize,
}

impl Default for MvffOptions {
    fn default() -> Self {
        Self { extend_by: 64 << 10, fill_size: 64 << 10, spare: usize::MAX, bin_blocks: 2048 }
    }
}

/// A pool of the class MVFF, manual variable first fit.
///
/// Sizes are rounded up to [`GRANULE`](crate::GRANULE), which is also the alignment that objects
/// have without asking. Any alignment is served (design/pool-mvff.md `.req.any`).
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_core::{PoolBox, PoolClass};
/// use tripoint_pools::{Mvff, MvffOptions};
///
/// let messages = Mvff::create(&arena, MvffOptions::default())?;
/// let (short, long) = (PoolBox::new_in([0_u8; 20], &messages)?, PoolBox::new_in([0_u8; 3000], &messages)?);
/// drop(short);
/// drop(long);
/// assert_eq!(messages.sizes().fragmentation(), 0); // neighbours coalesced
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("first fit", "heap"))]
pub type Mvff<A, L = Shared> = Variable<A, Land, L>;

impl From<MvffOptions> for VariableOptions {
    fn from(MvffOptions { extend_by, fill_size, spare, bin_blocks }: MvffOptions) -> Self {
        Self { extend_by, fill_size, spare, bin_blocks }
    }
}

impl<A: Arena> Mvff<A> {
    /// Creates a pool in the arena. It takes no memory until it is used.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for an arena whose grain is below two granules
    /// - those of [`Arena::register`]
    pub fn create(arena: A, options: MvffOptions) -> Result<Self> {
        Self::with_lock(arena, options.into())
    }
}

impl<A: Arena> Mvff<A, Owned> {
    /// As `create`, for a pool that one thread owns: its calls take no lock, and while it is borrowed it stays in its
    /// thread. See [`Owned`].
    ///
    /// # Errors
    /// Those of `create`.
    pub fn create_owned(arena: A, options: MvffOptions) -> Result<Self> {
        Self::with_lock(arena, options.into())
    }
}

impl FitMemory for Land {
    const CLASS: &'static str = "MVFF";
    const TOO_LARGE: Error = Error::Parameter("the size, rounded up to granules, is above isize::MAX");
    const SORTS: bool = true;
    const RETURNS_ONE: bool = false;
    const FREED: Freed = Freed::Waits;

    fn new<A: Arena>(header: &PoolHeader<A>) -> Self {
        Self::new(header)
    }

    #[inline]
    fn size_for(size: usize) -> Option<usize> {
        Self::granules(size)
    }

    #[inline]
    fn most_of(&mut self, most: usize) -> usize {
        most.min(Self::largest(self))
    }

    #[inline]
    fn take(&mut self, min: usize, max: usize, align: Align) -> Result<Option<Block>, Damaged> {
        Ok(self.take_first_bounded(min, max, align))
    }

    #[inline]
    fn take_units(&mut self, unit: usize, count: usize) -> Result<Option<Block>, Damaged> {
        Ok(Self::take_units(self, unit, count))
    }

    #[inline]
    fn take_units_together(&mut self, unit: usize, count: usize) -> Option<Block> {
        Self::take_units(self, unit, count)
    }

    unsafe fn take_at(&mut self, base: NonNull<u8>, size: usize) -> Option<Block> {
        Self::take_range(self, AddrRange::with_size(Addr::of(base.as_ptr()), size)?)
    }

    unsafe fn take_range(&mut self, _block: Block, range: AddrRange) -> Option<Block> {
        Self::take_range(self, range)
    }

    fn find_largest(&self) -> Option<Block> {
        Self::find_largest(self)
    }

    fn figures(&self) -> Figures {
        Figures { size: self.size(), largest: self.largest(), blocks: Some(self.count()), map: None }
    }
}
