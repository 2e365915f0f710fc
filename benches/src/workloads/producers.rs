//! Three threads make objects of 64 bytes, and a fourth takes them all back. Each producer has a ring to it.
//!
//! The producers share a processor, and the consumer has another. What counts is the processor time of all four, less the
//! time that they wait for each other, as across one [ring](super::ring).

use core::ptr::NonNull;
use core::time::Duration;
use std::alloc::System;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{
    ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Depot, ManualPool, Mfs, MfsOptions, Mvff,
    MvffOptions, Tlsf, TlsfOptions, UnitOf,
};

use super::objects::{General, MiMallocDirect, Object, Objects};
use super::ring::{DEPOT, Ring, Rotation, Same, TakeBack, consume_all};
use crate::compare::{Contender, NULL, compare};
use crate::processor::pin;
use crate::table::Table;

const PRODUCERS: usize = 3;
/// The objects of each producer in a round.
const MESSAGES: usize = 32_000;

type Rings = [Ring; PRODUCERS];
/// What a thread does for one contender in one round.
type Part<'a> = Box<dyn FnMut() -> Duration + 'a>;

fn producing<'a>(ring: &'a Ring, mut objects: impl Objects<Handle = NonNull<Object>> + 'a) -> Part<'a> {
    Box::new(move || ring.produce(MESSAGES, |index| objects.make([index as u64; 8])))
}

fn consuming<'a>(rings: &'a Rings, mut end: impl TakeBack + 'a) -> Part<'a> {
    Box::new(move || consume_all(rings, MESSAGES, |object| end.take_back(object)))
}

/// A thread that does its parts as it is asked to, by their places among the contenders.
fn serve(mut parts: Vec<Part<'_>>, orders: &Receiver<usize>, done: &Sender<Duration>) {
    for which in orders {
        done.send(parts[which]()).expect("the measuring thread");
    }
}

/// A cache of a depot that lives as long as the process, as its thread does.
fn cache<P: ManualPool>(depot: &'static Depot<'static, P>) -> &'static Cache<'static, P> {
    let descriptor = Box::leak(Box::new(CacheDescriptor::new(*depot.classes())));
    Box::leak(Box::new(Cache::with_depot(depot, descriptor).expect("a cache")))
}

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    let arena: &ArenaVm = Box::leak(Box::new(ArenaVm::create(ArenaVmOptions::default()).expect("an arena")));
    let mfs: &_ = Box::leak(Box::new(
        Mfs::create(arena, UnitOf::<Object>::new(), MfsOptions::default()).expect("a pool"),
    ));
    let tlsf: &_ = Box::leak(Box::new(Tlsf::create(arena, TlsfOptions::default()).expect("a pool")));
    let mvff: &_ = Box::leak(Box::new(Mvff::create(arena, MvffOptions::default()).expect("a pool")));
    let classes = CacheClasses::geometric(512, 128).expect("classes");
    let tlsf_depot: &_ = Box::leak(Box::new(Depot::new(tlsf, classes, DEPOT)));
    let mvff_depot: &_ = Box::leak(Box::new(Depot::new(mvff, classes, DEPOT)));
    let names = [
        "Mfs, caches and returns",
        "Tlsf, caches and depot",
        "Mvff, caches and depot",
        "mimalloc",
        "mi_malloc",
        "rusty_alloc",
        "snmalloc",
        "jemalloc",
        "system malloc",
        NULL,
    ];
    let rings: Rings = Default::default();
    let (done, all_done) = channel();
    thread::scope(|scope| {
        let rings = &rings;
        let mut orders: Vec<Sender<usize>> = Vec::new();
        for ring in rings {
            let (order, ordered) = channel();
            let done = done.clone();
            scope.spawn(move || {
                pin(0);
                let unit_cache = mfs.cache();
                let parts = vec![
                    producing(ring, &unit_cache),
                    producing(ring, cache(tlsf_depot)),
                    producing(ring, cache(mvff_depot)),
                    producing(ring, General(MiMalloc)),
                    producing(ring, General(MiMallocDirect)),
                    producing(ring, General(RustyAlloc)),
                    producing(ring, General(SnMalloc)),
                    producing(ring, General(Jemalloc)),
                    producing(ring, General(System)),
                    producing(ring, Rotation::new()),
                ];
                serve(parts, &ordered, &done);
            });
            orders.push(order);
        }
        let (order, ordered) = channel();
        scope.spawn(move || {
            pin(1);
            let parts = vec![
                consuming(rings, mfs.returns()),
                consuming(rings, Same(cache(tlsf_depot))),
                consuming(rings, Same(cache(mvff_depot))),
                consuming(rings, Same(General(MiMalloc))),
                consuming(rings, Same(General(MiMallocDirect))),
                consuming(rings, Same(General(RustyAlloc))),
                consuming(rings, Same(General(SnMalloc))),
                consuming(rings, Same(General(Jemalloc))),
                consuming(rings, Same(General(System))),
                consuming(rings, Same(Rotation::new())),
            ];
            serve(parts, &ordered, &done);
        });
        orders.push(order);
        let round = |which: usize| -> Duration {
            orders.iter().for_each(|order| order.send(which).expect("a thread"));
            orders.iter().map(|_| all_done.recv().expect("a thread")).sum()
        };
        let round = &round;
        let mut contenders: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(which, name)| Contender::new(name, move || round(which)))
            .collect();
        let standings = compare(&mut contenders, rounds, PRODUCERS * MESSAGES);
        drop(contenders);
        drop(orders);
        vec![Table::of("64 bytes from three threads to one", &standings)]
    })
}
