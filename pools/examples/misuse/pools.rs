//! Pools of each kind, with options at random, and the ways in front of them.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_ap::AllocationPoint;
use tripoint_core::{Addr, Arena, ClientArena, ClientArenaOptions, ManualPool};
use tripoint_pools::{
    Cache, CacheClasses, CacheDescriptor, Depot, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Tlsf,
    TlsfOptions, UnitLayout,
};

use super::kinds::{Class, Fault, Front, Kind};
use super::program::{Outcome, Plan, Program, Random};
use super::ways::{Many, OfPoint, OfPool, OfReturns, OfStore, Way, tend_cache, tend_depot, tend_units, trim};
use super::{GRAIN, SIZE};

/// Runs one program of a search.
pub(crate) fn run(kind: Kind, plan: Plan, seed: u64, program: u64) -> Option<Outcome> {
    let mut random = Random::of(seed, program);
    // Zeroed: an earlier program in the same memory left its seals there.
    let mut memory = Box::new_uninit_slice(SIZE);
    // SAFETY: memory of that many bytes, borrowed exclusively.
    unsafe { memory.as_mut_ptr().cast::<u8>().write_bytes(0, SIZE) };
    let options = ClientArenaOptions { grain: Some(GRAIN), ..ClientArenaOptions::default() };
    let arena = &ClientArena::create(&mut memory, options).expect("there is room");
    let count = 1 + random.below(3);
    let sizes: Vec<usize> = (0..count).map(|_| 16 * (1 + random.below(8)) - random.below(16)).collect();
    let layout = |size: usize| Layout::from_size_align(size, 8).expect("a small layout");
    let waiting = [0, 3, 2048][random.below(3)];
    let extend_by = [GRAIN, 4 * GRAIN][random.below(2)];
    let kinds = random.below(64);
    match kind.0 {
        Class::Mfs => {
            // As blocks of caches have it: whole granules.
            let size = sizes[0].next_multiple_of(16);
            let unit = Layout::from_size_align(size + 8, 16).expect("a small layout");
            let unit = UnitLayout::new(unit).expect("a small unit");
            let options = MfsOptions { extend_by, fill_size: [256, 2048][kinds % 2] };
            let pool = Mfs::create(arena, unit, options).expect("a pool");
            let layouts = vec![layout(size)];
            let caches = [pool.cache(), pool.cache()];
            let mut ways = ways_of::<Mfs<_, _>>(&pool, None, trim);
            if kind.1 != Front::Bare && kind.1 != Front::Depot {
                ways.push(Box::new(OfStore { name: "cache A", store: &caches[0], tend: tend_units }));
                ways.push(Box::new(OfStore { name: "cache B", store: &caches[1], tend: tend_units }));
                ways.push(Box::new(OfReturns(pool.returns())));
            }
            if kind.1 == Front::Points {
                let point = AllocationPoint::create(&pool).expect("a point");
                ways.push(Box::new(OfPoint { point, has_units: true }));
            }
            if kind.1 == Front::Depot {
                return with_caches(&pool, kind.1, layouts, random, plan, trim);
            }
            drive(&pool, ways, layouts, random, plan)
        }
        Class::Mvff => {
            let options = MvffOptions { extend_by, bin_blocks: waiting, ..MvffOptions::default() };
            let pool = Mvff::create(arena, options).expect("a pool");
            of_any_size(&pool, kind.1, sizes.into_iter().map(layout).collect(), random, plan)
        }
        Class::Mvt => {
            let pool =
                Mvt::create(arena, MvtOptions { max_size: 1024, ..MvtOptions::default() }).expect("a pool");
            of_any_size(&pool, kind.1, sizes.into_iter().map(layout).collect(), random, plan)
        }
        Class::Tlsf => {
            let options = TlsfOptions { extend_by, bin_blocks: waiting, ..TlsfOptions::default() };
            let pool = Tlsf::create(arena, options).expect("a pool");
            of_any_size(&pool, kind.1, sizes.into_iter().map(layout).collect(), random, plan)
        }
    }
}

fn ways_of<'s, P: ManualPool>(
    pool: &'s P,
    classes: Option<CacheClasses>,
    trim: fn(&P),
) -> Vec<Box<dyn Way + 's>> {
    vec![Box::new(OfPool { pool, classes, trim }), Box::new(Many { pool, classes, taken: None })]
}

fn of_any_size<P: ManualPool>(
    pool: &P,
    front: Front,
    layouts: Vec<Layout>,
    random: Random,
    plan: Plan,
) -> Option<Outcome> {
    match front {
        Front::Bare => drive(pool, ways_of(pool, None, |_| ()), layouts, random, plan),
        Front::Points => {
            let mut ways = ways_of(pool, None, |_| ());
            let point = AllocationPoint::create(pool).expect("a point");
            ways.push(Box::new(OfPoint { point, has_units: false }));
            drive(pool, ways, layouts, random, plan)
        }
        Front::Caches | Front::Depot => with_caches(pool, front, layouts, random, plan, |_| ()),
    }
}

fn with_caches<P: ManualPool>(
    pool: &P,
    front: Front,
    layouts: Vec<Layout>,
    mut random: Random,
    plan: Plan,
    trim: fn(&P),
) -> Option<Outcome> {
    let largest = layouts.iter().map(|layout| layout.size().next_multiple_of(16)).max().unwrap_or(16);
    let classes = if P::CLASS == "MFS" {
        let class = tripoint_pools::CacheClass { size: layouts[0].size(), count: 8 };
        CacheClasses::new(&[class]).expect("a class")
    } else {
        CacheClasses::linear(largest.max(32), 4 + random.below(20)).expect("few classes")
    };
    let depot = Depot::new(pool, classes, [2048, 32 << 10][random.below(2)]);
    let descriptors = [(); 2].map(|()| CacheDescriptor::new(classes));
    let make = |descriptor| match front {
        Front::Depot => Cache::with_depot(&depot, descriptor),
        _ => Cache::create(pool, descriptor),
    };
    let caches = [make(&descriptors[0]).expect("a cache"), make(&descriptors[1]).expect("a cache")];
    let mut ways = ways_of(pool, Some(classes), trim);
    ways.push(Box::new(OfStore { name: "cache A", store: &caches[0], tend: tend_cache }));
    ways.push(Box::new(OfStore { name: "cache B", store: &caches[1], tend: tend_cache }));
    if front == Front::Depot {
        ways.push(Box::new(OfStore { name: "depot", store: &depot, tend: tend_depot }));
    }
    drive(pool, ways, layouts, random, plan)
}

fn drive<P: ManualPool>(
    pool: &P,
    mut ways: Vec<Box<dyn Way + '_>>,
    layouts: Vec<Layout>,
    random: Random,
    plan: Plan,
) -> Option<Outcome> {
    let mut foreign = vec![0_u128; 64];
    let owns = |addr| pool.header().arena().pool_of(Addr::new(addr)) == Some(pool.header().id());
    let has_point = ways.iter().any(|way| way.name() == "point");
    // What a point is about to allocate counts as in use (design/hardening.md `.fill`).
    if has_point && matches!(plan, Plan::Fault(Some(Fault::NeverUsed), _)) {
        return None;
    }
    let program = Program::new(&mut ways, layouts, &owns, random);
    match plan {
        Plan::Fault(fault, operations) => {
            program.run(fault, operations, NonNull::from(&mut foreign[8]).cast())
        }
        Plan::Twice(first, second) => program.run_twice(first, second),
    }
}
