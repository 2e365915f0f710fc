//! One thread makes objects of 16 to 512 bytes at random, another takes them back, and a [ring](super::ring) lies between
//! them.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;
use std::alloc::System;
use std::sync::mpsc;
use std::thread;

use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{
    ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Depot, Mvff, MvffOptions, Tlsf,
    TlsfOptions,
};

use super::by_layout::{Allocator, Memory, SamePlace, layout};
use super::objects::MiMallocDirect;
use super::ring::{DEPOT, Ring};
use crate::compare::{Contender, NULL, compare};
use crate::processor::pin;
use crate::random::Random;
use crate::table::Table;

const MESSAGES: usize = 96_000;

/// What one end does for a contender in one round.
type Part<'a> = Box<dyn FnMut(&Ring) -> Duration + 'a>;

fn producing<'a>(memory: impl Memory + 'a) -> Part<'a> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    Box::new(move |ring| {
        ring.produce(MESSAGES, |_| {
            let layout = layout(&mut random);
            let object = memory.get(layout);
            // SAFETY: fresh memory of two words at least.
            unsafe { object.cast().write([layout.size(); 2]) };
            object.cast()
        })
    })
}

fn consuming<'a>(memory: impl Memory + 'a) -> Part<'a> {
    Box::new(move |ring| {
        ring.consume(MESSAGES, |object| {
            // SAFETY: the producer wrote the object's size first, and aligned it to a word.
            let layout = unsafe { Layout::from_size_align_unchecked(object.cast().read(), 8) };
            memory.put(object.cast(), layout);
        })
    })
}

/// No allocator: places of two words, one after the other, as many as are under way at most, and more.
struct Places(Vec<[usize; 2]>, core::cell::Cell<usize>);

impl Places {
    fn new() -> Self {
        Self(vec![[0; 2]; 2048], core::cell::Cell::new(0))
    }
}

impl Memory for Places {
    #[inline(always)]
    fn get(&self, _layout: Layout) -> NonNull<u8> {
        let next = (self.1.get() + 1) % self.0.len();
        self.1.set(next);
        NonNull::from(&self.0[next]).cast()
    }

    #[inline(always)]
    fn put(&self, _place: NonNull<u8>, _layout: Layout) {}
}

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    // In a thread of its own, because a pinned thread stays pinned.
    thread::scope(|scope| scope.spawn(|| measure_pinned(rounds)).join().expect("a table"))
}

fn measure_pinned(rounds: usize) -> Vec<Table> {
    let arena = ArenaVm::create(ArenaVmOptions::default()).expect("an arena");
    let tlsf = Tlsf::create(&arena, TlsfOptions::default()).expect("a pool");
    let mvff = Mvff::create(&arena, MvffOptions::default()).expect("a pool");
    let classes = CacheClasses::geometric(512, 128).expect("classes");
    let (tlsf_depot, mvff_depot) = (Depot::new(&tlsf, classes, DEPOT), Depot::new(&mvff, classes, DEPOT));
    let descriptors = [(); 6].map(|()| CacheDescriptor::new(classes));
    let [tlsf_descriptors, mvff_descriptors, alone_descriptors] =
        [[0, 1], [2, 3], [4, 5]].map(|pair| pair.map(|which: usize| &descriptors[which]));
    let names = [
        "Tlsf, caches and depot",
        "Mvff, caches and depot",
        "Tlsf, caches without a depot",
        "mimalloc",
        "mi_malloc",
        "rusty_alloc",
        "snmalloc",
        "jemalloc",
        "system malloc",
        NULL,
    ];
    let ring = Ring::default();
    let (order, orders) = mpsc::channel::<usize>();
    let (done, all_done) = mpsc::channel::<Duration>();
    pin(0);
    let standings = thread::scope(|scope| {
        let (ring, tlsf, tlsf_depot, mvff_depot) = (&ring, &tlsf, &tlsf_depot, &mvff_depot);
        scope.spawn(move || {
            pin(1);
            let tlsf_frees = Cache::with_depot(tlsf_depot, tlsf_descriptors[1]).expect("a cache");
            let mvff_frees = Cache::with_depot(mvff_depot, mvff_descriptors[1]).expect("a cache");
            let alone_frees = Cache::create(tlsf, alone_descriptors[1]).expect("a cache");
            let mut parts = [
                consuming(&tlsf_frees),
                consuming(&mvff_frees),
                consuming(&alone_frees),
                consuming(Allocator(MiMalloc)),
                consuming(Allocator(MiMallocDirect)),
                consuming(Allocator(RustyAlloc)),
                consuming(Allocator(SnMalloc)),
                consuming(Allocator(Jemalloc)),
                consuming(Allocator(System)),
                consuming(SamePlace(NonNull::dangling())),
            ];
            for which in orders {
                done.send(parts[which](ring)).expect("the measuring thread");
            }
        });
        let tlsf_makes = Cache::with_depot(tlsf_depot, tlsf_descriptors[0]).expect("a cache");
        let mvff_makes = Cache::with_depot(mvff_depot, mvff_descriptors[0]).expect("a cache");
        let alone_makes = Cache::create(tlsf, alone_descriptors[0]).expect("a cache");
        let parts = [
            producing(&tlsf_makes),
            producing(&mvff_makes),
            producing(&alone_makes),
            producing(Allocator(MiMalloc)),
            producing(Allocator(MiMallocDirect)),
            producing(Allocator(RustyAlloc)),
            producing(Allocator(SnMalloc)),
            producing(Allocator(Jemalloc)),
            producing(Allocator(System)),
            producing(Places::new()),
        ];
        let round = |which: usize, part: &mut Part<'_>| {
            order.send(which).expect("the other end");
            part(ring) + all_done.recv().expect("the other end")
        };
        let round = &round;
        let mut contenders: Vec<_> = names
            .iter()
            .zip(parts)
            .enumerate()
            .map(|(which, (name, mut part))| Contender::new(name, move || round(which, &mut part)))
            .collect();
        let standings = compare(&mut contenders, rounds, MESSAGES);
        drop(contenders);
        drop(order);
        standings
    });
    vec![Table::of("16 to 512 bytes across a ring", &standings)]
}
