//! Many live objects of 16 to 512 bytes, each as likely to be replaced as any
//! other.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use crate::compare::{Contender, NULL, compare};
use crate::random::Random;
use crate::table::Table;
use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{
    ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Depot, Mvff, MvffOptions, Tlsf,
    TlsfOptions,
};

use super::by_layout::{Allocator, Memory, SamePlace, Stored, layout, rlsf, talc};
use super::objects::MiMallocDirect;

const REPLACEMENTS: usize = 50_000;
fn replacing(memory: impl Memory, live: usize) -> impl FnMut() -> Duration {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let layouts: Vec<Layout> = (0..live).map(|_| layout(&mut random)).collect();
    let mut window: Vec<_> = layouts.into_iter().map(|layout| (memory.get(layout), layout)).collect();
    move || {
        let start = Instant::now();
        for round in 0..REPLACEMENTS {
            let place = &mut window[random.below(live)];
            memory.put(place.0, place.1);
            let layout = layout(&mut random);
            *place = (memory.get(layout), layout);
            // SAFETY: fresh memory of at least two words.
            unsafe { place.0.cast().write([round; 2]) };
        }
        start.elapsed()
    }
}

pub(super) fn measure(live: usize, rounds: usize) -> Vec<Table> {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = || Mvff::create(&arena, MvffOptions::default()).unwrap();
    let (cached, locked) = (pool(), pool());
    // The more are live, the more their number in a class varies.
    let kept = if live > 1_000 { 256 } else { 64 };
    let descriptor = CacheDescriptor::new(CacheClasses::linear(512, kept).unwrap());
    let cache = Cache::create(&cached, &descriptor).unwrap();
    let constant_time = || Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    let (constant_cached, constant_locked) = (constant_time(), constant_time());
    let constant_descriptor = CacheDescriptor::new(CacheClasses::linear(512, kept).unwrap());
    let constant_cache = Cache::create(&constant_cached, &constant_descriptor).unwrap();
    let (talc, rlsf) = (talc(), rlsf());
    // With a depot: as many as for few live objects.
    let few = CacheClasses::linear(512, 64).unwrap();
    let (shared, tlsf) = (pool(), Tlsf::create(&arena, TlsfOptions::default()).unwrap());
    let (depot, tlsf_depot) = (Depot::new(&shared, few, 1 << 20), Depot::new(&tlsf, few, 1 << 20));
    let descriptors = [(); 3].map(|()| CacheDescriptor::new(few));
    let with_depot = Cache::with_depot(&depot, &descriptors[0]).unwrap();
    let tlsf_with_depot = Cache::with_depot(&tlsf_depot, &descriptors[1]).unwrap();
    let few_pool = pool();
    let alone = Cache::create(&few_pool, &descriptors[2]).unwrap();
    let mut place = [0_usize; 64];
    let mut contenders = [
        Contender::new("Mvff, cache", replacing(Stored(cache), live)),
        Contender::new(NULL, replacing(SamePlace(NonNull::from(&mut place).cast()), live)),
        Contender::new("Mvff, lock", replacing(Stored(locked), live)),
        Contender::new("Tlsf, cache", replacing(Stored(constant_cache), live)),
        Contender::new("Tlsf, lock", replacing(Stored(constant_locked), live)),
        Contender::new("talc", replacing(&talc, live)),
        Contender::new("rlsf", replacing(&rlsf, live)),
        Contender::new("mimalloc", replacing(Allocator(MiMalloc), live)),
        Contender::new("mi_malloc", replacing(Allocator(MiMallocDirect), live)),
        Contender::new("rusty_alloc", replacing(Allocator(RustyAlloc), live)),
        Contender::new("snmalloc", replacing(Allocator(SnMalloc), live)),
        Contender::new("jemalloc", replacing(Allocator(Jemalloc), live)),
        Contender::new("system malloc", replacing(Allocator(System), live)),
        Contender::new("Mvff, cache of 64", replacing(Stored(alone), live)),
        Contender::new("Mvff, cache of 64 and depot", replacing(Stored(with_depot), live)),
        Contender::new("Tlsf, cache of 64 and depot", replacing(Stored(tlsf_with_depot), live)),
    ];
    let title = format!("16 to 512 bytes, {live} live, random (goal at 1000: mimalloc 1.54, snmalloc 1.82)");
    vec![Table::of(title, &compare(&mut contenders, rounds, REPLACEMENTS))]
}
