//! The VM arena: tracts from one large reservation, committed as needed.
//!
//! The parts, the lowest first: `state`, `addresses`, `mappings`, `guard`, `spare`, `growth`, then `supply`, `parts`, `warm`,
//! `written`, `contents` and `page_report`.
//!
//! | file | |
//! |---|---|
//! | `state` | what the arena consists of |
//! | `mappings` | how many holes may divide the committed memory |
//! | `spare` | committed memory that is free, and when it is decommitted |
//! | `growth` | void grains, and memory behind them |
//! | `addresses` | more addresses, if some were refused at first |
//! | `guard` | grains without memory that follow those of pools |
//! | `parts` | parts of grains, for small pools |
//! | `supply` | memory for descriptors |
//! | `contents` | bytes that are made zero, and memory that is returned while it stays committed |
//! | `warm` | memory behind everything that is committed |
//! | `written` | which memory was written |
//! | `page_report` | where the memory lies |

mod addresses;
mod contents;
mod growth;
mod guard;
mod mappings;
mod page_report;
mod parts;
mod spare;
mod state;
mod supply;
mod warm;
mod written;

pub use state::ArenaVm;

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::internal::{
    AtomicBool, AtomicU32, AtomicUsize, DescriptorMemory, Ordering, PartMemory, Signature, TractTable,
    Update, refuse_arena_pool, yield_by,
};
use tripoint_core::{
    ADDRESS_CEILING, Addr, AddrRange, Align, Arena, ArenaCounts, ArenaSizes, Block, Check, CheckError,
    CheckLevel, Describe, Error, Event, EventHook, Lock, PoolId, Result, WriteWatch, aver, line,
};

use crate::budget::Budget;
use crate::chosen_memory::Placement;
use crate::descriptors::Descriptors;
use crate::options::ArenaVmOptions;
#[cfg(target_os = "linux")]
use crate::parking::Futex;
use crate::platform::native::Native;
use crate::platform::{Platform, PlatformError};
use crate::regions::Regions;
use crate::reservation::{Growth, Reservation};

const SIGNATURE: u32 = 0x7290_0010;

const ARENA: &str = "ArenaVm";

impl ArenaVm<Native> {
    /// Creates an arena on this target's platform.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for options that contradict themselves or leave no room for a
    ///   grain
    /// - [`Error::ResourceLimit`] if the platform refuses to lock memory, or to reserve even
    ///   [`ArenaVmOptions::reserve_floor`] bytes, or has too few explicit huge pages
    /// - [`Error::Resource`] if it refuses what the options ask about huge pages, nodes or children
    /// - [`Error::NoSuchNode`] if the process may not use the memory of a node that they name, and
    ///   [`Error::Misplaced`] if memory came from elsewhere
    /// - [`Error::Limit`], [`Error::CommitLimit`], [`Error::Memory`] if it cannot prefault
    ///   what the options ask
    pub fn create(options: ArenaVmOptions) -> Result<Self> {
        Self::create_on(Native::new(), options)
    }
}

impl<P: Platform> ArenaVm<P> {
    /// Creates an arena on a platform.
    ///
    /// # Errors
    /// As [`ArenaVm::create`].
    pub fn create_on(platform: P, options: ArenaVmOptions) -> Result<Self> {
        let page = Self::page_of(&platform)?;
        let grain = options.validate(page)?;
        let options = options.bounded();
        Self::check_nodes(&platform, options.placement)?;
        let reservation = Reservation::reserve(platform, &options, grain)?;
        let base = Addr::of(reservation.base().as_ptr());
        let usable = reservation.size().min(ADDRESS_CEILING.saturating_sub(base.get()));
        let no_room = Error::Parameter("the reservation has no room for a tract table and one grain");
        let is_memory = reservation.platform().reserves_memory();
        let regions = Regions::new(usable, grain, reservation.align(), page, is_memory).ok_or(no_room)?;
        // The tables and one grain are in what is reserved at first.
        if reservation.grow_to(regions.grain_offset(1), regions.size()) != Growth::Follows {
            return Err(no_room);
        }
        let range = AddrRange::with_size(base, regions.size());
        aver!(range.is_some(), "{} bytes from {base} end above all addresses", regions.size());
        let arena = Self {
            signature: Signature::new(SIGNATURE),
            range: range.ok_or(no_room)?,
            regions,
            options,
            table_size: AtomicUsize::new(0),
            table: Lock::new(TractTable::new(regions.grains_within(reservation.reserved()))),
            descriptors: Lock::new(Descriptors::new()),
            parts: Lock::new(PartMemory::new(grain.get())),
            budget: Budget::new(options.commit_limit),
            frozen: AtomicBool::new(false),
            last_serial: AtomicU32::new(PoolId::ARENA.get()),
            counts: ArenaCounts::default(),
            reservation,
        };
        let (range, commit_limit) = (arena.range, arena.options.commit_limit);
        let memory = AddrRange::with_size(base, usable).unwrap_or_default();
        arena.report(Event::CreateArena {
            grain: grain.get(),
            commit_limit,
            range,
            memory,
            commit_policy: arena.options.commit_policy(),
            prefault_size: arena.options.prefault_size(),
            class: "ArenaVm",
        });
        if let Some(yielding) = arena.platform().yielding() {
            yield_by(yielding);
        }
        arena.advise()?;
        arena.prefault_at_creation()?;
        Ok(arena)
    }

    /// The size of the platform's pages, which it promises to be a power of two.
    fn page_of(platform: &P) -> Result<Align> {
        let size = platform.page_size();
        let page = Align::new(size);
        aver!(page.is_some(), "pages of {size} bytes");
        page.ok_or(Error::Parameter("the platform's page size is not a power of two"))
    }

    /// Refuses nodes whose memory the process may not use: the kernel would leave them out without an error.
    fn check_nodes(platform: &P, placement: Placement) -> Result<()> {
        let Some(asked) = placement.nodes() else { return Ok(()) };
        let usable = platform.memory_nodes().map_err(|_| Error::Resource)?;
        if usable.covers(asked) { Ok(()) } else { Err(Error::NoSuchNode { asked, usable }) }
    }

    /// Gives the platform, once, the advice that holds for all of the range.
    fn advise(&self) -> Result<()> {
        let grains = self.regions.bytes(self.regions.grains);
        // SAFETY: the grains are whole grains of the reservation, which nothing has used.
        unsafe { self.reservation.map_huge_pages(self.regions.grains_offset, grains) }?;
        self.reservation.place_all()?;
        if !self.options.inherit_on_fork {
            self.keep_from_children()?;
        }
        if self.options.huge_pages {
            for grains in self.stretches(self.regions.grains_offset) {
                // SAFETY: the grains are one or more whole pages of the reservation.
                unsafe { self.reservation.advise_huge_pages(grains.start, grains.len()) }?;
            }
        }
        Ok(())
    }

    /// The platform the arena lives on.
    pub fn platform(&self) -> &P {
        self.reservation.platform()
    }

    /// The call that the platform refused last, with what a person can do about it. The
    /// [`Error`] that the program got has only the kind.
    pub fn last_refusal(&self) -> Option<PlatformError> {
        self.reservation.last_refusal()
    }

    /// The address space that is reserved now, in bytes: what the options asked for; or, if the platform refused that, what it
    /// granted so far.
    pub fn reserved(&self) -> usize {
        self.reservation.reserved()
    }

    /// The number of grains that `size` bytes take.
    fn grains_for(&self, size: usize) -> Result<u32> {
        if size == 0 || isize::try_from(size).is_err() {
            return Err(Error::Parameter("tracts have 1 to isize::MAX bytes"));
        }
        u32::try_from(size.div_ceil(self.regions.grain.get())).map_err(|_| Error::Limit)
    }
}

// SAFETY: a block of tracts consists of grains that the table assigned to one pool. They are
// committed before the block is returned, and decommitted only after it was freed. They lie in
// the reservation, which is released when the arena is dropped, and not when it is moved. Grain
// zero lies at a multiple of the grain, and the last one ends below the ceiling (`create_on`).
// The range is set at creation and covers all grains.
unsafe impl<P: Platform> Arena for ArenaVm<P> {
    fn grain(&self) -> usize {
        self.regions.grain.get()
    }

    fn range(&self) -> AddrRange {
        self.range
    }

    fn provenance(&self) -> NonNull<u8> {
        self.reservation.base()
    }

    fn register(&self) -> Result<PoolId> {
        let next = |last: u32| (last < PoolId::MAX).then(|| last + 1);
        let last = self.last_serial.update_by(next);
        last.ok().and_then(|last| PoolId::new(last + 1)).ok_or(Error::Limit)
    }

    unsafe fn unregister(&self, pool: PoolId) {
        self.free_parts(pool);
        // SAFETY: the caller promises that the pool is registered, is dismissed once, and that nothing uses its memory
        // any more. Its parts were just freed, and all tracts lie in the range.
        unsafe { self.unregister_within(pool, self.range) }
    }

    unsafe fn unregister_within(&self, pool: PoolId, within: AddrRange) {
        if within.is_empty() {
            return;
        }
        let grains = self.grains_in(within);
        let entries = self.entries_in_use();
        let entries = entries.get(grains.start as usize..entries.len().min(grains.end as usize));
        for (index, count) in TractTable::pieces_of(entries.unwrap_or_default(), pool) {
            self.table.lock().give_spare(self.entries(), grains.start + index, count);
        }
        self.keep_share();
    }

    fn alloc_tracts(&self, size: usize, pool: PoolId) -> Result<Block> {
        let count = self.grains_for(size)?;
        refuse_arena_pool(pool)?;
        let index = self.take_spare(count, pool).map_or_else(|| self.grow(count, pool), Ok)?;
        // SAFETY: the table assigned the grains to this pool. They were spare, and so committed,
        // or void, and `grow` committed them.
        Ok(unsafe { self.block(index, count) })
    }

    fn alloc_part(&self, size: usize, pool: PoolId) -> Result<Block> {
        refuse_arena_pool(pool)?;
        self.take_part(size, pool)
    }

    unsafe fn free_part(&self, part: Block, pool: PoolId) {
        let owned = self.part_at(part.range().base());
        if !aver!(owned == Some((pool, part.range())), "{pool:?} frees {part:?}, and owned is {owned:?}") {
            return;
        }
        // SAFETY: a part of the pool. The caller promises that it was not freed since, and that nothing uses it.
        unsafe { self.parts.lock().free(part) };
    }

    fn part_of(&self, addr: Addr) -> Option<(PoolId, AddrRange)> {
        self.part_at(addr)
    }

    unsafe fn free_tracts(&self, block: Block, pool: PoolId) {
        let base = block.range().base();
        // Release builds look it up as well (design/arena-vm.md `.free.owner`).
        let owner = self.pool_of(base);
        if !aver!(owner == Some(pool), "the tracts at {base} belong to {owner:?}, and {pool:?} frees them") {
            return;
        }
        let (Some(index), Ok(count)) = (self.grain_of(base), self.grains_for(block.size())) else {
            aver!(false, "{block:?} is freed, which is no run of grains in the arena {}", self.range);
            return;
        };
        self.table.lock().give_spare(self.entries(), index, count);
        self.keep_share();
    }

    fn next_tracts(&self, pool: PoolId, from: Addr) -> Option<Block> {
        let from = from.max(self.base_of(0));
        let owned = TractTable::next_owned(self.entries_in_use(), self.grain_of(from)?, pool);
        // SAFETY: the table says that the pool owns these grains. A grain gets an owner only after
        // it was committed (`grow`), and is decommitted only after the owner freed it.
        let tracts = owned.map(|(index, count)| unsafe { self.block(index, count) });
        self.parts_before(pool, from, owned.map_or(u32::MAX, |(index, _)| index), tracts).or(tracts)
    }

    unsafe fn join_tracts(&self, block: Block, pool: PoolId) {
        let base = block.range().base();
        let owner = self.pool_of(base);
        if !aver!(owner == Some(pool), "the tracts at {base} belong to {owner:?}, and {pool:?} joins them") {
            return;
        }
        let (Some(index), Ok(count)) = (self.grain_of(base), self.grains_for(block.size())) else {
            aver!(false, "{block:?} is joined, which is no run of grains in the arena {}", self.range);
            return;
        };
        TractTable::join(self.entries(), index, count);
    }

    #[inline]
    fn segment_base(&self, addr: Addr) -> Option<(PoolId, Addr)> {
        let (pool, first) = TractTable::first_joined(self.entries(), self.grain_of(addr)?)?;
        Some((pool, self.base_of(first)))
    }

    fn alloc_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.alloc_descriptor_by(layout, DescriptorMemory::alloc)
    }

    fn alloc_zeroed_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.alloc_descriptor_by(layout, DescriptorMemory::alloc_zeroed)
    }

    unsafe fn free_descriptor(&self, descriptor: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller says that the descriptor came from `alloc_descriptor` of this arena with
        // this layout, which allocates in this memory, that it is freed once, and that nothing
        // uses it any more.
        unsafe { self.descriptors.lock().memory.free(descriptor, layout) };
    }

    fn pool_of(&self, addr: Addr) -> Option<PoolId> {
        let index = self.grain_of(addr)?;
        match TractTable::owner_of(self.entries(), index)? {
            PoolId::ARENA => self.owner_in_grain(index, addr),
            pool => Some(pool),
        }
    }

    fn sizes(&self) -> ArenaSizes {
        let spare = self.table.lock().spare();
        let table = self.table_size.load(Ordering::Acquire);
        ArenaSizes {
            reserved: self.reserved(),
            committed: self.budget.committed(),
            committed_high_water: self.budget.high_water(),
            spare: self.regions.bytes(spare),
            commit_limit: self.budget.limit(),
            own: table + self.descriptors.lock().size() + self.parts.lock().unused(),
        }
    }

    fn counts(&self) -> &ArenaCounts {
        &self.counts
    }

    fn freeze(&self) {
        self.frozen.store(true, Ordering::Release);
    }

    fn thaw(&self) {
        self.frozen.store(false, Ordering::Release);
    }

    fn is_frozen(&self) -> bool {
        self.is_frozen()
    }

    #[inline]
    unsafe fn zero(&self, block: Block) {
        // SAFETY: the caller promises a block in tracts of one pool, which nothing else uses.
        unsafe { self.zero_block(block) };
    }

    unsafe fn discard(&self, range: AddrRange) -> Option<AddrRange> {
        // SAFETY: the caller promises a range in tracts of one pool, which nothing else uses and whose contents are not
        // needed.
        unsafe { self.discard_range(range) }
    }

    fn trim(&self) -> usize {
        self.trim()
    }

    fn merge(&self) -> Result<usize> {
        self.merge()
    }

    fn prefault(&self) -> Result<usize> {
        self.prefault()
    }

    fn keep_from_children(&self) -> Result<()> {
        // SAFETY: the stretches are all of the reservation, in whole grains, without its gaps.
        unsafe { self.reservation.no_inherit(|| self.stretches(0)) }
    }

    fn write_watch(&self) -> Result<&dyn WriteWatch> {
        self.watch_writes()?;
        Ok(self)
    }

    fn memory_limit(&self) -> Option<usize> {
        self.platform().memory_limit()
    }

    #[cfg(target_os = "linux")]
    fn parking(&self) -> &dyn tripoint_core::Parking {
        &Futex
    }

    fn event_hook(&self) -> Option<&dyn EventHook> {
        match self.options.event_hook {
            Some(hook) => Some(hook),
            None => None,
        }
    }
}

impl<P: Platform> Check for ArenaVm<P> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.signature.check(ARENA, SIGNATURE)?;
        if level >= CheckLevel::Shallow {
            let table = self.table.lock();
            table.check(self.entries(), level)?;
            self.descriptors.lock().memory.check(level)?;
            self.parts.lock().check(level)?;
        }
        Ok(())
    }
}

impl<P: Platform> Describe for ArenaVm<P> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        let sizes = self.sizes();
        line(out, depth, "arena", format_args!("VM on {} at {}", self.platform().name(), self.range))?;
        let depth = depth + 1;
        line(out, depth, "reserved", format_args!("{} bytes", sizes.reserved))?;
        line(out, depth, "grain", format_args!("{} bytes", self.grain()))?;
        line(out, depth, "committed", format_args!("{} bytes", sizes.committed))?;
        line(out, depth, "committed, most", format_args!("{} bytes", sizes.committed_high_water))?;
        line(out, depth, "commit limit", format_args!("{} bytes", sizes.commit_limit))?;
        if let Some(limit) = self.memory_limit() {
            let comparison = match sizes.commit_limit > limit {
                true => "below the commit limit: the system may end the process before the arena refuses",
                false => "at least the commit limit",
            };
            line(out, depth, "memory limit of the system", format_args!("{limit} bytes, {comparison}"))?;
        }
        line(out, depth, "own", format_args!("{} bytes", sizes.own))?;
        line(out, depth, "frozen", format_args!("{}", self.is_frozen()))?;
        line(out, depth, "writes watched", format_args!("{}", self.reservation.is_watched()))?;
        if self.options.has_chosen_memory()
            && let Ok(pages) = self.page_report()
        {
            pages.describe(out, depth)?;
        }
        if let Some(refusal) = self.last_refusal() {
            line(out, depth, "last refusal", format_args!("{refusal}"))?;
        }
        // The locks are held from here on: `out` must not allocate from this arena.
        self.descriptors.lock().memory.describe(out, depth)?;
        self.table.lock().describe(self.entries(), out, depth)
    }
}

impl<P: Platform> Drop for ArenaVm<P> {
    fn drop(&mut self) {
        self.signature.clear();
        // The reservation is released after this, so its addresses are not another arena's yet.
        self.report(Event::DestroyArena { range: self.range });
        self.release_behind_gaps();
    }
}
