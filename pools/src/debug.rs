//! Debug pools: another class with fences, splats and a ledger around it.
//!
//! It finds code that breaks the duties of [`Store::free`](tripoint_core::Store::free). Not using it
//! costs nothing: it is another type (design/debug.md `.debug`, `.req.off`).

use core::alloc::Layout;
use core::fmt;
use core::num::NonZeroUsize;
use core::ptr::NonNull;

use tripoint_core::{
    Addr, Arena, Block, BufferClass, Check, CheckError, CheckLevel, Describe, Error, Fill, GivesWay,
    KeepsInBuffer, Lock, ManualPool, OwnBuffer, PoolClass, PoolHeader, PoolSizes, Result, Store, ensure,
    line,
};

mod fence;
mod fence_seal;
mod held;
mod ledger;
mod report;

use crate::resize::resize_in_place;
use crate::seal::for_each_piece;
use fence::{FENCE_SIZE, FREED, FRESH, Fence, read_fence, splat, write_fence};
use held::{HELD_MAX, Held, HeldObject};
use ledger::{Ledger, Mark, WORD};
pub use report::{DebugReport, DebugReports, Fault};

const UNSERVED: Error = Error::Parameter("the layout, with a fence, is not one that the class serves");

/// Options for a [`DebugPool`].
#[derive(Clone, Copy, Debug)]
pub struct DebugOptions {
    /// A function that observes each fault, besides [`DebugPool::reports`]. It is called with the pool
    /// locked: it may not call the pool. It may panic, and so end the program
    /// where the fault is found. Default: none.
    pub hook: Option<fn(&DebugReport)>,
    /// How many freed objects are held back to see whether a client writes to
    /// them. Default and most: 64.
    pub held: usize,
}

impl Default for DebugOptions {
    fn default() -> Self {
        Self { hook: None, held: HELD_MAX }
    }
}

/// A pool that watches its clients, around a pool of any manual class.
///
/// It finds, and [reports](DebugReport):
/// - writes behind an object, when that is freed and in a deep check
/// - writes to an object after it was freed, while it is held back, when it leaves
///   and in a deep check
/// - an object freed twice, a pointer that is not an object's or not the pool's,
///   a layout that is not the object's: at the free, which then does nothing, so
///   that [`Store::free`](tripoint_core::Store::free) asks less of its caller here
///
/// Objects of allocation points have no fences; all else holds for them too
/// (design/debug.md `.debug.points`).
///
/// It takes `DebugPool::<P>::FENCE_SIZE` bytes more an object, so a pool of fixed size needs
/// larger units; two bits for each word of the pool in the arena's descriptor memory;
/// and time in proportion to the sizes of objects.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use core::alloc::Layout;
/// use tripoint_core::Store;
/// use tripoint_pools::{DebugPool, DebugOptions, Fault, Mvff, MvffOptions};
///
/// let pool = DebugPool::create(Mvff::create(&arena, MvffOptions::default())?, DebugOptions::default())?;
/// let layout = Layout::new::<u64>();
/// let object = pool.alloc(layout)?;
/// // SAFETY: allocated above with this layout, and not used any more.
/// unsafe { pool.free(object, layout) };
/// // SAFETY: freed before, which a debug pool finds, and then does nothing.
/// unsafe { pool.free(object, layout) };
/// assert_eq!(pool.reports().iter().next().map(|report| report.fault), Some(Fault::DoubleFree));
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("fence", "red zone", "use after free"))]
#[derive(Debug)]
pub struct DebugPool<P: ManualPool> {
    state: Lock<State>,
    hook: Option<fn(&DebugReport)>,
    pool: P,
}

/// What the debug pool knows.
#[derive(Debug)]
struct State {
    ledger: Ledger,
    held: Held,
    reports: DebugReports,
}

impl<P: ManualPool> DebugPool<P> {
    /// The bytes that an object takes more than in the pool under this one, before
    /// rounding.
    pub const FENCE_SIZE: usize = FENCE_SIZE + P::SEAL_SIZE;

    /// Puts a debug pool around a pool that has not handed out any memory.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a class whose least alignment is below a word, and
    /// for a pool that was used.
    pub fn create(pool: P, options: DebugOptions) -> Result<Self> {
        if pool.min_align() < WORD {
            return Err(Error::Parameter("the class aligns to less than a word"));
        }
        if pool.sizes().free != pool.sizes().total {
            return Err(Error::Parameter("the pool was used before"));
        }
        let ledger = Ledger::new(pool.header().arena().range());
        let state = State { ledger, held: Held::new(options.held), reports: DebugReports::new() };
        Ok(Self { state: Lock::new(state), hook: options.hook, pool })
    }

    /// The faults found so far.
    pub fn reports(&self) -> DebugReports {
        self.state.lock().reports
    }

    /// Looks at every fence and everything held back, and shows every fault that
    /// is there now. Neither the hook nor [`DebugPool::reports`] observes them. The pool is
    /// locked meanwhile: `visit` may not call it.
    ///
    /// No thread may write to objects of the pool meanwhile, except inside them.
    pub fn inspect(&self, visit: &mut dyn FnMut(&DebugReport)) {
        self.inspect_state(&self.state.lock(), visit);
    }

    fn inspect_state(&self, state: &State, visit: &mut dyn FnMut(&DebugReport)) {
        state.held.iter().filter_map(|held| self.fault_in_held(held)).for_each(|report| visit(&report));
        state.ledger.walk_objects(&mut |addr| {
            let size = state.ledger.object_size(addr.get());
            let Some(addr) = NonZeroUsize::new(addr.get()) else { return };
            // SAFETY: the ledger has an object here, of this size.
            let reserved = unsafe { Block::new(self.pool.header().reach(addr), size) };
            // SAFETY: the ledger has an object here, which was fenced.
            if let Fence::Damaged { at, size } = unsafe { read_fence(reserved) } {
                let size = size.unwrap_or(reserved.size() - FENCE_SIZE);
                visit(&self.report_of(reserved.range().base(), size, Fault::Overrun { at }));
            }
        });
    }

    fn fault_in_held(&self, held: &HeldObject) -> Option<DebugReport> {
        let at = held.first_change()?;
        Some(self.report_of(held.block.range().base(), held.layout.size(), Fault::UsedAfterFree { at }))
    }

    fn report_of(&self, object: Addr, size: usize, fault: Fault) -> DebugReport {
        let header = self.pool.header();
        DebugReport { class: header.class(), pool: header.id(), object, size, fault }
    }

    fn add_report(&self, state: &mut State, report: DebugReport) {
        state.reports.add(report);
        if let Some(hook) = self.hook {
            hook(&report);
        }
    }

    /// The buffer, as the pool under this one knows it.
    fn inner(own: OwnBuffer<'_, Self, P::Buffer>) -> OwnBuffer<'_, P, P::Buffer> {
        // SAFETY: what it keeps was made by the pool under this one, and `own` is the owner's.
        unsafe { OwnBuffer::new(&own.pool().pool, own.kept()) }
    }

    /// What an object of `layout` needs of the pool.
    #[inline]
    fn fenced(layout: Layout) -> Option<Layout> {
        let size = layout.size().checked_add(Self::FENCE_SIZE)?;
        Layout::from_size_align(size, layout.align()).ok()
    }

    /// The part of an object's memory that the pool does not use for itself.
    fn unsealed(object: Block) -> Block {
        object.split_at(object.size().saturating_sub(P::SEAL_SIZE)).map_or(object, |(unsealed, _)| unsealed)
    }

    /// Asks the pool; if it refuses, releases what is held and asks again.
    fn ask<T>(&self, state: &mut State, ask: impl Fn(&P) -> Result<T>) -> Result<T> {
        ask(&self.pool).or_else(|error| {
            let mut let_go = false;
            while self.let_go(state) {
                let_go = true;
            }
            if let_go { ask(&self.pool) } else { Err(error) }
        })
    }

    /// Returns the oldest held object to the pool, unless it was written to: then it
    /// is lost, since a client still uses it.
    fn let_go(&self, state: &mut State) -> bool {
        let Some(held) = state.held.pop() else { return false };
        match (self.fault_in_held(&held), Self::fenced(held.layout)) {
            (None, Some(fenced)) => {
                // SAFETY: allocated with this layout, and freed once by the client.
                unsafe { self.pool.free(held.block.base(), fenced) };
            }
            (Some(report), _) => self.add_report(state, report),
            (None, None) => {}
        }
        true
    }

    /// What is wrong with freeing `object`, which takes `size` bytes.
    fn examine(
        &self,
        state: &State,
        object: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<(usize, Fault)> {
        let header = self.pool.header();
        let addr = Addr::of(object.as_ptr());
        let said = layout.size();
        if header.arena().pool_of(addr) != Some(header.id()) {
            return Some((said, Fault::Foreign));
        }
        match state.ledger.mark(addr.get()) {
            Mark::Free => Some((said, Fault::DoubleFree)),
            _ if !addr.get().is_multiple_of(self.min_align()) => Some((said, Fault::Interior)),
            Mark::Rest => Some((said, Fault::Interior)),
            Mark::Buffer => {
                let allocated = state.ledger.size_of_run(addr.get(), Mark::Buffer, size);
                (allocated < size).then_some((said, Fault::WrongLayout { allocated, align: 1 }))
            }
            Mark::Start => {
                // SAFETY: the ledger has an object here, and so much of it.
                let reserved = unsafe { Block::new(object, state.ledger.object_size(addr.get())) };
                // SAFETY: the ledger has an object here, which was fenced, of this size.
                match unsafe { read_fence(reserved) } {
                    Fence::Whole(known) if known == layout => None,
                    Fence::Whole(known) => {
                        Some((said, Fault::WrongLayout { allocated: known.size(), align: known.align() }))
                    }
                    Fence::Damaged { at, size } => Some((size.unwrap_or(said), Fault::Overrun { at })),
                }
            }
        }
    }

    /// Takes a fill for a layout whose size came from [`PoolClass::reserve_size`], so
    /// it has a fence already. What is allocated in it is not touched.
    fn fill_by(&self, ask: impl Fn(&P) -> Result<Fill>) -> Result<Fill> {
        let mut state = self.state.lock();
        let fill = self.ask(&mut state, ask)?;
        let Some((_, fresh)) = fill.block.split_at(fill.preallocated) else { return Ok(fill) };
        if let Err(error) = self.take_over(&mut state, fresh, false) {
            // SAFETY: the end of a fill, which nothing used.
            unsafe { self.pool.empty(fresh) };
            return Err(error);
        }
        state.ledger.note(fresh.range(), Mark::Buffer);
        Ok(fill)
    }

    /// Notes memory that the pool handed out, an object or a fill, and splats it.
    fn take_over(&self, state: &mut State, block: Block, is_object: bool) -> Result<()> {
        state.ledger.cover(block.range(), self.pool.header())?;
        // The pool's own word may be the last of every granule: which of them ends an object is not known yet.
        let piece = if P::SEAL_SIZE == 0 || is_object { block.size() } else { self.min_align() };
        // SAFETY: the pool gave the block out, and the client does not have it yet.
        for_each_piece(block, piece, |piece| unsafe { splat(Self::unsealed(piece), FRESH) });
        Ok(())
    }
}

impl<P: ManualPool> KeepsInBuffer for DebugPool<P> {
    const KEEPS_UNUSED: bool = P::KEEPS_UNUSED;

    type Buffer = P::Buffer;

    fn new_buffer(&self) -> P::Buffer {
        self.pool.new_buffer()
    }

    unsafe fn fill_buffer(own: OwnBuffer<'_, Self, P::Buffer>, layout: Layout) -> Result<Option<Fill>> {
        let fill = own.pool().fill_by(|pool| {
            // SAFETY: the buffer is reset.
            let Some(fill) = (unsafe { P::fill_buffer(Self::inner(own), layout) })? else {
                return pool.fill(layout);
            };
            if own.kept().waiting() == 0 {
                return Ok(fill);
            }
            // A buffer has one run here, which the ledger knows. All of it goes back, so that none is lost if that unwinds.
            // SAFETY: the whole fill, in which nothing was allocated.
            if let Some(unused) = unsafe { P::empty_buffer(Self::inner(own), fill.block) } {
                // SAFETY: the whole fill, not returned so far.
                unsafe { pool.empty(unused) };
            }
            pool.fill(layout)
        });
        fill.map(Some)
    }

    unsafe fn finish_buffer(own: OwnBuffer<'_, Self, P::Buffer>) -> bool {
        // SAFETY: if the class takes objects back, nothing uses them any more.
        unsafe { P::finish_buffer(Self::inner(own)) }
    }
}

impl<P: ManualPool> GivesWay for DebugPool<P> {}

// SAFETY: blocks are those of the pool under this one, each as large and aligned as
// that promises for the layout with a fence; until a block is given back there the
// debug pool touches only its fence, which is behind what the client asked for.
unsafe impl<P: ManualPool> PoolClass for DebugPool<P> {
    const CLASS: &'static str = P::CLASS;
    const FLIPPABLE: bool = false;
    const SEAL_SIZE: usize = P::SEAL_SIZE;

    type Arena = P::Arena;
    type Barrier = P::Barrier;

    fn header(&self) -> &PoolHeader<P::Arena> {
        self.pool.header()
    }

    fn barrier(&self) -> P::Barrier {
        self.pool.barrier()
    }

    #[inline]
    fn min_align(&self) -> usize {
        self.pool.min_align()
    }

    #[inline]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        self.pool.reserve_size(Self::fenced(layout)?)
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        self.fill_by(|pool| pool.fill(layout))
    }

    unsafe fn empty(&self, unused: Block) {
        if unused.size() == 0 {
            return;
        }
        let mut state = self.state.lock();
        state.ledger.note(unused.range(), Mark::Free);
        // SAFETY: the caller gives the block up.
        unsafe { splat(unused, FREED) };
        // SAFETY: the end of a fill of the pool under this one, which the caller returns.
        unsafe { self.pool.empty(unused) };
    }

    /// Objects that are held back are free too, in blocks of their own.
    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        let state = self.state.lock();
        let mut from = Addr::ZERO;
        let mut show_held_below = |limit: Addr, visit: &mut dyn FnMut(Block)| {
            while let Some(held) = state.held.first_from(from).filter(|held| held.range().base() < limit) {
                from = held.range().limit();
                visit(held);
            }
        };
        self.pool.walk_free(&mut |free| {
            show_held_below(free.range().base(), visit);
            visit(free);
        });
        show_held_below(Addr::new(usize::MAX), visit);
    }

    /// Objects that are held back count as free: a request that the pool could
    /// not serve otherwise takes their memory.
    fn sizes(&self) -> PoolSizes {
        let state = self.state.lock();
        let sizes = self.pool.sizes();
        PoolSizes {
            free: sizes.free + state.held.size(),
            largest_free: sizes.largest_free.max(state.held.largest()),
            ..sizes
        }
    }
}

// SAFETY: memory from `alloc` is the inner pool's, asked for with a fence behind it. `free` replaces
// the pointer by one that reaches the same address, and returns each object once, with the layout
// that was asked for. Objects are resized as `ManualPool` promises.
unsafe impl<P: ManualPool> Store for DebugPool<P> {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let fenced = Self::fenced(layout).ok_or(UNSERVED)?;
        let size = self.pool.reserve_size(fenced).ok_or(UNSERVED)?;
        let mut state = self.state.lock();
        let object = self.ask(&mut state, |pool| pool.alloc(fenced))?;
        // SAFETY: the pool gave the object out, which takes that many bytes.
        let reserved = unsafe { Block::new(object, size) };
        if let Err(error) = self.take_over(&mut state, reserved, true) {
            // SAFETY: just allocated with this layout, and not handed out.
            unsafe { self.pool.free(object, fenced) };
            return Err(error);
        }
        let fenced = Self::unsealed(reserved);
        // SAFETY: the block is not handed out yet; it is whole words, and room for a fence
        // was asked for.
        unsafe { write_fence(fenced, layout) };
        state.ledger.note_object(fenced.range());
        Ok(object)
    }

    /// Frees an object, or reports what is wrong with that and does nothing.
    ///
    /// # Safety
    /// - `object` may be anything, with any `layout`, freed or not: this is examined before
    ///   the memory is touched. There is one exception. In the memory of an allocation
    ///   point's fill, it must be an object that was committed there with this layout,
    ///   because the ledger does not know where those begin.
    /// - If it is an object of the pool, nothing uses it any more.
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // No object is as large as a layout that is not served.
        let size = self.reserve_size(layout).unwrap_or(usize::MAX);
        let object = self.pool.header().reach(object.addr());
        let mut state = self.state.lock();
        if let Some((size, fault)) = self.examine(&state, object, layout, size) {
            let report = self.report_of(Addr::of(object.as_ptr()), size, fault);
            return self.add_report(&mut state, report);
        }
        // SAFETY: the ledger has an object here, or a part of a fill, of this size.
        let block = unsafe { Block::new(object, size) };
        state.ledger.note(block.range(), Mark::Free);
        while !state.held.has_room() && self.let_go(&mut state) {}
        if state.held.is_in_use() {
            // SAFETY: the client gave the object up.
            unsafe { state.held.push(HeldObject { block, watched: Self::unsealed(block), layout }) };
        } else if let Some(fenced) = Self::fenced(layout) {
            // SAFETY: the client gave the object up.
            unsafe { splat(Self::unsealed(block), FREED) };
            // SAFETY: allocated with this layout, and freed once.
            unsafe { self.pool.free(object, fenced) };
        }
    }

    #[inline]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        resize_in_place(self, object, from, to)
    }
}

// SAFETY: the pool under this one is manual too. Each object that it handed out is freed in it
// once, with the layout that was asked of it. Nothing is resized in place.
unsafe impl<P: ManualPool> ManualPool for DebugPool<P> {
    const OBSERVES_OBJECTS: bool = true;

    unsafe fn set_aside(&self, object: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: if there is an object it is the caller's, nothing uses it, and it was allocated with a fence.
        Self::fenced(layout).is_some_and(|fenced| unsafe { self.pool.set_aside(object, fenced) })
    }

    unsafe fn put_in_use(&self, object: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: the caller set the object aside, which was allocated with a fence.
        Self::fenced(layout).is_some_and(|fenced| unsafe { self.pool.put_in_use(object, fenced) })
    }

    fn note_damage(&self) {
        self.pool.note_damage();
    }

    /// Only to the same layout: the fence knows what the object was allocated with.
    #[inline]
    fn resizes_in_place(&self, from: Layout, to: Layout) -> bool {
        from == to
    }
}

impl<P: ManualPool> Drop for DebugPool<P> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        // This comes first, because a hook that observes a fault in what is held may panic.
        state.ledger.destroy(self.pool.header());
        while self.let_go(&mut state) {}
    }
}

impl<P: ManualPool> Check for DebugPool<P> {
    /// Fails from [`CheckLevel::Shallow`] on if a fault was reported, and from
    /// [`CheckLevel::Deep`] on if [`DebugPool::inspect`] finds one.
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.pool.check(level)?;
        if level >= CheckLevel::Shallow {
            let state = self.state.lock();
            if let Some(report) = state.reports.iter().next() {
                ensure(Self::CLASS, false, report.fault.rule())?;
            }
            if level >= CheckLevel::Deep {
                let mut outcome = Ok(());
                self.inspect_state(&state, &mut |report| {
                    outcome = outcome.and(ensure(Self::CLASS, false, report.fault.rule()));
                });
                outcome?;
            }
        }
        Ok(())
    }
}

impl<P: ManualPool> Describe for DebugPool<P> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.pool.describe(out, depth)?;
        let (held, reports) = {
            let state = self.state.lock();
            (state.held.size(), state.reports)
        };
        line(out, depth + 1, "held back", format_args!("{held} bytes"))?;
        line(out, depth + 1, "faults", format_args!("{}", reports.count()))?;
        reports.iter().try_for_each(|report| line(out, depth + 2, "fault", format_args!("{report}")))
    }
}
