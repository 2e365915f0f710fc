//! Each fault is found, named and survived, and nothing else is reported.

mod common;

use core::alloc::Layout;
use core::ptr::NonNull;
use tripoint_core::internal::{AtomicUsize, Ordering};

use common::{GRAIN, Oracle, SEAL, arena, effort, layout, memory};
use proptest::prelude::*;
use tripoint_ap::AllocationPoint;
use tripoint_core::{
    Addr, Arena, BasicBuffer, Block, Check, CheckError, CheckLevel, ClientArena, Describe, Error, Fill,
    ManualPool, PoolBox, PoolClass, PoolHeader, PoolSizes, Result, Store,
};
use tripoint_pools::GRANULE;
use tripoint_pools::{
    DebugOptions, DebugPool, DebugReport, Fault, Mfs, MfsOptions, Mvff, MvffOptions, Tlsf, TlsfOptions,
    UnitLayout,
};

const FENCE: usize = DebugPool::<Mvff<&tripoint_core::ClientArena<'_>>>::FENCE_SIZE;

fn debug<P: ManualPool>(pool: P) -> DebugPool<P> {
    DebugPool::create(pool, DebugOptions::default()).unwrap()
}

fn addr_of(object: NonNull<u8>) -> Addr {
    Addr::of(object.as_ptr())
}

/// The only report of a pool.
fn only_report<P: ManualPool>(pool: &DebugPool<P>) -> DebugReport {
    let reports = pool.reports();
    assert_eq!((reports.count(), reports.iter().count()), (1, 1));
    *reports.iter().next().unwrap()
}

fn assert_clean<P: ManualPool>(pool: &DebugPool<P>) {
    assert_eq!(pool.reports().count(), 0);
    pool.inspect(&mut |report| panic!("{report}"));
    pool.check(CheckLevel::Deep).unwrap();
}

/// Runs a test for every class under a debug pool.
macro_rules! for_each_class {
    (|$pool:ident| $run:expr) => {{
        let mut memory = memory(32);
        let arena = &arena(&mut memory);
        {
            let $pool = &debug(Mvff::create(arena, MvffOptions::default()).unwrap());
            $run
        }
        {
            let unit = UnitLayout::new(layout(256, 64)).unwrap();
            let $pool = &debug(Mfs::create(arena, unit, MfsOptions::default()).unwrap());
            $run
        }
        {
            let $pool = &debug(Tlsf::create(arena, TlsfOptions::default()).unwrap());
            $run
        }
    }};
}

/// Negative control for all detectors: an orderly life is no fault.
#[test]
fn an_orderly_life_is_not_reported() {
    for_each_class!(|pool| {
        let mut oracle = Oracle::default();
        for round in 0..200 {
            oracle.alloc(pool, layout(round % 100, 1 << (round % 6))).unwrap();
            if round % 3 == 0 {
                oracle.point(pool, layout(40, 8), 3).unwrap();
            }
            if round % 2 == 0 {
                let addrs = oracle.addresses(true);
                oracle.free(pool, addrs[round * 7 % addrs.len()]);
            }
        }
        oracle.clear(pool);
        assert_clean(pool);
    });
}

/// (design/debug.md `.req.overrun`)
#[test]
fn a_byte_behind_an_object_is_found_at_free() {
    for_each_class!(|pool| {
        for (round, size) in [0, 1, 7, 24, 40, 100].into_iter().enumerate() {
            let layout = layout(size, 8);
            let object = pool.alloc(layout).unwrap();
            // SAFETY: within what the object takes, though not the client's.
            let byte = unsafe { object.add(size) };
            // SAFETY: a byte of the object's room, which no other reference covers.
            unsafe { byte.write(!byte.read()) };
            assert!(pool.check(CheckLevel::Deep).is_err());
            // SAFETY: allocated above with this layout.
            unsafe { pool.free(object, layout) };
            assert_eq!(pool.reports().count(), round + 1);
            let report = *pool.reports().iter().last().unwrap();
            assert_eq!((report.class, report.pool), (pool.header().class(), pool.header().id()));
            assert_eq!((report.object, report.size), (addr_of(object), size));
            let Fault::Overrun { at } = report.fault else { panic!("{report}") };
            // The seal is damaged as a whole.
            assert!(at >= addr_of(byte) || at.get() + FENCE > addr_of(byte).get(), "{report}");
        }
        assert_eq!(pool.check(CheckLevel::Shallow).unwrap_err().rule, "nothing writes behind an object");
    });
}

/// (design/debug.md `.req.check`): found before any free, and named.
#[test]
fn a_long_overrun_is_found_by_inspection() {
    for_each_class!(|pool| {
        let layout = layout(40, 8);
        let object = pool.alloc(layout).unwrap();
        let size = pool.reserve_size(layout).unwrap();
        // SAFETY: within what the object takes, though not the client's.
        unsafe { object.add(40).write_bytes(0xab, size - 40) };
        let mut found = Vec::new();
        pool.inspect(&mut |report| found.push(*report));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].object, addr_of(object));
        assert!(matches!(found[0].fault, Fault::Overrun { .. }));
        assert_eq!(pool.reports().count(), 0, "inspecting reports nothing");
        pool.check(CheckLevel::Shallow).unwrap();
        assert_eq!(pool.check(CheckLevel::Deep).unwrap_err().rule, "nothing writes behind an object");
    });
}

/// (design/debug.md `.req.double`)
#[test]
fn an_object_freed_twice_is_found() {
    for_each_class!(|pool| {
        let layout = layout(40, 8);
        let object = pool.alloc(layout).unwrap();
        let other = pool.alloc(layout).unwrap();
        // SAFETY: allocated above with this layout; a debug pool refuses the second
        // free.
        unsafe {
            pool.free(object, layout);
            assert_clean(pool);
            pool.free(object, layout);
        }
        let report = only_report(pool);
        assert_eq!((report.object, report.size, report.fault), (addr_of(object), 40, Fault::DoubleFree));
        // The pool goes on, and the object is not handed out twice.
        let again = [pool.alloc(layout).unwrap(), pool.alloc(layout).unwrap()];
        assert_ne!(again[0], again[1]);
        assert!(!again.contains(&other));
    });
}

/// Also when it is no longer held back.
#[test]
fn an_object_freed_twice_much_later_is_found() {
    let mut memory = memory(32);
    let arena = arena(&mut memory);
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let pool = DebugPool::create(pool, DebugOptions { held: 0, ..DebugOptions::default() }).unwrap();
    let object = pool.alloc(layout(40, 8)).unwrap();
    // SAFETY: allocated above with this layout; a debug pool refuses the second
    // free.
    unsafe {
        pool.free(object, layout(40, 8));
        pool.free(object, layout(40, 8));
    }
    assert_eq!(only_report(&pool).fault, Fault::DoubleFree);
    assert_eq!(pool.sizes().free, pool.sizes().total);
}

/// (design/debug.md `.req.foreign`)
#[test]
fn what_is_not_the_pools_is_found() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let [mine, other] = [(); 2].map(|()| debug(Mvff::create(&arena, MvffOptions::default()).unwrap()));
    let layout = layout(100, 8);
    let mut outside = [0_u8; 128];
    let object = other.alloc(layout).unwrap();
    mine.alloc(layout).unwrap();
    for foreign in [object, NonNull::from(&mut outside).cast()] {
        let before = mine.reports().count();
        // SAFETY: a debug pool looks before it touches.
        unsafe { mine.free(foreign, layout) };
        let report = *mine.reports().iter().last().unwrap();
        assert_eq!(mine.reports().count(), before + 1);
        assert_eq!((report.object, report.fault), (addr_of(foreign), Fault::Foreign));
        assert_eq!(report.pool, mine.header().id());
    }
    // SAFETY: allocated from this pool with this layout.
    unsafe { other.free(object, layout) };
    assert_clean(&other);
}

#[test]
fn a_pointer_into_an_object_is_found() {
    for_each_class!(|pool| {
        let layout = layout(100, 8);
        let object = pool.alloc(layout).unwrap();
        for offset in [1, 8, 16, 96] {
            // SAFETY: inside the object; a debug pool looks before it touches.
            unsafe { pool.free(object.add(offset), layout) };
            let report = *pool.reports().iter().last().unwrap();
            assert_eq!(report.fault, Fault::Interior, "{offset}");
        }
        // SAFETY: allocated above with this layout.
        unsafe { pool.free(object, layout) };
        assert_eq!(pool.reports().count(), 4);
    });
}

/// (design/debug.md `.req.layout`)
#[test]
fn another_layout_is_found() {
    for_each_class!(|pool| {
        let allocated = layout(100, 16);
        let object = pool.alloc(allocated).unwrap();
        let wrong = [layout(99, 16), layout(101, 16), layout(100, 8), layout(0, 1), layout(3000, 16)];
        for (round, wrong) in wrong.into_iter().enumerate() {
            // SAFETY: an object of the pool; a debug pool looks at the layout.
            unsafe { pool.free(object, wrong) };
            assert_eq!(pool.reports().count(), round + 1);
            let report = *pool.reports().iter().last().unwrap();
            assert_eq!((report.size, report.object), (wrong.size(), addr_of(object)));
            assert_eq!(report.fault, Fault::WrongLayout { allocated: 100, align: 16 });
        }
        // SAFETY: allocated above with this layout.
        unsafe { pool.free(object, allocated) };
        assert_eq!(pool.reports().count(), 5);
    });
}

/// (design/debug.md `.req.after`)
#[test]
fn a_write_after_free_is_found() {
    for_each_class!(|pool| {
        let layout = layout(64, 8);
        for offset in [0, 1, 63] {
            let object = pool.alloc(layout).unwrap();
            // SAFETY: allocated above with this layout. The write is a fault, to memory
            // that is still the arena's.
            unsafe {
                pool.free(object, layout);
                assert!(pool.check(CheckLevel::Deep).is_ok() || offset != 0);
                object.add(offset).write(7);
            }
            let at = Addr::new(addr_of(object).get() + offset);
            let mut found = Vec::new();
            pool.inspect(&mut |report| found.push((report.object, report.size, report.fault)));
            assert!(found.contains(&(addr_of(object), 64, Fault::UsedAfterFree { at })), "{found:?}");
        }
        // They are reported when they leave, and are never handed out again.
        assert_eq!(pool.reports().count(), 0);
        let mut lost = Vec::new();
        pool.inspect(&mut |report| lost.push(report.object));
        for _ in 0..64 {
            let object = pool.alloc(layout).unwrap();
            assert!(!lost.contains(&addr_of(object)));
            // SAFETY: allocated above with this layout.
            unsafe { pool.free(object, layout) };
        }
        assert_eq!(pool.reports().count(), 3);
        assert_eq!(pool.sizes().total - pool.sizes().free, 3 * pool.reserve_size(layout).unwrap());
    });
}

#[test]
fn a_write_to_freed_memory_of_a_point_is_found() {
    for_each_class!(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        // SAFETY: any bytes make the object. It is freed once rightly; the write is a fault,
        // to memory that is still the arena's, by a pointer that no reference narrowed.
        let object = unsafe {
            let object = point.reserve(Layout::new::<u64>()).unwrap().commit().unwrap();
            pool.free(object, Layout::new::<u64>());
            object.write(9);
            pool.free(object, Layout::new::<u64>());
            object
        };
        assert_eq!(only_report(pool).fault, Fault::DoubleFree);
        let mut found = Vec::new();
        pool.inspect(&mut |report| found.push(report.fault));
        assert_eq!(found, [Fault::UsedAfterFree { at: addr_of(object) }]);
    });
}

/// (design/debug.md `.debug.points`): what an abandoned reservation left behind is
/// not reported as an overrun.
#[test]
fn objects_of_points_may_follow_abandoned_ones() {
    for_each_class!(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let large = layout(200, 8);
        let abandoned = point.reserve(large).unwrap();
        // SAFETY: reserved just now.
        unsafe { abandoned.as_ptr().write_bytes(0xee, 200) };
        drop(abandoned);
        let small = point.boxed(3_u32).unwrap();
        drop(small);
        drop(point);
        assert_clean(pool);
        assert_eq!(pool.sizes().free, pool.sizes().total);
    });
}

/// What a point returned is no object.
#[test]
fn freeing_what_a_point_gave_back_is_found() {
    for_each_class!(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let abandoned = point.reserve(layout(40, 8)).unwrap().as_ptr();
        drop(point);
        // SAFETY: a debug pool looks before it touches.
        unsafe { pool.free(abandoned, layout(40, 8)) };
        assert_eq!(only_report(pool).fault, Fault::DoubleFree);
    });
}

#[test]
fn dropped_pools_leave_no_ledger_behind() {
    let mut memory = memory(24);
    let arena = arena(&mut memory);
    let mut spare = Vec::new();
    for _ in 0..100 {
        let pool =
            debug(Mvff::create(&arena, MvffOptions { extend_by: GRAIN, ..MvffOptions::default() }).unwrap());
        let object = pool.alloc(layout(2 * GRAIN, 8)).unwrap();
        // SAFETY: allocated above with this layout.
        unsafe { pool.free(object, layout(2 * GRAIN, 8)) };
        drop(pool);
        spare.push(arena.sizes().spare);
    }
    assert_eq!(spare[0], spare[99]);
}

#[test]
fn freeing_more_than_a_point_had_is_found() {
    let mut memory = memory(32);
    let arena = arena(&mut memory);
    let options = MvffOptions { fill_size: 64, ..MvffOptions::default() };
    let pool = debug(Mvff::create(&arena, options).unwrap());
    let mut point = AllocationPoint::create(&pool).unwrap();
    let object = NonNull::from(point.alloc([1_u8; 40]).unwrap()).cast::<u8>();
    drop(point);
    // SAFETY: an object of the pool; a debug pool looks at the layout.
    unsafe { pool.free(object, layout(2000, 1)) };
    assert!(matches!(only_report(&pool).fault, Fault::WrongLayout { align: 1, .. }));
    // SAFETY: allocated above with this layout.
    unsafe { pool.free(object, Layout::new::<[u8; 40]>()) };
    assert_eq!(pool.reports().count(), 1);
}

static TOLD: AtomicUsize = AtomicUsize::new(0);

/// (design/debug.md `.req.report`)
#[test]
fn the_hook_is_told_and_reports_name_pool_and_object() {
    let mut memory = memory(32);
    let arena = arena(&mut memory);
    let hook = |report: &DebugReport| {
        TOLD.fetch_add(report.size, Ordering::Relaxed);
    };
    let options = DebugOptions { hook: Some(hook), ..DebugOptions::default() };
    let pool = DebugPool::create(Mvff::create(&arena, MvffOptions::default()).unwrap(), options).unwrap();
    let object = pool.alloc(layout(40, 8)).unwrap();
    for _ in 0..21 {
        // SAFETY: a debug pool refuses the second free.
        unsafe { pool.free(object, layout(40, 8)) };
    }
    assert_eq!(TOLD.load(Ordering::Relaxed), 20 * 40);
    let reports = pool.reports();
    assert_eq!((reports.count(), reports.iter().count()), (20, 16));
    let text = reports.iter().next().unwrap().to_string();
    let number = pool.header().id().get();
    assert_eq!(
        text,
        format!("MVFF #{number}: object {} of 40 bytes was freed, and is not allocated", addr_of(object))
    );
    let mut description = String::new();
    pool.describe(&mut description, 0).unwrap();
    assert!(description.contains("faults: 20") && description.contains(&text), "{description}");
}

#[test]
fn every_fault_has_a_sentence() {
    let at = Addr::new(0x1010);
    let faults = [
        (Fault::DoubleFree, "not allocated"),
        (Fault::Foreign, "not in this pool"),
        (Fault::Interior, "not the base"),
        (Fault::WrongLayout { allocated: 48, align: 16 }, "48 bytes aligned to 16"),
        (Fault::Overrun { at }, "damaged at 0x1010"),
        (Fault::UsedAfterFree { at }, "0x1010 after it was freed"),
    ];
    for (fault, says) in faults {
        let pool = tripoint_core::PoolId::new(3).unwrap();
        let report = DebugReport { class: "MFS", pool, object: Addr::new(0x1000), size: 24, fault };
        let text = report.to_string();
        assert!(text.starts_with("MFS #3: object 0x1000 of 24 bytes ") && text.contains(says), "{text}");
    }
}

#[test]
fn what_is_held_back_serves_when_nothing_else_does() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let pool =
        debug(Mvff::create(&arena, MvffOptions { extend_by: GRAIN, ..MvffOptions::default() }).unwrap());
    let mut oracle = Oracle::default();
    while oracle.alloc(&pool, layout(500, 8)).is_ok() {}
    let count = oracle.addresses(true).len();
    arena.freeze();
    for _ in 0..3 {
        oracle.clear(&pool);
        assert!(pool.sizes().free > count * 500);
        for _ in 0..count {
            oracle.alloc(&pool, layout(500, 8)).unwrap();
        }
    }
    oracle.clear(&pool);
    assert_clean(&pool);
}

/// A class that fills only buffers it knows, and counts what it is asked.
#[derive(Debug)]
struct Knowing<'t, P> {
    pool: P,
    filled: &'t AtomicUsize,
    finished: &'t AtomicUsize,
}

/// The bytes at the front of its fills that are allocated already.
const PREALLOCATED: usize = 4 * GRANULE;
const PATTERN: u8 = 0x5a;

// SAFETY: as the pool under it, from whose fills it allocates the front.
unsafe impl<P: ManualPool<Buffer = BasicBuffer>> PoolClass for Knowing<'_, P> {
    const CLASS: &'static str = P::CLASS;
    const FLIPPABLE: bool = false;
    const KEEPS_UNUSED: bool = true;

    type Arena = P::Arena;
    type Barrier = P::Barrier;
    type Buffer = BasicBuffer;

    fn new_buffer(&self) -> BasicBuffer {
        BasicBuffer
    }

    fn header(&self) -> &PoolHeader<P::Arena> {
        self.pool.header()
    }

    fn barrier(&self) -> P::Barrier {
        self.pool.barrier()
    }

    fn min_align(&self) -> usize {
        self.pool.min_align()
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        self.pool.reserve_size(layout)
    }

    fn fill(&self, _layout: Layout) -> Result<Fill> {
        Err(Error::Parameter("no buffer"))
    }

    unsafe fn fill_buffer(&self, _buffer: &BasicBuffer, layout: Layout) -> Result<Fill> {
        self.filled.fetch_add(1, Ordering::Relaxed);
        let needed = Layout::from_size_align(layout.size() + PREALLOCATED, layout.align()).unwrap();
        let fill = self.pool.fill(needed)?;
        // SAFETY: fresh memory, at least as large.
        unsafe { fill.block.base().write_bytes(PATTERN, PREALLOCATED) };
        Ok(Fill { preallocated: PREALLOCATED, ..fill })
    }

    unsafe fn finish_buffer(&self, _buffer: &BasicBuffer) -> bool {
        self.finished.fetch_add(1, Ordering::Relaxed);
        false
    }

    unsafe fn empty(&self, unused: Block) {
        // SAFETY: the caller promises an unused end of a fill, and every fill is the inner pool's.
        unsafe { self.pool.empty(unused) };
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        self.pool.walk_free(visit);
    }

    fn sizes(&self) -> PoolSizes {
        self.pool.sizes()
    }
}

// SAFETY: both calls are those of the pool below.
unsafe impl<P: ManualPool<Buffer = BasicBuffer>> Store for Knowing<'_, P> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.pool.alloc(layout)
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises an object from `alloc`, which is the inner pool's, with its layout.
        unsafe { self.pool.free(object, layout) };
    }
}

// SAFETY: all is the pool's under it.
unsafe impl<P: ManualPool<Buffer = BasicBuffer>> ManualPool for Knowing<'_, P> {}

impl<P: Check> Check for Knowing<'_, P> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.pool.check(level)
    }
}

impl<P: Describe> Describe for Knowing<'_, P> {
    fn describe(&self, out: &mut dyn core::fmt::Write, depth: usize) -> core::fmt::Result {
        self.pool.describe(out, depth)
    }
}

/// The class under a debug pool knows its buffers, and what it allocated in them stays.
#[test]
fn a_class_that_knows_its_buffers_goes_on_doing_so() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let mvff = Mvff::create(&arena, MvffOptions { extend_by: GRAIN, ..MvffOptions::default() }).unwrap();
    let [filled, finished] = [0; 2].map(AtomicUsize::new);
    let pool = debug(Knowing { pool: mvff, filled: &filled, finished: &finished });
    const { assert!(<DebugPool<Knowing<'_, Mvff<&ClientArena<'_>>>> as PoolClass>::KEEPS_UNUSED) };
    let mut point = AllocationPoint::create(&pool).unwrap();
    let object = PoolBox::into_raw(point.boxed([7_u64; 5]).unwrap()).cast::<u8>();
    // SAFETY: what the class allocated lies before the first object of a fill.
    let before = unsafe { core::slice::from_raw_parts(object.as_ptr().sub(PREALLOCATED), PREALLOCATED) };
    assert!(before.iter().all(|&byte| byte == PATTERN));
    drop(point);
    assert_eq!((filled.load(Ordering::Relaxed), finished.load(Ordering::Relaxed)), (1, 1));
    // SAFETY: committed with this layout, and freed once.
    unsafe { pool.free(object, Layout::new::<[u64; 5]>()) };
    assert_clean(&pool);
}

/// In a fill too, where the ledger does not know the bases.
#[test]
fn a_pointer_into_an_object_of_a_point_is_found() {
    for_each_class!(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let layout = Layout::new::<[u64; 5]>();
        let object = PoolBox::into_raw(point.boxed([7_u64; 5]).unwrap()).cast::<u8>();
        for offset in [1, 4, size_of::<usize>() + 1, pool.min_align() - 1] {
            // SAFETY: inside the object; a debug pool looks before it touches.
            unsafe { pool.free(object.add(offset), layout) };
            let report = *pool.reports().iter().last().unwrap();
            assert_eq!(report.fault, Fault::Interior, "{offset}");
        }
        if pool.min_align() > size_of::<usize>() {
            // SAFETY: inside the object; a debug pool looks before it touches.
            unsafe { pool.free(object.add(size_of::<usize>()), layout) };
            assert_eq!(pool.reports().iter().last().unwrap().fault, Fault::Interior);
        }
        // The object is unchanged, and is freed as usual.
        let found = pool.reports().count();
        // SAFETY: committed, and alive.
        assert_eq!(unsafe { object.cast::<[u64; 5]>().read() }, [7; 5]);
        // SAFETY: committed with this layout, and freed once.
        unsafe { pool.free(object, layout) };
        assert_eq!(pool.reports().count(), found);
    });
}

#[test]
fn a_pool_that_was_used_is_refused() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    pool.alloc(layout(40, 8)).unwrap();
    assert!(matches!(DebugPool::create(pool, DebugOptions::default()), Err(Error::Parameter(_))));
}

#[test]
fn boxes_live_in_debug_pools() {
    for_each_class!(|pool| {
        let numbers = PoolBox::new_in([1_u64; 8], pool).unwrap();
        assert_eq!(numbers.iter().sum::<u64>(), 8);
        drop(numbers);
        assert_clean(pool);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: effort(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// A change to any byte of a fence, to any value, is found, and nothing else
    /// is reported.
    #[test]
    fn every_byte_of_a_fence_counts(
        size in 0..80_usize, align in 0..6_u32, offset in any::<usize>(), change in 1..=255_u8,
    ) {
        let mut memory = memory(8);
        let arena = arena(&mut memory);
        let pool = debug(Mvff::create(&arena, MvffOptions::default()).unwrap());
        let layout = layout(size, 1 << align);
        let objects = [(); 3].map(|()| pool.alloc(layout).unwrap());
        let fence = pool.reserve_size(layout).unwrap() - size - SEAL;
        // SAFETY: within what the object takes, though not the client's.
        let byte = unsafe { objects[1].add(size + offset % fence) };
        // SAFETY: a byte of the object's room, which no other reference covers.
        unsafe { byte.write(byte.read() ^ change) };
        for object in objects {
            // SAFETY: allocated above with this layout.
            unsafe { pool.free(object, layout) };
        }
        let report = only_report(&pool);
        prop_assert_eq!(report.object, addr_of(objects[1]));
        prop_assert!(matches!(report.fault, Fault::Overrun { .. }), "{}", report);
    }
}
