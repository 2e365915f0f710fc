//! Classes for objects of any size, the caches in front of them, and their
//! peers.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::RefCell;
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::collections::VecDeque;

use benches::random::Random;
use rlsf::Tlsf as Rlsf;
use talc::DefaultBinning;
use talc::base::Talc;
use talc::source::Manual;
use tripoint::{
    AllocationPoint, Arena, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Depot, GlobalPool,
    ManualPool, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Owned, Store, Tlsf, TlsfOptions, UnitOf,
};

use crate::{Operation, counted};

pub(crate) const OPERATIONS: [Operation; 35] = [
    ("Mvff, in order of birth", |count| with_arena(|arena| in_order(&mvff(arena), count))),
    ("Mvt, in order of birth", |count| with_arena(|arena| in_order(&mvt(arena), count))),
    ("Tlsf, pair past 1,000 holes", |count| with_arena(|arena| past_holes(&tlsf(arena), 1_000, count))),
    ("Tlsf, pair past 50,000 holes", |count| with_arena(|arena| past_holes(&tlsf(arena), 50_000, count))),
    ("Mvff, pair past 1,000 holes", |count| with_arena(|arena| past_holes(&mvff(arena), 1_000, count))),
    ("Mvff, pair past 50,000 holes", |count| with_arena(|arena| past_holes(&mvff(arena), 50_000, count))),
    ("rlsf, pair past 1,000 holes", |count| past_holes(&rlsf(), 1_000, count)),
    ("rlsf, pair past 50,000 holes", |count| past_holes(&rlsf(), 50_000, count)),
    ("talc, pair past 1,000 holes", |count| past_holes(&talc(), 1_000, count)),
    ("talc, pair past 50,000 holes", |count| past_holes(&talc(), 50_000, count)),
    ("Tlsf, call at random", |count| with_arena(|arena| at_random(&tlsf(arena), 480, count))),
    ("Tlsf, one owner, call at random", |count| {
        with_arena(|arena| at_random(&owned_tlsf(arena), 480, count))
    }),
    ("rlsf, call at random", |count| at_random(&rlsf(), 480, count)),
    ("talc, call at random", |count| at_random(&talc(), 480, count)),
    ("Mvff, call at random", |count| with_arena(|arena| at_random(&mvff(arena), 480, count))),
    ("Mvff, one owner, call at random", |count| {
        with_arena(|arena| at_random(&owned_mvff(arena), 480, count))
    }),
    ("Mvt, call at random", |count| with_arena(|arena| at_random(&mvt(arena), 480, count))),
    ("Tlsf, edges on other pages", |count| with_arena(|arena| at_random(&tlsf(arena), 128 << 10, count))),
    ("rlsf, blocks as far apart", |count| at_random(&rlsf(), 128 << 10, count)),
    ("Cache, call at random", |count| with_arena(|arena| cached(&tlsf(arena), count))),
    ("Cache over Mvff, call while it grows and shrinks", |count| {
        with_arena(|arena| cached_tides(&mvff(arena), count))
    }),
    ("Cache over Tlsf, call while it grows and shrinks", |count| {
        with_arena(|arena| cached_tides(&tlsf(arena), count))
    }),
    ("Cache over Mvff, object that another cache frees", |count| {
        with_arena(|arena| handed_over(&mvff(arena), count))
    }),
    ("Cache over Tlsf, object that another cache frees", |count| {
        with_arena(|arena| handed_over(&tlsf(arena), count))
    }),
    ("Tlsf, call while it grows and shrinks", |count| with_arena(|arena| tides(&tlsf(arena), count))),
    ("rlsf, call while it grows and shrinks", |count| tides(&rlsf(), count)),
    ("Mfs, call at random", |count| with_arena(|arena| at_random(&mfs(arena), 32, count))),
    ("Mfs, one owner, call at random", |count| with_arena(|arena| at_random(&owned_mfs(arena), 32, count))),
    ("MfsCache, call at random", |count| {
        with_arena(|arena| at_random(&Cached(mfs(arena).0.cache()), 32, count))
    }),
    ("Tlsf, pair of 64 bytes", |count| with_arena(|arena| pairs(&tlsf(arena), count))),
    ("Tlsf, one owner, pair of 64 bytes", |count| with_arena(|arena| pairs(&owned_tlsf(arena), count))),
    ("Tlsf, pair by GlobalPool", global_pairs),
    ("Mvff, pair of 64 bytes", |count| with_arena(|arena| pairs(&mvff(arena), count))),
    ("Mvff, one owner, pair of 64 bytes", |count| with_arena(|arena| pairs(&owned_mvff(arena), count))),
    ("Mvt, pair of 64 bytes", |count| with_arena(|arena| pairs(&mvt(arena), count))),
];

/// The memory of an arena and of a peer, in bytes.
const TOTAL: usize = 64 << 20;

fn arena() -> ArenaVm {
    let options = ArenaVmOptions { reserve: TOTAL, reserve_floor: TOTAL, ..ArenaVmOptions::default() };
    ArenaVm::create(options).unwrap()
}

fn with_arena(run: impl FnOnce(&ArenaVm)) {
    run(&arena());
}

fn mvff<A: Arena>(arena: A) -> Pool<Mvff<A>> {
    Pool(Mvff::create(arena, MvffOptions::default()).unwrap())
}

fn mvt<A: Arena>(arena: A) -> Pool<Mvt<A>> {
    Pool(Mvt::create(arena, MvtOptions::default()).unwrap())
}

fn tlsf<A: Arena>(arena: A) -> Pool<Tlsf<A>> {
    Pool(Tlsf::create(arena, TlsfOptions::default()).unwrap())
}

fn owned_mvff<A: Arena>(arena: A) -> Pool<Mvff<A, Owned>> {
    Pool(Mvff::create_owned(arena, MvffOptions::default()).unwrap())
}

fn owned_tlsf<A: Arena>(arena: A) -> Pool<Tlsf<A, Owned>> {
    Pool(Tlsf::create_owned(arena, TlsfOptions::default()).unwrap())
}

fn owned_mfs<A: Arena>(arena: A) -> Pool<Mfs<A, UnitOf<[u64; 4]>, Owned>> {
    Pool(Mfs::create_owned(arena, UnitOf::new(), MfsOptions::default()).unwrap())
}

fn mfs<A: Arena>(arena: A) -> Pool<Mfs<A, UnitOf<[u64; 4]>>> {
    Pool(Mfs::create(arena, UnitOf::new(), MfsOptions::default()).unwrap())
}

fn memory() -> &'static mut [MaybeUninit<u8>] {
    Box::leak(Box::new_uninit_slice(TOTAL))
}

fn rlsf() -> RefCell<Rlsf<'static, u32, u32, 24, 32>> {
    let mut peer = Rlsf::new();
    peer.insert_free_block(memory());
    peer.into()
}

fn talc() -> RefCell<Talc<Manual, DefaultBinning>> {
    let mut peer = Talc::new(Manual);
    let memory = memory().as_mut_ptr();
    // SAFETY: the memory is leaked, and no other code uses it.
    unsafe { peer.claim(memory.cast(), TOTAL) }.unwrap();
    peer.into()
}

static GLOBAL: GlobalPool<Tlsf<ArenaVm>> = GlobalPool::new(|| Ok(tlsf(arena()).0));

/// A contender, which allocates by layout, and frees once what it allocated.
trait Heap {
    fn alloc(&self, layout: Layout) -> NonNull<u8>;
    fn free(&self, object: NonNull<u8>, layout: Layout);
}

struct Pool<P>(P);

impl<P: ManualPool> Heap for Pool<P> {
    #[inline(always)]
    fn alloc(&self, layout: Layout) -> NonNull<u8> {
        self.0.alloc(layout).unwrap()
    }

    #[inline(always)]
    fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here with this layout, freed once.
        unsafe { self.0.free(object, layout) };
    }
}

struct Cached<C>(C);

impl<C: Store> Heap for Cached<C> {
    #[inline(always)]
    fn alloc(&self, layout: Layout) -> NonNull<u8> {
        self.0.alloc(layout).unwrap()
    }

    #[inline(always)]
    fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here with this layout, freed once.
        unsafe { self.0.free(object, layout) };
    }
}

impl<P: ManualPool + Send + Sync> Heap for GlobalPool<P> {
    #[inline(always)]
    fn alloc(&self, layout: Layout) -> NonNull<u8> {
        // SAFETY: no layout here has size zero.
        NonNull::new(unsafe { GlobalAlloc::alloc(self, layout) }).unwrap()
    }

    #[inline(always)]
    fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here with this layout, freed once.
        unsafe { self.dealloc(object.as_ptr(), layout) };
    }
}

impl Heap for RefCell<Rlsf<'static, u32, u32, 24, 32>> {
    #[inline(always)]
    fn alloc(&self, layout: Layout) -> NonNull<u8> {
        self.borrow_mut().allocate(layout).unwrap()
    }

    #[inline(always)]
    fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here with this layout, freed once.
        unsafe { self.borrow_mut().deallocate(object, layout.align()) };
    }
}

impl Heap for RefCell<Talc<Manual, DefaultBinning>> {
    #[inline(always)]
    fn alloc(&self, layout: Layout) -> NonNull<u8> {
        // SAFETY: no layout here has size zero.
        unsafe { self.borrow_mut().allocate(layout) }.unwrap()
    }

    #[inline(always)]
    fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here with this layout, freed once.
        unsafe { self.borrow_mut().deallocate(object.as_ptr(), layout) };
    }
}

/// A layout that the compiler does not know.
fn layout(size: usize) -> Layout {
    Layout::from_size_align(black_box(size), 8).unwrap()
}

/// An object is allocated and freed; nothing else is alive.
fn pairs(heap: &impl Heap, count: usize) {
    let layout = layout(64);
    for _ in 0..count {
        counted(|| heap.free(heap.alloc(layout), layout));
    }
}

fn global_pairs(count: usize) {
    GLOBAL.pool().unwrap();
    pairs(&GLOBAL, count);
}

/// A pair of 192 bytes, past that many holes of 64 bytes that do not touch.
fn past_holes(heap: &impl Heap, holes: usize, count: usize) {
    let hole = layout(64);
    let objects: Vec<_> = (0..2 * holes).map(|_| heap.alloc(hole)).collect();
    objects.into_iter().step_by(2).for_each(|object| heap.free(object, hole));
    let layout = layout(192);
    for _ in 0..count {
        counted(|| heap.free(heap.alloc(layout), layout));
    }
}

/// The number of objects that live at once.
const LIVE: usize = 1_000;

/// Frees one object and allocates one of up to `most` bytes, in turn and at random; each
/// call counts as one operation.
fn at_random(heap: &impl Heap, most: usize, count: usize) {
    // Fewer, if all together would be large.
    let live = LIVE.min(TOTAL / 2 / most);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut layouts = || layout(8 + random.below(most - 7));
    let mut objects: Vec<_> = (0..live)
        .map(|_| {
            let layout = layouts();
            (heap.alloc(layout), layout)
        })
        .collect();
    let mut places = Random(42);
    // Goes round once, to warm up.
    for round in 0..LIVE + count / 2 {
        let place = &mut objects[places.below(live)];
        let layout = layouts();
        let free = || heap.free(place.0, place.1);
        if round < LIVE {
            free()
        } else {
            counted(free)
        }
        let alloc = || heap.alloc(layout);
        *place = (if round < LIVE { alloc() } else { counted(alloc) }, layout);
    }
}

/// Objects of 8 to 480 bytes: as many are allocated as live at high tide, then all are freed in another order, again
/// and again.
fn tides(heap: &impl Heap, count: usize) {
    const HIGH_TIDE: usize = 20_000;
    let mut random = Random(1);
    let mut objects = Vec::with_capacity(HIGH_TIDE);
    let mut calls = 0;
    // The first tide is not counted: it finds an empty pool.
    while calls < count + 2 * HIGH_TIDE {
        for _ in 0..HIGH_TIDE {
            let layout = layout(8 + random.below(473));
            let alloc = || heap.alloc(layout);
            objects.push((if calls < 2 * HIGH_TIDE { alloc() } else { counted(alloc) }, layout));
            calls += 1;
        }
        while !objects.is_empty() {
            let (object, layout) = objects.swap_remove(random.below(objects.len()));
            let free = || heap.free(object, layout);
            if calls < 2 * HIGH_TIDE {
                free()
            } else {
                counted(free)
            }
            calls += 1;
        }
    }
}

fn cached_tides<P: ManualPool>(pool: &Pool<P>, count: usize) {
    let descriptor = CacheDescriptor::new(CacheClasses::linear(512, 64).unwrap());
    tides(&Cached(Cache::create(&pool.0, &descriptor).unwrap()), count);
}

fn cached<P: ManualPool>(pool: &Pool<P>, count: usize) {
    let descriptor = CacheDescriptor::new(CacheClasses::linear(512, 32).unwrap());
    at_random(&Cached(Cache::create(&pool.0, &descriptor).unwrap()), 480, count);
}

/// Objects of 64 bytes from one cache, each freed in another: the depot passes them on in batches.
fn handed_over<P: ManualPool>(pool: &Pool<P>, count: usize) {
    let classes = CacheClasses::linear(512, 64).unwrap();
    let depot = Depot::new(&pool.0, classes, 1 << 20);
    let descriptors = [(); 2].map(|()| CacheDescriptor::new(classes));
    let [makes, frees] =
        descriptors.each_ref().map(|descriptor| Cache::with_depot(&depot, descriptor).unwrap());
    let pass = || {
        let object = makes.alloc(layout(64)).unwrap();
        // SAFETY: just allocated in a cache of this depot with this layout, and freed once.
        unsafe { frees.free(black_box(object), layout(64)) };
    };
    (0..LIVE).for_each(|_| pass());
    for _ in 0..count {
        counted(pass);
    }
}

/// Objects of 32, 64 and 48 bytes in turn from an allocation point, each freed once
/// `LIVE` younger ones exist.
fn in_order<P: ManualPool>(pool: &Pool<P>, count: usize) {
    let mut point = AllocationPoint::create(&pool.0).unwrap();
    let mut objects = VecDeque::with_capacity(LIVE + 1);
    let mut replace = |round: usize| {
        let layout = layout([32, 64, 48][round % 3]);
        let reservation = point.reserve(layout).unwrap();
        let object = reservation.as_ptr();
        // SAFETY: the objects of a manual pool need no format.
        unsafe { reservation.commit() }.unwrap();
        objects.push_back((object, layout));
        if objects.len() > LIVE {
            let (oldest, layout) = objects.pop_front().unwrap();
            pool.free(oldest, layout);
        }
    };
    (0..3 * LIVE).for_each(&mut replace);
    for round in 0..count {
        counted(|| replace(round));
    }
}
