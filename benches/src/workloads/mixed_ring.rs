//! One thread makes objects of 16 to 512 bytes at random, another takes them back, and a [ring](super::ring) lies between
//! them.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::RefCell;
use core::ptr::NonNull;
use std::alloc::System;
use std::thread;

use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{
    ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Depot, Mvff, MvffOptions, Tlsf,
    TlsfOptions,
};

use super::by_layout::{Allocator, Memory, Stored, layout};
use super::objects::MiMallocDirect;
use super::ring::{Consumer, DEPOT, Producer, Rotation, race};
use crate::compare::NULL;
use crate::random::Random;
use crate::table::Table;

const MESSAGES: usize = 96_000;

fn producer<'a>(memory: impl Memory + 'a) -> Producer<'a> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    Box::new(move |ring| {
        ring.produce(MESSAGES, |_| {
            let layout = layout(&mut random);
            let object = memory.get(layout);
            // SAFETY: memory of two words at least, which nothing else uses.
            unsafe { object.cast().write([layout.size(); 2]) };
            object.cast()
        })
    })
}

fn consumer<'a>(memory: impl Memory + Send + 'a) -> Consumer<'a> {
    Box::new(move |ring| {
        ring.consume(MESSAGES, |object| {
            // SAFETY: the producer wrote the object's size first, and aligned it to a word.
            let layout = unsafe { Layout::from_size_align_unchecked(object.cast().read(), 8) };
            memory.put(object.cast(), layout);
        })
    })
}

/// An allocator of whole programs.
fn general<'a, G>(name: &'static str, makes: G, frees: G) -> (&'static str, Producer<'a>, Consumer<'a>)
where
    G: GlobalAlloc + Send + 'a,
{
    (name, producer(Allocator(makes)), consumer(Allocator(frees)))
}

/// No allocator: places on cache lines of their own, one after the other, and twice as many as the ring has.
struct Places(RefCell<Rotation>);

impl Memory for Places {
    #[inline(always)]
    fn get(&self, _layout: Layout) -> NonNull<u8> {
        self.0.borrow_mut().place().cast()
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
    let [tlsf_makes, tlsf_frees] =
        [&descriptors[0], &descriptors[1]].map(|end| Cache::with_depot(&tlsf_depot, end).expect("a cache"));
    let [mvff_makes, mvff_frees] =
        [&descriptors[2], &descriptors[3]].map(|end| Cache::with_depot(&mvff_depot, end).expect("a cache"));
    let [alone_makes, alone_frees] =
        [&descriptors[4], &descriptors[5]].map(|end| Cache::create(&tlsf, end).expect("a cache"));
    let places = || Places(RefCell::new(Rotation::new()));
    let contenders = vec![
        ("Tlsf, caches and depot", producer(Stored(tlsf_makes)), consumer(Stored(tlsf_frees))),
        ("Mvff, caches and depot", producer(Stored(mvff_makes)), consumer(Stored(mvff_frees))),
        ("Tlsf, caches without a depot", producer(Stored(alone_makes)), consumer(Stored(alone_frees))),
        general("mimalloc", MiMalloc, MiMalloc),
        general("mi_malloc", MiMallocDirect, MiMallocDirect),
        general("rusty_alloc", RustyAlloc, RustyAlloc),
        general("snmalloc", SnMalloc, SnMalloc),
        general("jemalloc", Jemalloc, Jemalloc),
        general("system malloc", System, System),
        (NULL, producer(places()), consumer(places())),
    ];
    vec![race("16 to 512 bytes across a ring", rounds, MESSAGES, contenders)]
}
