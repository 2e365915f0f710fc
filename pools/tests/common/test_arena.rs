//! An arena that refuses requests, or lies about its grain, as a test asks.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};
use tripoint_core::{
    Addr, AddrRange, Arena, ArenaCounts, ArenaSizes, Block, Check, CheckError, CheckLevel, ClientArena,
    Describe, Error, Event, EventHook, PoolId, Result,
};

/// What follows the request that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The next request is served, as if the platform had been short of memory
    /// for a moment.
    Passes,
    /// All requests are refused, until [`TestArena::relent`].
    Stays,
}

/// An arena that passes requests on to another until it refuses one.
pub(crate) struct TestArena<'a> {
    arena: &'a ClientArena<'a>,
    grain: usize,
    /// How many requests are served before one is refused.
    patience: AtomicUsize,
    refusal: Refusal,
    has_refused: AtomicBool,
    event_hook: Option<&'a dyn EventHook>,
}

impl<'a> TestArena<'a> {
    /// Refuses a request after serving `patience` of them.
    pub(crate) fn refusing(arena: &'a ClientArena<'a>, patience: usize, refusal: Refusal) -> Self {
        let (patience, has_refused) = (AtomicUsize::new(patience), AtomicBool::new(false));
        Self { arena, grain: arena.grain(), patience, refusal, has_refused, event_hook: None }
    }

    /// Reports each growth and shrink, as an arena does that commits its memory and keeps
    /// nothing spare.
    pub(crate) fn telling(arena: &'a ClientArena<'a>, event_hook: &'a dyn EventHook) -> Self {
        Self { event_hook: Some(event_hook), ..Self::refusing(arena, usize::MAX, Refusal::Passes) }
    }

    /// Claims a smaller grain than it has.
    pub(crate) fn of_grain(arena: &'a ClientArena<'a>, grain: usize) -> Self {
        Self { grain, ..Self::refusing(arena, usize::MAX, Refusal::Passes) }
    }

    pub(crate) fn has_refused(&self) -> bool {
        self.has_refused.load(Ordering::Relaxed)
    }

    /// No longer refuses.
    pub(crate) fn relent(&self) {
        self.patience.store(usize::MAX, Ordering::Relaxed);
    }

    fn serve(&self) -> Result<()> {
        match self.patience.load(Ordering::Relaxed) {
            usize::MAX => return Ok(()),
            0 => self.has_refused.store(true, Ordering::Relaxed),
            more => {
                self.patience.store(more - 1, Ordering::Relaxed);
                return Ok(());
            }
        }
        if self.refusal == Refusal::Passes {
            self.relent();
        }
        Err(Error::Memory)
    }
}

// SAFETY: a multiple of the true grain is one of a smaller grain too; all else that is
// not refused is the true arena's.
unsafe impl Arena for TestArena<'_> {
    fn grain(&self) -> usize {
        self.grain
    }

    fn range(&self) -> AddrRange {
        self.arena.range()
    }

    fn provenance(&self) -> NonNull<u8> {
        self.arena.provenance()
    }

    fn register(&self) -> Result<PoolId> {
        self.serve()?;
        self.arena.register()
    }

    unsafe fn unregister(&self, pool: PoolId) {
        // SAFETY: the caller promises what it got here, and all of that is the true arena's.
        unsafe { self.arena.unregister(pool) }
    }

    fn alloc_tracts(&self, size: usize, pool: PoolId) -> Result<Block> {
        self.serve()?;
        let block = self.arena.alloc_tracts(size, pool)?;
        self.event(Event::Grow { size: block.size() });
        Ok(block)
    }

    unsafe fn free_tracts(&self, block: Block, pool: PoolId) {
        let size = block.size();
        // SAFETY: the caller promises what it got here, and all of that is the true arena's.
        unsafe { self.arena.free_tracts(block, pool) }
        self.event(Event::Shrink { size });
    }

    fn next_tracts(&self, pool: PoolId, from: Addr) -> Option<Block> {
        self.arena.next_tracts(pool, from)
    }

    unsafe fn join_tracts(&self, block: Block, pool: PoolId) {
        // SAFETY: the caller promises what it got here, and all of that is the true arena's.
        unsafe { self.arena.join_tracts(block, pool) }
    }

    fn segment_base(&self, addr: Addr) -> Option<(PoolId, Addr)> {
        self.arena.segment_base(addr)
    }

    fn alloc_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.serve()?;
        self.arena.alloc_descriptor(layout)
    }

    unsafe fn free_descriptor(&self, descriptor: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises what it got here, and all of that is the true arena's.
        unsafe { self.arena.free_descriptor(descriptor, layout) }
    }

    fn pool_of(&self, addr: Addr) -> Option<PoolId> {
        self.arena.pool_of(addr)
    }

    fn sizes(&self) -> ArenaSizes {
        self.arena.sizes()
    }

    fn counts(&self) -> &ArenaCounts {
        self.arena.counts()
    }

    fn event_hook(&self) -> Option<&dyn EventHook> {
        self.event_hook
    }

    fn freeze(&self) {
        self.arena.freeze();
    }

    fn thaw(&self) {
        self.arena.thaw();
    }

    fn is_frozen(&self) -> bool {
        self.arena.is_frozen()
    }
}

impl fmt::Debug for TestArena<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestArena").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Check for TestArena<'_> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.arena.check(level)
    }
}

impl Describe for TestArena<'_> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.arena.describe(out, depth)
    }
}
