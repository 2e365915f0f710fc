//! How the pools under test are made: one function for each way, in any arena.
//!
//! Extents and fills are small, so that tests need several of them.

use tripoint_core::{Arena, Owned, Result};
use tripoint_pools::{
    DebugOptions, DebugPool, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Snc, SncOptions, Tlsf,
    TlsfOptions, UnitLayout, UnitOf,
};

use super::{GRAIN, SEAL, layout};

fn mvff_options() -> MvffOptions {
    MvffOptions { extend_by: 4 * GRAIN, fill_size: 1024, ..MvffOptions::default() }
}

pub(crate) fn mvff<A: Arena>(arena: A) -> Result<Mvff<A>> {
    Mvff::create(arena, mvff_options())
}

pub(crate) fn owned_mvff<A: Arena>(arena: A) -> Result<Mvff<A, Owned>> {
    Mvff::create_owned(arena, mvff_options())
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

pub(crate) fn mfs_of<A: Arena>(arena: A) -> Result<Mfs<A, UnitOf<[u64; 12 - SEAL / 8]>>> {
    Mfs::create(arena, UnitOf::new(), mfs_options())
}

pub(crate) fn owned_mfs<A: Arena>(arena: A) -> Result<Mfs<A, UnitOf<[u64; 12 - SEAL / 8]>, Owned>> {
    Mfs::create_owned(arena, UnitOf::new(), mfs_options())
}

pub(crate) fn mfs_layout<A: Arena>(arena: A) -> Result<Mfs<A, UnitLayout>> {
    Mfs::create(arena, UnitLayout::new(layout(192 - SEAL, 64))?, mfs_options())
}

fn mvt_options() -> MvtOptions {
    MvtOptions { max_size: GRAIN, reserve_depth: usize::MAX, ..MvtOptions::default() }
}

pub(crate) fn mvt<A: Arena>(arena: A) -> Result<Mvt<A>> {
    Mvt::create(arena, mvt_options())
}

pub(crate) fn owned_mvt<A: Arena>(arena: A) -> Result<Mvt<A, Owned>> {
    Mvt::create_owned(arena, mvt_options())
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

const SNC_OPTIONS: SncOptions = SncOptions { extend_by: 2 * GRAIN, fill_size: 1000 };

pub(crate) fn snc<A: Arena>(arena: A) -> Result<Snc<A>> {
    Snc::create(arena, SNC_OPTIONS)
}

pub(crate) fn owned_snc<A: Arena>(arena: A) -> Result<Snc<A, Owned>> {
    Snc::create_owned(arena, SNC_OPTIONS)
}

const TLSF_OPTIONS: TlsfOptions =
    TlsfOptions { extend_by: 4 * GRAIN, fill_size: 1024, bin_blocks: 0, spare: usize::MAX };

pub(crate) fn tlsf<A: Arena>(arena: A) -> Result<Tlsf<A>> {
    Tlsf::create(arena, TLSF_OPTIONS)
}

pub(crate) fn owned_tlsf<A: Arena>(arena: A) -> Result<Tlsf<A, Owned>> {
    Tlsf::create_owned(arena, TLSF_OPTIONS)
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
    let units = Mfs::create(arena, UnitLayout::new(layout(256 - SEAL, 64))?, mfs_options())?;
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
