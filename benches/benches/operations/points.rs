//! Allocation points: their fast path, fills, runs and trips. And caches: hits, refills, and what goes back.

use core::alloc::Layout;
use core::hint::black_box;
use core::ptr::NonNull;

use benches::region::Region;
use tripoint::author::{BarrierPair, Membarrier, SymmetricFence};
use tripoint::{
    AllocationPoint, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, ManualPool, Mfs,
    MfsOptions, Mvff, MvffOptions, PoolClass, Snc, SncOptions, Store, Tlsf, TlsfOptions, UnitOf,
};

use crate::{Operation, counted};

pub(crate) const OPERATIONS: [Operation; 20] = [
    ("point, object in a manual pool", |count| within_a_fill(&manual(&arena()), count)),
    ("point, object in a flippable pool", |count| {
        within_a_fill(&flippable(&arena(), Membarrier::register().unwrap()), count);
    }),
    ("point, object in a flippable pool, with fences", |count| {
        within_a_fill(&flippable(&arena(), SymmetricFence), count);
    }),
    ("point, object that needs a fill, Mfs", |count| {
        let options = MfsOptions { fill_size: 0, ..MfsOptions::default() };
        within_a_fill(&Mfs::create(&arena(), UnitOf::<Object>::new(), options).unwrap(), count);
    }),
    ("point, object that needs a fill, Mvff", |count| {
        let options = MvffOptions { fill_size: 0, ..MvffOptions::default() };
        within_a_fill(&Mvff::create(&arena(), options).unwrap(), count);
    }),
    ("point, object in units that do not touch", |count| scattered(&mfs(&arena()), count)),
    ("point, trip", |count| trips(&manual(&arena()), count)),
    ("point, object after a trip", |count| objects_after_trips(&manual(&arena()), count)),
    ("point, pair, Mfs", |count| pairs(&mfs(&arena()), count)),
    ("point, pair, Mvff", |count| pairs(&mvff(&arena()), count)),
    ("point, pair, Tlsf", |count| pairs(&tlsf(&arena()), count)),
    ("point, pair freed there, Mfs", |count| pairs_freed_there(&mfs(&arena()), count)),
    ("point, pair freed there, Mvff", |count| pairs_freed_there(&mvff(&arena()), count)),
    ("point, pair freed there, Tlsf", |count| pairs_freed_there(&tlsf(&arena()), count)),
    ("MfsCache, pair that hits", |count| hits(&mfs(&arena()).cache(), count)),
    ("MfsCache, alloc that refills", |count| {
        let arena = arena();
        let pool = mfs(&arena);
        let cache = pool.cache();
        refills(&pool, &cache, || cache.flush(), count);
    }),
    ("Mfs, free by returns", returns),
    ("Cache, pair that hits", |count| with_cache(&mvff(&arena()), |cache| hits(cache, count))),
    ("Cache over Mvff, alloc that refills", |count| {
        let arena = arena();
        let pool = mvff(&arena);
        with_cache(&pool, |cache| refills(&pool, cache, || cache.flush(), count));
    }),
    ("Cache over Tlsf, alloc that refills", |count| {
        let arena = arena();
        let pool = tlsf(&arena);
        with_cache(&pool, |cache| refills(&pool, cache, || cache.flush(), count));
    }),
];

type Object = [u64; 4];

const LAYOUT: Layout = Layout::new::<Object>();

/// Enough for all objects of a run.
const FILL: usize = 1 << 20;

fn arena() -> ArenaVm {
    ArenaVm::create(ArenaVmOptions::default()).unwrap()
}

fn mfs(arena: &ArenaVm) -> Mfs<&ArenaVm, UnitOf<Object>> {
    Mfs::create(arena, UnitOf::new(), MfsOptions::default()).unwrap()
}

fn mvff(arena: &ArenaVm) -> Mvff<&ArenaVm> {
    Mvff::create(arena, MvffOptions::default()).unwrap()
}

fn tlsf(arena: &ArenaVm) -> Tlsf<&ArenaVm> {
    Tlsf::create(arena, TlsfOptions::default()).unwrap()
}

fn manual(arena: &ArenaVm) -> Snc<&ArenaVm> {
    Snc::create(arena, SncOptions { fill_size: FILL, extend_by: FILL }).unwrap()
}

fn flippable<B: BarrierPair>(arena: &ArenaVm, barrier: B) -> Region<&ArenaVm, B, true> {
    Region::create(arena, FILL, barrier).unwrap()
}

#[inline(always)]
fn make<P: PoolClass>(point: &mut AllocationPoint<'_, P>, number: u64) -> NonNull<u8> {
    let reservation = point.reserve(LAYOUT).unwrap();
    let object = reservation.as_ptr();
    // SAFETY: reserved just now, with the layout of the value.
    unsafe { object.cast::<Object>().write([number; 4]) };
    // SAFETY: written just now; no thread reads the objects of these pools.
    unsafe { reservation.commit() }.unwrap();
    object
}

/// All objects after the first, which gets the fill.
fn within_a_fill<P: PoolClass>(pool: &P, count: usize) {
    let mut point = AllocationPoint::create(pool).unwrap();
    make(&mut point, 0);
    for round in 0..count as u64 {
        counted(|| black_box(make(&mut point, round)));
    }
}

/// Every second unit is free. One object of 64 needs a fill, which is counted.
fn scattered(pool: &Mfs<&ArenaVm, UnitOf<Object>>, count: usize) {
    let mut units: Vec<_> = (0..2 * count).map(|_| pool.alloc(LAYOUT).unwrap()).collect();
    // What was never used would be filled first.
    while pool.sizes().free != 0 {
        pool.alloc(LAYOUT).unwrap();
    }
    for unit in units.drain(..).step_by(2) {
        // SAFETY: allocated above, freed once.
        unsafe { pool.free(unit, LAYOUT) };
    }
    let mut point = AllocationPoint::create(pool).unwrap();
    for round in 0..count as u64 {
        counted(|| black_box(make(&mut point, round)));
    }
}

fn trips<P: PoolClass>(pool: &P, count: usize) {
    let point = AllocationPoint::create(pool).unwrap();
    let tripper = point.tripper();
    for _ in 0..count {
        counted(|| tripper.trip());
    }
}

fn objects_after_trips<P: PoolClass>(pool: &P, count: usize) {
    let mut point = AllocationPoint::create(pool).unwrap();
    let tripper = point.tripper();
    make(&mut point, 0);
    for round in 0..count as u64 {
        tripper.trip();
        counted(|| black_box(make(&mut point, round)));
    }
}

/// An object of a point, freed at once.
fn pairs<P: ManualPool>(pool: &P, count: usize) {
    let mut point = AllocationPoint::create(pool).unwrap();
    make(&mut point, 0);
    for round in 0..count as u64 {
        counted(|| {
            let object = make(&mut point, round);
            // SAFETY: made just now, freed once.
            unsafe { pool.free(object, LAYOUT) };
        });
    }
}

/// An object of a point whose buffer is full, freed through the point at once.
fn pairs_freed_there<P: ManualPool>(pool: &P, count: usize) {
    let mut point = AllocationPoint::create(pool).unwrap();
    let mut objects = vec![point.boxed([0; 4]).unwrap()];
    while point.room() >= size_of::<Object>() {
        objects.push(point.boxed([0; 4]).unwrap());
    }
    objects.pop().into_iter().for_each(|object| point.free_box(object));
    for round in 0..count as u64 {
        counted(|| {
            let object = point.boxed::<Object>([round; 4]).unwrap();
            black_box(&raw const *object);
            point.free_box(object);
        });
    }
}

fn with_cache<P: ManualPool>(pool: &P, run: impl FnOnce(&Cache<'_, P>)) {
    let descriptor = CacheDescriptor::new(CacheClasses::linear(512, 64).unwrap());
    run(&Cache::create(pool, &descriptor).unwrap());
}

#[inline(always)]
fn pair<S: Store>(store: &S) {
    let object = store.alloc(LAYOUT).unwrap();
    // SAFETY: allocated just now, freed once.
    unsafe { store.free(black_box(object), LAYOUT) };
}

fn hits<S: Store>(cache: &S, count: usize) {
    pair(cache);
    for _ in 0..count {
        counted(|| pair(cache));
    }
}

/// The cache is empty, and the pool has free memory that touches nothing else.
fn refills<P: ManualPool, S: Store>(pool: &P, cache: &S, flush: impl Fn(), count: usize) {
    let mut objects: Vec<_> = (0..400).map(|_| pool.alloc(LAYOUT).unwrap()).collect();
    for object in objects.drain(..).step_by(2) {
        // SAFETY: allocated above, freed once.
        unsafe { pool.free(object, LAYOUT) };
    }
    for _ in 0..count {
        let object = counted(|| cache.alloc(LAYOUT).unwrap());
        // SAFETY: allocated just now, freed once.
        unsafe { cache.free(object, LAYOUT) };
        flush();
    }
}

/// Every 64th goes home with those before it.
fn returns(count: usize) {
    let arena = arena();
    let pool = mfs(&arena);
    let mut returns = pool.returns();
    for _ in 0..count {
        let object = pool.alloc(LAYOUT).unwrap();
        // SAFETY: allocated just now, freed once.
        counted(|| unsafe { returns.free(object, LAYOUT) });
    }
}
