//! How the pools under test are made: one function for each way, in any arena.
//!
//! Extents and fills are small, so that tests need several of them.

use tripoint_core::{Arena, Result};
use tripoint_pools::{
    DebugOptions, DebugPool, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Snc, SncOptions, Tlsf,
    TlsfOptions, UnitLayout, UnitOf,
};

use super::{GRAIN, layout};

pub(crate) fn mvff<A: Arena>(arena: A) -> Result<Mvff<A>> {
    let options = MvffOptions { extend_by: 4 * GRAIN, fill_size: 1024, ..MvffOptions::default() };
    Mvff::create(arena, options)
}

/// Bins that are soon full.
pub(crate) fn mvff_few_bins<A: Arena>(arena: A) -> Result<Mvff<A>> {
    let options =
        MvffOptions { extend_by: 4 * GRAIN, fill_size: 1024, bin_blocks: 3, ..MvffOptions::default() };
    Mvff::create(arena, options)
}

pub(crate) fn mvff_returning<A: Arena>(arena: A) -> Result<Mvff<A>> {
    let options = MvffOptions { extend_by: GRAIN, fill_size: 600, spare: 0, bin_blocks: 0 };
    Mvff::create(arena, options)
}

fn mfs_options() -> MfsOptions {
    MfsOptions { extend_by: 2 * GRAIN, fill_size: 1000 }
}

pub(crate) fn mfs_of<A: Arena>(arena: A) -> Result<Mfs<A, UnitOf<[u64; 12]>>> {
    Mfs::create(arena, UnitOf::new(), mfs_options())
}

pub(crate) fn mfs_layout<A: Arena>(arena: A) -> Result<Mfs<A, UnitLayout>> {
    Mfs::create(arena, UnitLayout::new(layout(192, 64))?, mfs_options())
}

pub(crate) fn mvt<A: Arena>(arena: A) -> Result<Mvt<A>> {
    let options = MvtOptions { max_size: GRAIN, reserve_depth: usize::MAX, ..MvtOptions::default() };
    Mvt::create(arena, options)
}

/// Blocks are returned soon, remainders are seldom kept, and free memory is
/// searched only if there is no other.
pub(crate) fn mvt_returning<A: Arena>(arena: A) -> Result<Mvt<A>> {
    let options = MvtOptions {
        min_size: 100,
        mean_size: 100,
        max_size: GRAIN,
        reserve_depth: 1,
        fragmentation_limit: 100,
    };
    Mvt::create(arena, options)
}

pub(crate) fn snc<A: Arena>(arena: A) -> Result<Snc<A>> {
    Snc::create(arena, SncOptions { extend_by: 2 * GRAIN, fill_size: 1000 })
}

pub(crate) fn tlsf<A: Arena>(arena: A) -> Result<Tlsf<A>> {
    Tlsf::create(arena, TlsfOptions { extend_by: 4 * GRAIN, fill_size: 1024, ..TlsfOptions::default() })
}

pub(crate) fn tlsf_bins<A: Arena>(arena: A) -> Result<Tlsf<A>> {
    let options =
        TlsfOptions { extend_by: 4 * GRAIN, fill_size: 1024, bin_blocks: 5, ..TlsfOptions::default() };
    Tlsf::create(arena, options)
}

pub(crate) fn tlsf_returning<A: Arena>(arena: A) -> Result<Tlsf<A>> {
    let options = TlsfOptions { extend_by: GRAIN, fill_size: 600, spare: 0, bin_blocks: 0 };
    Tlsf::create(arena, options)
}

pub(crate) fn debug_mvff<A: Arena>(arena: A) -> Result<DebugPool<Mvff<A>>> {
    DebugPool::create(mvff(arena)?, DebugOptions::default())
}

pub(crate) fn debug_mfs<A: Arena>(arena: A) -> Result<DebugPool<Mfs<A, UnitLayout>>> {
    // A power of two, so that a refused request leaves no end of an extent unused.
    let units = Mfs::create(arena, UnitLayout::new(layout(256, 64))?, mfs_options())?;
    DebugPool::create(units, DebugOptions { held: 3, ..DebugOptions::default() })
}

pub(crate) fn debug_tlsf<A: Arena>(arena: A) -> Result<DebugPool<Tlsf<A>>> {
    DebugPool::create(tlsf(arena)?, DebugOptions { held: 0, ..DebugOptions::default() })
}

/// Makes a test of each class whose memory may be used again right after a free, named as the
/// function that makes its pool. The test passes the pool to `$run`.
macro_rules! in_every_class {
    ($run:path) => {
        $crate::common::classes::in_classes! { $run: mvff mvff_few_bins mvff_returning mfs_of mfs_layout mvt mvt_returning tlsf tlsf_bins tlsf_returning }
    };
}

/// The same for debug pools, which hold memory back.
macro_rules! in_every_debug_pool {
    ($run:path) => {
        $crate::common::classes::in_classes! { $run: debug_mvff debug_mfs debug_tlsf }
    };
}

macro_rules! in_classes {
    ($run:path: $($name:ident)*) => { $(
        #[test]
        fn $name() {
            let mut memory = $crate::common::memory(24);
            let arena = $crate::common::arena(&mut memory);
            $run(&$crate::common::classes::$name(&arena).unwrap());
        }
    )* };
}

pub(crate) use {in_classes, in_every_class, in_every_debug_pool};
