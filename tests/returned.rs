//! A program that shrinks returns its memory: from its caches to their depot, from there to the pool, and from the pool to the arena,
//! which decommits it (design/cache.md `.depot.return`).
#![cfg(feature = "vm")]

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint::{
    Arena, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, CheckLevel, Depot, ManualPool, Mfs,
    MfsOptions, Mvff, MvffOptions, PoolClass, Store, Tlsf, TlsfOptions, UnitLayout,
};
use tripoint_oracle::Random;

const MIB: usize = 1 << 20;

/// The memory in objects at the peak.
const BURST: usize = 32 * MIB;

/// What the pool keeps, and what the arena may keep spare.
const SPARE: usize = MIB;

/// What the depot keeps at most.
const DEPOT: usize = MIB / 4;

/// The size of the largest objects.
const LARGEST: usize = 512;

fn arena() -> ArenaVm {
    let options =
        ArenaVmOptions { reserve: 256 * MIB, reserve_floor: 256 * MIB, spare_share: 0, ..Default::default() };
    ArenaVm::create(options).unwrap()
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).unwrap()
}

fn allocate<P: ManualPool>(cache: &Cache<'_, P>) -> Vec<(NonNull<u8>, Layout)> {
    let (mut objects, mut left, mut random) = (Vec::new(), BURST, Random::new(7));
    while left != 0 {
        let layout = layout((16 + random.below(LARGEST - 15)).min(left));
        left -= layout.size();
        let index = random.below(objects.len() + 1);
        objects.push((cache.alloc(layout).unwrap(), layout));
        let last = objects.len() - 1;
        objects.swap(index, last);
    }
    objects
}

/// The memory that the arena has committed, except its own.
fn committed(arena: &ArenaVm) -> usize {
    let sizes = arena.sizes();
    sizes.committed - sizes.own
}

/// One cache allocates, another frees. At every step less is committed, and in the end what pool and arena keep. `trim` is
/// called when all is in the pool.
fn returns_its_memory<P: ManualPool>(name: &str, arena: &ArenaVm, pool: &P, trim: impl FnOnce(&P)) {
    let classes = CacheClasses::geometric(LARGEST, 64).unwrap();
    let depot = Depot::new(pool, classes, DEPOT);
    let descriptors = [(); 2].map(|()| CacheDescriptor::new(classes));
    let [first, second] = [0, 1].map(|index| Cache::with_depot(&depot, &descriptors[index]).unwrap());
    let objects = allocate(&first);
    let peak = committed(arena);
    for (object, layout) in objects {
        // SAFETY: allocated in a cache of this depot with this layout; freed once, and not used any more.
        unsafe { second.free(object, layout) };
    }
    assert_eq!(depot.kept(), 0, "the program shrank");
    let (freed, cached) = (committed(arena), descriptors[0].cached() + descriptors[1].cached());
    first.flush();
    second.flush();
    trim(pool);
    let flushed = committed(arena);
    println!(
        "{name}: {peak} bytes at the peak; {freed} when all is freed, of which {cached} are in caches; {flushed} when they are flushed"
    );
    let sizes = pool.sizes();
    assert_eq!(sizes.free, sizes.total, "nothing is lost");
    assert!(peak > BURST && flushed < freed && freed <= peak);
    assert!(flushed <= 2 * SPARE + arena.grain(), "{flushed} bytes");
    pool.check(CheckLevel::Deep).unwrap();
}

#[test]
fn tlsf_returns_its_memory() {
    let arena = arena();
    let pool = Tlsf::create(&arena, TlsfOptions { spare: SPARE, ..Default::default() }).unwrap();
    returns_its_memory("Tlsf", &arena, &pool, |_| ());
}

#[test]
fn mvff_returns_its_memory() {
    let arena = arena();
    let pool = Mvff::create(&arena, MvffOptions { spare: SPARE, ..Default::default() }).unwrap();
    returns_its_memory("Mvff", &arena, &pool, |_| ());
}

#[test]
fn mfs_returns_its_memory() {
    let arena = arena();
    let unit = UnitLayout::new(layout(LARGEST)).unwrap();
    let pool = Mfs::create(&arena, unit, MfsOptions::default()).unwrap();
    returns_its_memory("Mfs", &arena, &pool, |pool| assert!(pool.trim() > BURST - SPARE));
    assert_eq!(pool.sizes().total, 0);
}

/// The control: by default a pool keeps what it has.
#[test]
fn by_default_it_stays() {
    let arena = arena();
    let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    let object = pool.alloc(layout(BURST)).unwrap();
    let peak = committed(&arena);
    // SAFETY: allocated just now with this layout; freed once, and not used any more.
    unsafe { pool.free(object, layout(BURST)) };
    assert_eq!(committed(&arena), peak);
}
