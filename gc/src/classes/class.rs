//! The pool classes: `Ams`, `Lo` and `Awl`, `Amc` and `Amcz`.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ptr::NonNull;

use tripoint_core::internal::{Defer, DescriptorMemory};
use tripoint_core::{
    Addr, Align, Arena, BarrierPair, Block, Check, CheckError, CheckLevel, Describe, Error, Fill, GivesWay,
    KeepsInBuffer, Lock, OwnBuffer, PoolClass, PoolHeader, PoolId, PoolOptions, PoolSizes, RankSet, Result,
    ensure, line,
};

use crate::classes::copies::Copies;
use crate::classes::pool::Pool;
use crate::classes::state::State;
use crate::collect::pressure::MayCollect;
use crate::heaps::heap::Heap;
use crate::heaps::member::{Member, MemberLink};
use crate::heaps::mutator_buffer::MutatorBuffer;
use crate::outlines::pool_outline::PoolOutline;
use crate::scans::format::{Format, MovableFormat};
use crate::segments::segment::{Fate, GreyList, SegmentPtr, Shape};

const NO_MUTATOR: Error =
    Error::Parameter("an allocation point in an automatic pool belongs to a mutator of its heap: attend one");

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// What distinguishes the classes of [`Swept`] pools: whether objects of the format `F` have references, and whether
/// they move. The crate implements it, and no other crate can.
pub trait Kind<F: Format>: sealed::Sealed + Send + Sync + 'static {
    /// The name of the class.
    const CLASS: &'static str;
    /// The ranks of their references.
    const RANKS: RankSet;
    /// Whether they move.
    const MOVES: bool = false;
    /// Whether points give way in the slow path of reserve. If they do not, points are used only while their mutator
    /// does not give way elsewhere, so commits do not fail.
    // (design/gc-typed.md `.typed.inside`)
    const GIVES_WAY: bool = true;
}

/// Objects with exact references.
#[derive(Debug)]
pub enum Traced {}

/// Objects without references to objects of the heap.
#[derive(Debug)]
pub enum Leaf {}

/// Objects with weak references, which keep nothing.
#[derive(Debug)]
pub enum WeakSlots {}

/// Objects with exact references, which move.
#[derive(Debug)]
pub enum Moved {}

/// Objects without references to objects of the heap, which move.
#[derive(Debug)]
pub enum MovedLeaf {}

impl sealed::Sealed for WeakSlots {}
impl sealed::Sealed for Traced {}
impl sealed::Sealed for Leaf {}
impl sealed::Sealed for Moved {}
impl sealed::Sealed for MovedLeaf {}

impl<F: Format> Kind<F> for Traced {
    const CLASS: &'static str = "AMS";
    const RANKS: RankSet = RankSet::EXACT;
}

impl<F: Format> Kind<F> for Leaf {
    const CLASS: &'static str = "LO";
    const RANKS: RankSet = RankSet::empty();
}

impl<F: MovableFormat> Kind<F> for Moved {
    const CLASS: &'static str = "AMC";
    const RANKS: RankSet = RankSet::EXACT;
    const MOVES: bool = true;
}

impl<F: MovableFormat> Kind<F> for MovedLeaf {
    const CLASS: &'static str = "AMCZ";
    const RANKS: RankSet = RankSet::empty();
    const MOVES: bool = true;
}

impl<F: Format> Kind<F> for WeakSlots {
    const CLASS: &'static str = "AWL";
    const RANKS: RankSet = RankSet::WEAK;
}

/// Automatic, mark and sweep: objects with exact references that are freed when no root leads to them,
/// and never move.
pub type Ams<'h, A, B, F> = Swept<'h, A, B, F, Traced>;

/// Leaf objects: objects without references to objects of the heap. They are freed when no root leads to them, are
/// never scanned, and never move.
pub type Lo<'h, A, B, F> = Swept<'h, A, B, F, Leaf>;

/// Automatic, weak, linked: objects with weak references, for example the keys of a table. They are freed when no root
/// leads to them, and never move. Their references keep nothing: the collection that frees an object has the format
/// scan all objects of the pool that were reached, and [`Scan::fix`](crate::Scan::fix) sets references to the object to
/// null. What else belongs to such a reference, for example the value of a key, may be in the [dependent
/// object](Format::dependent), in which the format may then write.
pub type Awl<'h, A, B, F> = Swept<'h, A, B, F, WeakSlots>;

/// Automatic, mostly copying: objects with exact references. A collection moves those that it keeps together, except
/// those that ambiguous references lead to, that do not fit in a segment of the usual size, or for whose copies the
/// arena refuses memory. Objects that no root leads to are freed.
pub type Amc<'h, A, B, F> = Swept<'h, A, B, F, Moved>;

/// Leaf objects that are moved as in an [`Amc`]. They are never scanned.
pub type Amcz<'h, A, B, F> = Swept<'h, A, B, F, MovedLeaf>;

/// Options for a pool of class [`Ams`], [`Lo`], [`Awl`], [`Amc`] or [`Amcz`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweptOptions {
    /// The usual size of a segment, in bytes, which is rounded up to grains of the arena. An object that does not fit
    /// in one has a segment of its own, and never moves. By default 64 KiB.
    pub segment_size: usize,
}

impl Default for SweptOptions {
    fn default() -> Self {
        Self { segment_size: 64 << 10 }
    }
}

/// A pool of objects that are freed when they are not reachable: an [`Ams`], [`Lo`] or [`Awl`], in which they never
/// move, or an [`Amc`] or [`Amcz`].
///
/// Each of its allocation points belongs to a [`Mutator`](crate::Mutator) ([`MutatorBuffer::attend`]). Only collections
/// free objects: those that the program asks for, and those that the heap begins by itself in a reserve
/// ([`Heap::set_policy`], [`Heap::park`]).
///
/// An object that was committed has to be reachable from a root when its thread next allocates, polls or is away;
/// otherwise it may be freed. The memory of a reservation is not cleared. A commit of an object that may have
/// references ([`Ams`], [`Amc`], [`Awl`]) fails if the heap was collected or walked since the reserve. That takes a
/// thread that holds the reservation while it gives way elsewhere: at another point, in a poll, in a stop or a
/// collection of its own, or while it is away.
///
/// Drop a pool only when no object of another pool and no exact root refers to its objects: such a reference may lead
/// into memory of other objects later. A pool that is leaked is collected as long as its heap lives.
pub struct Swept<'h, A: Arena, B: BarrierPair, F: Format, K: Kind<F>> {
    pool: NonNull<Pool<A, F>>,
    outline: NonNull<PoolOutline>,
    heap: &'h Heap<'h, A, B>,
    kind: PhantomData<K>,
}

// SAFETY: the pool is in the memory of the arena, and `Sync`; the heap is too. Nothing of it belongs to a thread.
unsafe impl<A: Arena + Send, B: BarrierPair, F: Format, K: Kind<F>> Send for Swept<'_, A, B, F, K> {}
// SAFETY: a shared pool reaches the pool in the arena's memory, which is `Sync`, and the heap, which is too.
unsafe impl<A: Arena, B: BarrierPair, F: Format, K: Kind<F>> Sync for Swept<'_, A, B, F, K> {}

impl<'h, A: Arena + Clone, B: BarrierPair, F: Format, K: Kind<F>> Swept<'h, A, B, F, K>
where
    A: 'h,
{
    /// Creates a pool without memory, whose objects have this format.
    ///
    /// # Errors
    /// - [`Error::FormatSize`] for a format that is too large to be kept in a descriptor of the arena beside the pool: pass
    ///   a reference to it, `&'static F`, which is a format too
    /// - [`Error::Parameter`] for a format whose alignment is less than a word or more than a grain, or whose header is
    ///   not a multiple of a word
    /// - those of [`Arena::register`] and [`Arena::alloc_descriptor`]
    pub fn create(heap: &'h Heap<'h, A, B>, format: F, options: SweptOptions) -> Result<Self> {
        let shape = Shape { align: format.align(), header: format.header() };
        if shape.align < Align::WORD || shape.align.get() > heap.arena().grain() {
            return Err(Error::Parameter(
                "objects of a format are aligned to a word at least, and a grain at most",
            ));
        }
        if !shape.header.is_multiple_of(Align::WORD.get()) {
            return Err(Error::Parameter("the header of a format is a multiple of a word"));
        }
        let layout = Layout::new::<Pool<A, F>>();
        let (size, most) = (size_of::<F>(), DescriptorMemory::SIZE_MAX);
        if layout.size() > most {
            return Err(Error::FormatSize { size, limit: (most + size).saturating_sub(layout.size()) });
        }
        let passed = PoolOptions::new([shape.align.get(), shape.header, options.segment_size]);
        let header = PoolHeader::create_with(heap.arena().clone(), K::CLASS, passed)?;
        let outline = heap.arena().alloc_descriptor(Layout::new::<PoolOutline>())?.cast::<PoolOutline>();
        let free_outline = Defer::new(|| {
            // SAFETY: this came from `alloc_descriptor` of this arena with this layout, and no list has it.
            unsafe { heap.arena().free_descriptor(outline.cast(), Layout::new::<PoolOutline>()) };
        });
        let place = heap.arena().alloc_descriptor(layout)?.cast::<Pool<A, F>>();
        mem::forget(free_outline);
        let member: NonNull<dyn Member + '_> = place;
        // SAFETY: only the lifetime changes. The link is taken off the list before the pool is dropped. If the
        // pool is leaked, it stays in the memory of the arena, and all that it has is valid as long as the heap: an
        // arena of the heap's type, and a format that is `'static`.
        let member = unsafe { mem::transmute::<NonNull<dyn Member + '_>, NonNull<dyn Member>>(member) };
        let pool = Pool {
            // SAFETY: the pool stays in place until it is dropped, by `drop`, after the link was taken off the list.
            link: unsafe { MemberLink::new(header.id(), member) },
            grey: GreyList::new(),
            copies: K::MOVES.then(Copies::new),
            ranks: K::RANKS,
            gives_way: K::GIVES_WAY,
            segment_size: options.segment_size,
            shape,
            format,
            state: Lock::new(State::new()),
            header,
        };
        // SAFETY: this is fresh memory with the layout of a pool.
        unsafe { place.write(pool) };
        // SAFETY: the link is in no list, and is removed before the pool is dropped.
        unsafe { heap.members().lock().push(NonNull::from(&(*place.as_ptr()).link)) };
        // SAFETY: the pool was just written, and is only ever borrowed shared from here on.
        let written = unsafe { place.as_ref() }.outline();
        // SAFETY: this is fresh memory with the layout of an outline.
        unsafe { outline.write(written) };
        // SAFETY: the outline is in no list, and is removed before it is freed.
        unsafe { heap.outlines().lock().push(outline) };
        heap.list();
        Ok(Self { pool: place, outline, heap, kind: PhantomData })
    }
}

impl<'h, A: Arena, B: BarrierPair, F: Format, K: Kind<F>> Swept<'h, A, B, F, K> {
    pub(crate) fn pool(&self) -> &Pool<A, F> {
        // SAFETY: the pool is initialised and in place until this value is dropped, and only ever borrowed shared.
        unsafe { self.pool.as_ref() }
    }

    /// The heap of the pool.
    pub(crate) const fn heap(&self) -> &'h Heap<'h, A, B> {
        self.heap
    }

    /// The number of the pool in its arena.
    #[inline]
    pub(crate) fn id(&self) -> PoolId {
        self.pool().header.id()
    }

    /// The format of its objects.
    #[must_use]
    pub fn format(&self) -> &F {
        &self.pool().format
    }

    /// Has collections and walks know nothing of the pool from here on, for it is to be dropped. It keeps its memory until
    /// then. Does nothing if this was called before.
    pub(crate) fn leave_heap(&self) {
        self.heap.forget_pool(self.pool().header.id());
        self.heap.members().lock().remove(NonNull::from(&self.pool().link));
        self.heap.outlines().lock().remove(self.outline);
    }
}

impl<A: Arena, B: BarrierPair, F: Format, K: Kind<F>> Drop for Swept<'_, A, B, F, K> {
    fn drop(&mut self) {
        self.leave_heap();
        // SAFETY: allocation points borrow this value, which is being dropped, and the heap does not know
        // the pool any more.
        unsafe { self.pool.drop_in_place() };
        // SAFETY: this memory came from `alloc_descriptor` of this arena with this layout (`create`), and the
        // pool in it was just dropped.
        unsafe { self.heap.arena().free_descriptor(self.pool.cast(), Layout::new::<Pool<A, F>>()) };
        // SAFETY: this memory came from `alloc_descriptor` of this arena with this layout (`create`), and the list does not
        // have it any more.
        unsafe { self.heap.arena().free_descriptor(self.outline.cast(), Layout::new::<PoolOutline>()) };
    }
}

impl<A: Arena, B: BarrierPair, F: Format, K: Kind<F>> KeepsInBuffer for Swept<'_, A, B, F, K> {
    type Buffer = MutatorBuffer;

    fn new_buffer(&self) -> MutatorBuffer {
        MutatorBuffer::new(K::RANKS)
    }

    unsafe fn fill_buffer(own: OwnBuffer<'_, Self, MutatorBuffer>, layout: Layout) -> Result<Option<Fill>> {
        let (this, buffer) = (own.pool(), own.kept());
        if !this.heap.attends(buffer) {
            return Err(NO_MUTATOR);
        }
        let size =
            this.reserve_size(layout).ok_or(Error::Parameter("objects are aligned as their format says"))?;
        if size <= this.pool().shape.header {
            return Err(Error::Parameter("an object is longer than its header: reserve a word more"));
        }
        let generation = this.pool().first_generation();
        let Some(may_collect) = MayCollect::in_fills_of::<Self>() else {
            return this.heap.fill_inside(generation, || this.pool().fill(buffer, size)).map(Some);
        };
        // SAFETY: this pool has borrowed the heap since it was created. `own` is the owner's of the buffer, which is reset.
        let filled = unsafe {
            this.heap.fill_with(may_collect, buffer, generation, || {
                match this.heap.accounts().is_stressed() {
                    false => this.pool().fill(buffer, size),
                    true => this.pool().fill_exactly(buffer, size),
                }
            })
        };
        filled.map(Some)
    }

    unsafe fn empty_buffer(own: OwnBuffer<'_, Self, MutatorBuffer>, unused: Block) -> Option<Block> {
        let this = own.pool();
        // SAFETY: the caller promises that this is the end of the buffer's memory, which nothing uses any more.
        // What was committed in front of it are objects of the format, as every commit promised.
        unsafe { this.pool().empty(own.kept(), unused) };
        this.heap.accounts().discharge(this.pool().first_generation(), unused.size());
        None
    }
}

impl<A: Arena, B: BarrierPair, F: Format, K: Kind<F>> GivesWay for Swept<'_, A, B, F, K> {
    const GIVES_WAY: bool = K::GIVES_WAY;

    fn wants_stop(&self) -> bool {
        self.heap.wants_stop()
    }

    unsafe fn give_way(own: OwnBuffer<'_, Self, MutatorBuffer>) {
        // SAFETY: this pool has borrowed the heap since it was created. `own` is the owner's of the buffer, which is reset.
        unsafe { own.pool().heap.give_way(own.kept()) };
    }
}

// SAFETY: runs are gaps between objects and other buffers, or the payload of a new segment, and are taken
// off the lists before they are handed out. They stay in place until the pool is dropped: segments that a
// buffer holds memory of are not returned. They are aligned as objects are, and so are their sizes; the
// segment of a fill is the one that it lies in. The rest follows from the format's alignment, which never changes.
unsafe impl<A: Arena, B: BarrierPair, F: Format, K: Kind<F>> PoolClass for Swept<'_, A, B, F, K> {
    const CLASS: &'static str = K::CLASS;
    const FLIPPABLE: bool = !K::RANKS.is_empty() && K::GIVES_WAY;

    type Arena = A;
    type Barrier = B;

    fn header(&self) -> &PoolHeader<A> {
        &self.pool().header
    }

    fn barrier(&self) -> B {
        self.heap.barrier()
    }

    fn min_align(&self) -> usize {
        self.pool().format.align().get()
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        // Asked of the format, so that it is known at compile time if the format knows it.
        let align = self.pool().format.align();
        let size = align.round_up(layout.size().max(1))?;
        (layout.align() <= align.get() && size <= isize::MAX.unsigned_abs()).then_some(size)
    }

    fn fill(&self, _layout: Layout) -> Result<Fill> {
        Err(NO_MUTATOR)
    }

    /// Does nothing: memory comes from [`KeepsInBuffer::fill_buffer`] alone, and is returned by
    /// [`KeepsInBuffer::empty_buffer`].
    unsafe fn empty(&self, _unused: Block) {}

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        let pool = self.pool();
        let (_stays_as_it_is, mut from) = (pool.settled(), Addr::ZERO);
        while let Some(segment) = pool.segment_from(from) {
            // What waits to be swept is not free before that.
            if segment.get().fate() != Fate::Waits {
                pool.for_each_gap(segment, &mut *visit);
            }
            from = segment.get().limit();
        }
    }

    /// `largest_free` is found by a look at each of the free runs of about the largest size.
    fn sizes(&self) -> PoolSizes {
        let state = self.pool().state.lock();
        PoolSizes::of(self.header(), state.free(), state.largest())
    }
}

impl<A: Arena, B: BarrierPair, F: Format, K: Kind<F>> Check for Swept<'_, A, B, F, K> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header().check(level)?;
        if level >= CheckLevel::Deep {
            let (pool, state) = (self.pool(), self.pool().settled());
            let mut free = 0;
            state.for_each_segment(|segment| free += gaps(pool, segment));
            ensure(K::CLASS, free == state.free(), "what is in no object and no buffer is free")?;
        }
        Ok(())
    }
}

/// The bytes of a segment that are in no object and no buffer.
fn gaps<A: Arena, F: Format>(pool: &Pool<A, F>, segment: SegmentPtr) -> usize {
    let mut free = 0;
    pool.for_each_gap(segment, |gap| free += gap.size());
    free
}

impl<A: Arena, B: BarrierPair, F: Format, K: Kind<F>> Describe for Swept<'_, A, B, F, K> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header().describe(out, depth)?;
        let free = self.pool().state.lock().free();
        line(out, depth + 1, "free", format_args!("{free} bytes"))
    }
}

impl<A: Arena, B: BarrierPair, F: Format, K: Kind<F>> fmt::Debug for Swept<'_, A, B, F, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(K::CLASS).field(self.pool()).finish()
    }
}
