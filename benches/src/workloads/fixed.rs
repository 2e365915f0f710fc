//! Objects of one size, one freed as a new one is made: the oldest, which is the work of queues and order books, or
//! one drawn at random.
//!
//! One operation is a free and an allocation, with `LIVE` objects in between. The optimiser has to assume that the address
//! of each object is used. It is only the address, because a box is two words: to store two words and load them as one takes
//! a processor longer than some contenders take for the whole operation.

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use crate::compare::{Contender, compare};
use crate::random::Random;
use crate::table::Table;
use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use slab::Slab;
use tripoint::{
    AllocationPoint, ArenaVm, ArenaVmOptions, ManualPool, Mfs, MfsOptions, Mvff, MvffOptions, PoolBox, Store,
    Tlsf, TlsfOptions, UnitOf,
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
    let tlsf = || Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    let orders = [("the oldest", Order::Oldest), ("any", Order::Any)];
    let table = |(freed, order)| {
        let (mfs, mvff, tlsf) = ([(); 3].map(|()| mfs()), [(); 3].map(|()| mvff()), [(); 3].map(|()| tlsf()));
        let mut contenders = [
            Contender::new("Mfs", allocating(&mfs[0], order)),
            Contender::new("Mfs, allocation point", reserving(&mfs[1], order)),
            Contender::new("Mfs, allocation point that frees", freeing(&mfs[2], order)),
            Contender::new("Mvff", allocating(&mvff[0], order)),
            Contender::new("Mvff, allocation point", reserving(&mvff[1], order)),
            Contender::new("Mvff, allocation point that frees", freeing(&mvff[2], order)),
            Contender::new("Tlsf", allocating(&tlsf[0], order)),
            Contender::new("Tlsf, allocation point", reserving(&tlsf[1], order)),
            Contender::new("Tlsf, allocation point that frees", freeing(&tlsf[2], order)),
            Contender::new("slab", slab(order)),
            Contender::new("mimalloc", general(MiMalloc, order)),
            Contender::new("rusty_alloc", general(RustyAlloc, order)),
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

/// Has the optimiser assume that the object's address is used.
#[inline(always)]
fn shown<S: Store>(object: PoolBox<'_, Object, S>) -> PoolBox<'_, Object, S> {
    black_box(&raw const *object);
    object
}

fn allocating<P: ManualPool>(pool: &P, order: Order) -> impl FnMut() -> Duration {
    let mut ring: Vec<_> = (0..LIVE).map(|_| Some(PoolBox::new_in([0; 4], pool).unwrap())).collect();
    move || {
        replace_each(&mut ring, order, |place, object| {
            *place = None;
            *place = Some(shown(PoolBox::new_in(object, pool).unwrap()));
        })
    }
}

fn reserving<P: ManualPool>(pool: &P, order: Order) -> impl FnMut() -> Duration {
    let mut point = AllocationPoint::create(pool).unwrap();
    let mut ring: Vec<_> = (0..LIVE).map(|_| Some(point.boxed([0; 4]).unwrap())).collect();
    move || {
        replace_each(&mut ring, order, |place, object| {
            *place = None;
            *place = Some(shown(point.boxed(object).unwrap()));
        })
    }
}

/// Objects are freed through the point that allocates them.
fn freeing<P: ManualPool>(pool: &P, order: Order) -> impl FnMut() -> Duration {
    let mut point = AllocationPoint::create(pool).unwrap();
    let mut ring: Vec<_> = (0..LIVE).map(|_| Some(point.boxed([0; 4]).unwrap())).collect();
    move || {
        replace_each(&mut ring, order, |place, object| {
            if let Some(old) = place.take() {
                point.free_box(old);
            }
            *place = Some(shown(point.boxed(object).unwrap()));
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
