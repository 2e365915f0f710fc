//! Memory that is asked for as zero is zero, whatever it was used for before, of every class and by every front end
//! (design/arena-vm.md `.zero`).

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use allocator_api2::alloc::Allocator;
use tripoint_adaptors::{GlobalPool, PoolAllocator};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Native, Platform, PlatformError, Prefault};
use tripoint_core::{
    Arena, ClientArena, ClientArenaOptions, EventHook, ManualPool, PoolClass, Result, Store,
};
use tripoint_oracle::{all_are, cases};
use tripoint_pools::{
    Cache, CacheClasses, CacheDescriptor, DebugOptions, DebugPool, Depot, Mfs, MfsOptions, Mvff, MvffOptions,
    Mvt, MvtOptions, Tlsf, TlsfOptions, UnitLayout,
};
use tripoint_telemetry::{LoggedStore, Mean, SampledStore, Sampling};

/// The largest object of a program: some are larger than what the arena asks the platform about.
const LARGEST: usize = if cfg!(miri) { 5000 } else { 1 << 20 };
const STEPS: usize = if cfg!(miri) { 30 } else { 120 };
/// What a program leaves in its objects.
const DIRT: u8 = 0xa5;

/// A generator with a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// A size of any order of magnitude.
    fn size(&mut self, most: usize) -> usize {
        let bits = self.below(most.ilog2() as usize + 1);
        1 + self.below((2 << bits).min(most))
    }
}

/// Objects as a program has them: allocated, asked for as zero, grown, written all over and freed, at random.
trait Program {
    /// An object; none if it is refused.
    fn alloc(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>>;

    /// # Safety
    /// - An object of this program with this layout, freed once.
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout);

    /// Grows an object; what is added is zero. By default none does.
    ///
    /// # Safety
    /// - An object of this program with this layout, which is smaller.
    unsafe fn grow(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        let _ = (object, from, to);
        None
    }

    /// Runs the program, and returns what was found that should be zero and is not.
    fn run(&self, seed: u64, layout_of: impl Fn(usize) -> Layout) -> Option<String> {
        let mut random = Random(seed);
        let mut live: Vec<(NonNull<u8>, Layout)> = Vec::new();
        let mut found = None;
        for step in 0..STEPS {
            let (layout, kind) = (layout_of(random.size(LARGEST)), random.below(5));
            let mut dirty = |object: NonNull<u8>, layout: Layout, zero_from: usize| {
                // SAFETY: an object of that many bytes, which are written: with zeros, as is checked, or as before.
                let bytes = unsafe { core::slice::from_raw_parts_mut(object.as_ptr(), layout.size()) };
                if !all_are(&bytes[zero_from..], 0) {
                    found = Some(format!("seed {seed}, step {step}: {layout:?} from byte {zero_from} on"));
                }
                bytes.fill(DIRT);
            };
            match kind {
                0 | 1 if !live.is_empty() => {
                    let (object, layout) = live.swap_remove(random.below(live.len()));
                    // SAFETY: a live object, taken out of the list.
                    unsafe { self.free(object, layout) };
                }
                2 if !live.is_empty() => {
                    let index = random.below(live.len());
                    let (object, from) = live[index];
                    if layout.size() <= from.size() {
                        continue;
                    }
                    // SAFETY: a live object, which gets a larger layout.
                    if let Some(grown) = unsafe { self.grow(object, from, layout) } {
                        dirty(grown, layout, from.size());
                        live[index] = (grown, layout);
                    }
                }
                3 => {
                    if let Some(object) = self.alloc(layout, false) {
                        // SAFETY: a new object.
                        unsafe { object.write_bytes(DIRT, layout.size()) };
                        live.push((object, layout));
                    }
                }
                _ => {
                    if let Some(object) = self.alloc(layout, true) {
                        dirty(object, layout, 0);
                        live.push((object, layout));
                    }
                }
            }
        }
        for (object, layout) in live {
            // SAFETY: the live objects, each once.
            unsafe { self.free(object, layout) };
        }
        found
    }
}

struct Stored<'s, S>(&'s S);

impl<S: Store> Program for Stored<'_, S> {
    fn alloc(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        if zeroed { self.0.alloc_zeroed(layout) } else { self.0.alloc(layout) }.ok()
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's object.
        unsafe { self.0.free(object, layout) };
    }
}

struct Collected<A>(A);

impl<A: Allocator> Program for Collected<A> {
    fn alloc(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        let block = if zeroed { self.0.allocate_zeroed(layout) } else { self.0.allocate(layout) };
        block.ok().map(NonNull::cast)
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's object.
        unsafe { self.0.deallocate(object, layout) };
    }

    unsafe fn grow(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the caller's object, which grows.
        unsafe { self.0.grow_zeroed(object, from, to) }.ok().map(NonNull::cast)
    }
}

struct Whole<'g, G>(&'g G);

impl<G: GlobalAlloc> Program for Whole<'_, G> {
    fn alloc(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        // SAFETY: no layout of a program is empty.
        NonNull::new(unsafe { if zeroed { self.0.alloc_zeroed(layout) } else { self.0.alloc(layout) } })
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's object.
        unsafe { self.0.dealloc(object.as_ptr(), layout) };
    }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

fn options() -> ArenaVmOptions {
    let reserve = if cfg!(miri) { 4 << 20 } else { 256 << 20 };
    ArenaVmOptions { reserve, reserve_floor: reserve, ..ArenaVmOptions::default() }
}

fn tlsf() -> Result<Tlsf<ArenaVm>> {
    Tlsf::create(ArenaVm::create(options())?, TlsfOptions::default())
}

/// Runs programs with a few seeds.
fn assert_zero(program: &impl Program, layout_of: impl Fn(usize) -> Layout) {
    for seed in 0..cases(4).into() {
        assert_eq!(program.run(seed, &layout_of), None);
    }
}

/// A pool by itself, and behind its front ends.
fn assert_pool<P: ManualPool + Send + Sync>(pool: &P) {
    assert_zero(&Stored(pool), layout);
    assert_zero(&Collected(PoolAllocator::new(pool)), layout);
    let classes = CacheClasses::geometric(4096, 8).unwrap();
    let descriptor = CacheDescriptor::new(classes);
    let cache = Cache::create(pool, &descriptor).unwrap();
    assert_zero(&Stored(&cache), layout);
    assert_zero(&Collected(PoolAllocator::new(&cache)), layout);
    drop(cache);
    let depot = Depot::new(pool, classes, 64 << 10);
    let descriptor = CacheDescriptor::new(classes);
    assert_zero(&Stored(&depot), layout);
    assert_zero(&Stored(&Cache::with_depot(&depot, &descriptor).unwrap()), layout);
    let logged = LoggedStore::new(pool, pool, || true, Ignored);
    assert_zero(&Stored(&logged), layout);
    let sampling = Sampling::off(42);
    sampling.set_mean(Mean::new(1 << 16));
    assert_zero(&Stored(&SampledStore::new(pool, &sampling, |_| {})), layout);
}

#[derive(Debug)]
struct Ignored;

impl EventHook for Ignored {
    fn event(&self, _event: tripoint_core::Event) {}
}

/// Every class that an arena of this kind has.
fn assert_classes<A: Arena>(arena: &A) {
    assert_pool(&Tlsf::create(arena, TlsfOptions::default()).unwrap());
    assert_pool(&Tlsf::create(arena, TlsfOptions { spare: 1 << 20, ..TlsfOptions::default() }).unwrap());
    assert_pool(&Tlsf::create(arena, TlsfOptions { bin_blocks: 64, ..TlsfOptions::default() }).unwrap());
    assert_pool(&Mvff::create(arena, MvffOptions::default()).unwrap());
    assert_pool(&Mvff::create(arena, MvffOptions { spare: 1 << 20, ..MvffOptions::default() }).unwrap());
    assert_pool(&Mvt::create(arena, MvtOptions::default()).unwrap());
    for size in [24, 5000, LARGEST / 2 + 8] {
        let unit = UnitLayout::new(layout(size)).unwrap();
        let pool = Mfs::create(arena, unit, MfsOptions::default()).unwrap();
        assert_zero(&Stored(&pool), |_| layout(size));
        assert_zero(&Stored(&pool.cache()), |_| layout(size));
    }
    let debug =
        DebugPool::create(Tlsf::create(arena, TlsfOptions::default()).unwrap(), DebugOptions::default());
    assert_zero(&Stored(&debug.unwrap()), layout);
}

#[test]
fn memory_of_a_virtual_memory_arena_is_zero() {
    assert_classes(&ArenaVm::create(options()).unwrap());
}

#[test]
fn memory_of_an_arena_that_returns_none_is_zero() {
    let frozen = ArenaVm::create(ArenaVmOptions { prefault: Prefault::Size(8 << 20), ..options() }).unwrap();
    frozen.freeze();
    assert_pool(&Tlsf::create(&frozen, TlsfOptions::default()).unwrap());
    let mut memory = Box::new_uninit_slice(if cfg!(miri) { 1 << 20 } else { 64 << 20 });
    assert_classes(&ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap());
}

#[test]
fn memory_of_global_pools_is_zero() {
    static POOL: GlobalPool<Tlsf<ArenaVm>> = GlobalPool::new(tlsf);
    assert_zero(&Whole(&POOL), layout);
    #[cfg(feature = "std")]
    {
        tripoint_adaptors::cached_global_pool! {
            static CACHED: Tlsf<ArenaVm> = tlsf;
        }
        assert_zero(&Whole(&CACHED), layout);
        tripoint_adaptors::cached_global_pool! {
            static FIRST_FIT: Mvff<ArenaVm> =
                || Mvff::create(ArenaVm::create(options())?, MvffOptions::default());
        }
        assert_zero(&Whole(&FIRST_FIT), layout);
    }
}

/// A platform that leaves pages as they are, which the programs have to find.
#[derive(Debug)]
struct Forgetful(Native);

// SAFETY: that of the native platform, except for what is tested here: bytes that should be zero are not.
unsafe impl Platform for Forgetful {
    fn name(&self) -> &'static str {
        "forgetful"
    }

    fn page_size(&self) -> usize {
        self.0.page_size()
    }

    fn reserve(&self, size: usize, align: usize) -> core::result::Result<NonNull<u8>, PlatformError> {
        self.0.reserve(size, align)
    }

    unsafe fn release(
        &self,
        base: NonNull<u8>,
        size: usize,
        align: usize,
    ) -> core::result::Result<(), PlatformError> {
        // SAFETY: the caller's promises are those of this method.
        unsafe { self.0.release(base, size, align) }
    }

    unsafe fn commit(&self, base: NonNull<u8>, size: usize) -> core::result::Result<(), PlatformError> {
        // SAFETY: the caller's promises are those of this method.
        unsafe { self.0.commit(base, size) }
    }

    unsafe fn decommit(&self, base: NonNull<u8>, size: usize) -> core::result::Result<(), PlatformError> {
        // SAFETY: the caller's promises are those of this method.
        unsafe { self.0.decommit(base, size) }
    }

    unsafe fn zero(&self, _base: NonNull<u8>, _size: usize) -> core::result::Result<(), PlatformError> {
        Ok(())
    }

    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> core::result::Result<(), PlatformError> {
        // SAFETY: the caller's promises are those of this method.
        unsafe { self.0.populate(base, size) }
    }

    unsafe fn populate_in_use(
        &self,
        base: NonNull<u8>,
        size: usize,
    ) -> core::result::Result<(), PlatformError> {
        // SAFETY: the caller's promises are those of this method.
        unsafe { self.0.populate_in_use(base, size) }
    }

    unsafe fn advise_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
    ) -> core::result::Result<(), PlatformError> {
        // SAFETY: the caller's promises are those of this method.
        unsafe { self.0.advise_huge_pages(base, size) }
    }

    unsafe fn lock(&self, base: NonNull<u8>, size: usize) -> core::result::Result<(), PlatformError> {
        // SAFETY: the caller's promises are those of this method.
        unsafe { self.0.lock(base, size) }
    }

    unsafe fn unlock(&self, base: NonNull<u8>, size: usize) -> core::result::Result<(), PlatformError> {
        // SAFETY: the caller's promises are those of this method.
        unsafe { self.0.unlock(base, size) }
    }

    unsafe fn no_inherit(&self, base: NonNull<u8>, size: usize) -> core::result::Result<(), PlatformError> {
        // SAFETY: the caller's promises are those of this method.
        unsafe { self.0.no_inherit(base, size) }
    }
}

/// The program finds memory that was not made zero: by a platform, if objects are large, and by a store.
#[test]
#[cfg_attr(miri, ignore = "fresh memory is uninitialised there, and would be read")]
fn programs_find_what_is_not_zero() {
    struct Forgets<'s, S>(Stored<'s, S>);

    impl<S: Store> Program for Forgets<'_, S> {
        fn alloc(&self, layout: Layout, _zeroed: bool) -> Option<NonNull<u8>> {
            self.0.alloc(layout, false)
        }

        unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
            // SAFETY: the caller's object.
            unsafe { self.0.free(object, layout) };
        }
    }

    let arena = ArenaVm::create(options()).unwrap();
    let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    // In front of a cache, so that no debris of free lists is needed to find it.
    assert!(Forgets(Stored(&pool)).run(1, layout).is_some());
    let arena = ArenaVm::create_on(Forgetful(Native::new()), options()).unwrap();
    let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    assert!((0..8).any(|seed| Stored(&pool).run(seed, layout).is_some()));
    assert!(pool.header().arena().last_refusal().is_none());
}
