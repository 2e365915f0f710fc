//! A list of many objects that is built, torn down in random order, and built again: the memory that it gets then has aged.
//!
//! A contender builds three times: in memory that was never used before, after a teardown in the order of birth, and after
//! teardowns in random order. Building and walking along the list are timed, teardowns are not.

use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use crate::random::Random;
use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{
    ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Depot, Mfs, MfsOptions, Tlsf, TlsfOptions,
    UnitOf,
};

use super::by_layout::{Allocator, Memory, Stored, layout};

/// Who may build.
pub const CONTENDERS: [&str; 10] = [
    "MfsCache",
    "MfsCache, pool trimmed",
    "Tlsf, cache with slabs",
    "Tlsf, cache with slabs, huge pages",
    "Tlsf, cache and depot",
    "system malloc",
    "mimalloc",
    "jemalloc",
    "snmalloc",
    "rusty_alloc",
];

/// Teardowns in random order before the last building.
const TEARDOWNS: usize = 2;
/// How often a list is walked along once it is built.
const WALKS: usize = 4;
/// What a depot may keep, in bytes.
const DEPOT: usize = 512 << 10;

/// An object of the list.
struct Node {
    next: *mut Node,
    number: usize,
}

type Unit = [u64; 8];

/// What the three buildings of a list took, with walks along it.
#[derive(Clone, Copy, Debug)]
pub struct Aged {
    /// In memory that was never used before.
    pub first: Duration,
    /// After a teardown in the order of birth.
    pub in_order: Duration,
    /// After teardowns in random order.
    pub at_random: Duration,
}

/// Lets a contender build lists of `count` objects, of one size or of many, in a process in which it did nothing before.
///
/// # Panics
/// If there is no such contender, or it does not serve many sizes.
#[must_use]
pub fn run_aged(contender: &str, count: usize, is_mixed: bool) -> Aged {
    let arena = |huge_pages| {
        let options = ArenaVmOptions { huge_pages, ..ArenaVmOptions::default() };
        ArenaVm::create(if huge_pages { ArenaVmOptions { grain: 2 << 20, ..options } } else { options })
            .unwrap()
    };
    match contender {
        "MfsCache" if !is_mixed => {
            let pool = Mfs::create(arena(false), UnitOf::<Unit>::new(), MfsOptions::default()).unwrap();
            age(&Stored(pool.cache()), count, is_mixed, || ())
        }
        "MfsCache, pool trimmed" if !is_mixed => {
            let pool = Mfs::create(arena(false), UnitOf::<Unit>::new(), MfsOptions::default()).unwrap();
            let cache = Stored(pool.cache());
            age(&cache, count, is_mixed, || {
                cache.0.flush();
                pool.trim();
            })
        }
        "Tlsf, cache with slabs" => cached(arena(false), true, count, is_mixed),
        "Tlsf, cache with slabs, huge pages" => cached(arena(true), true, count, is_mixed),
        "Tlsf, cache and depot" => cached(arena(false), false, count, is_mixed),
        "system malloc" => age(&Allocator(System), count, is_mixed, || ()),
        "mimalloc" => age(&Allocator(MiMalloc), count, is_mixed, || ()),
        "jemalloc" => age(&Allocator(Jemalloc), count, is_mixed, || ()),
        "snmalloc" => age(&Allocator(SnMalloc), count, is_mixed, || ()),
        "rusty_alloc" => age(&Allocator(RustyAlloc), count, is_mixed, || ()),
        _ => panic!("{contender} builds no such list"),
    }
}

fn cached(arena: ArenaVm, has_slabs: bool, count: usize, is_mixed: bool) -> Aged {
    let classes = CacheClasses::linear(512, 64).unwrap();
    let pool = Tlsf::create(arena, TlsfOptions::default()).unwrap();
    let make = if has_slabs { Depot::with_slabs } else { Depot::new };
    let depot = make(&pool, classes, DEPOT);
    let descriptor = CacheDescriptor::new(classes);
    age(&Stored(Cache::with_depot(&depot, &descriptor).unwrap()), count, is_mixed, || ())
}

/// Lets a contender build and tear down. `tidy` is called after each teardown.
fn age(memory: &impl Memory, count: usize, is_mixed: bool, tidy: impl Fn()) -> Aged {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let one = Layout::new::<Unit>();
    let layouts: Vec<Layout> = (0..count).map(|_| if is_mixed { layout(&mut random) } else { one }).collect();
    let mut order: Vec<usize> = (0..count).collect();
    let mut objects = Vec::with_capacity(count);
    let mut build = |order: &[usize]| {
        let time = build(memory, &layouts, &mut objects);
        for &index in order {
            memory.put(objects[index], layouts[index]);
        }
        objects.clear();
        tidy();
        time
    };
    let first = build(&order);
    let in_order = build(&order);
    for _ in 0..TEARDOWNS {
        random.shuffle(&mut order);
        build(&order);
    }
    Aged { first, in_order, at_random: build(&order) }
}

/// Builds a list, and walks along it.
fn build(memory: &impl Memory, layouts: &[Layout], objects: &mut Vec<NonNull<u8>>) -> Duration {
    let begin = Instant::now();
    let mut first: *mut Node = ptr::null_mut();
    for (number, layout) in layouts.iter().enumerate() {
        let object = memory.get(*layout);
        // SAFETY: fresh memory of at least two words.
        unsafe { object.cast::<Node>().write(Node { next: first, number }) };
        first = object.cast().as_ptr();
        objects.push(object);
    }
    let mut sum = 0;
    for _ in 0..WALKS {
        let mut next = first;
        // SAFETY: the objects of the list are written, and not freed yet.
        while let Some(node) = unsafe { next.as_ref() } {
            sum += node.number;
            next = node.next;
        }
    }
    let time = begin.elapsed();
    assert_eq!(sum, WALKS * layouts.len() * layouts.len().saturating_sub(1) / 2, "all are in the list");
    time
}
