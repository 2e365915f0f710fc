//! What an arena promises to the pools that live in it.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::events::event::{Event, EventHook};
use crate::shared::counters::ArenaCounts;
use crate::traits::block::Block;
use crate::traits::parking::{Parking, Spinning};
use crate::traits::write_watch::WriteWatch;
use crate::values::addr::{Addr, AddrRange};
use crate::values::check::Check;
use crate::values::describe::Describe;
use crate::values::error::{Error, Result};
use crate::values::pool_id::PoolId;

/// The sizes of an arena at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaSizes {
    /// The address space that is reserved, from the base of the range on. It may grow, if the system refused some when the arena was created.
    pub reserved: usize,
    /// The memory that is committed: in use by pools, spare, or the arena's own.
    pub committed: usize,
    /// The most that was ever committed.
    pub committed_high_water: usize,
    /// Committed memory that no pool uses.
    pub spare: usize,
    /// The most that may be committed.
    pub commit_limit: usize,
    /// Committed memory that the arena itself uses, for tables and descriptors.
    pub own: usize,
}

/// The largest part that pools may ask an arena for, in bytes ([`Arena::alloc_part`]).
pub const PART_SIZE_MAX: usize = 1024;

/// The alignment of every part, and the step between their sizes, in bytes.
pub const PART_ALIGN: usize = 256;

/// A source of tracts: runs of whole grains, aligned to the grain.
///
/// Any thread may call any method at any time. Many threads may allocate tracts at once.
///
/// # Safety
/// - Blocks of tracts are valid for reads and writes, and do not overlap.
///   They stay valid until they are freed, until their pool is dismissed, or until the
///   arena value is dropped. Moving the arena value does not invalidate them.
/// - All blocks of tracts point to memory with the provenance of the whole range, so
///   that neighbours may be joined. [`Arena::provenance`] has the same provenance.
/// - A block of tracts starts at a multiple of [`Arena::grain`], and ends at or
///   below [`ADDRESS_CEILING`](crate::ADDRESS_CEILING).
/// - What is said of tracts holds of parts ([`Arena::alloc_part`]), except that they start at a multiple of
///   [`PART_ALIGN`].
/// - [`Arena::range`] never changes and covers every block of tracts;
///   [`Arena::grain`] never changes.
/// - Memory from [`Arena::alloc_descriptor`] and [`Arena::alloc_zeroed_descriptor`] is valid for reads and writes of its
///   layout and aligned for it, that from the latter is zero, and nothing else uses it until it is freed. Moving the arena value does not
///   move it.
/// - [`Arena::segment_base`] returns the base of a block that was passed to [`Arena::join_tracts`] by
///   that pool, no part of which was freed since, and in which the address lies.
/// - If the type is `Clone`, a clone is the same arena, as a shared reference is: what one of them allocated, joined or
///   registered, the others free, find and dismiss. Memory stays valid until the last of them is dropped.
/// - After [`Arena::zero`] all bytes of the block are zero, and after [`Arena::discard`] those of the range that it
///   returns, which is part of the one that was passed. Both change no other byte.
/// - [`Arena::next_tracts`] returns only tracts that are allocated to the pool, and
///   [`Arena::pool_of`] returns the pool that a tract is allocated to.
pub unsafe trait Arena: Check + Describe + Sync {
    /// The size of a grain, in bytes: a power of two.
    fn grain(&self) -> usize;

    /// The addresses in which everything lies that the arena allocates. The arena may have reserved only a part of them so
    /// far; then others may have memory in the rest.
    fn range(&self) -> AddrRange;

    /// Returns a pointer that may be moved to any address of the range: it has the
    /// provenance that all blocks of tracts have. Its own address is unspecified. It stays
    /// the same as long as the arena value exists, even if that value is moved.
    fn provenance(&self) -> NonNull<u8>;

    /// Registers a pool and numbers it.
    ///
    /// # Errors
    /// [`Error::Limit`](crate::Error::Limit) after the pool number [`PoolId::MAX`].
    fn register(&self) -> Result<PoolId>;

    /// Dismisses a pool and frees every tract it still has.
    ///
    /// # Safety
    /// - `pool` came from [`Arena::register`] and is dismissed once.
    /// - Nothing uses memory of the pool any more.
    unsafe fn unregister(&self, pool: PoolId);

    /// As [`Arena::unregister`], for a pool that has no parts, and whose tracts all lie in `within`: this may spare a search
    /// of the others. The default searches all.
    ///
    /// # Safety
    /// - As [`Arena::unregister`].
    /// - The pool has no part, and no tract outside of `within`.
    unsafe fn unregister_within(&self, pool: PoolId, within: AddrRange) {
        let _ = within;
        // SAFETY: the caller promises that the pool is registered with this arena, is dismissed once,
        // and that nothing uses its memory any more.
        unsafe { self.unregister(pool) }
    }

    /// Allocates `size` bytes, rounded up to [`PART_ALIGN`], for `pool`: a part of a grain that several pools share. It
    /// counts as a tract of the pool in [`Arena::pool_of`] and [`Arena::next_tracts`], but not for
    /// [`Arena::free_tracts`] and [`Arena::join_tracts`]. The default refuses.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_tracts`], and [`Error::Parameter`] for a size of zero or above [`PART_SIZE_MAX`]. An arena that shares no grains returns
    /// [`Error::Limit`]; ask for tracts then.
    fn alloc_part(&self, size: usize, pool: PoolId) -> Result<Block> {
        let _ = (size, pool);
        Err(Error::Limit)
    }

    /// Frees a part.
    ///
    /// # Safety
    /// - `part` came from [`Arena::alloc_part`] of this arena for `pool`, and was not freed since.
    /// - Nothing uses that memory any more.
    unsafe fn free_part(&self, part: Block, pool: PoolId) {
        let _ = (part, pool);
    }

    /// The part that `addr` lies in, and the pool that has it; `None` if it lies in none. Takes constant time and no
    /// lock.
    fn part_of(&self, addr: Addr) -> Option<(PoolId, AddrRange)> {
        let _ = addr;
        None
    }

    /// Allocates `size` bytes, rounded up to grains, for `pool`. Any thread may call this.
    /// The block belongs to the pool until it is freed or the pool is dismissed.
    ///
    /// # Errors
    /// - [`Error::Parameter`](crate::Error::Parameter) for a size of zero or above `isize::MAX`, and for
    ///   [`PoolId::ARENA`]
    /// - [`Error::Limit`](crate::Error::Limit) if no run of grains is long enough
    /// - [`Error::CommitLimit`](crate::Error::CommitLimit), [`Error::Memory`](crate::Error::Memory) if the run cannot be committed
    /// - [`Error::Resource`](crate::Error::Resource), [`Error::ResourceLimit`](crate::Error::ResourceLimit),
    ///   [`Error::Misplaced`](crate::Error::Misplaced) if it cannot be committed as the arena's options say
    /// - [`Error::Frozen`](crate::Error::Frozen) if the arena is frozen and no spare run is long enough
    fn alloc_tracts(&self, size: usize, pool: PoolId) -> Result<Block>;

    /// Frees tracts. `block` may be any whole grains of the pool's tracts.
    ///
    /// # Safety
    /// - `block` is made of whole grains that [`Arena::alloc_tracts`] allocated for
    ///   `pool` and that were not freed since.
    /// - Nothing uses that memory any more.
    unsafe fn free_tracts(&self, block: Block, pool: PoolId);

    /// The first run of the pool's tracts that ends above `from`. Call again with the limit of
    /// the run for the next one. Runs that touch are returned as one.
    fn next_tracts(&self, pool: PoolId, from: Addr) -> Option<Block>;

    /// Joins tracts to a segment: until they are freed, [`Arena::segment_base`] finds the base of `block`
    /// from every address in it.
    ///
    /// # Safety
    /// - `block` is made of whole grains that [`Arena::alloc_tracts`] allocated for `pool`, that were not
    ///   freed since, and that are in no other segment.
    unsafe fn join_tracts(&self, block: Block, pool: PoolId);

    /// The pool and the base of the segment that `addr` lies in; `None` if it lies in none. Takes constant
    /// time and no lock.
    fn segment_base(&self, addr: Addr) -> Option<(PoolId, Addr)>;

    /// Allocates memory for a descriptor, from the arena's own. It is not initialised.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_tracts`], and [`Error::Parameter`](crate::Error::Parameter)
    /// for a descriptor that is larger or more aligned than the arena's descriptors can be.
    fn alloc_descriptor(&self, layout: Layout) -> Result<NonNull<u8>>;

    /// As [`Arena::alloc_descriptor`]; all bytes of the memory are zero. The default writes them.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    fn alloc_zeroed_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        let descriptor = self.alloc_descriptor(layout)?;
        // SAFETY: memory for the layout, which nothing uses yet.
        unsafe { descriptor.write_bytes(0, layout.size()) };
        Ok(descriptor)
    }

    /// Frees the memory of a descriptor.
    ///
    /// # Safety
    /// - `descriptor` came from [`Arena::alloc_descriptor`] or [`Arena::alloc_zeroed_descriptor`] of this arena with this `layout`, is
    ///   freed once, and nothing uses it any more.
    unsafe fn free_descriptor(&self, descriptor: NonNull<u8>, layout: Layout);

    /// Whether `addr` lies in the range: two compares. [`Arena::pool_of`] says whether there is memory of a pool.
    #[inline]
    fn contains(&self, addr: Addr) -> bool {
        self.range().contains(addr)
    }

    /// The pool whose tract `addr` lies in; `None` if it lies in none. Takes constant time.
    fn pool_of(&self, addr: Addr) -> Option<PoolId>;

    /// The sizes at this moment.
    fn sizes(&self) -> ArenaSizes;

    /// The counters of all buffers of the arena.
    fn counts(&self) -> &ArenaCounts;

    /// Forbids growth: from now on, requests are served from what is committed.
    fn freeze(&self);

    /// Allows growth again.
    fn thaw(&self);

    /// Whether growth is forbidden.
    fn is_frozen(&self) -> bool;

    /// Makes all bytes of a block zero, in the way that is cheapest: an arena that can do so leaves pages without memory that
    /// have none. The default writes.
    ///
    /// # Safety
    /// - `block` lies in tracts of one pool. Nothing else uses it meanwhile.
    unsafe fn zero(&self, block: Block) {
        // SAFETY: a block is valid for writes, and nothing else uses this one.
        unsafe { block.base().write_bytes(0, block.size()) };
    }

    /// Returns the memory of whole pages of a range to the system, whose contents are lost. They stay committed, and get
    /// memory again when they are touched. Returns the part for which this was done, which reads as zero; by default
    /// none. This is for front ends that move large objects: they return what they have copied.
    ///
    /// # Safety
    /// - `range` lies in tracts of one pool. Nothing else uses it meanwhile, and its contents are not needed.
    unsafe fn discard(&self, range: AddrRange) -> Option<AddrRange> {
        let _ = range;
        None
    }

    /// Returns spare memory to the system, and returns the number of bytes. Does nothing if the
    /// arena is frozen. The default does nothing.
    fn trim(&self) -> usize {
        0
    }

    /// Moves what is committed to huge pages, if the arena's options ask for them. Returns
    /// the number of bytes on huge pages. Contents do not change, and pools may be in use
    /// meanwhile. The default does nothing.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::Error::Resource) if the system has no huge page left.
    fn merge(&self) -> Result<usize> {
        Ok(0)
    }

    /// Has the system put memory behind everything that is committed, and returns the number of
    /// bytes. Freeze the arena first. The default does nothing.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) if the system has none, or cannot do this.
    fn prefault(&self) -> Result<usize> {
        Ok(0)
    }

    /// Keeps the arena out of all processes that are forked from now on. They must not use it.
    /// The default does nothing.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::Error::Resource) if the system cannot do this.
    fn keep_from_children(&self) -> Result<()> {
        Ok(())
    }

    /// Begins to watch writes to the arena's tracts, unless that is done, and returns what can be asked which pages were
    /// written. A collector calls this at each stop in which it asks. The default refuses.
    ///
    /// # Errors
    /// - [`Error::Resource`] if the platform cannot watch writes, or not at present
    /// - [`Error::Parameter`] if the arena's options forbid it
    fn write_watch(&self) -> Result<&dyn WriteWatch> {
        Err(Error::Resource)
    }

    /// The most memory, in bytes, that the system allows the process and those that it shares a limit with, as containers
    /// do; `None` if there is no limit or the arena does not know. This may read files: not for hot threads. The default
    /// does not know.
    fn memory_limit(&self) -> Option<usize> {
        None
    }

    /// How threads wait for each other that use the arena, as a collector and the threads that it stops do, unless the
    /// client says otherwise. The default spins, because not every arena has an operating system.
    fn parking(&self) -> &dyn Parking {
        &Spinning
    }

    /// The hook that observes the arena's events.
    fn event_hook(&self) -> Option<&dyn EventHook> {
        None
    }

    /// Passes an event to the hook, if there is one.
    fn event(&self, event: Event) {
        if let Some(hook) = self.event_hook() {
            hook.event(event);
        }
    }
}
