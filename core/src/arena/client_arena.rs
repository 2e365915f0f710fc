//! The client arena: tracts from memory that the caller lends.
//!
//! It is for machines without an operating system, for a part of a larger region, and
//! for tests. It calls nothing: the memory holds the tract table and the grains, and the
//! [`ClientArena`] value holds the rest.
//!
//! Design: [`design/arena.md`](crate::design::arena) `.client`.

mod check;
mod options;
mod plan;

use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

pub use options::ClientArenaOptions;
use plan::{Plan, table_size};

use crate::arena::descriptor_memory::{DescriptorMemory, refuse_arena_pool};
use crate::arena::tract_table::{Tract, TractTable};
use crate::aver;
use crate::events::event::{Event, EventHook};
use crate::primitive::lock::Lock;
use crate::primitive::{AtomicBool, Ordering};
use crate::shared::counters::ArenaCounts;
use crate::shared::signature::Signature;
use crate::traits::arena::{Arena, ArenaSizes};
use crate::traits::block::Block;
use crate::values::addr::{Addr, AddrRange};
use crate::values::align::Align;
use crate::values::check::aver_whole;
use crate::values::error::{Error, Result};
use crate::values::pool_id::PoolId;

const SIGNATURE: u32 = 0x7290_0002;

const ARENA: &str = "ClientArena";

/// What changes under the arena's lock.
#[derive(Debug)]
struct State {
    tracts: TractTable,
    descriptors: DescriptorMemory,
    /// The number of grains that hold descriptors.
    descriptor_grains: u32,
    /// The serial number of the pool registered last.
    last_serial: u32,
    /// The number of pools that are registered now.
    pools: u32,
}

/// An arena in memory that the caller lends, for as long as it is borrowed.
///
/// All its memory is committed from the start and stays so. In its sizes, `committed`,
/// `committed_high_water` and `commit_limit` equal `reserved`. The growth counters stay zero,
/// and [`Arena::freeze`] only sets the flag that [`Arena::is_frozen`] reads, because there is
/// no growth to forbid. A frozen client arena serves requests as before, and returns
/// [`Error::Limit`] when it is full.
///
/// Descriptors ([`Arena::alloc_descriptor`]) lie in the gap between the table and the first
/// grain, and then in grains that belong to [`PoolId::ARENA`]. Grains that were taken for
/// descriptors are kept for descriptors.
///
/// The arena may be moved, sent and shared; its memory stays where it is.
///
/// # Examples
/// In memory that the program allocates at run time:
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
#[doc(alias("static", "bare metal"))]
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

// SAFETY: the pointers lead into memory that the arena borrows exclusively for `'m`,
// wherever the arena value is, and no thread keeps a part of it for itself. The hook is
// `Sync`, so a reference to it may be sent.
unsafe impl Send for ClientArena<'_> {}
// SAFETY: a shared arena reaches the table as `&[Tract]`, all of whose fields are atomic. It
// never touches grains, but hands each out to one holder at a time. The memory of descriptors,
// and everything else that changes, is behind the lock or atomic.
unsafe impl Sync for ClientArena<'_> {}

impl<'m> ClientArena<'m> {
    /// Creates an arena in `memory`, whose contents are lost.
    ///
    /// Takes time in proportion to the number of grains. Memory above
    /// [`ADDRESS_CEILING`](crate::ADDRESS_CEILING), and a rest at the end that is no whole grain, are not used.
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
        // SAFETY: the plan reaches no further than `size` bytes (`Plan::new`). They are valid,
        // and only the arena uses them, because they are borrowed exclusively for `'m`.
        let arena = unsafe { Self::format(start, plan, options.event_hook) };
        let (range, grain) = (arena.range(), grain.get());
        let memory = AddrRange::with_size(Addr::of(start.as_ptr()), size).unwrap_or_default();
        let commit_limit = range.size();
        arena.event(Event::CreateArena {
            grain,
            commit_limit,
            commit_policy: 0,
            prefault_size: 0,
            range,
            memory,
            class: ARENA,
        });
        Ok(arena)
    }

    /// Makes the table and the arena.
    ///
    /// # Safety
    /// - The memory at `start`, as far as `plan` reaches, is valid for reads and writes for
    ///   `'m`, and only the arena uses it.
    unsafe fn format(start: NonNull<u8>, plan: Plan, event_hook: Option<&'m dyn EventHook>) -> Self {
        // SAFETY: both offsets are within the memory at `start`, as far as the plan reaches.
        let (table, base) = unsafe { (start.add(plan.table).cast::<Tract>(), start.add(plan.base)) };
        // SAFETY: the plan aligned the table, and left room for an entry for each grain before
        // grain zero; only the arena uses the memory (the caller's promise).
        let entries = unsafe { write_entries(table, plan.grains) };
        let mut descriptors = DescriptorMemory::new();
        // SAFETY: grain zero lies at or after the end of the table, in the same memory, which is
        // valid for `'m`.
        let gap = unsafe { gap(table.add(entries.len()).cast(), base) };
        // SAFETY: neither the table nor a grain reaches into the gap, so only descriptors use it.
        unsafe { descriptors.supply(gap) };
        let tracts = all_spare(entries, plan.grains);
        let last_serial = PoolId::ARENA.get();
        Self {
            signature: Signature::new(SIGNATURE),
            frozen: AtomicBool::new(false),
            grain: plan.grain,
            grains: plan.grains,
            table,
            base,
            state: Lock::new(State { tracts, descriptors, descriptor_grains: 0, last_serial, pools: 0 }),
            counts: ArenaCounts::default(),
            event_hook,
            memory: PhantomData,
        }
    }

    /// The bytes that the arena takes before the first pool: the value itself and
    /// the tract table. This is less than 2 KiB for up to 64 grains, into which the default
    /// grain divides up to 4 MiB.
    #[must_use]
    pub const fn bootstrap_size(&self) -> usize {
        size_of::<Self>() + table_size(self.grains as usize)
    }

    fn entries(&self) -> &[Tract] {
        // SAFETY: `format` wrote this many entries, in a row and aligned, into memory that is
        // valid while the arena lives. Only shared references to them are made.
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
        Ok((self.block_of(index, count), count))
    }

    /// The block of `count` grains from `index`, which are grains of the table.
    fn block_of(&self, index: u32, count: u32) -> Block {
        aver!(
            index <= self.grains && count <= self.grains - index,
            "{count} grains from {index} are not among {}",
            self.grains
        );
        // SAFETY: grains of the table lie inside the memory (`Plan::new`), so the offset does.
        let base = unsafe { self.base.add(self.bytes(index)) };
        // SAFETY: the last of the grains ends inside the memory too, which is valid for reads
        // and writes while the arena lives.
        unsafe { Block::new(base, self.bytes(count)) }
    }

    /// Supplies the memory of descriptors with whole grains for `size` bytes.
    fn extend_descriptors(&self, state: &mut State, size: usize) -> Result<()> {
        let (block, count) = self.take(&mut state.tracts, size, PoolId::ARENA)?;
        state.descriptor_grains += count;
        // SAFETY: the table allocated these grains to the arena's own pool, which never frees
        // them, so only descriptors use them.
        unsafe { state.descriptors.supply(block) };
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
            own: before_grains + self.bytes(state.descriptor_grains),
        }
    }
}

/// Writes a table of entries that were never used.
///
/// # Safety
/// - The memory at `table` is aligned for entries, has room for one for each grain, and nothing
///   else reads or writes it for `'m`.
unsafe fn write_entries<'m>(table: NonNull<Tract>, grains: u32) -> &'m [Tract] {
    for index in 0..grains as usize {
        // SAFETY: the caller promises that the memory has room for this entry, is aligned for it
        // and is used by nothing else.
        unsafe { table.add(index).write(Tract::new()) };
    }
    // SAFETY: this many entries were just written in a row, and nothing else writes them for
    // `'m` (the caller's promise).
    unsafe { core::slice::from_raw_parts(table.as_ptr(), grains as usize) }
}

/// The memory from `base` to `limit`.
///
/// # Safety
/// - `limit` is not below `base`, and the memory between them is part of one allocation and valid
///   for reads and writes while the block is used.
unsafe fn gap(base: NonNull<u8>, limit: NonNull<u8>) -> Block {
    // SAFETY: the caller promises that the bytes from `base` to `limit` are valid and of one
    // allocation.
    unsafe { Block::new(base, limit.addr().get() - base.addr().get()) }
}

/// A table of `grains` grains, all of which are spare.
fn all_spare(entries: &[Tract], grains: u32) -> TractTable {
    let mut tracts = TractTable::new(grains);
    let popped = tracts.pop_void(entries, grains);
    if aver!(popped == Ok(0), "a new table of {grains} grains returned {popped:?}") {
        tracts.give_spare(entries, 0, grains);
    }
    tracts
}

// SAFETY: blocks come from the tract table, which allocates each grain to one holder at a time,
// so they do not overlap; `owner_of` and `next_owned` read the same table. Grain zero begins at a
// multiple of the grain, and the last one ends below the ceiling and inside `range`
// (`Plan::new`). All are reached from `base`, whose provenance is that of the whole memory.
// Descriptors come from `DescriptorMemory`, which keeps its promises. The memory is borrowed for
// `'m`, so it stays valid, and where it is, when the arena value moves.
unsafe impl Arena for ClientArena<'_> {
    fn grain(&self) -> usize {
        self.grain.get()
    }

    /// From the tract table to the end of the last grain.
    fn range(&self) -> AddrRange {
        let base = Addr::of(self.table.as_ptr());
        let limit = Addr::new(self.base.addr().get() + self.bytes(self.grains));
        let range = AddrRange::new(base, limit);
        aver!(range.is_some(), "the table at {base} is above the end of the grains at {limit}");
        range.unwrap_or_default()
    }

    fn provenance(&self) -> NonNull<u8> {
        self.base
    }

    fn register(&self) -> Result<PoolId> {
        aver_whole(self);
        let mut state = self.state.lock();
        let pool = PoolId::new(state.last_serial + 1).ok_or(Error::Limit)?;
        state.last_serial = pool.get();
        state.pools += 1;
        Ok(pool)
    }

    /// Reads the entry of every grain once. Takes the lock only to free a piece.
    unsafe fn unregister(&self, pool: PoolId) {
        aver_whole(self);
        for (index, count) in TractTable::pieces_of(self.entries(), pool) {
            self.state.lock().tracts.give_spare(self.entries(), index, count);
        }
        self.state.lock().pools -= 1;
    }

    fn alloc_tracts(&self, size: usize, pool: PoolId) -> Result<Block> {
        aver_whole(self);
        if size == 0 || size > isize::MAX.unsigned_abs() {
            return Err(Error::Parameter("tracts have 1 to isize::MAX bytes"));
        }
        refuse_arena_pool(pool)?;
        let mut state = self.state.lock();
        self.take(&mut state.tracts, size, pool).map(|(block, _)| block)
    }

    unsafe fn free_tracts(&self, block: Block, pool: PoolId) {
        aver_whole(self);
        let base = block.range().base();
        debug_assert_eq!(self.pool_of(base), Some(pool), "{block:?} is freed by a pool that does not own it");
        let (Some(index), Some(count)) = (self.grain_of(base), self.grain_count(block.size())) else {
            aver!(false, "{block:?} is freed, which is not in the arena {}", self.range());
            return;
        };
        self.state.lock().tracts.give_spare(self.entries(), index, count);
    }

    fn next_tracts(&self, pool: PoolId, from: Addr) -> Option<Block> {
        let from = self.grain_of(from.max(Addr::of(self.base.as_ptr())))?;
        let (index, count) = TractTable::next_owned(self.entries(), from, pool)?;
        Some(self.block_of(index, count))
    }

    unsafe fn join_tracts(&self, block: Block, pool: PoolId) {
        let base = block.range().base();
        debug_assert_eq!(
            self.pool_of(base),
            Some(pool),
            "{block:?} is joined by a pool that does not own it"
        );
        let (Some(index), Some(count)) = (self.grain_of(base), self.grain_count(block.size())) else {
            aver!(false, "{block:?} is joined, which is not in the arena {}", self.range());
            return;
        };
        TractTable::join(self.entries(), index, count);
    }

    fn segment_base(&self, addr: Addr) -> Option<(PoolId, Addr)> {
        let (pool, first) = TractTable::first_joined(self.entries(), self.grain_of(addr)?)?;
        Some((pool, Addr::new(self.base.addr().get() + self.bytes(first))))
    }

    fn alloc_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        aver_whole(self);
        let size = DescriptorMemory::size(layout)?;
        let mut state = self.state.lock();
        if let Some(descriptor) = state.descriptors.alloc(layout)? {
            return Ok(descriptor);
        }
        self.extend_descriptors(&mut state, size)?;
        let descriptor = state.descriptors.alloc(layout)?;
        aver!(descriptor.is_some(), "a new block of {size} bytes has no room for {layout:?}");
        descriptor.ok_or(Error::Limit)
    }

    unsafe fn free_descriptor(&self, descriptor: NonNull<u8>, layout: Layout) {
        aver_whole(self);
        // SAFETY: the caller promises that the descriptor came from `alloc_descriptor`, hence from
        // this descriptor memory, with this layout, that it is freed once, and is not used any more.
        unsafe { self.state.lock().descriptors.free(descriptor, layout) };
    }

    /// Lock-free. `None` for the table and the gap behind it, which are in the
    /// range but not tracts of any pool.
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
        self.event(Event::DestroyArena { range: self.range() });
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_end() {
        let mut memory = std::boxed::Box::new_uninit_slice(4096);
        let mut arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        assert_eq!(arena.register().map(PoolId::get), Ok(PoolId::ARENA.get() + 1));
        arena.state.get_mut().last_serial = PoolId::MAX - 1;
        assert_eq!(arena.register().map(PoolId::get), Ok(PoolId::MAX));
        assert_eq!(arena.register(), Err(Error::Limit));
    }
}
