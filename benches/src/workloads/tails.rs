//! How long single allocations take at worst: quantiles, with what reading the clock takes.
//!
//! Cold: every object is in memory that was never touched. Warm: one of 1,000 objects is freed and another allocated.

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use std::alloc::System;
use std::time::Instant;

use bumpalo::Bump;
use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{
    AllocationPoint, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, ManualPool, Mfs,
    MfsOptions, Mvff, MvffOptions, Prefault, Store, UnitOf,
};

use super::objects::MiMallocDirect;
use crate::processor::{page_faults, pin};
use crate::random::Random;
use crate::table::Table;

type Object = [u64; 4];

const LAYOUT: Layout = Layout::new::<Object>();
const LIVE: usize = 1_000;
const QUANTILES: [f64; 5] = [0.5, 0.99, 0.999, 0.9999, 1.0];
const COLUMNS: [&str; 6] = ["p99.99, ns", "p50", "p99", "p99.9", "most", "page faults"];

/// The times of single calls, in buckets of a ns, and the longer ones one by one.
struct Times {
    short: Vec<u32>,
    long: Vec<u64>,
    faults: u64,
}

const SHORT: usize = 4096;

/// Times each of `count` calls.
fn times(count: usize, mut call: impl FnMut(usize)) -> Times {
    let mut times = Times { short: vec![0; SHORT], long: Vec::with_capacity(count / 16 + 1024), faults: 0 };
    // Touches the memory of the account before faults are counted.
    times.long.resize(times.long.capacity(), 1);
    times.long.clear();
    let faults = page_faults();
    for index in 0..count {
        let start = Instant::now();
        call(index);
        let time = start.elapsed().as_nanos() as u64;
        match times.short.get_mut(time as usize) {
            Some(bucket) => *bucket += 1,
            None => times.long.push(time),
        }
    }
    times.faults = page_faults() - faults;
    times
}

impl Times {
    fn quantile(&self, quantile: f64, count: usize) -> f64 {
        let mut left = ((count as f64 * quantile).ceil() as u64).max(1);
        for (time, &calls) in self.short.iter().enumerate() {
            if u64::from(calls) >= left {
                return time as f64;
            }
            left -= u64::from(calls);
        }
        self.long[left as usize - 1] as f64
    }
}

fn row(table: &mut Table, name: &str, count: usize, call: impl FnMut(usize)) {
    let mut times = times(count, call);
    times.long.sort_unstable();
    let [p50, p99, p999, p9999, most] = QUANTILES.map(|quantile| Some(times.quantile(quantile, count)));
    table.add(name, &[p9999, p50, p99, p999, most, Some(times.faults as f64)]);
}

#[inline(always)]
fn make<P: ManualPool>(point: &mut AllocationPoint<'_, P>, number: usize) {
    let reservation = point.reserve(LAYOUT).unwrap();
    // SAFETY: reserved just now, with the layout of the value.
    unsafe { reservation.as_ptr().cast::<Object>().write([number as u64; 4]) };
    // SAFETY: written just now.
    black_box(unsafe { reservation.commit() }.unwrap());
}

/// A point in an arena of its own, that has allocated nothing.
fn cold_point(table: &mut Table, name: &str, count: usize, prefault: Prefault) {
    let commit_limit = 2 * count * size_of::<Object>() + (16 << 20);
    let arena =
        ArenaVm::create(ArenaVmOptions { prefault, commit_limit, ..ArenaVmOptions::default() }).unwrap();
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let mut point = AllocationPoint::create(&pool).unwrap();
    row(table, name, count, |index| make(&mut point, index));
}

fn general(table: &mut Table, name: &str, count: usize, live: usize, allocator: impl GlobalAlloc) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    // SAFETY: the layout's size is not zero.
    let alloc = || unsafe { allocator.alloc(LAYOUT) }.cast::<Object>();
    // Not null, because nulls would be memory that is not touched yet.
    let mut objects = vec![core::ptr::dangling_mut::<Object>(); if live == 0 { count } else { live }];
    if live != 0 {
        objects.fill_with(alloc);
    }
    row(table, name, count, |index| {
        let place = if live == 0 { index } else { random.below(live) };
        if live != 0 {
            // SAFETY: allocated with this layout, and replaced below.
            unsafe { allocator.dealloc(objects[place].cast(), LAYOUT) };
        }
        objects[place] = alloc();
        // SAFETY: fresh memory of the layout.
        unsafe { objects[place].write([index as u64; 4]) };
    });
    for object in objects {
        // SAFETY: allocated with this layout, freed once.
        unsafe { allocator.dealloc(object.cast(), LAYOUT) };
    }
}

fn store(table: &mut Table, name: &str, count: usize, store: &impl Store) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut objects: Vec<_> = (0..LIVE).map(|_| store.alloc(LAYOUT).unwrap()).collect();
    let mut replace = |index: usize| {
        let place = &mut objects[random.below(LIVE)];
        // SAFETY: allocated with this layout, and replaced below.
        unsafe { store.free(*place, LAYOUT) };
        *place = store.alloc(LAYOUT).unwrap();
        // SAFETY: fresh memory of the layout.
        unsafe { place.cast::<Object>().write([index as u64; 4]) };
    };
    (0..10 * LIVE).for_each(&mut replace);
    row(table, name, count, replace);
}

fn cold(count: usize) -> Table {
    let mut table = Table::new("one object of 32 bytes, in memory never touched", &COLUMNS);
    row(&mut table, "nothing", count, |index| _ = black_box(index));
    cold_point(&mut table, "point, by page faults", count, Prefault::None);
    cold_point(&mut table, "point, populated at each fill", count, Prefault::AtFill);
    cold_point(&mut table, "point, populated 2 MiB ahead", count, Prefault::Ahead(2 << 20));
    cold_point(&mut table, "point, everything populated", count, Prefault::Everything);
    let bump = Bump::new();
    row(&mut table, "bumpalo", count, |index| _ = black_box(bump.alloc([index as u64; 4])));
    general(&mut table, "mi_malloc", count, 0, MiMallocDirect);
    general(&mut table, "rusty_alloc", count, 0, RustyAlloc);
    general(&mut table, "snmalloc", count, 0, SnMalloc);
    general(&mut table, "jemalloc", count, 0, Jemalloc);
    general(&mut table, "system malloc", count, 0, System);
    table
}

fn warm(count: usize) -> Table {
    let mut table = Table::new("one of 1,000 objects of 32 bytes freed, and another allocated", &COLUMNS);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    row(&mut table, "nothing", count, |_| _ = black_box(random.below(LIVE)));
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let mfs = || Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let (cached, locked) = (mfs(), mfs());
    let mvff = || Mvff::create(&arena, MvffOptions::default()).unwrap();
    let (variable, variable_locked) = (mvff(), mvff());
    let descriptor = CacheDescriptor::new(CacheClasses::linear(512, 64).unwrap());
    store(&mut table, "Mfs, cache", count, &cached.cache());
    store(&mut table, "Mvff, cache", count, &Cache::create(&variable, &descriptor).unwrap());
    store(&mut table, "Mfs, lock", count, &locked);
    store(&mut table, "Mvff, lock", count, &variable_locked);
    general(&mut table, "mimalloc", count, LIVE, MiMalloc);
    general(&mut table, "mi_malloc", count, LIVE, MiMallocDirect);
    general(&mut table, "rusty_alloc", count, LIVE, RustyAlloc);
    general(&mut table, "snmalloc", count, LIVE, SnMalloc);
    general(&mut table, "jemalloc", count, LIVE, Jemalloc);
    general(&mut table, "system malloc", count, LIVE, System);
    table
}

pub(super) fn measure(quick: bool) -> Vec<Table> {
    pin(1);
    let count = if quick { 10_000 } else { 1_000_000 };
    vec![cold(count), warm(10 * count)]
}
