//! A pool all of whose objects are reported.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{
    Arena, Block, Check, CheckError, CheckLevel, Describe, EventHook, Fill, GivesWay, KeepsInBuffer,
    Magazine, ManualPool, OwnBuffer, PoolClass, PoolHeader, PoolSizes, Result, Store,
};

use crate::logger::logged_store::LoggedStore;

/// A manual pool that reports all that is allocated, refused, resized and freed in it, as a [`LoggedStore`] does, to
/// whichever box, cache or collection the object belongs. So a box of a point is reported also when it is dropped.
///
/// It is another class with the same memory behind it, and is made before the pool's points and caches. What its
/// points do is reported by their [`PointLogger`](crate::PointLogger). While the switch returns false, calls cost no more
/// than this function does; while it returns true, objects for a cache are allocated and freed one by one.
///
/// ```
/// use std::sync::Mutex;
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{ClientArena, ClientArenaOptions, Event, EventHook};
/// use tripoint_pools::{Mvff, MvffOptions};
/// use tripoint_telemetry::LoggedPool;
///
/// struct Events(Mutex<Vec<Event>>);
///
/// impl EventHook for Events {
///     fn event(&self, event: Event) {
///         self.0.lock().unwrap().push(event);
///     }
/// }
///
/// let mut memory = Box::new_uninit_slice(1 << 20);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let events = Events(Mutex::default());
/// let pool = LoggedPool::new(Mvff::create(&arena, MvffOptions::default())?, || true, &events);
/// let mut point = AllocationPoint::create(&pool)?;
/// drop(point.boxed([0_u64; 12])?);
/// assert!(matches!(events.0.lock().unwrap()[..], [Event::Free { size: 96, .. }]));
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct LoggedPool<P, W, H> {
    pool: P,
    is_on: W,
    hook: H,
}

impl<P: ManualPool, W: Fn() -> bool, H: EventHook> LoggedPool<P, W, H> {
    /// Reports to `hook` what `pool` allocates and frees, while `is_on` returns true. Neither may use the pool.
    pub const fn new(pool: P, is_on: W, hook: H) -> Self {
        Self { pool, is_on, hook }
    }

    /// The pool behind this one. What is allocated in it is not reported.
    pub const fn pool(&self) -> &P {
        &self.pool
    }

    fn logging(&self) -> LoggedStore<'_, P, &W, &H> {
        LoggedStore::new(&self.pool, &self.pool, &self.is_on, &self.hook)
    }

    /// A buffer of this pool as one of the pool behind it.
    fn inner(own: OwnBuffer<'_, Self, P::Buffer>) -> OwnBuffer<'_, P, P::Buffer> {
        // SAFETY: what it keeps was made by the pool behind this one (`new_buffer`), and `own` is the owner's.
        unsafe { OwnBuffer::new(&own.pool().pool, own.kept()) }
    }
}

impl<P: ManualPool, W: Fn() -> bool, H: EventHook> KeepsInBuffer for LoggedPool<P, W, H> {
    const KEEPS_UNUSED: bool = P::KEEPS_UNUSED;
    const KEEPS_FREED: bool = P::KEEPS_FREED;

    type Buffer = P::Buffer;

    fn new_buffer(&self) -> P::Buffer {
        self.pool.new_buffer()
    }

    unsafe fn fill_buffer(own: OwnBuffer<'_, Self, P::Buffer>, layout: Layout) -> Result<Option<Fill>> {
        // SAFETY: the caller says that the buffer is reset.
        unsafe { P::fill_buffer(Self::inner(own), layout) }
    }

    #[inline(always)]
    fn next_run(own: OwnBuffer<'_, Self, P::Buffer>, layout: Layout) -> Option<Block> {
        P::next_run(Self::inner(own), layout)
    }

    unsafe fn empty_buffer(own: OwnBuffer<'_, Self, P::Buffer>, unused: Block) -> Option<Block> {
        // SAFETY: the caller returns the unused end of the buffer's fill, once, and does not use it any more.
        unsafe { P::empty_buffer(Self::inner(own), unused) }
    }

    fn flush_buffer(own: OwnBuffer<'_, Self, P::Buffer>) {
        P::flush_buffer(Self::inner(own));
    }

    unsafe fn finish_buffer(own: OwnBuffer<'_, Self, P::Buffer>) -> bool {
        // SAFETY: the caller says that the buffer is detached and its owner is being dropped, and that nothing uses
        // objects which the class takes back.
        unsafe { P::finish_buffer(Self::inner(own)) }
    }

    #[inline(always)]
    unsafe fn free_in_buffer(own: OwnBuffer<'_, Self, P::Buffer>, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller gives up an object of this pool, and so of the one behind it, of this layout, once.
        unsafe { P::free_in_buffer(Self::inner(own), object, layout) };
    }

    #[inline(always)]
    fn alloc_in_buffer(own: OwnBuffer<'_, Self, P::Buffer>, layout: Layout) -> Option<NonNull<u8>> {
        P::alloc_in_buffer(Self::inner(own), layout)
    }
}

impl<P: ManualPool, W: Fn() -> bool, H: EventHook> GivesWay for LoggedPool<P, W, H> {}

// SAFETY: the header, the blocks, the sizes and the alignments are those of the pool behind this one, whose promises are
// these. Classes with one header are this one and that one, and the buffers of both are the same, made by that one.
unsafe impl<P: ManualPool, W: Fn() -> bool, H: EventHook> PoolClass for LoggedPool<P, W, H> {
    const CLASS: &'static str = P::CLASS;
    const FLIPPABLE: bool = false;
    const SEAL_SIZE: usize = P::SEAL_SIZE;

    type Arena = P::Arena;
    type Barrier = P::Barrier;

    #[inline(always)]
    fn header(&self) -> &PoolHeader<P::Arena> {
        self.pool.header()
    }

    #[inline(always)]
    fn barrier(&self) -> P::Barrier {
        self.pool.barrier()
    }

    #[inline(always)]
    fn min_align(&self) -> usize {
        self.pool.min_align()
    }

    #[inline(always)]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        self.pool.reserve_size(layout)
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        self.pool.fill(layout)
    }

    unsafe fn empty(&self, unused: Block) {
        // SAFETY: the caller returns the end of a fill of the pool behind this one, once, and does not use it any more.
        unsafe { self.pool.empty(unused) };
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        self.pool.walk_free(visit);
    }

    fn sizes(&self) -> PoolSizes {
        self.pool.sizes()
    }
}

// SAFETY: memory comes from the pool behind this one, with the layout that was asked for, and is returned to it in the
// same way, so its promises are these.
unsafe impl<P: ManualPool, W: Fn() -> bool, H: EventHook> Store for LoggedPool<P, W, H> {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.logging().alloc(layout)
    }

    #[inline]
    fn alloc_named(&self, layout: Layout, type_name: &'static str) -> Result<NonNull<u8>> {
        self.logging().alloc_named(layout, type_name)
    }

    fn alloc_many(&self, layout: Layout, magazine: &mut Magazine) {
        if (self.is_on)() {
            self.logging().alloc_many(layout, magazine);
        } else {
            self.pool.alloc_many(layout, magazine);
        }
    }

    unsafe fn free_many(&self, layout: Layout, magazine: &mut Magazine) {
        if (self.is_on)() {
            // SAFETY: the caller gives up objects of this pool, all of this layout.
            unsafe { self.logging().free_many(layout, magazine) };
        } else {
            // SAFETY: the caller gives up objects of this pool, and so of the one behind it, all of this layout.
            unsafe { self.pool.free_many(layout, magazine) };
        }
    }

    #[inline]
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller gives up an object of this pool, of this layout, once.
        unsafe { self.logging().free(object, layout) };
    }

    #[inline]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the caller's object is of this pool, with the layout `from`, and is not freed.
        unsafe { self.logging().resize(object, from, to) }
    }

    #[inline]
    unsafe fn resize_room(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        if (self.is_on)() {
            // SAFETY: the caller's object is of this pool, with the layout `from`, and is not freed.
            unsafe { self.resize(object, from, to) }
        } else {
            // SAFETY: the caller's object is of this pool, and so of the one behind it, with the layout `from`, and is
            // not freed.
            unsafe { self.pool.resize_room(object, from, to) }
        }
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        self.pool.arena()
    }
}

// SAFETY: the pool behind this one is manual too, and every call is passed on to it with the same arguments.
unsafe impl<P: ManualPool, W: Fn() -> bool, H: EventHook> ManualPool for LoggedPool<P, W, H> {
    const OBSERVES_OBJECTS: bool = true;

    #[inline(always)]
    unsafe fn set_aside(&self, object: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: if there is such an object it is the caller's, and nothing uses it any more.
        unsafe { self.pool.set_aside(object, layout) }
    }

    #[inline(always)]
    unsafe fn put_in_use(&self, object: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: the caller set the object aside with this layout, and has it.
        unsafe { self.pool.put_in_use(object, layout) }
    }

    fn note_damage(&self) {
        self.pool.note_damage();
    }

    #[inline]
    fn resizes_in_place(&self, from: Layout, to: Layout) -> bool {
        self.pool.resizes_in_place(from, to)
    }
}

impl<P: ManualPool, W, H> Check for LoggedPool<P, W, H> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.pool.check(level)
    }
}

impl<P: ManualPool, W, H> Describe for LoggedPool<P, W, H> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.pool.describe(out, depth)
    }
}

impl<P: ManualPool, W, H> fmt::Debug for LoggedPool<P, W, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedPool").field("pool", &self.pool.header().id()).finish_non_exhaustive()
    }
}
