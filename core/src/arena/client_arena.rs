//! The client arena: tracts from memory that the caller gives.
//!
//! For machines without an operating system, for a part of a larger region, and
//! for tests. It asks nobody for anything: the memory holds the tract table and
//! the grains, the [`ClientArena`] value holds the rest.
//!
//! Design: `design/arena.md` `.client`.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::arena::control_memory::{ControlMemory, refuse_control_pool};
use crate::arena::tract_table::{Tract, TractTable};
use crate::meeting::arena::{Arena, ArenaSizes};
use crate::meeting::block::Block;
use crate::primitive::lock::Lock;
use crate::primitive::{AtomicBool, Ordering};
use crate::words::addr::{ADDRESS_CEILING, Addr, AddrRange};
use crate::words::align::Align;
use crate::words::check::{Check, CheckError, CheckLevel, ensure};
use crate::words::counters::ArenaCounts;
use crate::words::describe::{Describe, line};
use crate::words::error::{Error, Result};
use crate::words::event::EventHook;
use crate::words::pool_id::PoolId;
use crate::words::signature::Signature;

const SIGNATURE: u32 = 0x7290_0002;

const ARENA: &str = "ClientArena";

/// The smallest grain that a client arena can have, in bytes: a descriptor's
/// alignment.
const GRAIN_MIN: usize = ControlMemory::ALIGN.get();

/// What a [`ClientArena`] may be told when it is created.
#[derive(Clone, Copy, Default)]
pub struct ClientArenaOptions<'m> {
    /// The size of a grain in bytes: a power of two, at least 64.
    ///
    /// By default a 64th of the memory, rounded up to a power of two, and not
    /// below 256 bytes nor above 64 KiB.
    pub grain: Option<usize>,
    /// Who listens to the arena's events.
    pub event_hook: Option<&'m dyn EventHook>,
}

impl fmt::Debug for ClientArenaOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientArenaOptions")
            .field("grain", &self.grain)
            .field("event_hook", &self.event_hook.is_some())
            .finish()
    }
}

impl ClientArenaOptions<'_> {
    /// The grain for memory of `size` bytes.
    fn grain_for(&self, size: usize) -> Result<Align> {
        let default = || (size / 64).next_power_of_two().clamp(256, 64 << 10);
        Align::new(self.grain.unwrap_or_else(default))
            .filter(|grain| grain.get() >= GRAIN_MIN)
            .ok_or(Error::Parameter("the grain is no power of two of at least 64 bytes"))
    }
}

/// Where things lie in the memory of a client arena, in bytes from its start:
/// table, gap, grains (design/arena.md `.client.layout`).
#[derive(Clone, Copy, Debug)]
struct Plan {
    table: usize,
    base: usize,
    grain: Align,
    grains: u32,
}

impl Plan {
    /// Fits as many grains as `size` bytes from address `start` hold.
    fn new(start: usize, size: usize, grain: Align) -> Option<Self> {
        let limit = start.checked_add(size).map_or(ADDRESS_CEILING, |limit| limit.min(ADDRESS_CEILING));
        let table = Align::of::<Tract>().round_up(start)?;
        let room = limit.checked_sub(table)?;
        // The most grains there can be, were none lost to alignment; then as many
        // of them as fit behind a table for that many.
        let most = (room / (grain.get() + size_of::<Tract>())).min(u32::MAX as usize);
        let base = grain.round_up(table + table_size(most))?;
        let grains = most.min(limit.checked_sub(base)? / grain.get());
        let grains = u32::try_from(grains).ok().filter(|&grains| grains > 0)?;
        Some(Self { table: table - start, base: base - start, grain, grains })
    }
}

/// The bytes of a table for this many grains.
const fn table_size(grains: usize) -> usize {
    grains * size_of::<Tract>()
}

/// What changes under the arena's lock.
#[derive(Debug)]
struct State {
    tracts: TractTable,
    control: ControlMemory,
    /// Grains that serve descriptors.
    control_grains: u32,
    /// The serial number of the pool registered last.
    last_serial: u32,
    /// The number of pools registered now.
    pools: u32,
}

/// An arena in memory that the caller gives, for as long as it is borrowed.
///
/// All its memory is committed from the start and stays so: sizes say so
/// (`committed`, `committed_high_water` and `commit_limit` are `reserved`), the
/// growth counters stay zero, and [`Arena::freeze`] only sets the flag that
/// [`Arena::is_frozen`] reads, since there is no growth to forbid. A frozen client
/// arena serves requests as before, and says [`Error::Limit`] when it is full.
///
/// Descriptors ([`Arena::alloc_control`]) live in the gap between table and first
/// grain, and then in grains, which [`Arena::pool_of`] says belong to
/// [`PoolId::CONTROL`]. Grains once taken for descriptors are kept for descriptors.
///
/// The arena may be moved, sent and shared; its memory stays where it is.
///
/// # Examples
/// In memory of a program's own, found at run time:
/// ```
/// use tripoint_core::{Arena, ClientArena, ClientArenaOptions};
///
/// let mut memory = Box::new_uninit_slice(64 << 10);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let pool = arena.register()?;
/// let block = arena.alloc_tracts(4000, pool)?;
/// assert_eq!(block.size() % arena.grain(), 0);
/// assert_eq!(arena.pool_of(block.range().base()), Some(pool));
/// # Ok::<(), tripoint_core::Error>(())
/// ```
/// In a static, as on bare metal. The memory is aligned to the grain, so that
/// none is lost to alignment:
/// ```
/// use core::mem::MaybeUninit;
/// use tripoint_core::{ClientArena, ClientArenaOptions};
///
/// #[repr(align(1024))]
/// struct Memory([MaybeUninit<u8>; 64 << 10]);
/// static mut MEMORY: Memory = Memory([MaybeUninit::uninit(); 64 << 10]);
///
/// // SAFETY: nothing else names MEMORY, and this runs once.
/// let memory: &'static mut [MaybeUninit<u8>] = unsafe { &mut (*(&raw mut MEMORY)).0 };
/// let arena: ClientArena<'static> = ClientArena::create(memory, ClientArenaOptions::default())?;
/// assert!(arena.bootstrap_size() < 2048);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct ClientArena<'m> {
    signature: Signature,
    frozen: AtomicBool,
    grain: Align,
    grains: u32,
    /// The table, as many entries as there are grains.
    table: NonNull<Tract>,
    /// Grain zero.
    base: NonNull<u8>,
    state: Lock<State>,
    counts: ArenaCounts,
    event_hook: Option<&'m dyn EventHook>,
    memory: PhantomData<&'m mut [MaybeUninit<u8>]>,
}

// SAFETY: the pointers lead into memory that the arena borrows exclusively for
// `'m`, wherever the arena value is; the hook is `Sync`, so a reference to it may
// be sent.
unsafe impl Send for ClientArena<'_> {}
// SAFETY: through a shared arena the table is reached as `&[Tract]`, which is
// atomic throughout; grains are only passed out, each to one holder; descriptors'
// memory and all else that changes is behind the lock or atomic.
unsafe impl Sync for ClientArena<'_> {}

impl<'m> ClientArena<'m> {
    /// An arena in `memory`, which it formats: nothing that was there is kept.
    ///
    /// Takes time in proportion to the number of grains. What lies above
    /// [`ADDRESS_CEILING`], and what makes no whole grain at the end, is not used.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a grain that is no power of two of at least 64
    /// bytes, and for memory without room for a table and one grain.
    pub fn create(memory: &'m mut [MaybeUninit<u8>], options: ClientArenaOptions<'m>) -> Result<Self> {
        let memory = NonNull::from(memory);
        let (start, size) = (memory.cast::<u8>(), memory.len());
        let grain = options.grain_for(size)?;
        let plan = Plan::new(start.addr().get(), size, grain)
            .ok_or(Error::Parameter("the memory has no room for a tract table and one grain"))?;
        // SAFETY: the plan lies within `[start, start + size)`, which is borrowed
        // exclusively for `'m`.
        Ok(unsafe { Self::format(start, plan, options.event_hook) })
    }

    /// Makes the table and the arena.
    ///
    /// # Safety
    /// - The memory at `start`, as far as `plan` says, is the arena's alone for
    ///   `'m`.
    unsafe fn format(start: NonNull<u8>, plan: Plan, event_hook: Option<&'m dyn EventHook>) -> Self {
        // SAFETY: the table begins, and grain zero begins, inside the memory.
        let (table, base) = unsafe { (start.add(plan.table).cast::<Tract>(), start.add(plan.base)) };
        // SAFETY: the plan aligned the table, left room for an entry per grain
        // between it and grain zero, and the memory is the arena's alone.
        let entries = unsafe { write_entries(table, plan.grains) };
        let mut control = ControlMemory::new();
        // SAFETY: the gap from the last entry to grain zero is inside the memory
        // and serves nothing else.
        unsafe { control.supply(gap(table.add(entries.len()).cast(), base)) };
        let tracts = all_spare(entries);
        let last_serial = PoolId::CONTROL.get();
        Self {
            signature: Signature::new(SIGNATURE),
            frozen: AtomicBool::new(false),
            grain: plan.grain,
            grains: plan.grains,
            table,
            base,
            state: Lock::new(State { tracts, control, control_grains: 0, last_serial, pools: 0 }),
            counts: ArenaCounts::default(),
            event_hook,
            memory: PhantomData,
        }
    }

    /// What the arena costs before the first pool, in bytes: the value itself and
    /// the tract table. Below 2 KiB for up to 64 grains, which is what the default
    /// grain makes of up to 4 MiB.
    #[must_use]
    pub const fn bootstrap_size(&self) -> usize {
        size_of::<Self>() + table_size(self.grains as usize)
    }

    fn entries(&self) -> &[Tract] {
        // SAFETY: `format` wrote this many entries into memory that is the arena's
        // while it lives, and that nobody borrows exclusively.
        unsafe { core::slice::from_raw_parts(self.table.as_ptr(), self.grains as usize) }
    }

    /// The bytes of `grains` grains of this arena.
    const fn bytes(&self, grains: u32) -> usize {
        grains as usize * self.grain.get()
    }

    /// The grains that `size` bytes take.
    fn grain_count(&self, size: usize) -> Option<u32> {
        u32::try_from(size.div_ceil(self.grain.get())).ok()
    }

    /// The grain that `addr` lies in.
    fn grain_of(&self, addr: Addr) -> Option<u32> {
        let offset = addr.get().checked_sub(self.base.addr().get())?;
        u32::try_from(offset >> self.grain.get().trailing_zeros()).ok()
    }

    /// Takes `size` bytes, rounded up to grains, for `owner`.
    fn take(&self, tracts: &mut TractTable, size: usize, owner: PoolId) -> Result<(Block, u32)> {
        let count = self.grain_count(size).ok_or(Error::Limit)?;
        let index = tracts.take_spare(self.entries(), count, owner).ok_or(Error::Limit)?;
        // SAFETY: the table covers only grains inside the memory.
        let base = unsafe { self.base.add(self.bytes(index)) };
        // SAFETY: the table gave out these grains, all inside the memory, which is
        // the arena's while it lives.
        let block = unsafe { Block::new(base, self.bytes(count)) };
        Ok((block, count))
    }

    /// Supplies the control memory with whole grains for `size` bytes.
    fn extend_control(&self, state: &mut State, size: usize) -> Result<()> {
        let (block, count) = self.take(&mut state.tracts, size, PoolId::CONTROL)?;
        state.control_grains += count;
        // SAFETY: the table gave these grains to the control pool, which never
        // gives them back.
        unsafe { state.control.supply(block) };
        Ok(())
    }

    fn sizes_in(&self, state: &State) -> ArenaSizes {
        let reserved = self.range().size();
        let before_grains = reserved - self.bytes(self.grains);
        ArenaSizes {
            reserved,
            committed: reserved,
            committed_high_water: reserved,
            spare: self.bytes(state.tracts.spare()),
            commit_limit: reserved,
            control: before_grains + self.bytes(state.control_grains),
        }
    }

    fn check_state(&self, state: &State, level: CheckLevel) -> Result<(), CheckError> {
        ensure(ARENA, state.tracts.capacity() == self.grains, "the table covers the grains")?;
        ensure(ARENA, state.tracts.top() == self.grains, "all grains are committed")?;
        ensure(ARENA, state.pools <= state.last_serial, "registered pools have numbers")?;
        state.tracts.check(self.entries(), level)?;
        state.control.check(level)?;
        if level >= CheckLevel::Deep {
            let control = |&index: &u32| TractTable::owner_of(self.entries(), index) == Some(PoolId::CONTROL);
            let grains = (0..self.grains).filter(control).count();
            ensure(ARENA, grains == state.control_grains as usize, "control grains are counted")?;
        }
        Ok(())
    }
}

/// Writes a table of entries never used.
///
/// # Safety
/// - The memory at `table` is aligned for entries, has room for one per grain,
///   and is read and written by nobody else for `'m`.
unsafe fn write_entries<'m>(table: NonNull<Tract>, grains: u32) -> &'m [Tract] {
    for index in 0..grains as usize {
        // SAFETY: the caller promises room, alignment and exclusive use.
        unsafe { table.add(index).write(Tract::new()) };
    }
    // SAFETY: the entries were just written, and stay for `'m`.
    unsafe { core::slice::from_raw_parts(table.as_ptr(), grains as usize) }
}

/// The memory between two places.
///
/// # Safety
/// - From `base` to `limit`, in this order, is memory of one allocation, valid
///   for reads and writes while the block is used.
unsafe fn gap(base: NonNull<u8>, limit: NonNull<u8>) -> Block {
    // SAFETY: the caller's duties are `Block::new`'s.
    unsafe { Block::new(base, limit.addr().get() - base.addr().get()) }
}

/// A tract table whose every grain is spare.
fn all_spare(entries: &[Tract]) -> TractTable {
    // A client arena has at most `u32::MAX` grains (`Plan::new`).
    let grains = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let mut tracts = TractTable::new(grains);
    if let Ok(first) = tracts.pop_void(entries, grains) {
        tracts.give_spare(entries, first, grains);
    }
    tracts
}

// SAFETY: blocks come from the tract table, which gives each grain to one holder
// at a time; grains begin at multiples of the grain from `base`, which is one,
// and end below the ceiling (`Plan::new`) and inside `range`; the memory is
// borrowed for `'m` and does not move with the arena value.
unsafe impl Arena for ClientArena<'_> {
    fn grain(&self) -> usize {
        self.grain.get()
    }

    /// From the tract table to the end of the last grain.
    fn range(&self) -> AddrRange {
        let base = Addr::of(self.table.as_ptr());
        let limit = Addr::new(self.base.addr().get() + self.bytes(self.grains));
        AddrRange::new(base, limit).unwrap_or_default()
    }

    fn provenance(&self) -> NonNull<u8> {
        self.base
    }

    fn register(&self) -> Result<PoolId> {
        let mut state = self.state.lock();
        let pool = PoolId::new(state.last_serial + 1).ok_or(Error::Limit)?;
        state.last_serial = pool.get();
        state.pools += 1;
        Ok(pool)
    }

    /// Reads the entry of every grain once. Takes the lock only to free a piece.
    unsafe fn unregister(&self, pool: PoolId) {
        for (index, count) in TractTable::pieces_of(self.entries(), pool) {
            self.state.lock().tracts.give_spare(self.entries(), index, count);
        }
        self.state.lock().pools -= 1;
    }

    fn alloc_tracts(&self, size: usize, pool: PoolId) -> Result<Block> {
        if size == 0 || size > isize::MAX.unsigned_abs() {
            return Err(Error::Parameter("tracts have 1 to isize::MAX bytes"));
        }
        refuse_control_pool(pool)?;
        let mut state = self.state.lock();
        self.take(&mut state.tracts, size, pool).map(|(block, _)| block)
    }

    unsafe fn free_tracts(&self, block: Block, pool: PoolId) {
        let base = block.range().base();
        debug_assert_eq!(self.pool_of(base), Some(pool), "tracts are freed by their owner");
        if let (Some(index), Some(count)) = (self.grain_of(base), self.grain_count(block.size())) {
            self.state.lock().tracts.give_spare(self.entries(), index, count);
        }
    }

    fn next_tracts(&self, pool: PoolId, from: Addr) -> Option<Block> {
        let from = self.grain_of(from.max(Addr::of(self.base.as_ptr())))?;
        let (index, count) = TractTable::next_owned(self.entries(), from, pool)?;
        // SAFETY: the table covers only grains inside the memory.
        let base = unsafe { self.base.add(self.bytes(index)) };
        // SAFETY: the pool owns these grains, all inside the memory, which is the
        // arena's while it lives.
        Some(unsafe { Block::new(base, self.bytes(count)) })
    }

    fn alloc_control(&self, layout: Layout) -> Result<NonNull<u8>> {
        let size = ControlMemory::size(layout)?;
        let mut state = self.state.lock();
        if let Some(descriptor) = state.control.alloc(layout)? {
            return Ok(descriptor);
        }
        self.extend_control(&mut state, size)?;
        state.control.alloc(layout)?.ok_or(Error::Limit)
    }

    unsafe fn free_control(&self, descriptor: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's duties are `ControlMemory::free`'s.
        unsafe { self.state.lock().control.free(descriptor, layout) };
    }

    /// Lock-free. `None` for the table and the gap behind it, which are in the
    /// range and nobody's tracts.
    fn pool_of(&self, addr: Addr) -> Option<PoolId> {
        TractTable::owner_of(self.entries(), self.grain_of(addr)?)
    }

    fn sizes(&self) -> ArenaSizes {
        self.sizes_in(&self.state.lock())
    }

    fn counts(&self) -> &ArenaCounts {
        &self.counts
    }

    fn freeze(&self) {
        self.frozen.store(true, Ordering::Relaxed);
    }

    fn thaw(&self) {
        self.frozen.store(false, Ordering::Relaxed);
    }

    fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Relaxed)
    }

    fn event_hook(&self) -> Option<&dyn EventHook> {
        self.event_hook
    }
}

impl Drop for ClientArena<'_> {
    fn drop(&mut self) {
        self.signature.clear();
    }
}

impl Check for ClientArena<'_> {
    /// Takes the arena's lock, except for [`CheckLevel::Cheap`].
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.signature.check(ARENA, SIGNATURE)?;
        if level >= CheckLevel::Shallow {
            let range = self.range();
            ensure(ARENA, range.limit().get() <= ADDRESS_CEILING, "grains end below the ceiling")?;
            ensure(ARENA, Addr::of(self.base.as_ptr()).is_aligned(self.grain), "grains are aligned")?;
            let table = table_size(self.grains as usize) + self.bytes(self.grains);
            ensure(ARENA, table <= range.size(), "the table ends before the grains")?;
            self.check_state(&self.state.lock(), level)?;
        }
        Ok(())
    }
}

impl Describe for ClientArena<'_> {
    /// Holds the arena's lock: `out` must not allocate from the arena.
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        let state = self.state.lock();
        let sizes = self.sizes_in(&state);
        line(out, depth, "client arena", format_args!("{}", self.range()))?;
        line(out, depth + 1, "reserved", format_args!("{} bytes", sizes.reserved))?;
        line(out, depth + 1, "spare", format_args!("{} bytes", sizes.spare))?;
        line(out, depth + 1, "tables and descriptors", format_args!("{} bytes", sizes.control))?;
        line(out, depth + 1, "grain", format_args!("{} bytes", self.grain.get()))?;
        line(out, depth + 1, "frozen", format_args!("{}", self.is_frozen()))?;
        line(out, depth + 1, "pools", format_args!("{}", state.pools))?;
        state.control.describe(out, depth + 1)?;
        state.tracts.describe(self.entries(), out, depth + 1)
    }
}

impl fmt::Debug for ClientArena<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientArena")
            .field("range", &self.range())
            .field("grain", &self.grain)
            .field("frozen", &self.is_frozen())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn plans_stay_below_the_ceiling() {
        let grain = Align::new(4096).unwrap();
        let start = ADDRESS_CEILING - (64 << 10);
        let plan = Plan::new(start, usize::MAX - start, grain).unwrap();
        let limit = start + plan.base + plan.grains as usize * grain.get();
        assert!(limit <= ADDRESS_CEILING && limit > ADDRESS_CEILING - 2 * grain.get());
        assert!(Plan::new(ADDRESS_CEILING, usize::MAX - ADDRESS_CEILING, grain).is_none());
        assert!(Plan::new(usize::MAX - 1, 1, grain).is_none());
    }

    #[test]
    fn serial_numbers_end() {
        let mut memory = std::boxed::Box::new_uninit_slice(4096);
        let mut arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        assert_eq!(arena.register().map(PoolId::get), Ok(PoolId::CONTROL.get() + 1));
        arena.state.get_mut().last_serial = PoolId::MAX - 1;
        assert_eq!(arena.register().map(PoolId::get), Ok(PoolId::MAX));
        assert_eq!(arena.register(), Err(Error::Limit));
    }
}
