//! A class under a debug pool that knows its buffers.

use super::*;

use tripoint_core::{GivesWay, KeepsInBuffer, OwnBuffer};

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

impl<P: ManualPool> KeepsInBuffer for Knowing<'_, P> {
    const KEEPS_UNUSED: bool = true;

    type Buffer = P::Buffer;

    fn new_buffer(&self) -> P::Buffer {
        self.pool.new_buffer()
    }

    unsafe fn fill_buffer(own: OwnBuffer<'_, Self, P::Buffer>, layout: Layout) -> Result<Option<Fill>> {
        own.pool().filled.fetch_add(1, Ordering::Relaxed);
        let needed = Layout::from_size_align(layout.size() + PREALLOCATED, layout.align()).unwrap();
        let fill = own.pool().pool.fill(needed)?;
        // SAFETY: fresh memory, at least as large.
        unsafe { fill.block.base().write_bytes(PATTERN, PREALLOCATED) };
        Ok(Some(Fill { preallocated: PREALLOCATED, ..fill }))
    }

    unsafe fn finish_buffer(own: OwnBuffer<'_, Self, P::Buffer>) -> bool {
        own.pool().finished.fetch_add(1, Ordering::Relaxed);
        false
    }
}

impl<P: ManualPool> GivesWay for Knowing<'_, P> {}

// SAFETY: blocks are whole fills of the pool under this one, so they are large enough, aligned, and
// overlap no others. This class allocates the front of each, in whole granules, and says so.
unsafe impl<P: ManualPool> PoolClass for Knowing<'_, P> {
    const CLASS: &'static str = P::CLASS;
    const FLIPPABLE: bool = false;

    type Arena = P::Arena;
    type Barrier = P::Barrier;

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

    /// What is unused stays the buffer's (`KEEPS_UNUSED`), until the pool is dropped.
    unsafe fn empty(&self, _unused: Block) {}

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        self.pool.walk_free(visit);
    }

    fn sizes(&self) -> PoolSizes {
        self.pool.sizes()
    }
}

// SAFETY: memory from `alloc` is that of the pool under this one, and `free` returns it there.
unsafe impl<P: ManualPool> Store for Knowing<'_, P> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.pool.alloc(layout)
    }

    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises an object from `alloc`, which is the inner pool's, with its layout.
        unsafe { self.pool.free(object, layout) };
    }
}

// SAFETY: not flippable, and every free is one of the pool under this one, for its own objects.
unsafe impl<P: ManualPool> ManualPool for Knowing<'_, P> {}

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
fn a_class_under_a_debug_pool_still_knows_its_buffers() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let mvff = Mvff::create(&arena, MvffOptions { extend_by: GRAIN, ..MvffOptions::default() }).unwrap();
    let [filled, finished] = [0; 2].map(AtomicUsize::new);
    let pool = debug(Knowing { pool: mvff, filled: &filled, finished: &finished });
    const { assert!(<DebugPool<Knowing<'_, Mvff<&ClientArena<'_>>>> as KeepsInBuffer>::KEEPS_UNUSED) };
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
