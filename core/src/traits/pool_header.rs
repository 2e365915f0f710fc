//! What every pool has, whatever its class: an arena, a number, buffers, tracts.

use core::alloc::Layout;
use core::fmt;
use core::num::NonZeroUsize;
use core::ptr::NonNull;

use crate::aver;
use crate::events::event::Event;
use crate::primitive::defer::Defer;
use crate::primitive::{AtomicU32, AtomicUsize, Ordering};
use crate::shared::registry::Registry;
use crate::shared::signature::Signature;
use crate::traits::arena::{Arena, PART_ALIGN};
use crate::traits::block::Block;
use crate::values::addr::{Addr, AddrRange};
use crate::values::check::{Check, CheckError, CheckLevel, aver_whole, ensure};
use crate::values::describe::{Describe, line};
use crate::values::error::{Error, Result};
use crate::values::pool_id::PoolId;
use crate::values::pool_options::PoolOptions;

const SIGNATURE: u32 = 0x7290_0001;

/// The most parts of grains that a pool has at one time.
const PARTS_MAX: usize = 2;

/// The place of a part that is being allocated.
const PLACE_TAKEN: u32 = u32::MAX;

/// The common part of a pool. Dropping it returns every tract to the arena, so it must be
/// dropped last: a pool class has it as its last field, or has no destructor in other fields
/// that uses the memory.
#[derive(Debug)]
pub struct PoolHeader<A: Arena> {
    signature: Signature,
    id: PoolId,
    class: &'static str,
    registry: Registry,
    total: AtomicUsize,
    high_water: AtomicUsize,
    /// The places of its parts of grains ([`PoolHeader::place_of`]), or zero.
    parts: [AtomicU32; PARTS_MAX],
    /// The first and the last grain, counted from the base of the arena, that the pool ever had, the last plus one.
    lowest: AtomicU32,
    highest: AtomicU32,
    /// An empty block, whose pointer has the provenance of the arena's range.
    reach: Block,
    arena: A,
}

impl<A: Arena> PoolHeader<A> {
    /// Registers a pool of the named class with its arena.
    ///
    /// # Errors
    /// Those of [`Arena::register`].
    pub fn create(arena: A, class: &'static str) -> Result<Self> {
        Self::create_with(arena, class, PoolOptions::NONE)
    }

    /// As [`PoolHeader::create`], for a class with options, which the event has.
    ///
    /// # Errors
    /// Those of [`PoolHeader::create`].
    pub fn create_with(arena: A, class: &'static str, options: PoolOptions) -> Result<Self> {
        // SAFETY: a block of no bytes asks nothing of its pointer.
        let reach = unsafe { Block::new(arena.provenance(), 0) };
        let header = Self {
            signature: Signature::new(SIGNATURE),
            id: arena.register()?,
            class,
            registry: Registry::new(),
            total: AtomicUsize::new(0),
            high_water: AtomicUsize::new(0),
            parts: core::array::from_fn(|_| AtomicU32::new(0)),
            lowest: AtomicU32::new(u32::MAX),
            highest: AtomicU32::new(0),
            reach,
            arena,
        };
        header.arena.event(Event::CreatePool { pool: header.id, options, class });
        Ok(header)
    }

    /// The arena that the pool lives in.
    pub const fn arena(&self) -> &A {
        &self.arena
    }

    /// The pool's serial number.
    pub const fn id(&self) -> PoolId {
        self.id
    }

    /// The name of the pool's class.
    pub const fn class(&self) -> &'static str {
        self.class
    }

    /// Returns a pointer to `addr` with the provenance of the arena's range.
    ///
    /// A client's pointer to an object may have lost part of its provenance, for example
    /// if it passed through a reference to a part of the object. So a pool uses this
    /// pointer to reach what is freed. To a processor it is the same number
    /// ([design/core.md `.pool.reach`](crate::design::overview)).
    #[inline(always)]
    pub fn reach(&self, addr: NonZeroUsize) -> NonNull<u8> {
        self.reach.base().with_addr(addr)
    }

    /// The memory that the pool has from its arena, in bytes.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// The most that [`PoolHeader::total`] ever was, in bytes.
    pub fn high_water(&self) -> usize {
        self.high_water.load(Ordering::Relaxed)
    }

    /// Allocates tracts of at least `size` bytes from the arena.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_tracts`].
    pub fn extend(&self, size: usize) -> Result<Block> {
        aver_whole(self);
        let block = self.arena.alloc_tracts(size, self.id)?;
        let (grain_shift, base) = (self.arena.grain().trailing_zeros(), self.arena.range().base().get());
        let [first, last] = [block.range().base().get(), block.range().limit().get().saturating_sub(1)]
            .map(|addr| addr.saturating_sub(base).checked_shr(grain_shift).unwrap_or(0))
            .map(|index| u32::try_from(index).unwrap_or(u32::MAX));
        let end = last.saturating_add(1);
        self.lowest.fetch_min(first, Ordering::Relaxed);
        self.highest.fetch_max(end, Ordering::Relaxed);
        self.take_over(block, size);
        Ok(block)
    }

    /// As [`PoolHeader::extend`], with a part of a grain that several pools share ([`Arena::alloc_part`]): at most
    /// [`PART_SIZE_MAX`](crate::PART_SIZE_MAX) bytes, aligned to [`PART_ALIGN`](crate::PART_ALIGN).
    ///
    /// # Errors
    /// Those of [`Arena::alloc_part`], and [`Error::Limit`] if the pool has two parts. Extend the pool by tracts then.
    pub fn extend_part(&self, size: usize) -> Result<Block> {
        aver_whole(self);
        for place in &self.parts {
            if Self::claim(place, 0, PLACE_TAKEN) {
                return self.extend_part_at(place, size);
            }
        }
        Err(Error::Limit)
    }

    fn extend_part_at(&self, place: &AtomicU32, size: usize) -> Result<Block> {
        let block = self.arena.alloc_part(size, self.id);
        let known = block.as_ref().ok().and_then(|block| self.place_of(block.range().base()));
        place.store(known.unwrap_or(0), Ordering::Relaxed);
        let block = block?;
        if known.is_none() {
            // SAFETY: just allocated for this pool, and unused.
            unsafe { self.arena.free_part(block, self.id) };
            return Err(Error::Limit);
        }
        self.take_over(block, size);
        Ok(block)
    }

    /// Counts and reports memory that the arena just returned for `size` bytes.
    fn take_over(&self, block: Block, size: usize) {
        aver!(block.size() >= size, "the arena returned {block:?} for {size} bytes");
        let total = self.total.fetch_add(block.size(), Ordering::Relaxed) + block.size();
        self.high_water.fetch_max(total, Ordering::Relaxed);
        self.report_extension(block);
    }

    /// The place of a part: its steps from the base of the arena, plus one. `None` if that is too far.
    fn place_of(&self, base: Addr) -> Option<u32> {
        let steps = base.get().checked_sub(self.arena.range().base().get())? / PART_ALIGN;
        u32::try_from(steps + 1).ok().filter(|&place| place != PLACE_TAKEN)
    }

    fn claim(place: &AtomicU32, from: u32, to: u32) -> bool {
        place.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Frees the parts that the pool still has.
    fn free_parts(&self) {
        for place in
            self.parts.iter().filter(|place| ![0, PLACE_TAKEN].contains(&place.load(Ordering::Relaxed)))
        {
            let steps = place.swap(0, Ordering::Relaxed) as usize - 1;
            let addr = Addr::new(self.arena.range().base().get() + steps * PART_ALIGN);
            let part = self.arena.part_of(addr).filter(|(pool, _)| *pool == self.id);
            if let Some((_, part)) = part
                && let Some(base) = NonZeroUsize::new(part.base().get())
            {
                // SAFETY: a part that `extend_part` allocated for this pool and that was not returned. The pool is being
                // dropped, so nothing uses it.
                unsafe { self.arena.free_part(Block::new(self.reach(base), part.size()), self.id) };
            }
        }
    }

    /// The addresses between which the pool has all of its tracts.
    fn tracts(&self) -> AddrRange {
        let (grain, range) = (self.arena.grain(), self.arena.range());
        let at = |index: u32| match index {
            u32::MAX => range.limit(),
            index => Addr::new(range.base().get().saturating_add(index as usize * grain)).min(range.limit()),
        };
        let [lowest, highest] = [&self.lowest, &self.highest].map(|word| at(word.load(Ordering::Relaxed)));
        AddrRange::new(lowest, highest).unwrap_or_default()
    }

    /// Returns tracts or a part to the arena.
    ///
    /// # Safety
    /// - `block` is made of whole grains from [`PoolHeader::extend`] of this
    ///   pool, or came from [`PoolHeader::extend_part`] of it, was not returned since, and nothing uses it any more.
    pub unsafe fn retract(&self, block: Block) {
        aver_whole(self);
        // SAFETY: the caller promises whole grains that `extend` allocated from this arena for
        // this pool, or a part from `extend_part`, that they were not returned since, and that nothing uses them any more. They are
        // returned once, here, also if the hook unwinds.
        let _give_back = Defer::new(|| unsafe { self.give_back(block) });
        // Before they are another pool's (design/core.md `.event.order`).
        let (base, size) = (Addr::of(block.base().as_ptr()), block.size());
        self.arena.event(Event::Retract { pool: self.id, base, size });
    }

    /// Returns tracts or a part to the arena, and reports nothing.
    ///
    /// # Safety
    /// - As [`PoolHeader::retract`].
    unsafe fn give_back(&self, block: Block) {
        let total = self.total.fetch_sub(block.size(), Ordering::Relaxed);
        aver!(block.size() <= total, "of {total} bytes a pool returns {block:?}");
        if block.size() < self.arena.grain() {
            let known = self.place_of(block.range().base()).unwrap_or(PLACE_TAKEN);
            let is_known = self.parts.iter().any(|place| Self::claim(place, known, 0));
            if !aver!(is_known, "{block:?} is returned, which is no part of the pool") {
                return;
            }
            // SAFETY: less than a grain is a part that `extend_part` allocated from this arena for this pool. The caller
            // promises that it was not returned since, and that nothing uses it any more.
            return unsafe { self.arena.free_part(block, self.id) };
        }
        // SAFETY: the caller promises whole grains that `extend` allocated from this arena for
        // this pool, that they were not returned since, and that nothing uses them any more.
        unsafe { self.arena.free_tracts(block, self.id) };
    }

    /// Reports tracts or a part that are about to be the pool's. They return to the arena if the hook
    /// unwinds, because the pool does not know of them yet.
    fn report_extension(&self, block: Block) {
        // SAFETY: `extend` or `extend_part` just allocated this block, and returns it only if the hook does not
        // unwind. So nothing has used it, and it is returned to the arena once.
        let give_back = Defer::new(|| unsafe { self.give_back(block) });
        let (base, size) = (Addr::of(block.base().as_ptr()), block.size());
        self.arena.event(Event::Extend { pool: self.id, base, size });
        core::mem::forget(give_back);
    }

    /// Allocates memory for a descriptor of one of the pool's buffers.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    pub fn alloc_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        aver_whole(self);
        self.arena.alloc_descriptor(layout)
    }

    /// As [`alloc_descriptor`](PoolHeader::alloc_descriptor); all bytes are zero.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    pub fn alloc_zeroed_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        aver_whole(self);
        self.arena.alloc_zeroed_descriptor(layout)
    }

    /// Trips every allocation point of the pool: each takes its slow path at its next reserve. Any
    /// thread or handler may call this. It takes no lock, and may miss a point that is being
    /// created.
    pub fn trip_points(&self) {
        self.registry.trip_all();
    }

    /// Whether memory begins and ends in the pool.
    fn owns(&self, memory: AddrRange) -> bool {
        let last = memory.limit().get().saturating_sub(1).max(memory.base().get());
        [memory.base(), Addr::new(last)].into_iter().all(|addr| self.arena.pool_of(addr) == Some(self.id))
    }

    fn free_descriptors(&self) {
        // The walk reads a node's link before it yields the node, so each may be
        // freed as it comes.
        for node in self.registry.iter() {
            // SAFETY: a node in the list is valid until it is freed below, once.
            let layout = unsafe { node.as_ref() }.layout();
            // SAFETY: descriptors come from `alloc_descriptor`, with the layout that their node
            // keeps, and each is in the list once. Its users borrow the pool, which is being
            // dropped. If an owner was forgotten, its descriptor stays claimed but is not used.
            unsafe { self.arena.free_descriptor(node.cast(), layout) };
        }
    }
}

/// The descriptors of a pool's buffers.
pub const fn registry_of<A: Arena>(header: &PoolHeader<A>) -> &Registry {
    &header.registry
}

impl<A: Arena> Drop for PoolHeader<A> {
    fn drop(&mut self) {
        self.signature.clear();
        let _destroy = Defer::new(|| {
            self.free_descriptors();
            self.free_parts();
            // Tracts that were allocated for `id` belong to the pool until here.
            //
            // SAFETY: `id` came from `register` of this arena and is dismissed only here, once. Memory of
            // the pool is used until it is dropped and no longer: its users borrow the pool, or promised
            // so in an unsafe call. Its parts were just freed, and all tracts lie in `tracts`.
            unsafe { self.arena.unregister_within(self.id, self.tracts()) };
        });
        // Before the tracts are other pools'.
        self.arena.event(Event::DestroyPool { pool: self.id, class: self.class });
    }
}

impl<A: Arena> Check for PoolHeader<A> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.signature.check("PoolHeader", SIGNATURE)?;
        if level >= CheckLevel::Shallow {
            ensure("PoolHeader", self.total() <= self.high_water(), "total <= high water")?;
            self.arena.check(CheckLevel::Cheap)?;
        }
        if level >= CheckLevel::Deep {
            self.registry.check_all(level, &|memory| self.owns(memory))?;
        }
        Ok(())
    }
}

impl<A: Arena> Describe for PoolHeader<A> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        line(out, depth, "pool", format_args!("{} #{}", self.class, self.id.get()))?;
        line(out, depth + 1, "total", format_args!("{} bytes", self.total()))?;
        line(out, depth + 1, "high water", format_args!("{} bytes", self.high_water()))?;
        line(out, depth + 1, "descriptors", format_args!("{}", self.registry.iter().count()))
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::arena::client_arena::{ClientArena, ClientArenaOptions};
    use crate::shared::registry::RegistryNode;

    /// Runs `test` with an arena of its own.
    fn with_arena(test: impl FnOnce(&ClientArena<'_>)) {
        let mut memory = std::boxed::Box::new_uninit_slice(16 << 10);
        test(&ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap());
    }

    #[test]
    fn checks_name_the_rule_that_was_broken() {
        with_arena(|arena| {
            let header = PoolHeader::create(arena, "Test").unwrap();
            let found = |level| header.check(level).map_err(|error| error.rule);
            assert_eq!(found(CheckLevel::Deep), Ok(()));
            header.total.store(1, Ordering::Relaxed);
            assert_eq!(found(CheckLevel::Cheap), Ok(()));
            assert_eq!(found(CheckLevel::Shallow), Err("total <= high water"));
            header.high_water.store(1, Ordering::Relaxed);
            assert_eq!(found(CheckLevel::Deep), Ok(()));
            header.signature.clear();
            assert_eq!(found(CheckLevel::Cheap), Err("the signature is set"));
        });
    }

    /// (design/core.md `.pool.drop`)
    #[test]
    fn a_pool_that_is_dropped_gives_its_descriptors_back() {
        with_arena(|arena| {
            let layout = Layout::new::<RegistryNode>();
            let header = PoolHeader::create(arena, "Test").unwrap();
            let descriptors = [(); 3].map(|()| header.alloc_descriptor(layout).unwrap());
            for descriptor in descriptors {
                let node = descriptor.cast::<RegistryNode>();
                // SAFETY: the arena just returned this memory, with the size and alignment of a node.
                unsafe { node.write(RegistryNode::new(layout)) };
                // SAFETY: just made, in no list, and freed with the header.
                unsafe { header.registry.push(node) };
            }
            drop(header);
            for _ in 0..3 {
                let again = arena.alloc_descriptor(layout).unwrap();
                assert!(descriptors.contains(&again), "its memory serves again");
            }
        });
    }
}
