//! One object made and taken back, again and again.

use core::ptr::NonNull;
use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use crate::compare::{Contender, NULL, compare};
use crate::table::Table;
use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use slab::Slab;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{ArenaVm, ArenaVmOptions, Mfs, MfsOptions, UnitOf};

use super::objects::{General, MiMallocDirect, Object, Objects, SamePlace, keep};

const PAIRS: usize = 20_000;

#[inline(never)]
fn pairs<O: Objects>(objects: &mut O, count: usize) {
    for round in 0..count {
        let object = objects.make([round as u64; 8]);
        keep(object);
        objects.take_back(object);
    }
}

/// Makes sixteen objects, then takes them back, the last first.
#[inline(never)]
fn bursts<O: Objects>(objects: &mut O, count: usize) {
    for burst in 0..count / 16 {
        let handles: [O::Handle; 16] =
            core::array::from_fn(|index| objects.make([(burst + index) as u64; 8]));
        for handle in handles.into_iter().rev() {
            objects.take_back(handle);
        }
    }
}

fn bursting<O: Objects>(mut objects: O) -> impl FnMut() -> Duration {
    move || {
        let start = Instant::now();
        bursts(&mut objects, PAIRS);
        start.elapsed()
    }
}

fn timed<O: Objects>(mut objects: O) -> impl FnMut() -> Duration {
    move || {
        let start = Instant::now();
        pairs(&mut objects, PAIRS);
        start.elapsed()
    }
}

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let cache = pool.cache();
    let mut place = [0; 8];
    let mut contenders = [
        Contender::new("Mfs, cache", timed(&cache)),
        Contender::new(NULL, timed(SamePlace(NonNull::from(&mut place)))),
        Contender::new("Mfs, lock", timed(&pool)),
        Contender::new("mimalloc (goal 2.50)", timed(General(MiMalloc))),
        Contender::new("mi_malloc (goal 2.50)", timed(General(MiMallocDirect))),
        Contender::new("rusty_alloc", timed(General(RustyAlloc))),
        Contender::new("snmalloc (goal 2.22)", timed(General(SnMalloc))),
        Contender::new("jemalloc (goal 2.00)", timed(General(Jemalloc))),
        Contender::new("slab (goal 1.25)", timed(Slab::<Object>::new())),
        Contender::new("system malloc", timed(General(System))),
    ];
    let single = Table::of("pair of 64 bytes", &compare(&mut contenders, rounds, PAIRS));
    let mut contenders = [
        Contender::new("Mfs, cache", bursting(&cache)),
        Contender::new("mi_malloc", bursting(General(MiMallocDirect))),
        Contender::new("rusty_alloc", bursting(General(RustyAlloc))),
        Contender::new("snmalloc", bursting(General(SnMalloc))),
        Contender::new("jemalloc", bursting(General(Jemalloc))),
        Contender::new("slab", bursting(Slab::<Object>::new())),
    ];
    vec![single, Table::of("bursts of 16 of 64 bytes", &compare(&mut contenders, rounds, PAIRS))]
}

/// Runs the pairs of one contender, to be counted from outside.
pub fn run_one(name: &str, count: usize) {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let cache = pool.cache();
    match name {
        "null" => pairs(&mut SamePlace(NonNull::from(&mut [0; 8])), count),
        "cache" => pairs(&mut &cache, count),
        "lock" => pairs(&mut &pool, count),
        "mimalloc" => pairs(&mut General(MiMalloc), count),
        "mi_malloc" => pairs(&mut General(MiMallocDirect), count),
        "rusty_alloc" => pairs(&mut General(RustyAlloc), count),
        "snmalloc" => pairs(&mut General(SnMalloc), count),
        "jemalloc" => pairs(&mut General(Jemalloc), count),
        "slab" => pairs(&mut Slab::new(), count),
        "system" => pairs(&mut General(System), count),
        _ => panic!("no contender of this name"),
    }
}
