//! Objects of one size, one freed as a new one is made: the oldest, which is the work of queues and order books, or
//! one drawn at random.
//!
//! One operation is a free and an allocation, with `LIVE` objects in between.

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use crate::compare::{Contender, compare};
use crate::random::Random;
use crate::table::Table;
use mimalloc::MiMalloc;
use slab::Slab;
use tripoint::{
    AllocationPoint, ArenaVm, ArenaVmOptions, ManualPool, Mfs, MfsOptions, Mvff, MvffOptions, PoolBox, UnitOf,
};

type Object = [u64; 4];

/// Objects that live at once.
const LIVE: usize = 1024;
/// Operations of a contender in one round.
const OPERATIONS: usize = 32 * LIVE;

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let mfs = || Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let mvff = || Mvff::create(&arena, MvffOptions::default()).unwrap();
    let orders = [("the oldest", Order::Oldest), ("any", Order::Any)];
    let table = |(freed, order)| {
        let (boxes, points) = (mfs(), mfs());
        let (variable_boxes, variable_points) = (mvff(), mvff());
        let mut contenders = [
            Contender::new("Mfs", allocating(&boxes, order)),
            Contender::new("Mfs, allocation point", reserving(&points, order)),
            Contender::new("Mvff", allocating(&variable_boxes, order)),
            Contender::new("Mvff, allocation point", reserving(&variable_points, order)),
            Contender::new("slab", slab(order)),
            Contender::new("mimalloc", general(MiMalloc, order)),
            Contender::new("system malloc", general(System, order)),
        ];
        let title = format!("allocate 32 bytes, and free {freed} of {LIVE}");
        Table::of(title, &compare(&mut contenders, rounds, OPERATIONS))
    };
    orders.into_iter().map(table).collect()
}

/// Which object is replaced.
#[derive(Clone, Copy)]
enum Order {
    Oldest,
    Any,
}

/// Replaces one of `LIVE` objects, `OPERATIONS` times, and times that.
fn replace_each<T>(ring: &mut [T], order: Order, mut replace: impl FnMut(&mut T, Object)) -> Duration {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let start = Instant::now();
    for round in 0..OPERATIONS / LIVE {
        for index in 0..LIVE {
            let place = match order {
                Order::Oldest => index,
                Order::Any => random.below(LIVE),
            };
            replace(&mut ring[place], [(round + index) as u64; 4]);
        }
    }
    start.elapsed()
}

fn allocating<P: ManualPool>(pool: &P, order: Order) -> impl FnMut() -> Duration {
    let mut ring: Vec<_> = (0..LIVE).map(|_| Some(PoolBox::new_in([0; 4], pool).unwrap())).collect();
    move || {
        replace_each(&mut ring, order, |place, object| {
            *place = None;
            *place = Some(black_box(PoolBox::new_in(object, pool).unwrap()));
        })
    }
}

fn reserving<P: ManualPool>(pool: &P, order: Order) -> impl FnMut() -> Duration {
    let mut point = AllocationPoint::create(pool).unwrap();
    let mut ring: Vec<_> = (0..LIVE).map(|_| Some(point.boxed([0; 4]).unwrap())).collect();
    move || {
        replace_each(&mut ring, order, |place, object| {
            *place = None;
            *place = Some(black_box(point.boxed(object).unwrap()));
        })
    }
}

fn slab(order: Order) -> impl FnMut() -> Duration {
    let mut slab = Slab::with_capacity(LIVE);
    let mut ring: Vec<usize> = (0..LIVE).map(|_| slab.insert([0; 4])).collect();
    move || {
        replace_each(&mut ring, order, |key, object| {
            black_box(slab.remove(*key));
            *key = black_box(slab.insert(object));
        })
    }
}

fn general(allocator: impl GlobalAlloc, order: Order) -> impl FnMut() -> Duration {
    let mut ring: Vec<_> = (0..LIVE).map(|_| allocate(&allocator, [0; 4])).collect();
    move || {
        replace_each(&mut ring, order, |place, object| {
            // SAFETY: allocated with this layout, and replaced before the next use.
            unsafe { allocator.dealloc(place.cast(), Layout::new::<Object>()) };
            *place = black_box(allocate(&allocator, object));
        })
    }
}

#[inline(always)]
fn allocate(allocator: &impl GlobalAlloc, object: Object) -> *mut Object {
    // SAFETY: the layout's size is not zero.
    let place = unsafe { allocator.alloc(Layout::new::<Object>()) }.cast::<Object>();
    assert!(!place.is_null());
    // SAFETY: fresh memory of an object's layout.
    unsafe { place.write(object) };
    place
}
