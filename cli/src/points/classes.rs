//! Makes pools from what the log says of them.

use core::alloc::Layout;

use clap::ValueEnum;
use tripoint::{
    Arena, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Result, Snc, SncOptions, Tlsf, TlsfOptions,
    UnitLayout,
};

use super::heap_pool;
use super::hook::Hook;
use super::objects::Impossible;
use super::packet_pool;
use super::pool::{Manual, Pool, Stack};

/// A class of which all manual pools of the log are in the replay, with its own default options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OtherClass {
    /// Any size, first fit
    Mvff,
    /// Any size, in bounded time
    Tlsf,
    /// Any size, for objects that die in the order of their birth
    Mvt,
}

/// The options of a pool in the log, as [`PoolOptions`](tripoint::author::PoolOptions) has them.
pub(super) type Options = [u64; 5];

type MadePool<'a> = Box<dyn Pool + 'a>;

/// Whether pools of this class may be of another one in the replay.
pub(super) fn is_manual(class: &str) -> bool {
    !heap_pool::is_of_heap(class) && !["SNC", packet_pool::CLASS].contains(&class)
}

/// Makes a pool of the class and with the options that the log has. What the pool refuses is an error of the pool's.
pub(super) fn make<'a, A: Arena>(
    arena: &'a A,
    hook: &'static Hook,
    class: &str,
    options: Options,
    other: Option<OtherClass>,
) -> Result<Result<MadePool<'a>>, Impossible> {
    let options = options.map(|option| option as usize);
    if heap_pool::is_of_heap(class) {
        return heap_pool::make(arena, hook, class, options[0]);
    }
    if let Some(other) = other.filter(|_| is_manual(class)) {
        return Ok(make_other(arena, hook, other));
    }
    match (class, options) {
        ("MFS", [unit_size, unit_align, extend_by, fill_size, _]) => {
            let unit = Layout::from_size_align(unit_size, unit_align);
            let unit = unit.map_err(|_| Impossible("its units have a layout that cannot be"))?;
            let options = MfsOptions { extend_by, fill_size };
            let pool = UnitLayout::new(unit).and_then(|unit| Mfs::create(arena, unit, options));
            Ok(pool.map(|pool| manual(pool, hook)))
        }
        ("MVFF", [extend_by, fill_size, spare, bin_blocks, _]) => {
            let options = MvffOptions { extend_by, fill_size, spare, bin_blocks };
            Ok(Mvff::create(arena, options).map(|pool| manual(pool, hook)))
        }
        ("TLSF", [extend_by, fill_size, spare, bin_blocks, _]) => {
            let options = TlsfOptions { extend_by, fill_size, spare, bin_blocks };
            Ok(Tlsf::create(arena, options).map(|pool| manual(pool, hook)))
        }
        ("MVT", [min_size, mean_size, max_size, reserve_depth, limit]) => {
            let fragmentation_limit = u8::try_from(limit).unwrap_or(u8::MAX);
            let options = MvtOptions { min_size, mean_size, max_size, reserve_depth, fragmentation_limit };
            Ok(Mvt::create(arena, options).map(|pool| manual(pool, hook)))
        }
        ("SNC", [extend_by, fill_size, ..]) => Ok(Snc::create(arena, SncOptions { extend_by, fill_size })
            .map(|pool| -> MadePool<'a> { Box::new(Stack::new(pool, hook)) })),
        (packet_pool::CLASS, options) => packet_pool::make(arena, hook, options),
        _ => Err(Impossible("pools of this class are not replayed")),
    }
}

fn make_other<'a, A: Arena>(arena: &'a A, hook: &'a Hook, other: OtherClass) -> Result<MadePool<'a>> {
    match other {
        OtherClass::Mvff => Mvff::create(arena, MvffOptions::default()).map(|pool| manual(pool, hook)),
        OtherClass::Tlsf => Tlsf::create(arena, TlsfOptions::default()).map(|pool| manual(pool, hook)),
        OtherClass::Mvt => Mvt::create(arena, MvtOptions::default()).map(|pool| manual(pool, hook)),
    }
}

fn manual<'a, P: tripoint::ManualPool + 'a>(pool: P, hook: &'a Hook) -> MadePool<'a> {
    Box::new(Manual::new(pool, hook))
}
