//! What is in use, estimated from sampled objects that are remembered until they are freed
//! (design/sampling.md `.live`).

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::thread;

use tripoint_core::{
    Addr, ClientArena, ClientArenaOptions, Event, EventHook, PoolBox, PoolClass, Result, Store,
};
use tripoint_oracle::effort;
use tripoint_pools::{Mvff, MvffOptions};
use tripoint_telemetry::{
    Groups, LiveSamples, Mean, ObjectKind, Sample, SampledObject, SampledStore, Sampling,
};

const SEED: u64 = 0x11fe;

fn with_arena(hook: Option<&dyn EventHook>, test: impl FnOnce(&ClientArena<'_>)) {
    let size = 4 << 20;
    let mut memory = Box::new_uninit_slice(size);
    // Miri walks the whole table of tracts whenever it is lent: a short one.
    let grain = if cfg!(miri) { size >> 8 } else { 4096 };
    let options = ClientArenaOptions { grain: Some(grain), event_hook: hook };
    test(&ClientArena::create(&mut memory, options).unwrap());
}

fn switched_on(seed: u64, mean: u32) -> Sampling {
    let sampling = Sampling::off(seed);
    sampling.set_mean(Mean::new(mean));
    sampling
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

/// What the table has, by address.
fn held<const N: usize>(live: &LiveSamples<N>) -> Vec<SampledObject> {
    let mut held = Vec::new();
    live.for_each(|sampled| held.push(*sampled));
    held.sort_by_key(|sampled| sampled.object);
    held
}

/// The objects of a run.
const OBJECTS: usize = if cfg!(miri) { 120 } else { 1_200 };

/// A program that keeps the objects of every third size, and frees the others, some at once and some
/// later. Returns estimate / truth, of all that is in use and of objects of 256 bytes.
fn one_run(seed: u64) -> [f64; 2] {
    let mut ratios = [0.0; 2];
    with_arena(None, |arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let sampling = switched_on(seed, 4_000);
        let live = LiveSamples::<1024>::new();
        let store = SampledStore::new(&pool, &sampling, |_| ()).remembering(&live);
        let (mut kept, mut later) = (Vec::new(), Vec::new());
        let mut truth = [0.0; 2];
        for number in 0..OBJECTS {
            let size = [32, 256, 8, 4_000, 96, 512][number % 6];
            let object = store.alloc(layout(size)).unwrap();
            match number % 3 {
                1 => later.push((object, layout(size))),
                2 => {
                    // SAFETY: the object was allocated with this layout, and nothing uses it.
                    unsafe { store.free(object, layout(size)) };
                }
                _ => kept.push((object, layout(size))),
            }
            if number % 3 == 0 || number % 6 == 1 {
                truth[0] += size as f64;
            }
            if size == 256 {
                truth[1] += size as f64;
            }
        }
        // Those of 256 bytes stay in use, those of 96 go.
        for &(object, layout) in later.iter().filter(|(_, layout)| layout.size() == 96) {
            // SAFETY: the object was allocated with this layout, and nothing uses it.
            unsafe { store.free(object, layout) };
        }
        let mut by_size = Groups::<u64, 8>::new(Mean::new(4_000).unwrap());
        live.for_each(|sampled| by_size.add(sampled.sample.size(), &sampled.sample));
        let of_256 = by_size.get(&256).map_or(0.0, |estimate| estimate.bytes());
        ratios = [live.estimate(Mean::new(4_000).unwrap()).bytes() / truth[0], of_256 / truth[1]];
        assert_eq!(live.missed(), 0);
        later.retain(|(_, layout)| layout.size() == 256);
        for (object, layout) in kept.into_iter().chain(later) {
            // SAFETY: the object was allocated with this layout, and nothing uses it.
            unsafe { store.free(object, layout) };
        }
        assert_eq!(held(&live), [], "all was freed");
    });
    ratios
}

/// (design/sampling.md `.req.live`)
#[test]
#[cfg_attr(miri, ignore = "many objects in each of many runs: it takes an hour")]
fn what_is_in_use_is_estimated_without_bias() {
    let runs = effort(400);
    let ratios: Vec<_> = (0..runs).map(|run| one_run(SEED + u64::from(run))).collect();
    for group in 0..2 {
        let count = f64::from(runs);
        let mean = ratios.iter().map(|ratio| ratio[group]).sum::<f64>() / count;
        let spread = ratios.iter().map(|ratio| (ratio[group] - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let error = (spread / count).sqrt();
        println!("group {group}: {mean:.4} ± {error:.4}, {runs} runs from seed {SEED:#x}");
        assert!((mean - 1.0).abs() < 4.0 * error, "group {group}: {mean} ± {error}");
    }
}

/// Objects without a place are counted, and the estimate is then too small.
#[test]
fn a_table_that_is_too_small_says_so() {
    with_arena(None, |arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let sampling = switched_on(SEED, 1);
        let live = LiveSamples::<8>::new();
        let store = SampledStore::new(&pool, &sampling, |_| ()).remembering(&live);
        let objects: Vec<_> = (0..20).map(|_| store.alloc(layout(64)).unwrap()).collect();
        assert_eq!((held(&live).len(), live.missed()), (8, 12));
        assert_eq!(live.estimate(Mean::EVERY_BYTE).bytes(), 512.0);
        for object in objects {
            // SAFETY: the object was allocated with this layout, and nothing uses it.
            unsafe { store.free(object, layout(64)) };
        }
        // What was missed may be in use, for all that is known.
        assert_eq!((held(&live).len(), live.missed()), (0, 12));
    });
}

/// A store that looks into the table when it gets memory back.
struct Watched<'w, S> {
    store: S,
    live: &'w LiveSamples<64>,
    early: Mutex<Vec<Addr>>,
}

// SAFETY: memory comes from the store and returns to it, with the layout as it came.
unsafe impl<S: Store> Store for Watched<'_, S> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.store.alloc(layout)
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        let address = Addr::of(object.as_ptr());
        if held(self.live).iter().any(|sampled| sampled.object == address) {
            self.early.lock().unwrap().push(address);
        }
        // SAFETY: the caller vouches for the object and its layout.
        unsafe { self.store.free(object, layout) };
    }
}

/// Otherwise another thread could be given the address, and its object taken for this one.
#[test]
fn an_object_is_forgotten_before_its_memory_is_returned() {
    with_arena(None, |arena| {
        let sampling = switched_on(SEED, 1);
        let live = LiveSamples::<64>::new();
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let watched = Watched { store: pool, live: &live, early: Mutex::new(Vec::new()) };
        let store = SampledStore::new(&watched, &sampling, |_| ()).remembering(&live);
        let object = store.alloc(layout(40)).unwrap();
        assert_eq!(held(&live)[0].object, Addr::of(object.as_ptr()));
        // SAFETY: the object was allocated with this layout, and nothing uses it.
        unsafe { store.free(object, layout(40)) };
        assert_eq!(*watched.early.lock().unwrap(), []);
        // The control: this free is not seen.
        let object = store.alloc(layout(40)).unwrap();
        // SAFETY: the object came from this store, with this layout, and nothing uses it.
        unsafe { watched.free(object, layout(40)) };
        assert_eq!(*watched.early.lock().unwrap(), [Addr::of(object.as_ptr())]);
        // The next object there takes its place.
        drop(PoolBox::new_in([0_u64; 5], &store).unwrap());
        assert_eq!((held(&live), live.missed()), (Vec::new(), 0));
    });
}

#[test]
fn memory_that_the_arena_gets_back_is_forgotten() {
    let live = LiveSamples::<64>::new();
    let sampling = switched_on(SEED, 1);
    with_arena(Some(&live), |arena| {
        let other = Mvff::create(arena, MvffOptions::default()).unwrap();
        let others = SampledStore::new(&other, &sampling, |_| ()).of_pool(&other).remembering(&live);
        let kept = PoolBox::new_in(7_u64, &others).unwrap();
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        {
            let store = SampledStore::new(&pool, &sampling, |_| ()).of_pool(&pool).remembering(&live);
            for number in 0..5_u64 {
                core::mem::forget(PoolBox::new_in(number, &store).unwrap());
            }
        }
        assert_eq!(held(&live).len(), 6);
        let class = "MVFF";
        live.event(Event::DestroyPool { pool: pool.header().id(), class });
        let left = held(&live);
        assert_eq!((left.len(), left[0].pool), (1, Some(other.header().id())));
        live.event(Event::Retract { pool: other.header().id(), base: left[0].object, size: 1 });
        assert_eq!(held(&live), []);
        drop(kept);
    });
}

/// Threads allocate, hand over and free, while another reads: what it reads is whole.
#[test]
fn threads_share_a_table() {
    let objects = effort(20_000);
    let mut memory = Box::new_uninit_slice(4 << 20);
    let grain = Some(if cfg!(miri) { 16 << 10 } else { 4096 });
    let arena = ClientArena::create(&mut memory, ClientArenaOptions { grain, event_hook: None }).unwrap();
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let sampling = switched_on(SEED, 64);
    let live = LiveSamples::<256>::new();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    let store =
                        SampledStore::shared(&pool, &sampling, |_| ()).of_pool(&pool).remembering(&live);
                    let mut waiting = Vec::new();
                    for number in 0..objects {
                        if number % 2 == 0 {
                            waiting
                                .push(PoolBox::into_raw(PoolBox::new_in(u64::from(number), &store)?).cast());
                        } else {
                            let object =
                                PoolBox::into_raw(PoolBox::new_in([number; 8], &store)?).cast::<u8>();
                            // SAFETY: the object was just allocated here with the layout of its type.
                            unsafe { store.free(object, Layout::new::<[u32; 8]>()) };
                        }
                        if waiting.len() == 40 {
                            for object in waiting.drain(..) {
                                // SAFETY: as when they were allocated, these are of this layout and unused.
                                unsafe { store.free(object, Layout::new::<u64>()) };
                            }
                        }
                    }
                    for object in waiting {
                        // SAFETY: the rest of those, of this layout and unused.
                        unsafe { store.free(object, Layout::new::<u64>()) };
                    }
                    Ok(())
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut seen = 0_usize;
            while !over.load(Ordering::Acquire) {
                live.for_each(|sampled| {
                    seen += 1;
                    let expected = match sampled.sample.size() {
                        8 => "u64",
                        32 => "[u32; 8]",
                        size => panic!("no object of {size} bytes"),
                    };
                    assert_eq!(sampled.type_name, Some(expected));
                    assert_eq!((sampled.kind, sampled.class), (ObjectKind::Direct, Some("MVFF")));
                });
                thread::yield_now();
            }
            seen
        });
        let outcomes: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        over.store(true, Ordering::Release);
        println!("{} objects were read", reader.join().unwrap());
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(Ok(())))), "{outcomes:?}");
    });
    assert_eq!((held(&live), live.missed()), (Vec::new(), 0));
}

#[test]
fn a_table_can_be_prefaulted_and_shown() {
    let live = LiveSamples::<64>::new();
    live.prefault();
    let sampling = switched_on(SEED, 1);
    with_arena(None, |arena| {
        let pool = Mvff::create(arena, MvffOptions::default()).unwrap();
        let store = SampledStore::new(&pool, &sampling, |_| ()).remembering(&live);
        let kept = PoolBox::new_in(1_u8, &store).unwrap();
        assert_eq!(held(&live)[0].sample, Sample::new(1, 0, Mean::EVERY_BYTE).unwrap());
        assert_eq!(format!("{live:?}"), "LiveSamples { held: 1, missed: 0, .. }");
        drop(kept);
    });
}
