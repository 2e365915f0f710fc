//! Sampling before pools and caches: what they allocate without a point, and boxes.

use core::alloc::Layout;
use core::cell::{Cell, RefCell};
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::thread;

use proptest::prelude::*;
use tripoint_core::{
    Addr, ClientArena, ClientArenaOptions, Event, ManualPool, PoolBox, PoolClass, PoolRc, Store,
};
use tripoint_oracle::cases;
use tripoint_pools::{
    Cache, CacheClasses, CacheDescriptor, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Tlsf,
    TlsfOptions, UnitOf,
};
use tripoint_stack::Site;
use tripoint_telemetry::{
    Groups, Mean, ObjectKind, Sample, SampledObject, SampledStore, Sampling, Stream, Trials, thread_number,
};

const SEED: u64 = 0x5707e;

fn with_arena(test: impl FnOnce(&ClientArena<'_>)) {
    let size = 4 << 20;
    let mut memory = Box::new_uninit_slice(size);
    // Miri walks the whole table of tracts whenever it is lent: a short one.
    let grain = if cfg!(miri) { size >> 8 } else { 4096 };
    let options = ClientArenaOptions { grain: Some(grain), event_hook: None };
    test(&ClientArena::create(&mut memory, options).unwrap());
}

fn switched_on(mean: u32) -> Sampling {
    let sampling = Sampling::off(SEED);
    sampling.set_mean(Mean::new(mean));
    sampling
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

/// Samples before a store, on one thread and as threads do, and compares both with trials.
fn same_objects<S: Store>(store: &S, mean: u32, sizes: &[usize]) {
    let sampled = RefCell::new(Vec::new());
    let report = |object| sampled.borrow_mut().push(object);
    let sampling = switched_on(mean);
    assert_same(&SampledStore::new(store, &sampling, report), &sampled, mean, sizes);
    let sampling = switched_on(mean);
    assert_same(&SampledStore::shared(store, &sampling, report), &sampled, mean, sizes);
}

/// Allocates objects of these sizes, and frees each before the next. Every seventh time it asks for
/// more than there is, too: that fails, and counts nothing.
fn assert_same<S: Store>(store: &S, sampled: &RefCell<Vec<SampledObject>>, mean: u32, sizes: &[usize]) {
    let mut trials = Trials::new(Stream::new(SEED, 0), Mean::new(mean).unwrap());
    let mut expected = Vec::new();
    for (number, &size) in sizes.iter().enumerate() {
        if number % 7 == 0 {
            assert!(store.alloc(layout(1 << 30)).is_err());
        }
        let object = store.alloc(layout(size)).unwrap();
        let address = Addr::of(object.as_ptr());
        let sample = trials.allocate(size as u64);
        expected.extend(sample.map(|sample| SampledObject::new(ObjectKind::Direct, address, sample)));
        // SAFETY: allocated just now with this layout, and not used any more.
        unsafe { store.free(object, layout(size)) };
    }
    assert_eq!(sampled.take(), expected);
}

fn same_objects_cached<P: ManualPool>(pool: &P, mean: u32, sizes: &[usize]) {
    let descriptor = CacheDescriptor::new(CacheClasses::linear(512, 32).unwrap());
    same_objects(&Cache::create(pool, &descriptor).unwrap(), mean, sizes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// (design/sampling.md `.req.trials`, `.store`)
    #[test]
    fn stores_of_every_class_sample_the_same_objects_as_trials(
        mean in prop_oneof![1u32..100, 100u32..5000],
        sizes in prop::collection::vec(prop_oneof![8 => 1usize..200, 2 => 200usize..9000], 0..if cfg!(miri) { 8 } else { 200 }),
    ) {
        with_arena(|arena| same_objects(&Mvff::create(arena, MvffOptions::default()).unwrap(), mean, &sizes));
        with_arena(|arena| same_objects(&Mvt::create(arena, MvtOptions::default()).unwrap(), mean, &sizes));
        with_arena(|arena| {
            let pool = Tlsf::create(arena, TlsfOptions::default()).unwrap();
            same_objects(&pool, mean, &sizes);
            same_objects_cached(&pool, mean, &sizes);
        });
        with_arena(|arena| {
            let pool = Mfs::create(arena, UnitOf::<[u64; 12]>::new(), MfsOptions::default()).unwrap();
            let sizes: Vec<_> = sizes.iter().map(|_| 96).collect();
            same_objects(&pool, mean, &sizes);
            same_objects(&pool.cache(), mean, &sizes);
        });
    }
}

#[test]
fn boxes_are_sampled() {
    with_arena(|arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let (sampling, sampled) = (switched_on(1), RefCell::new(Vec::new()));
        let store = SampledStore::new(&pool, &sampling, |object| sampled.borrow_mut().push(object.object));
        let boxed = PoolBox::new_in([7_u64; 3], &store).unwrap();
        let counted = PoolRc::new_in([8_u64; 3], &store).unwrap();
        assert_eq!(sampled.borrow().len(), 2);
        assert_eq!(sampled.borrow()[0], Addr::of(core::ptr::from_ref(&*boxed).cast_mut().cast::<u8>()));
        drop((boxed, counted));
        // Everything went back to the pool itself.
        assert_eq!(pool.sizes().free, pool.sizes().total);
    });
}

/// Every byte allocated is a trial of exactly one draw, whichever thread allocates it: draws
/// that were used up, and what samples cover behind the byte drawn, make up all bytes.
#[derive(Debug)]
struct Account {
    samples: Vec<Sample>,
    allocated: u64,
}

impl Account {
    /// Whether samples and draws make up all bytes allocated, the last of which was drawn.
    fn is_balanced(&self) -> bool {
        let mean = self.samples[0].mean();
        // An endless object is sampled at its first byte drawn: that shows each draw.
        let mut trials = Trials::new(Stream::new(SEED, 0), mean);
        let draws: u64 = self.samples.iter().map(|_| trials.allocate(u64::MAX).unwrap().offset()).sum();
        let covered: u64 = self.samples.iter().map(|sample| sample.size() - sample.offset()).sum();
        draws + covered == self.allocated
    }
}

/// (design/sampling.md `.store`)
#[test]
fn threads_lose_no_byte_and_no_draw() {
    const THREADS: usize = 4;
    let rounds = if cfg!(miri) { 30 } else { 20_000 };
    with_arena(|arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let (sampling, samples) = (switched_on(500), Mutex::new(Vec::new()));
        let store =
            SampledStore::shared(&pool, &sampling, |object| samples.lock().unwrap().push(object.sample));
        let alloc = |size: usize| {
            let object = store.alloc(layout(size)).unwrap();
            // SAFETY: allocated just now with this layout, and not used any more.
            unsafe { store.free(object, layout(size)) };
            size as u64
        };
        let work =
            |thread: usize| (0..rounds).map(|round| alloc(1 + (round * 7 + thread * 13) % 400)).sum::<u64>();
        let mut allocated: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // Uses up the last draw.
        let before = samples.lock().unwrap().len();
        while samples.lock().unwrap().len() == before {
            allocated += alloc(64);
        }
        let mut account = Account { samples: samples.into_inner().unwrap(), allocated };
        assert!(account.samples.len() > rounds / 10, "{}", account.samples.len());
        assert!(account.is_balanced(), "{account:?}");
        // The controls: a byte that was counted twice, and a sample that was lost.
        account.allocated += 1;
        assert!(!account.is_balanced());
        account.allocated -= 1;
        account.samples.pop();
        assert!(!account.is_balanced());
    });
}

/// (design/sampling.md `.switch`)
#[test]
fn a_store_follows_its_switch() {
    const OBJECTS: usize = if cfg!(miri) { 40 } else { 100 };
    // About 48 % of the objects have a byte that is drawn.
    const SOME: core::ops::Range<usize> = OBJECTS * 3 / 10..OBJECTS * 7 / 10;
    with_arena(|arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let (sampling, sampled) = (Sampling::off(SEED), Cell::new(0));
        let store = SampledStore::new(&pool, &sampling, |_| sampled.set(sampled.get() + 1));
        let count = || {
            sampled.set(0);
            for _ in 0..OBJECTS {
                drop(PoolBox::new_in([0_u64; 4], &store).unwrap());
            }
            sampled.get()
        };
        assert_eq!(count(), 0);
        sampling.set_mean(Mean::new(50));
        assert_eq!(count(), 0, "a store that does not sample does not look");
        store.follow_switch();
        assert!(SOME.contains(&count()));
        store.follow_switch();
        assert!(SOME.contains(&count()), "nothing changed");
        sampling.set_mean(None);
        assert_eq!(count(), 1, "a draw that was made stays");
        sampling.set_mean(Mean::new(50));
        store.follow_switch();
        sampling.set_mean(None);
        store.follow_switch();
        assert_eq!(count(), 0);
    });
}

#[test]
fn an_object_whose_report_unwinds_is_freed() {
    with_arena(|arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let sampling = switched_on(1);
        let store = SampledStore::new(&pool, &sampling, |_| panic!("a report that unwinds"));
        let unwound = catch_unwind(AssertUnwindSafe(|| store.alloc(layout(64)).map(drop)));
        assert!(unwound.is_err());
        assert_eq!(pool.sizes().free, pool.sizes().total);
    });
}

#[test]
fn a_store_behind_a_sampler_is_told_the_type_too() {
    with_arena(|arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let (sampling, names) = (switched_on(1), RefCell::new(Vec::new()));
        let inner = SampledStore::new(&pool, &sampling, |report| names.borrow_mut().push(report.type_name));
        let outer = SampledStore::new(&inner, &sampling, |_| ());
        drop(PoolBox::new_in([7_u32; 5], &outer).unwrap());
        let object = outer.alloc(layout(20)).unwrap();
        // SAFETY: allocated just now with this layout, and not used any more.
        unsafe { outer.free(object, layout(20)) };
        assert_eq!(names.take(), [Some("[u32; 5]"), None]);
    });
}

/// What is reported of one sampled object, of a pool that is known, with its type and its site.
#[test]
fn a_report_says_what_is_known_of_the_object() {
    with_arena(|arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let sampling = switched_on(1);
        let reports = RefCell::new(Vec::new());
        let store =
            SampledStore::new(&pool, &sampling, |report| reports.borrow_mut().push(report)).of_pool(&pool);
        let object = store.alloc(layout(24)).unwrap();
        // SAFETY: the object was allocated with this layout, and nothing uses it.
        unsafe { store.free(object, layout(24)) };
        sampling.set_sites(true);
        drop(PoolBox::new_in([7_u32; 5], &store).unwrap());
        let [plain, typed] = reports.take()[..] else { panic!("two objects, each sampled") };

        for report in [plain, typed] {
            assert_eq!((report.kind, report.thread), (ObjectKind::Direct, thread_number()));
            assert_eq!((report.pool, report.class), (Some(pool.header().id()), Some("MVFF")));
        }
        assert_eq!((plain.sample.size(), plain.size_class(), plain.type_name), (24, 32, None));
        assert_eq!((typed.sample.size(), typed.type_name), (20, Some("[u32; 5]")));
        assert_eq!(plain.site, Site::UNKNOWN, "sites are not walked unless that was switched on");
        let is_walked = cfg!(all(target_os = "linux", not(miri)));
        assert_eq!(typed.site != Site::UNKNOWN, is_walked);
        let event = Event::Sample {
            kind: "direct",
            pool: typed.pool,
            class: Some("MVFF"),
            object: typed.object,
            size: 20,
            offset: 0,
            mean: 1,
            type_name: Some("[u32; 5]"),
        };
        assert_eq!(typed.event(), event);
    });
}

/// Objects of two calls, told apart by their sites.
#[test]
#[cfg_attr(any(miri, not(target_os = "linux")), ignore = "stacks are not walked")]
fn each_call_has_a_site_of_its_own() {
    with_arena(|arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let sampling = switched_on(1);
        sampling.set_sites(true);
        let by_site = RefCell::new(Groups::<Site, 4>::new(Mean::EVERY_BYTE));
        let store = SampledStore::new(&pool, &sampling, |report: SampledObject| {
            by_site.borrow_mut().add(report.site, &report.sample);
        });
        for _ in 0..3 {
            drop(PoolBox::new_in(1_u64, &store).unwrap());
            drop(PoolBox::new_in([2_u64; 5], &store).unwrap());
        }
        let groups = by_site.borrow();
        let bytes: Vec<_> = groups.iter().map(|(_, estimate)| estimate.bytes()).collect();
        assert_eq!((bytes, groups.others().samples()), (vec![24.0, 120.0], 0));
    });
}
