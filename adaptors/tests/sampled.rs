//! Collections whose allocations are sampled, and logged (design/sampling.md `.store.resize`).

use core::cell::RefCell;
use core::mem::MaybeUninit;
use std::sync::Mutex;

use allocator_api2::alloc::Allocator;
use allocator_api2::vec::Vec as VecIn;
use proptest::prelude::*;
use tripoint_adaptors::PoolAllocator;
use tripoint_core::{Addr, ClientArena, ClientArenaOptions, Event, EventHook, PoolClass, Store};
use tripoint_oracle::cases;
use tripoint_pools::{
    Cache, CacheClasses, CacheDescriptor, DebugOptions, DebugPool, Mvff, MvffOptions, Tlsf, TlsfOptions,
};
use tripoint_telemetry::{LiveSamples, LoggedStore, Mean, SampledStore, Sampling, Stream, Trials};

const SEED: u64 = 0xada7;

fn arena(memory: &mut [MaybeUninit<u8>]) -> ClientArena<'_> {
    let options = ClientArenaOptions { grain: Some(4096), ..ClientArenaOptions::default() };
    ClientArena::create(memory, options).unwrap()
}

fn memory() -> Box<[MaybeUninit<u8>]> {
    Box::new_uninit_slice(1 << 20)
}

fn switched_on(mean: u32) -> Sampling {
    let sampling = Sampling::off(SEED);
    sampling.set_mean(Mean::new(mean));
    sampling
}

#[derive(Default)]
struct Events(Mutex<Vec<Event>>);

impl EventHook for Events {
    fn event(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// The objects in a table, and their sizes.
fn in_use<const N: usize>(live: &LiveSamples<N>) -> Vec<(Addr, u64)> {
    let mut all = Vec::new();
    live.for_each(|held| all.push((held.object, held.sample.size())));
    all
}

/// What a program does with two collections: numbers to be pushed, removed, or cleared away.
fn program<A: Allocator + Copy>(memory: A, steps: &[u16]) {
    let mut numbers = VecIn::new_in(memory);
    let mut places = hashbrown::HashMap::new_in(memory);
    for &step in steps {
        match step % 8 {
            0 => numbers.shrink_to_fit(),
            1 => drop(places.remove(&(step / 8 % 64))),
            2 => places.shrink_to_fit(),
            3..5 => drop(places.insert(step / 8 % 64, step)),
            _ => numbers.push(step),
        }
    }
}

/// An object is freed.
fn forget(held: &mut Vec<(Addr, usize)>, freed: (Addr, usize)) {
    let index = held.iter().position(|&held| held == freed).expect("it was allocated");
    held.swap_remove(index);
}

/// Runs the program in a store. The objects sampled there have to be those that trials pick of the objects that the log
/// has, which allocates and frees each once; one that is resized is freed and allocated.
fn assert_sampled<S: Store, P: PoolClass>(store: &S, pool: &P, mean: u32, steps: &[u16]) {
    let (sampling, sampled) = (switched_on(mean), RefCell::new(Vec::new()));
    let (events, live) = (Events::default(), LiveSamples::<512>::new());
    let store =
        SampledStore::new(store, &sampling, |report| sampled.borrow_mut().push(report)).remembering(&live);
    program(PoolAllocator::new(&LoggedStore::new(&store, pool, || true, &events)), steps);
    let mut trials = Trials::new(Stream::new(SEED, 0), Mean::new(mean).unwrap());
    let (mut held, mut expected) = (Vec::new(), Vec::new());
    for event in events.0.into_inner().unwrap() {
        match event {
            Event::Alloc { object, size, .. } => {
                held.push((object, size));
                expected.extend(trials.allocate(size as u64).map(|sample| (object, sample)));
            }
            Event::Free { object, size, .. } => forget(&mut held, (object, size)),
            // It does not fit there: another object is allocated.
            Event::Resize { resized: Addr::ZERO, .. } => {}
            Event::Resize { object, size, new_size, resized, .. } => {
                forget(&mut held, (object, size));
                held.push((resized, new_size));
                expected.extend(trials.allocate(new_size as u64).map(|sample| (resized, sample)));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(held, [], "everything was freed");
    let sampled: Vec<_> = sampled.take().iter().map(|report| (report.object, report.sample)).collect();
    assert_eq!(sampled, expected);
    assert_eq!(in_use(&live), [], "nothing is in use");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    /// (design/sampling.md `.req.trials`)
    #[test]
    fn collections_are_sampled_as_trials_pick(
        mean in prop_oneof![1u32..100, 100u32..3000],
        steps in prop::collection::vec(any::<u16>(), 0..if cfg!(miri) { 20 } else { 300 }),
    ) {
        let mut first = memory();
        let arena = arena(&mut first);
        let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
        assert_sampled(&pool, &pool, mean, &steps);
        let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
        assert_sampled(&pool, &pool, mean, &steps);
        let descriptor = CacheDescriptor::new(CacheClasses::linear(512, 32).unwrap());
        assert_sampled(&Cache::create(&pool, &descriptor).unwrap(), &pool, mean, &steps);
        let inner = Mvff::create(&arena, MvffOptions::default()).unwrap();
        let pool = DebugPool::create(inner, DebugOptions::default()).unwrap();
        assert_sampled(&pool, &pool, mean, &steps);
    }
}

/// An object that is resized in place is a free and an allocation, also in a table of what is in use.
#[test]
fn objects_that_are_resized_in_place_are_counted_anew() {
    let mut memory = memory();
    let arena = arena(&mut memory);
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let (sampling, sampled) = (switched_on(1), RefCell::new(Vec::new()));
    let live = LiveSamples::<64>::new();
    let store = SampledStore::new(&pool, &sampling, |report| sampled.borrow_mut().push(report.sample.size()))
        .remembering(&live);
    let mut bytes = VecIn::with_capacity_in(20, PoolAllocator::new(&store));
    bytes.extend([7_u8; 20]);
    let place = bytes.as_ptr();
    bytes.reserve_exact(10);
    assert_eq!(bytes.as_ptr(), place, "32 bytes were taken for 20");
    assert_eq!(sampled.take(), [20, 30]);
    assert_eq!(in_use(&live), [(Addr::of(place.cast_mut()), 30)]);
    // What was sampled is gone, although nothing is sampled in its place.
    sampling.set_mean(None);
    store.follow_switch();
    bytes.reserve_exact(11);
    assert_eq!((bytes.as_ptr(), bytes.capacity(), in_use(&live)), (place, 31, vec![]));
    sampling.set_mean(Mean::new(1));
    store.follow_switch();
    bytes.reserve_exact(20);
    assert_eq!(sampled.take(), [40], "it has moved");
    drop(bytes);
    assert_eq!(in_use(&live), []);
    assert_eq!(pool.sizes().free, pool.sizes().total);
}
