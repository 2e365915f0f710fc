//! Allocation of 32 bytes: a typed object with its header, and as many bytes in manual pools.
//! (design/gc-figures.md `.allocation`.)

use core::hint::black_box;
use core::time::Duration;
use std::time::Instant;

use benches::compare::{Contender, compare, print};
use tripoint::author::SymmetricFence;
use tripoint::gc::{Heap, HeapOptions, Inside, Link, SweptOptions, TypedMutator, TypedObjects};
use tripoint::{AllocationPoint, ManualPool, Mfs, MfsOptions, Mvff, MvffOptions, UnitOf};

use crate::Options;
use crate::nodes::{Leaf, Node, Vm, arena};

/// The objects of a contender in one round: 1 MiB.
const OBJECTS: u64 = 1 << 15;

pub(crate) fn measure(options: &Options) {
    let arena = arena();
    let rounds = if options.quick { 3 } else { 401 };
    let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
    let _parked = heap.park();
    let objects = TypedObjects::create(&heap, SweptOptions::default()).unwrap();
    let (mut first, mut second) = (objects.register().unwrap(), objects.register().unwrap());
    let mut contenders = [
        Contender::new("Mvff, AllocationPoint::alloc", || {
            manual(&Mvff::create(&arena, MvffOptions::default()).unwrap())
        }),
        Contender::new("Mfs, AllocationPoint::alloc", || {
            manual(&Mfs::create(&arena, UnitOf::<[u64; 4]>::new(), MfsOptions::default()).unwrap())
        }),
        Contender::new("Inside::alloc, no references", || typed(&mut first, leaves)),
        Contender::new("Inside::alloc, two references", || typed(&mut second, nodes)),
    ];
    let standings = compare(&mut contenders, rounds, OBJECTS as usize);
    print("allocation of 32 bytes", &standings);
}

/// Objects of a pool, which is dropped afterwards.
fn manual<P: ManualPool>(pool: &P) -> Duration {
    let mut point = AllocationPoint::create(pool).unwrap();
    let start = Instant::now();
    fill_manual(&mut point);
    start.elapsed()
}

#[inline(never)]
fn fill_manual<P: ManualPool>(point: &mut AllocationPoint<'_, P>) {
    for round in 0..OBJECTS {
        black_box(point.alloc([7, round, 7, round]).unwrap());
    }
}

/// Objects that are garbage afterwards, which is collected.
fn typed(
    mutator: &mut TypedMutator<'_, '_, Vm<'_>>,
    fill: impl FnOnce(&Inside<'_, Vm<'_>, SymmetricFence>),
) -> Duration {
    let time = mutator.enter(|inside| {
        let start = Instant::now();
        fill(inside);
        start.elapsed()
    });
    mutator.collect(Duration::MAX).unwrap();
    time
}

#[inline(never)]
fn leaves(inside: &Inside<'_, Vm<'_>>) {
    for round in 0..OBJECTS {
        black_box(inside.alloc(Leaf { words: [round, 7, round] }).unwrap());
    }
}

#[inline(never)]
fn nodes(inside: &Inside<'_, Vm<'_>>) {
    let mut last = None;
    for round in 0..OBJECTS {
        let node = Node { left: Link::new(last), right: Link::new(last), word: round };
        last = Some(black_box(inside.alloc(node).unwrap()));
    }
}
