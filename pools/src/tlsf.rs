//! Two-level segregated fit: objects of any size, in constant time.
//!
//! Free blocks are in lists by size, and a bit for each granule shows where free
//! blocks begin and end, so that neighbours are found without headers
//! (design/pool-tlsf.md `.tlsf`, `.req.constant`).
//!
//! | file | |
//! |---|---|
//! | `class` | size classes: numbers for ranges of sizes |
//! | `bitmap` | a bit for each list that has blocks |
//! | `node` | a free block as it describes itself |
//! | `lists` | a list for each class |
//! | `segregated_fit` | free memory by size, and its edges by address |
//! | `check` | the check, which trusts no free block |
//! | `fit` | free memory as that of a pool of granules |

use tripoint_core::{Arena, LockKind, Owned, PoolLock, Result, Shared};

use crate::extend::extend;
use crate::granules::FreeMemory;
use crate::seal::SEAL_SIZE;
use crate::variable::{FitMemory, Variable, VariableOptions};

mod bitmap;
mod check;
mod class;
mod fit;
mod lists;
mod node;
mod segregated_fit;

pub use segregated_fit::SegregatedFit;

/// Options for a [`Tlsf`]. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct TlsfOptions {
    /// By how much the pool extends itself, unless a request needs more or the
    /// arena has only what the request needs. Default: 64 KiB.
    pub extend_by: usize,
    /// The most that one fill takes, rounded down to granules, unless the request
    /// needs more. Default: 64 KiB.
    pub fill_size: usize,
    /// How much free memory the pool keeps. If a free leaves more, whole grains of one block are returned to the arena: of
    /// the block that the free made, or else of one of the largest class. Later frees continue with what this one leaves.
    /// The arena's time is added to that of the free. Default: `usize::MAX`, everything, so that what was allocated once can be
    /// allocated again without the arena (design/pool-tlsf.md `.tlsf.spare`).
    pub spare: usize,
    /// How many freed blocks of up to 64 granules wait for an object of their size before they join their neighbours. That makes most
    /// calls quicker; but a request that nothing else serves has them join first, so the bound on the time of a call
    /// is that of that many frees. None wait if `spare` is not `usize::MAX`. Default: 0, each joins at once (design/land.md `.bins`).
    pub bin_blocks: usize,
}

impl Default for TlsfOptions {
    fn default() -> Self {
        Self { extend_by: 64 << 10, fill_size: 64 << 10, spare: usize::MAX, bin_blocks: 0 }
    }
}

/// A pool of the class TLSF, two-level segregated fit: bounded latency.
///
/// `alloc`, `free`, `fill` and `empty` take constant time, however many blocks are
/// free and however scattered; only if the pool has to grow is the arena's time
/// added, and [`Tlsf::extend`] spends that in advance. With [`TlsfOptions::spare`] set, a free that
/// returns memory takes the arena's time too.
///
/// Sizes are rounded up to granules, and above 64 of them to a size class, by at
/// most one part in 32. Any alignment is served; above a granule the request
/// looks for its size and alignment together (design/pool-tlsf.md `.req.any`).
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_core::{PoolBox, PoolClass};
/// use tripoint_pools::{Tlsf, TlsfOptions};
///
/// let commands = Tlsf::create(&arena, TlsfOptions::default())?;
/// commands.extend(64 << 10)?; // at Init: later requests do not grow the pool
/// let total = commands.sizes().total;
/// let command = PoolBox::new_in([0_u8; 1000], &commands)?;
/// assert_eq!(commands.sizes().total, total);
/// drop(command);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("two-level segregated fit", "good fit", "real time"))]
pub type Tlsf<A, L = Shared> = Variable<A, SegregatedFit, L>;

impl From<TlsfOptions> for VariableOptions {
    fn from(TlsfOptions { extend_by, fill_size, spare, bin_blocks }: TlsfOptions) -> Self {
        Self { extend_by, fill_size, spare, bin_blocks }
    }
}

impl<A: Arena> Tlsf<A> {
    /// Creates a pool in the arena. It takes no memory until it is used.
    ///
    /// The value is large, 13 KiB on 64-bit targets: it holds the heads of the lists, and where the bits of 16 MiB are.
    ///
    /// # Errors
    /// - [`Error::Parameter`](tripoint_core::Error::Parameter) for an arena whose grain is below two granules
    /// - those of [`Arena::register`]
    pub fn create(arena: A, options: TlsfOptions) -> Result<Self> {
        Self::with_lock(arena, options.into())
    }
}

impl<A: Arena> Tlsf<A, Owned> {
    /// As `create`, for a pool that one thread owns: its calls take no lock, and while it is borrowed it stays in its
    /// thread. See [`Owned`].
    ///
    /// # Errors
    /// Those of `create`.
    pub fn create_owned(arena: A, options: TlsfOptions) -> Result<Self> {
        Self::with_lock(arena, options.into())
    }
}

impl<A: Arena, L: LockKind> Tlsf<A, L> {
    /// The largest allocation, in bytes.
    pub const SIZE_MAX: usize = class::SIZE_MAX - SEAL_SIZE;

    /// Gets `size` bytes, rounded up to grains, from the arena ahead of use, so
    /// that later requests find them without it. Frees return what is above [`TlsfOptions::spare`].
    ///
    /// # Errors
    /// Those of [`Arena::alloc_tracts`] and [`Arena::alloc_descriptor`].
    pub fn extend(&self, size: usize) -> Result<()> {
        let _growing = self.granules.growth.begin()?;
        FreeMemory::ensure_sound(&*self.granules.free.lock()?)?;
        let extent = extend(&self.granules.header, size, 0)?;
        SegregatedFit::cover(&self.granules, extent)?;
        // SAFETY: whole grains, fresh from the arena, whose blocks all have the
        // provenance of its range; the extent is covered.
        unsafe { self.granules.free.lock()?.memory().insert(extent) }?;
        Ok(())
    }

    /// The bytes of the arena's descriptor memory that the pool uses to find the
    /// neighbours of blocks: not part of [`PoolSizes::total`](tripoint_core::PoolSizes::total).
    pub fn map_size(&self) -> usize {
        self.granules.free.lock().map_or(0, |mut free| free.memory().edges.size())
    }
}
