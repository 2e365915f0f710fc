//! Pools of every class over an arena whose platform refuses the first, second, …
//! n-th call, once or from then on: every operation succeeds or returns a typed
//! error, objects keep their contents, and once the platform recovers, every pool
//! serves requests again and nothing is missing from the counts
//! (design/arena-vm.md `.req.exact`, `.req.test`).
#![cfg(feature = "vm")]

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;

use tripoint::author::CacheClass;
use tripoint::author::Native;
use tripoint::debug::{DebugOptions, DebugPool};
use tripoint::{
    AllocationPoint, Arena, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Check, CheckLevel,
    Error, ManualPool, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, PoolClass, Prefault, Result, Snc,
    SncOptions, Store, Tlsf, TlsfOptions, UnitLayout,
};
use tripoint_arena_vm::mock::{Call, Failing};

type Vm<'f> = ArenaVm<&'f Failing<Native>>;

const GRAIN: usize = 16 << 10;

/// Beyond any number of calls that a script makes.
const CALLS_BOUND: u32 = 1_000;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// The ways to provide memory, each with platform calls of its own.
fn every_option() -> [ArenaVmOptions; 4] {
    let small = ArenaVmOptions {
        reserve: 4 << 20,
        reserve_floor: 4 << 20,
        grain: GRAIN,
        spare_share: 10,
        ..Default::default()
    };
    [
        small,
        ArenaVmOptions { prefault: Prefault::AtFill, inherit_on_fork: false, ..small },
        ArenaVmOptions { lock: true, ..small },
        ArenaVmOptions { guard: true, ..small },
    ]
}

/// What a script works with.
struct Run<'r> {
    arena: &'r Vm<'r>,
    recover: &'r dyn Fn(),
    refusals: Vec<Error>,
}

impl Run<'_> {
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.refusals.push(error)).ok()
    }

    /// Creates, and once more on a platform that has recovered.
    fn create<T>(&mut self, create: impl Fn() -> Result<T>) -> T {
        self.note(create()).unwrap_or_else(|| {
            (self.recover)();
            create().unwrap()
        })
    }
}

/// Live objects, each filled with its own byte.
#[derive(Default)]
struct Objects(Vec<(NonNull<u8>, Layout, u8)>);

impl Objects {
    fn keep(&mut self, object: NonNull<u8>, layout: Layout) {
        let content = self.0.len() as u8;
        // SAFETY: allocated with this layout just now.
        unsafe { object.write_bytes(content, layout.size()) };
        self.0.push((object, layout, content));
    }

    /// Takes an object out by its number, counted cyclically; its contents have to
    /// be unchanged.
    fn take(&mut self, which: usize) -> Option<(NonNull<u8>, Layout)> {
        let which = which.checked_rem(self.0.len())?;
        let (object, layout, content) = self.0.swap_remove(which);
        // SAFETY: the object was live, and was filled when it was kept.
        let bytes = unsafe { core::slice::from_raw_parts(object.as_ptr(), layout.size()) };
        assert!(bytes == vec![content; layout.size()], "objects keep their contents");
        Some((object, layout))
    }

    fn free<P: ManualPool>(&mut self, pool: &P, which: usize) {
        if let Some((object, layout)) = self.take(which) {
            // SAFETY: allocated in this pool with this layout, and taken out.
            unsafe { pool.free(object, layout) };
        }
    }

    fn free_all<P: ManualPool>(&mut self, pool: &P) {
        while !self.0.is_empty() {
            self.free(pool, 0);
        }
    }
}

fn alloc_and_free<P: ManualPool>(pool: &P, layouts: &[Layout], objects: &mut Objects, run: &mut Run<'_>) {
    for (round, &layout) in layouts.iter().cycle().take(18).enumerate() {
        if let Some(object) = run.note(pool.alloc(layout)) {
            objects.keep(object, layout);
        }
        if round % 3 == 2 {
            objects.free(pool, round * 7);
        }
    }
}

fn alloc_at_point<P: ManualPool>(pool: &P, layouts: &[Layout], objects: &mut Objects, run: &mut Run<'_>) {
    let Some(mut point) = run.note(AllocationPoint::create(pool)) else { return };
    for &layout in layouts.iter().cycle().take(8) {
        let Some(reservation) = run.note(point.reserve(layout)) else { continue };
        let object = reservation.as_ptr();
        objects.keep(object, layout);
        // SAFETY: initialised by `keep`.
        assert!(unsafe { reservation.commit() }.is_ok(), "commits in manual pools stand");
    }
}

/// Uses a manual pool in every way while calls are refused, and again when they are
/// not.
fn use_manual<P: ManualPool>(pool: &P, layouts: &[Layout], run: &mut Run<'_>) {
    let mut objects = Objects::default();
    alloc_and_free(pool, layouts, &mut objects, run);
    alloc_at_point(pool, layouts, &mut objects, run);
    (run.recover)();
    pool.check(CheckLevel::Deep).unwrap();
    let refused = run.refusals.len();
    alloc_and_free(pool, layouts, &mut objects, run);
    alloc_at_point(pool, layouts, &mut objects, run);
    assert_eq!(run.refusals.len(), refused, "usable once the platform recovered: {:?}", run.refusals);
    objects.free_all(pool);
    pool.check(CheckLevel::Deep).unwrap();
}

fn assert_all_free<P: PoolClass>(pool: &P) {
    let sizes = pool.sizes();
    assert_eq!(sizes.free, sizes.total, "nothing is lost");
}

const MIXED: [(usize, usize); 6] = [(24, 8), (3_000, 16), (200, 64), (20_000, 8), (1, 1), (5_000, 4096)];

fn mixed() -> Vec<Layout> {
    MIXED.map(|(size, align)| layout(size, align)).to_vec()
}

fn use_mvff(run: &mut Run<'_>) {
    let options = MvffOptions { extend_by: GRAIN, fill_size: 600, spare: 0, bin_blocks: 0 };
    let arena = run.arena;
    let pool = run.create(|| Mvff::create(arena, options));
    use_manual(&pool, &mixed(), run);
    assert_all_free(&pool);
}

fn use_mfs(run: &mut Run<'_>) {
    let options = MfsOptions { extend_by: 2 * GRAIN, fill_size: 1_000 };
    let (arena, unit) = (run.arena, layout(2_048, 64));
    let pool = run.create(|| Mfs::create(arena, UnitLayout::new(unit)?, options));
    use_manual(&pool, &[unit], run);
    assert_all_free(&pool);
}

fn use_tlsf(run: &mut Run<'_>) {
    let arena = run.arena;
    let pool = run.create(|| {
        Tlsf::create(arena, TlsfOptions { extend_by: GRAIN, fill_size: 1_024, spare: 0, bin_blocks: 0 })
    });
    use_manual(&pool, &mixed(), run);
    assert_all_free(&pool);
}

fn use_mvt(run: &mut Run<'_>) {
    let options = MvtOptions { max_size: GRAIN, reserve_depth: 1, ..MvtOptions::default() };
    let arena = run.arena;
    let pool = run.create(|| Mvt::create(arena, options));
    use_manual(&pool, &mixed(), run);
    assert_all_free(&pool);
}

fn use_debug(run: &mut Run<'_>) {
    let options = MvffOptions { extend_by: GRAIN, fill_size: 600, spare: 0, bin_blocks: 0 };
    let arena = run.arena;
    let pool = run.create(|| DebugPool::create(Mvff::create(arena, options)?, DebugOptions::default()));
    use_manual(&pool, &mixed(), run);
}

fn put<P: ManualPool>(cache: &Cache<'_, P>, objects: &mut Objects, which: usize) {
    if let Some((object, layout)) = objects.take(which) {
        // SAFETY: from this cache, with this layout, and taken out.
        unsafe { cache.free(object, layout) };
    }
}

fn get_and_put<P: ManualPool>(cache: &Cache<'_, P>, objects: &mut Objects, run: &mut Run<'_>) {
    for (round, &layout) in mixed().iter().cycle().take(36).enumerate() {
        if let Some(object) = run.note(cache.alloc(layout)) {
            objects.keep(object, layout);
        }
        if round % 3 == 2 {
            put(cache, objects, round * 7);
        }
    }
}

fn use_cache(run: &mut Run<'_>) {
    let arena = run.arena;
    let pool = run.create(|| {
        Mvff::create(arena, MvffOptions { extend_by: GRAIN, fill_size: 600, spare: 0, bin_blocks: 0 })
    });
    let classes = [CacheClass { size: 32, count: 4 }, CacheClass { size: 4_096, count: 3 }];
    let descriptor = CacheDescriptor::new(CacheClasses::new(&classes).unwrap());
    let cache = run.create(|| Cache::create(&pool, &descriptor));
    let mut objects = Objects::default();
    get_and_put(&cache, &mut objects, run);
    (run.recover)();
    let refused = run.refusals.len();
    get_and_put(&cache, &mut objects, run);
    assert_eq!(run.refusals.len(), refused, "usable once the platform recovered: {:?}", run.refusals);
    while !objects.0.is_empty() {
        put(&cache, &mut objects, 0);
    }
    cache.check(CheckLevel::Deep).unwrap();
    drop(cache);
    assert_all_free(&pool);
}

fn use_frames(point: &mut AllocationPoint<'_, Snc<&Vm<'_>>>, run: &mut Run<'_>) {
    for depth in 1..4 {
        point.scope(|outer| {
            for _ in 0..depth {
                if let Some(numbers) = run.note(outer.slice(300 * depth, |index| index)) {
                    assert!(numbers.iter().copied().eq(0..300 * depth));
                }
            }
            outer.scope(|inner| run.note(inner.alloc([depth; 64])).map(drop));
        });
    }
}

fn use_snc(run: &mut Run<'_>) {
    let arena = run.arena;
    let pool = run.create(|| Snc::create(arena, SncOptions { extend_by: 2 * GRAIN, fill_size: 1_000 }));
    let mut point = run.create(|| AllocationPoint::create(&pool));
    use_frames(&mut point, run);
    (run.recover)();
    let refused = run.refusals.len();
    use_frames(&mut point, run);
    assert_eq!(run.refusals.len(), refused, "usable once the platform recovered: {:?}", run.refusals);
    drop(point);
    pool.check(CheckLevel::Deep).unwrap();
    assert_all_free(&pool);
}

/// Runs a script. Returns its refusals, and leaves an arena in which nothing is
/// used.
fn run_script(arena: &Vm<'_>, script: fn(&mut Run<'_>), recover: &dyn Fn()) -> Vec<Error> {
    let mut run = Run { arena, recover, refusals: Vec::new() };
    script(&mut run);
    let sizes = arena.sizes();
    assert_eq!(sizes.committed, sizes.own + sizes.spare, "the pool gave everything back");
    arena.check(CheckLevel::Deep).unwrap();
    arena.trim();
    assert_eq!(arena.sizes().committed, arena.sizes().own);
    run.refusals
}

/// Runs a script with the `nth` call refused, or all from it on; returns false
/// if the platform was not called so often.
fn survives(script: fn(&mut Run<'_>), options: ArenaVmOptions, nth: u32, lasting: bool) -> bool {
    let failing = Failing::new(Native::new());
    if lasting {
        failing.fail_from(nth)
    } else {
        failing.fail_any(nth)
    };
    // Refusals come before the first recovery.
    let asked = Cell::new(None);
    let recover = || {
        asked.set(asked.get().or(Some(failing.seen_any() >= nth)));
        failing.heal();
    };
    // If the first call is refused, it is that of the reservation; and so are those that try less, if refusals last.
    let mut refused_reservations = u32::from(nth == 1);
    let arena = ArenaVm::create_on(&failing, options).unwrap_or_else(|error| {
        assert_eq!(error, Error::Resource, "creation reserves and advises");
        if nth == 1 {
            refused_reservations = failing.seen(Call::Reserve);
        }
        recover();
        ArenaVm::create_on(&failing, options).unwrap()
    });
    let refusals = run_script(&arena, script, &recover);
    let asked = asked.get().expect("every script recovers");
    assert!(asked || refusals.is_empty(), "{refusals:?}, and nothing was refused");
    let no_memory = options.lock || !options.inherit_on_fork;
    let typed = |error: &Error| {
        matches!(error, Error::Memory)
            || no_memory && matches!(error, Error::Resource | Error::ResourceLimit { .. })
    };
    assert!(refusals.iter().all(typed), "{refusals:?}");
    if !lasting {
        // If any memory of a descriptor had been lost, descriptor memory would
        // grow.
        assert_eq!(run_script(&arena, script, &recover), []);
        let control = arena.sizes().own;
        assert_eq!(run_script(&arena, script, &recover), []);
        assert_eq!(arena.sizes().own, control);
    }
    drop(arena);
    assert_eq!(failing.seen(Call::Reserve) - refused_reservations, failing.seen(Call::Release));
    asked
}

/// Refuses every call in turn, for every way to provide memory.
fn survives_all(script: fn(&mut Run<'_>)) {
    for (index, options) in every_option().into_iter().enumerate() {
        if ArenaVm::create(options).and_then(|arena| arena.alloc_tracts(GRAIN, arena.register()?)).is_err() {
            tripoint_oracle::skipped!("options {index} are refused here");
            continue;
        }
        for lasting in [false, true] {
            let survived =
                (1..CALLS_BOUND).find(|&nth| !survives(script, options, nth, lasting)).unwrap() - 1;
            assert!(survived > 2, "calls were refused: {survived}");
            println!("options {index}, lasting {lasting}: {survived} calls, each refused");
        }
    }
}

#[test]
fn mvff_over_a_refusing_platform() {
    survives_all(use_mvff);
}

#[test]
fn mfs_over_a_refusing_platform() {
    survives_all(use_mfs);
}

#[test]
fn tlsf_over_a_refusing_platform() {
    survives_all(use_tlsf);
}

#[test]
fn mvt_over_a_refusing_platform() {
    survives_all(use_mvt);
}

#[test]
fn snc_over_a_refusing_platform() {
    survives_all(use_snc);
}

#[test]
fn a_cache_over_a_refusing_platform() {
    survives_all(use_cache);
}

#[test]
fn a_debug_pool_over_a_refusing_platform() {
    survives_all(use_debug);
}
