//! Many small objects, freed all at once: the work of bump allocators.
//!
//! A batch of 256 KiB is allocated object by object, then all of it is freed.
//! Only allocating is timed.

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use benches::compare::{Contender, compare, print};
use benches::region::{ManualRegion, Region};
use bumpalo::Bump;
use mimalloc::MiMalloc;
use tripoint::author::{BarrierPair, SymmetricFence};
use tripoint::{AllocationPoint, ArenaVm, ArenaVmOptions};

type Object = [u64; 4];

const BATCH: usize = 256 << 10;
const OBJECTS: usize = BATCH / size_of::<Object>();
/// Batches that a contender allocates in one round.
const BATCHES: usize = 16;
/// Objects for which the batch cursor reserves at once.
const CURSOR: usize = 256;

pub(crate) fn measure(rounds: usize) {
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
        Contender::new("allocation point, manual", one_by_one(&manual)),
        Contender::new("allocation point, manual, batch cursor", cursor(&by_cursor)),
    ];
    #[cfg(target_os = "linux")]
    contenders.push(Contender::new("allocation point, flippable, membarrier", one_by_one(&without_fence)));
    contenders.extend([
        Contender::new("allocation point, flippable, symmetric fence", one_by_one(&fenced)),
        Contender::new("bumpalo", bumpalo::<1>()),
        Contender::new("bumpalo, minimum alignment 8", bumpalo::<8>()),
        Contender::new("mimalloc", general(MiMalloc)),
        Contender::new("system malloc", general(System)),
    ]);
    print("allocate 32 bytes", &compare(&mut contenders, rounds, BATCHES * OBJECTS));
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

/// The objects of a batch. Using each address keeps the compiler from leaving
/// the objects out.
fn objects() -> impl Iterator<Item = Object> {
    (0..OBJECTS as u64).map(|number| [number; 4])
}

fn one_by_one<'p, 'a, B: BarrierPair, const FLIPPABLE: bool>(
    pool: &'p Region<&'a ArenaVm, B, FLIPPABLE>,
) -> impl FnMut() -> Duration + use<'p, 'a, B, FLIPPABLE> {
    let mut point = AllocationPoint::create(pool).unwrap();
    move || {
        batches(
            &mut point,
            |point| {
                for object in objects() {
                    // SAFETY: no thread reads the objects of a region.
                    black_box(unsafe { point.alloc_with(|| object) }.unwrap());
                }
            },
            |point| free_all(point, pool),
        )
    }
}

/// The objects of a batch become visible together.
fn cursor<'p, 'a>(pool: &'p ManualRegion<&'a ArenaVm>) -> impl FnMut() -> Duration + use<'p, 'a> {
    let mut point = AllocationPoint::create(pool).unwrap();
    move || {
        batches(
            &mut point,
            |point| {
                let mut objects = objects();
                for _ in 0..OBJECTS / CURSOR {
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

fn bumpalo<const MIN_ALIGN: usize>() -> impl FnMut() -> Duration {
    let mut bump = Bump::<MIN_ALIGN>::with_min_align_and_capacity(BATCH);
    move || {
        batches(
            &mut bump,
            |bump| {
                for object in objects() {
                    black_box(bump.alloc(object));
                }
            },
            Bump::reset,
        )
    }
}

fn general(allocator: impl GlobalAlloc) -> impl FnMut() -> Duration {
    let mut batch: Vec<*mut Object> = Vec::with_capacity(OBJECTS);
    move || {
        batches(
            &mut batch,
            |batch| {
                for object in objects() {
                    // SAFETY: the layout's size is not zero.
                    let place = unsafe { allocator.alloc(Layout::new::<Object>()) }.cast::<Object>();
                    assert!(!place.is_null());
                    // SAFETY: fresh memory of an object's layout.
                    unsafe { place.write(object) };
                    batch.push(black_box(place));
                }
            },
            |batch| {
                for place in batch.drain(..) {
                    // SAFETY: allocated above with this layout, freed once.
                    unsafe { allocator.dealloc(place.cast(), Layout::new::<Object>()) };
                }
            },
        )
    }
}
