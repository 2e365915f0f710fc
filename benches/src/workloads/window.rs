//! Many live objects of 64 bytes, each as likely to be replaced as any other.

use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use crate::compare::{Contender, compare};
use crate::random::Random;
use crate::table::Table;
use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use slab::Slab;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{ArenaVm, ArenaVmOptions, Mfs, MfsOptions, UnitOf};

use super::objects::{General, MiMallocDirect, Object, Objects};

const REPLACEMENTS: usize = 50_000;

fn replacing<O: Objects>(mut objects: O, live: usize) -> impl FnMut() -> Duration {
    let mut window: Vec<O::Handle> = (0..live).map(|index| objects.make([index as u64; 8])).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    move || {
        let start = Instant::now();
        for round in 0..REPLACEMENTS {
            let place = &mut window[random.below(live)];
            objects.take_back(*place);
            *place = objects.make([round as u64; 8]);
        }
        start.elapsed()
    }
}

pub(super) fn measure(live: usize, rounds: usize) -> Vec<Table> {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = || Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let (cached, locked) = (pool(), pool());
    let cache = cached.cache();
    let mut contenders = [
        Contender::new("Mfs, cache", replacing(&cache, live)),
        Contender::new("Mfs, lock", replacing(&locked, live)),
        Contender::new("mimalloc", replacing(General(MiMalloc), live)),
        Contender::new("mi_malloc", replacing(General(MiMallocDirect), live)),
        Contender::new("rusty_alloc", replacing(General(RustyAlloc), live)),
        Contender::new("snmalloc", replacing(General(SnMalloc), live)),
        Contender::new("jemalloc", replacing(General(Jemalloc), live)),
        Contender::new("slab", replacing(Slab::<Object>::new(), live)),
        Contender::new("system malloc", replacing(General(System), live)),
    ];
    let goal = if live > 1_000 { "best peer 1.05" } else { "mimalloc and snmalloc 1.82" };
    let title = format!("64 bytes, {live} live, random (goal: {goal})");
    vec![Table::of(title, &compare(&mut contenders, rounds, REPLACEMENTS))]
}
