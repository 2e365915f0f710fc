//! Slabs of a depot: what they are cut into, when they return, and who has none (design/cache.md `.slab`).

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::mpsc;

use tripoint_core::{Event, EventHook};
use tripoint_pools::{DebugOptions, DebugPool, Depot, Tlsf, TlsfOptions};

use super::depot::depot_steps;
use super::*;

/// What a slab takes of its pool.
const SLAB: usize = 64 << 10;

/// The largest blocks of slabs, so that few fill one.
const BLOCK: Layout = layout(1024, 8);

/// How many of them a slab has: in front of them are a header and a bit for each of the smallest blocks.
const BLOCKS: usize = if cfg!(target_pointer_width = "64") { 63 } else { 62 };

/// Blocks of half the size, twice as many.
const HALF: Layout = layout(512, 8);

fn alloc_all(store: &impl Store, count: usize) -> Vec<NonNull<u8>> {
    (0..count).map(|_| store.alloc(BLOCK).unwrap()).collect()
}

fn free_all(store: &impl Store, objects: impl IntoIterator<Item = NonNull<u8>>) {
    for object in objects {
        // SAFETY: allocated as `BLOCK` from the same depot, or a cache of it; freed once, and not used any more.
        unsafe { store.free(object, BLOCK) };
    }
}

/// Grains for some slabs, wherever these may begin.
fn grains_for(slabs: usize) -> usize {
    (slabs + 2) * SLAB / GRAIN
}

fn tlsf<A: Arena>(arena: A) -> Tlsf<A> {
    Tlsf::create(arena, TlsfOptions::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// Each byte is free, live, cached, in the depot, or in a slab; also in pools that are soon exhausted. What no slab has is
    /// allocated in the pool as it is without slabs.
    #[test]
    #[cfg_attr(feature = "hardening", ignore = "there are no slabs")]
    fn every_block_is_somewhere(steps in depot_steps(), bound in 0..8000_usize, slabs in 1..5_usize) {
        let mut memory = memory(grains_for(slabs));
        let arena = arena(&mut memory);
        let pool = mvff(&arena);
        let classes = classes(&[(16, 2), (48, 9), (64, 80), (1024, 6), (2000, 3)]);
        let depot = Depot::with_slabs(&pool, classes, bound);
        assert!(depot.has_slabs());
        let descriptors = [CacheDescriptor::new(classes), CacheDescriptor::new(classes)];
        let caches = descriptors.each_ref().map(|descriptor| Cache::with_depot(&depot, descriptor).unwrap());
        let mut live = Live::default();
        for step in steps {
            match step {
                Step::Get(cache, which) => {
                    let layout = pick(&[&layouts()[..], &[layout(600, 8)]].concat(), which).unwrap();
                    match caches[cache].alloc(layout) {
                        Ok(object) => {
                            let block = classes.block(layout).unwrap_or(layout);
                            live.add(object, layout, pool.reserve_size(block).unwrap() - SEAL);
                        }
                        Err(error) => {
                            assert_eq!(error, Error::Limit);
                            assert_eq!((descriptors[cache].cached(), depot.kept()), (0, 0), "refused with blocks kept");
                        }
                    }
                }
                Step::Put(cache, which) => {
                    let objects: Vec<_> = live.blocks.keys().copied().collect();
                    if let Some(object) = pick(&objects, which) {
                        let layout = live.remove(object);
                        // SAFETY: allocated from a cache of this depot with this layout; freed once, and not used any more.
                        unsafe { caches[cache].free(object, layout) };
                    }
                }
                Step::Flush(2) => depot.flush(),
                Step::Flush(cache) => caches[cache].flush(),
                Step::Trip(cache) => descriptors[cache].trip(),
            }
            let cached: usize = descriptors.iter().map(CacheDescriptor::cached).sum();
            let blocks = live.size() + cached + depot.kept() + depot.free_in_slabs();
            // A slab has a header of at most a 64th part, and less than a block that was not cut off.
            let lost = used(&pool).checked_sub(blocks).expect("more blocks than the pool gave");
            prop_assert!(lost <= used(&pool) / SLAB * (SLAB / 64 + 1024), "{lost} of {} bytes", used(&pool));
            caches.iter().for_each(|cache| cache.check(CheckLevel::Deep).unwrap());
            depot.check(CheckLevel::Deep).unwrap();
        }
        for object in live.blocks.keys().copied().collect::<Vec<_>>() {
            let layout = live.remove(object);
            // SAFETY: allocated from a cache of this depot with this layout, and freed once.
            unsafe { caches[0].free(object, layout) };
        }
        drop(caches);
        depot.flush();
        assert_eq!((depot.kept(), depot.free_in_slabs(), used(&pool)), (0, 0, 0), "nothing is lost");
        pool.check(CheckLevel::Deep).unwrap();
    }
}

/// A slab has blocks of one class, and all of them are used before the pool is asked for another slab.
#[test]
#[cfg_attr(feature = "hardening", ignore = "there are no slabs")]
fn a_slab_is_cut_into_blocks_of_one_class() {
    let mut memory = memory(grains_for(6));
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let classes = classes(&[(512, 8), (1024, 8)]);
    let depot = Depot::with_slabs(&pool, classes, usize::MAX);
    let descriptor = CacheDescriptor::new(classes);
    let cache = Cache::with_depot(&depot, &descriptor).unwrap();
    let mut objects = alloc_all(&cache, BLOCKS);
    assert_eq!(used(&pool), SLAB);
    let mut slabs: Vec<_> = objects.iter().map(|object| object.addr().get() / SLAB).collect();
    slabs.dedup();
    assert_eq!(slabs.len(), 1, "they lie together");
    objects.extend(alloc_all(&cache, BLOCKS));
    assert_eq!(used(&pool), 2 * SLAB);
    let half = cache.alloc(HALF).unwrap();
    assert_eq!(used(&pool), 3 * SLAB, "another class has slabs of its own");
    // SAFETY: allocated from this cache with this layout; freed once.
    unsafe { cache.free(half, HALF) };
    // In any order: what is left of a slab is used again before a new one.
    let (kept, freed): (Vec<_>, Vec<_>) =
        objects.iter().partition(|object| object.addr().get() / 1024 % 3 == 0);
    free_all(&cache, freed.iter().copied());
    let again = alloc_all(&cache, freed.len());
    assert_eq!(used(&pool), 3 * SLAB);
    free_all(&cache, kept.into_iter().chain(again));
    drop(cache);
    drop(depot);
    assert_eq!(used(&pool), 0, "all of them return");
}

/// A structure that is dropped in any order returns its slabs; what the depot has left of them, it returns when it is flushed, or
/// before an object of another class is refused.
#[test]
#[cfg_attr(feature = "hardening", ignore = "there are no slabs")]
fn slabs_without_a_block_in_use_return() {
    let mut memory = memory(grains_for(8));
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let classes = classes(&[(512, 8), (1024, 8)]);
    let depot = Depot::with_slabs(&pool, classes, 4096);
    let descriptor = CacheDescriptor::new(classes);
    let cache = Cache::with_depot(&depot, &descriptor).unwrap();
    let fill = |layout: Layout| core::iter::from_fn(|| cache.alloc(layout).ok()).collect::<Vec<_>>();
    let mut objects = fill(BLOCK);
    let full = used(&pool);
    assert!(full >= 4 * SLAB, "{full} bytes");
    assert_eq!(cache.alloc(HALF).unwrap_err(), Error::Limit, "there is no memory for another class");
    let last = objects.pop().unwrap();
    // Every 97th, which is prime to the number of objects, so each of them once.
    let count = objects.len();
    assert_ne!(count % 97, 0);
    free_all(&cache, (0..count).map(|index| objects[index * 97 % count]));
    depot.check(CheckLevel::Deep).unwrap();
    cache.flush();
    depot.flush();
    assert_eq!(used(&pool), SLAB, "of {full} bytes, for one block");
    let others = fill(HALF);
    assert_eq!(used(&pool), full, "all but one slab have become slabs of the other class");
    assert!(others.len() >= (full / SLAB - 1) * 2 * BLOCKS);
    for object in others {
        // SAFETY: allocated from this cache with this layout; freed once.
        unsafe { cache.free(object, HALF) };
    }
    free_all(&cache, [last]);
    cache.flush();
    depot.flush();
    assert_eq!((used(&pool), depot.free_in_slabs()), (0, 0));
}

/// A depot says that it has no slabs if its pool cannot serve them or observes each object, or with hardening.
#[test]
fn a_depot_may_have_no_slabs() {
    let mut memory = memory(grains_for(4));
    let arena = arena(&mut memory);
    let classes = classes(&[(1024, 8)]);
    let units = Mfs::create(&arena, UnitLayout::new(BLOCK).unwrap(), MfsOptions::default()).unwrap();
    let depot = Depot::with_slabs(&units, classes, 4096);
    assert!(!depot.has_slabs());
    free_all(&depot, alloc_all(&depot, 3));
    let watched = DebugPool::create(tlsf(&arena), DebugOptions::default()).unwrap();
    let depot = Depot::with_slabs(&watched, classes, 4096);
    assert!(!depot.has_slabs());
    free_all(&depot, alloc_all(&depot, 3));
    assert_eq!(depot.free_in_slabs(), 0);
    let plain = tlsf(&arena);
    let depot = Depot::with_slabs(&plain, classes, 4096);
    assert_eq!(depot.has_slabs(), cfg!(not(feature = "hardening")));
    free_all(&depot, alloc_all(&depot, 3));
    assert!(!Depot::new(&plain, classes, 4096).has_slabs());
}

/// Of a class at most one slab without a block in use stays, and only while no other has free blocks.
#[test]
#[cfg_attr(feature = "hardening", ignore = "there are no slabs")]
fn a_slab_without_a_block_in_use_is_the_only_one_with_free_blocks() {
    let mut memory = memory(grains_for(4));
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let classes = classes(&[(1024, 4)]);
    let depot = Depot::with_slabs(&pool, classes, 0);
    let mut objects = alloc_all(&depot, 2 * BLOCKS);
    let second = objects.split_off(BLOCKS);
    free_all(&depot, objects);
    assert_eq!((used(&pool), depot.free_in_slabs()), (2 * SLAB, BLOCKS * 1024), "the second is full");
    free_all(&depot, second[..1].iter().copied());
    assert_eq!((used(&pool), depot.free_in_slabs()), (SLAB, 1024), "now the second has a free block");
    depot.check(CheckLevel::Deep).unwrap();
    free_all(&depot, second[1..].iter().copied());
    assert_eq!((used(&pool), depot.free_in_slabs()), (SLAB, BLOCKS * 1024));
    depot.check(CheckLevel::Deep).unwrap();
}

/// A block that is free in its slab already is not counted again, so no slab returns with objects in it.
#[test]
#[cfg_attr(feature = "hardening", ignore = "there are no slabs")]
fn blocks_that_are_freed_twice_stay_free_once() {
    let mut memory = memory(grains_for(4));
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let classes = classes(&[(1024, 4)]);
    let depot = Depot::with_slabs(&pool, classes, 0);
    let objects = alloc_all(&depot, BLOCKS + 1);
    for _ in 0..=BLOCKS {
        free_all(&depot, objects[..1].iter().copied());
    }
    assert_eq!((used(&pool), depot.free_in_slabs()), (2 * SLAB, BLOCKS * 1024));
    depot.check(CheckLevel::Deep).unwrap();
    free_all(&depot, objects[1..].iter().copied());
}

/// Negative control: the check finds damage to what a slab has in front of its blocks.
#[test]
#[cfg_attr(feature = "hardening", ignore = "there are no slabs")]
fn the_check_of_a_depot_finds_damage_in_slabs() {
    let mut memory = memory(grains_for(1));
    let size = size_of_val(&*memory);
    // SAFETY: as many bytes as there are.
    unsafe { memory.as_mut_ptr().cast::<u8>().write_bytes(0, size) };
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let classes = classes(&[(1024, 4)]);
    let depot = Depot::with_slabs(&pool, classes, 0);
    let objects = alloc_all(&depot, 3);
    let slab = pool.header().reach((objects[0].addr().get() / SLAB * SLAB).try_into().unwrap());
    let front = objects[0].addr().get() % SLAB;
    let (mut damaged, mut linked, mut whole) = (0, 0, 0);
    for offset in (0..front).step_by(size_of::<usize>()) {
        // SAFETY: an aligned word in front of the first block, which only this thread uses.
        let word = unsafe { slab.add(offset) }.cast::<usize>();
        // What is neither the count nor a bit is zero.
        // SAFETY: an aligned word in front of the first block, which the slab wrote or the test zeroed.
        let value = unsafe { word.read() };
        if value == 0 {
            // A link, and the bits of blocks that there are not, or nothing at all.
            // SAFETY: an aligned word that only this thread uses; it is put right again.
            unsafe { word.write(0x10000) };
            linked += usize::from(depot.check(CheckLevel::Deep).is_err());
            // SAFETY: an aligned word that only this thread uses.
            unsafe { word.write(0) };
        } else {
            whole += 1;
            // One more, or one that is free already; the highest bit, of a block that there is not.
            for damage in
                [value ^ 1, value | 1 << (usize::BITS - 1)].into_iter().filter(|damage| *damage != value)
            {
                // SAFETY: an aligned word that only this thread uses; it is put right again.
                unsafe { word.write(damage) };
                depot.check(CheckLevel::Shallow).unwrap();
                assert!(depot.check(CheckLevel::Deep).is_err(), "{damage:#x} at {offset} goes unseen");
                damaged += 1;
            }
            // SAFETY: an aligned word that only this thread uses.
            unsafe { word.write(value) };
            depot.check(CheckLevel::Deep).unwrap();
        }
    }
    assert!(damaged >= 4, "neither count nor bits were found");
    // Two links, the count, the first word with a free block, and the bits; of these all were damaged.
    let words = 4 + SLAB / (2 * size_of::<usize>()) / usize::BITS as usize;
    assert_eq!(linked + whole, words, "words whose damage is found");
    free_all(&depot, objects);
    let mut text = String::new();
    depot.describe(&mut text, 0).unwrap();
    assert!(text.contains(&format!("slabs: {} bytes free in them", BLOCKS * 1024)), "{text}");
}

type ObservedDepot = Depot<'static, Mvff<&'static TestArena<'static>>>;

/// Asks a depot how much is free in its slabs whenever its pool grows.
#[derive(Default)]
struct Asks {
    depot: AtomicPtr<ObservedDepot>,
    times: AtomicUsize,
}

impl EventHook for Asks {
    fn event(&self, event: Event) {
        // SAFETY: the test's depot, as long as it is there.
        let depot = unsafe { self.depot.load(Ordering::Relaxed).as_ref() };
        if let (Event::Extend { .. }, Some(depot)) = (event, depot) {
            assert_eq!(depot.free_in_slabs(), 0, "the pool grows for what no slab has");
            self.times.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// While a class gets a slab, the pool may grow and call a hook: the lock of the class is free then.
#[test]
#[cfg_attr(feature = "hardening", ignore = "there are no slabs")]
fn a_hook_may_look_at_a_depot_that_gets_a_slab() {
    let mut memory = memory(grains_for(6));
    let client = arena(&mut memory);
    let hook = Asks::default();
    let arena = TestArena::telling(&client, &hook);
    let pool = mvff(&arena);
    let classes = classes(&[(1024, 8)]);
    let depot = Depot::with_slabs(&pool, classes, 4096);
    hook.depot.store((&raw const depot).cast_mut().cast(), Ordering::Relaxed);
    let descriptor = CacheDescriptor::new(classes);
    let cache = Cache::with_depot(&depot, &descriptor).unwrap();
    let objects = alloc_all(&cache, 3 * BLOCKS);
    hook.depot.store(ptr::null_mut(), Ordering::Relaxed);
    assert_ne!(hook.times.load(Ordering::Relaxed), 0, "the pool did not grow");
    free_all(&cache, objects);
}

/// One thread makes objects of two classes and another frees them, while a third flushes and checks.
#[test]
fn slabs_return_from_other_threads() {
    const ROUNDS: usize = if cfg!(miri) { 60 } else { effort(20_000) as usize };
    struct Sent(NonNull<u8>);
    // SAFETY: a live block, which goes to another thread whole.
    unsafe impl Send for Sent {}

    let mut memory = memory(grains_for(12));
    let arena = arena(&mut memory);
    let pool = tlsf(&arena);
    let classes = classes(&[(512, 8), (1024, 8)]);
    let depot = Depot::with_slabs(&pool, classes, 8192);
    let layout_of = |round: usize| if round.is_multiple_of(3) { HALF } else { BLOCK };
    let (sender, receiver) = mpsc::sync_channel::<Sent>(300);
    std::thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let descriptor = CacheDescriptor::new(classes);
            let cache = Cache::with_depot(&depot, &descriptor).unwrap();
            for (round, Sent(object)) in receiver.into_iter().enumerate() {
                // SAFETY: written by the other thread; allocated in a cache of this depot with this layout, and freed once.
                unsafe {
                    assert_eq!(object.cast::<usize>().read(), round);
                    cache.free(object, layout_of(round));
                }
            }
        });
        let depot = &depot;
        scope.spawn(move || {
            while !taker.is_finished() {
                depot.flush();
                depot.check(CheckLevel::Deep).unwrap();
            }
        });
        let descriptor = CacheDescriptor::new(classes);
        let cache = Cache::with_depot(depot, &descriptor).unwrap();
        for round in 0..ROUNDS {
            let object = cache.alloc(layout_of(round)).unwrap();
            // SAFETY: a live block with room for a word.
            unsafe { object.cast().write(round) };
            sender.send(Sent(object)).unwrap();
        }
        drop(sender);
    });
    drop(depot);
    assert_eq!(used(&pool), 0);
    pool.check(CheckLevel::Deep).unwrap();
}
