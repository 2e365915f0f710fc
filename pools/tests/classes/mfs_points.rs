//! Allocation points on units that were freed and do not touch (design/pool-mfs.md `.mfs.waiting`).

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeSet;

use crate::common::{SEAL, arena, memory};
use tripoint_ap::AllocationPoint;
use tripoint_core::{Addr, Arena, Check, CheckLevel, PoolClass, Store};
use tripoint_pools::{Mfs, MfsOptions, UnitOf};

type Object = [u64; 12 - SEAL / 8];
/// With the seal of a hardened pool.
const UNIT: usize = size_of::<Object>() + SEAL;
const LAYOUT: Layout = Layout::new::<Object>();
/// The units that a fill takes at most if they do not touch.
const BATCH: usize = 64;

/// Runs with a pool whose free units are every second one of `2 * holes`, and with their addresses. The pool has no
/// memory that was never used.
fn with_holes(
    holes: usize,
    run: impl FnOnce(&Mfs<&tripoint_core::ClientArena<'_>, UnitOf<Object>>, BTreeSet<Addr>),
) {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Mfs::create(&arena, UnitOf::new(), MfsOptions::default()).unwrap();
    let mut units: Vec<NonNull<u8>> = (0..2 * holes).map(|_| pool.alloc(LAYOUT).unwrap()).collect();
    while pool.sizes().free != 0 {
        pool.alloc(LAYOUT).unwrap();
    }
    let freed: Vec<_> = units.drain(..).step_by(2).collect();
    for &unit in &freed {
        // SAFETY: allocated above, freed once.
        unsafe { pool.free(unit, LAYOUT) };
    }
    let freed = freed.into_iter().map(|unit| Addr::of(unit.as_ptr())).collect();
    run(&pool, freed);
    pool.check(CheckLevel::Deep).unwrap();
}

fn alloc<P: PoolClass>(point: &mut AllocationPoint<'_, P>) -> Addr {
    let reservation = point.reserve(LAYOUT).unwrap();
    // SAFETY: the objects of a manual pool need no format; the memory is written whole.
    let object = unsafe {
        reservation.as_ptr().write_bytes(0x5a, reservation.size());
        reservation.commit()
    };
    Addr::of(object.unwrap().as_ptr())
}

#[test]
fn a_fill_takes_a_batch_of_units_that_do_not_touch() {
    with_holes(100, |pool, mut freed| {
        let fills = || pool.header().arena().counts().fills.get();
        let (before, mut point) = (fills(), AllocationPoint::create(pool).unwrap());
        for index in 1..=100_u64 {
            assert!(freed.remove(&alloc(&mut point)), "a unit that was freed, once");
            assert_eq!(fills() - before, index.div_ceil(BATCH as u64));
            let waiting = (BATCH - 1).saturating_sub(index as usize - 1);
            if index <= BATCH as u64 {
                assert_eq!(point.room(), waiting * UNIT);
                assert_eq!(pool.sizes().free, 36 * UNIT, "what waits is the buffer's");
            }
            let counted = point.buffer().fill_size() - point.buffer().empty_size() - point.room() as u64;
            assert_eq!(counted, index * UNIT as u64);
        }
        assert!(freed.is_empty());
    });
}

#[test]
fn what_waits_goes_back_when_the_point_is_emptied() {
    with_holes(50, |pool, freed| {
        let counts = pool.header().arena().counts();
        for (made, is_dropped) in [(1, false), (20, true), (50, false)] {
            let (free, allocated) = (pool.sizes().free, counts.alloc_mutator.get());
            let mut point = AllocationPoint::create(pool).unwrap();
            let objects: Vec<_> = (0..made).map(|_| alloc(&mut point)).collect();
            if is_dropped {
                drop(point);
            } else {
                point.empty();
                let buffer = point.buffer();
                assert_eq!(buffer.fill_size() - buffer.empty_size(), (made * UNIT) as u64);
                assert_eq!((point.room(), point.is_reset()), (0, true));
            }
            assert_eq!(pool.sizes().free, free - made * UNIT);
            assert_eq!(counts.alloc_mutator.get() - allocated, (made * UNIT) as u64);
            for object in objects {
                assert!(freed.contains(&object));
                let object = NonNull::new(core::ptr::without_provenance_mut(object.get())).unwrap();
                // SAFETY: allocated above, freed once; only the address matters.
                unsafe { pool.free(object, LAYOUT) };
            }
        }
        assert_eq!(counts.fill_mutator.get() - counts.empty_mutator.get(), counts.alloc_mutator.get());
    });
}

/// Within a batch the buffer is never armed, so no reserve misses a trip.
#[test]
fn trips_are_observed_from_run_to_run() {
    with_holes(30, |pool, _| {
        let trips = || pool.header().arena().counts().trips.get();
        let mut point = AllocationPoint::create(pool).unwrap();
        let tripper = point.tripper();
        let before = trips();
        for index in 1..=30 {
            tripper.trip();
            alloc(&mut point);
            assert_eq!(trips() - before, index);
        }
    });
}

/// An abandoned reservation leaves its unit to the next.
#[test]
fn an_abandoned_unit_is_reserved_again() {
    with_holes(10, |pool, mut freed| {
        let mut point = AllocationPoint::create(pool).unwrap();
        while !freed.is_empty() {
            let abandoned = Addr::of(point.reserve(LAYOUT).unwrap().as_ptr().as_ptr());
            assert_eq!(alloc(&mut point), abandoned);
            assert!(freed.remove(&abandoned));
        }
    });
}

/// Units that touch are one run, whichever was freed first.
#[test]
fn touching_units_among_those_that_wait_are_one_run() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let units: Vec<NonNull<u8>> = (0..12).map(|_| pool.alloc(LAYOUT).unwrap()).collect();
    while pool.sizes().free != 0 {
        pool.alloc(LAYOUT).unwrap();
    }
    for index in [1, 2, 3, 7, 6, 5, 9] {
        // SAFETY: allocated above, freed once.
        unsafe { pool.free(units[index], LAYOUT) };
    }
    let mut point = AllocationPoint::create(&pool).unwrap();
    let taken: Vec<_> = (0..7).map(|_| alloc(&mut point)).collect();
    let expected = [9, 5, 6, 7, 1, 2, 3].map(|index| Addr::of(units[index].as_ptr()));
    assert_eq!(taken, expected);
}

#[cfg(feature = "hardening")]
#[test]
fn a_link_of_a_waiting_unit_written_over_is_not_followed() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let pool = Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let units: Vec<NonNull<u8>> = (0..20).map(|_| pool.alloc(LAYOUT).unwrap()).collect();
    while pool.sizes().free != 0 {
        pool.alloc(LAYOUT).unwrap();
    }
    for &unit in units.iter().step_by(2) {
        // SAFETY: allocated above, freed once.
        unsafe { pool.free(unit, LAYOUT) };
    }
    let mut point = AllocationPoint::create(&pool).unwrap();
    alloc(&mut point);
    // SAFETY: the first word of a unit that waits, which only this thread uses.
    unsafe { units[10].cast::<usize>().write(0x4141_4141) };
    let failure = loop {
        match point.reserve(LAYOUT) {
            // SAFETY: the objects of a manual pool need no format.
            Ok(reservation) => drop(unsafe { reservation.commit() }),
            Err(error) => break error,
        }
    };
    assert_eq!(failure, tripoint_core::Error::Damaged);
}
