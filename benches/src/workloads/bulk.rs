//! Many small objects, freed all at once: the work of bump allocators.
//!
//! A batch of 256 KiB is allocated object by object, then all of it is freed.
//! Only allocating is timed.

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use crate::compare::{Contender, NULL, compare};
use crate::region::{ManualRegion, Region};
use crate::table::Table;
use bumpalo::Bump;
use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::author::{BarrierPair, SymmetricFence};
use tripoint::{AllocationPoint, ArenaVm, ArenaVmOptions};

use super::objects::MiMallocDirect;

const BATCH: usize = 256 << 10;
/// Batches that a contender allocates in one round.
const BATCHES: usize = 16;
/// Objects for which the batch cursor reserves at once.
const CURSOR: usize = 256;

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    vec![
        measure_size::<2>(rounds),
        measure_size::<4>(rounds),
        measure_size::<8>(rounds),
        measure_size::<16>(rounds),
        measure_size::<32>(rounds),
    ]
}

fn measure_size<const WORDS: usize>(rounds: usize) -> Table {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let manual = ManualRegion::create(&arena, BATCH, SymmetricFence).unwrap();
    let by_cursor = ManualRegion::create(&arena, BATCH, SymmetricFence).unwrap();
    let fenced = Region::<_, _, true>::create(&arena, BATCH, SymmetricFence).unwrap();
    #[cfg(target_os = "linux")]
    let without_fence = {
        let barrier = tripoint::author::Membarrier::register().unwrap();
        Region::<_, _, true>::create(&arena, BATCH, barrier).unwrap()
    };
    let mut contenders = vec![
        Contender::new("allocation point, manual", one_by_one::<WORDS, _, _>(&manual)),
        Contender::new("allocation point, manual, batch cursor", cursor::<WORDS>(&by_cursor)),
    ];
    #[cfg(target_os = "linux")]
    contenders.push(Contender::new(
        "allocation point, flippable, membarrier",
        one_by_one::<WORDS, _, _>(&without_fence),
    ));
    contenders.extend([
        Contender::new("allocation point, flippable, symmetric fence", one_by_one::<WORDS, _, _>(&fenced)),
        Contender::new("bumpalo", bumpalo::<WORDS, 1>()),
        Contender::new("bumpalo, minimum alignment 8", bumpalo::<WORDS, 8>()),
        Contender::new("bump-scope", bump_scope::<WORDS>()),
        Contender::new("typed-arena", typed_arena::<WORDS>()),
        Contender::new("slab", slab::<WORDS>()),
        Contender::new(NULL, same_place::<WORDS>()),
        Contender::new("mimalloc", general::<WORDS>(MiMalloc)),
        Contender::new("mi_malloc", general::<WORDS>(MiMallocDirect)),
        Contender::new("rusty_alloc", general::<WORDS>(RustyAlloc)),
        Contender::new("snmalloc", general::<WORDS>(SnMalloc)),
        Contender::new("jemalloc", general::<WORDS>(Jemalloc)),
        Contender::new("system malloc", general::<WORDS>(System)),
    ]);
    let title = format!("allocate {} bytes", size_of::<[u64; WORDS]>());
    Table::of(title, &compare(&mut contenders, rounds, BATCHES * count::<WORDS>()))
}

/// Times `allocate` for a batch, `BATCHES` times, with `free` after each.
fn batches<S>(state: &mut S, allocate: impl Fn(&mut S), free: impl Fn(&mut S)) -> Duration {
    let mut time = Duration::ZERO;
    for _ in 0..BATCHES {
        let start = Instant::now();
        allocate(state);
        time += start.elapsed();
        free(state);
    }
    time
}

/// The number of objects of a batch.
const fn count<const WORDS: usize>() -> usize {
    BATCH / size_of::<[u64; WORDS]>()
}

/// The objects of a batch. Using each address keeps the compiler from leaving
/// the objects out.
fn objects<const WORDS: usize>() -> impl Iterator<Item = [u64; WORDS]> {
    (0..count::<WORDS>() as u64).map(|number| [number; WORDS])
}

fn one_by_one<'p, 'a, const WORDS: usize, B: BarrierPair, const FLIPPABLE: bool>(
    pool: &'p Region<&'a ArenaVm, B, FLIPPABLE>,
) -> impl FnMut() -> Duration + use<'p, 'a, WORDS, B, FLIPPABLE> {
    let mut point = AllocationPoint::create(pool).unwrap();
    move || {
        batches(
            &mut point,
            |point| {
                for object in objects::<WORDS>() {
                    // SAFETY: no thread reads the objects of a region.
                    black_box(unsafe { point.alloc_with(|| object) }.unwrap());
                }
            },
            |point| free_all(point, pool),
        )
    }
}

/// The objects of a batch become visible together.
fn cursor<'p, 'a, const WORDS: usize>(
    pool: &'p ManualRegion<&'a ArenaVm>,
) -> impl FnMut() -> Duration + use<'p, 'a, WORDS> {
    let mut point = AllocationPoint::create(pool).unwrap();
    move || {
        batches(
            &mut point,
            |point| {
                let mut objects = objects::<WORDS>();
                for _ in 0..count::<WORDS>() / CURSOR {
                    let mut batch = point.batch(CURSOR).unwrap();
                    for object in objects.by_ref().take(CURSOR) {
                        let _fits = batch.push(object);
                    }
                    // SAFETY: no thread reads the objects of a region.
                    black_box(unsafe { batch.commit_raw() }.unwrap());
                }
            },
            |point| free_all(point, pool),
        )
    }
}

fn free_all<'p, 'a, B: BarrierPair, const FLIPPABLE: bool>(
    point: &mut AllocationPoint<'p, Region<&'a ArenaVm, B, FLIPPABLE>>,
    pool: &'p Region<&'a ArenaVm, B, FLIPPABLE>,
) {
    point.empty();
    // SAFETY: objects are not used after the loop that makes them, and the only
    // buffer was just emptied.
    unsafe { pool.reset() };
}

fn bumpalo<const WORDS: usize, const MIN_ALIGN: usize>() -> impl FnMut() -> Duration {
    let mut bump = Bump::<MIN_ALIGN>::with_min_align_and_capacity(BATCH);
    move || {
        batches(
            &mut bump,
            |bump| {
                for object in objects::<WORDS>() {
                    black_box(bump.alloc(object));
                }
            },
            Bump::reset,
        )
    }
}

fn general<const WORDS: usize>(allocator: impl GlobalAlloc) -> impl FnMut() -> Duration {
    let mut batch: Vec<*mut [u64; WORDS]> = Vec::with_capacity(count::<WORDS>());
    move || {
        batches(
            &mut batch,
            |batch| {
                for object in objects::<WORDS>() {
                    // SAFETY: the layout's size is not zero.
                    let place =
                        unsafe { allocator.alloc(Layout::new::<[u64; WORDS]>()) }.cast::<[u64; WORDS]>();
                    assert!(!place.is_null());
                    // SAFETY: fresh memory of an object's layout.
                    unsafe { place.write(object) };
                    batch.push(black_box(place));
                }
            },
            |batch| {
                for place in batch.drain(..) {
                    // SAFETY: allocated above with this layout, freed once.
                    unsafe { allocator.dealloc(place.cast(), Layout::new::<[u64; WORDS]>()) };
                }
            },
        )
    }
}

fn bump_scope<const WORDS: usize>() -> impl FnMut() -> Duration {
    let mut bump: bump_scope::Bump = bump_scope::Bump::with_size(BATCH + (BATCH >> 4));
    move || {
        batches(
            &mut bump,
            |bump| {
                for object in objects::<WORDS>() {
                    black_box(bump.alloc(object).into_raw());
                }
            },
            bump_scope::Bump::reset,
        )
    }
}

/// It frees nothing before it is dropped, so each batch has an arena of its own.
fn typed_arena<const WORDS: usize>() -> impl FnMut() -> Duration {
    let new = || typed_arena::Arena::with_capacity(count::<WORDS>());
    let mut arena = new();
    move || {
        batches(
            &mut arena,
            |arena| {
                for object in objects::<WORDS>() {
                    black_box(&raw mut *arena.alloc(object));
                }
            },
            |arena| *arena = new(),
        )
    }
}

fn slab<const WORDS: usize>() -> impl FnMut() -> Duration {
    let mut slab = slab::Slab::with_capacity(count::<WORDS>());
    move || {
        batches(
            &mut slab,
            |slab| {
                for object in objects::<WORDS>() {
                    black_box(slab.insert(object));
                }
            },
            slab::Slab::clear,
        )
    }
}

/// Nothing but the stores, to one batch.
fn same_place<const WORDS: usize>() -> impl FnMut() -> Duration {
    let mut batch = vec![[0_u64; WORDS]; count::<WORDS>()];
    move || {
        batches(
            &mut batch,
            |batch| {
                for (place, object) in batch.iter_mut().zip(objects::<WORDS>()) {
                    *place = object;
                    black_box(place);
                }
            },
            |_| (),
        )
    }
}
