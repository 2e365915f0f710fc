//! What the classes that divide memory into granules share.
//!
//! [`Mvff`](crate::Mvff), [`Mvt`](crate::Mvt), [`Snc`](crate::Snc) and [`Tlsf`](crate::Tlsf)
//! differ in how they keep their free memory and which part of it they take. Everything else is
//! here, once: the header, the lock, the seals of hardened objects, and how surplus memory is
//! returned to the arena (design/land.md `.granules`).

use core::ptr::NonNull;

#[cfg(feature = "hardening")]
use tripoint_core::internal::{AtomicBool, Ordering};
use tripoint_core::{
    Addr, Align, Arena, Block, Check, CheckError, CheckLevel, Error, LockKind, PoolHeader, PoolLock,
    PoolOptions, PoolSizes, Result, aver, ensure,
};

use crate::extend::{Extension, extend_for};
use crate::growth::Growth;
use crate::land::{GRANULE, Land};
use crate::link::{Damaged, LinkKey, UNDAMAGED};
use crate::poison::poison;
use crate::seal::{SEAL_SIZE, Seals, is_of_pool};

/// The free memory of a pool, in whole granules.
pub(crate) trait FreeMemory: Send {
    /// The bytes that are free.
    fn size(&self) -> usize;

    /// The bytes that could be taken in one piece.
    fn largest(&mut self) -> usize;

    /// Shows every free block, in the order of addresses.
    fn walk(&mut self, visit: &mut dyn FnMut(Block));

    /// Adds a block, and returns the free block that it is part of now; `None` after damage, when it is lost.
    ///
    /// # Safety
    /// - `block` is whole granules of the pool and overlaps no free block. Nothing else touches it from now on, and it
    ///   stays valid for reads and writes. Its pointer has the provenance of the arena's range.
    unsafe fn insert(&mut self, block: Block) -> Option<Block>;

    /// Whether a block overlaps a free one, as far as that is found in the time of an insert. This is for hardened pools.
    #[cfg_attr(not(feature = "hardening"), allow(dead_code, reason = "only hardened pools ask"))]
    fn overlaps(&mut self, block: Block) -> bool;

    /// Refuses once free memory that was written over was met.
    ///
    /// # Errors
    /// [`Damaged`]
    fn ensure_sound(&self) -> Result<(), Damaged>;

    /// Notes damage that was found in other memory of the pool.
    fn note_damage(&self);

    /// Checks every free block. `owns` returns whether an address lies in the pool's
    /// memory.
    ///
    /// # Errors
    /// The first rule found broken.
    fn check(&mut self, owns: &dyn Fn(Addr) -> bool) -> Result<(), CheckError>;
}

/// The part that pools of granules share.
///
/// `free.size() <= header.total()`; what is missing is in objects and buffers.
#[derive(Debug)]
pub(crate) struct Granules<A: Arena, F, L: LockKind> {
    pub(crate) free: L::Lock<F>,
    pub(crate) growth: Growth<L>,
    pub(crate) seals: Seals,
    /// Whether buffers were ever filled: the objects that they allocate have no seals.
    #[cfg(feature = "hardening")]
    has_filled: AtomicBool,
    pub(crate) header: PoolHeader<A>,
}

impl<A: Arena, F: FreeMemory, L: LockKind> Granules<A, F, L> {
    /// A pool of the named class, without memory yet.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for an arena whose grain is below two granules
    /// - those of [`Arena::register`]
    pub(crate) fn create(
        arena: A,
        class: &'static str,
        options: PoolOptions,
        free: impl FnOnce(&PoolHeader<A>) -> F,
    ) -> Result<Self> {
        if arena.grain() < 2 * GRANULE {
            return Err(Error::Parameter("the arena's grain is below two granules"));
        }
        let header = PoolHeader::create_with(arena, class, options)?;
        Ok(Self {
            free: PoolLock::new(free(&header)),
            growth: Growth::new(),
            seals: Seals::of(LinkKey::of(&header)),
            #[cfg(feature = "hardening")]
            has_filled: AtomicBool::new(false),
            header,
        })
    }

    /// Seals an object that is about to be handed out.
    ///
    /// # Safety
    /// - `object` is whole granules, just taken out of the free memory.
    #[inline]
    pub(crate) unsafe fn hand_out(&self, object: Block) -> NonNull<u8> {
        // SAFETY: nothing uses the block, which is whole granules: the caller just took it.
        unsafe { self.seals.seal(object) };
        object.base()
    }

    /// Prepares a block that is about to be a buffer's.
    ///
    /// # Safety
    /// - `block` was just taken out of the free memory.
    #[inline]
    pub(crate) unsafe fn hand_to_buffer(&self, block: Block) -> Block {
        #[cfg(feature = "hardening")]
        {
            self.has_filled.store(true, Ordering::Relaxed);
            // SAFETY: nothing uses the block, which is valid for writes: the caller just took it. The words where seals
            // will lie have values from here on, and those are no seals.
            unsafe { block.base().write_bytes(0, block.size()) };
        }
        block
    }

    /// Notes that a buffer has no object in a block any more.
    ///
    /// # Safety
    /// - `block` is whole granules that were handed to a buffer, which gives them up.
    #[inline]
    pub(crate) unsafe fn take_from_buffer(&self, block: Block) {
        // SAFETY: nothing uses the block, which is whole granules: the buffer gives it up.
        unsafe { self.seals.set_free(block, GRANULE) };
    }

    /// The memory of an object that is freed and takes `size` bytes, to be added to the free
    /// memory. `None` if it is no object, which is noted as damage, and for a size of `None`,
    /// which no object has.
    ///
    /// # Safety
    /// - `object` is an object of this pool that takes `size` bytes. Nothing uses it any more.
    #[inline]
    pub(crate) unsafe fn take_back(&self, object: NonNull<u8>, size: Option<usize>) -> Option<Block> {
        // SAFETY: the caller frees an object of `size` bytes, which the arena's pointer reaches.
        let object = unsafe { Block::new(self.header.reach(object.addr()), size?) };
        // SAFETY: both ends of the block lie in the pool; the object is the caller's, which gives it up.
        if !is_of_pool(&self.header, object)
            // SAFETY: the whole object lies in the pool, and the caller gives it up.
            || unsafe { self.seals.unseal(object) }.is_err() && !unsafe { self.take_back_unsealed(object) }
        {
            self.note_damage();
            return None;
        }
        // SAFETY: nothing uses the object any more. Its seal, behind these bytes, says that it is free.
        unsafe { poison(Block::new(object.base(), object.size() - SEAL_SIZE)) };
        Some(object)
    }

    /// Takes back what may be an object of a buffer, which has no seal: once buffers were filled, all memory of the pool may be
    /// that is not free, as far as the free memory and the word in the place of a seal say. Returns false if it cannot be one
    /// (design/hardening.md `.fill`).
    ///
    /// # Safety
    /// - The block is whole granules of the pool. If it is an object, it is the caller's, which gives it up.
    #[cold]
    unsafe fn take_back_unsealed(&self, object: Block) -> bool {
        #[cfg(feature = "hardening")]
        {
            // SAFETY: whole words of the pool.
            let is_in_use = self.has_filled.load(Ordering::Relaxed) && !unsafe { self.seals.is_free(object) };
            let is_taken = is_in_use && self.free.lock().is_ok_and(|mut free| !free.overlaps(object));
            if is_taken {
                // SAFETY: an object of a buffer, which the caller gives up.
                unsafe { self.seals.set_free(object, object.size()) };
            }
            is_taken
        }
        #[cfg(not(feature = "hardening"))]
        {
            let _ = object;
            true
        }
    }

    /// Adds a block to the free memory, and returns nothing to the arena.
    ///
    /// # Safety
    /// - `block` is whole granules of the pool, which nothing uses any more.
    pub(crate) unsafe fn join(&self, block: Block) {
        if let Ok(mut free) = self.free.lock() {
            // SAFETY: whole granules of the pool, which the caller gives up; its blocks all point with the provenance of
            // the arena's range.
            unsafe { free.insert(block) };
        }
    }

    /// Returns `surplus` to the arena, and then what `next` takes out of the free memory, until
    /// it takes nothing. The lock is released meanwhile: the arena calls event hooks for each
    /// block, and one that panics leaves the others in the pool.
    ///
    /// # Safety
    /// - `surplus`, and what `next` returns, are whole grains of the pool that were just taken
    ///   out of its free memory.
    pub(crate) unsafe fn return_to_arena(
        &self,
        mut surplus: Option<Block>,
        mut next: impl FnMut(&mut F) -> Option<Block>,
    ) {
        while let Some(block) = surplus {
            // SAFETY: whole grains of the pool, which nothing uses: they were taken out of the
            // free memory.
            unsafe { self.header.retract(block) };
            surplus = self.free.lock().ok().and_then(|mut free| next(&mut free));
        }
    }

    /// Takes an object out of use that takes `size` bytes
    /// ([`ManualPool::set_aside`](tripoint_core::ManualPool::set_aside)).
    ///
    /// # Safety
    /// - If there is such an object, it is the caller's.
    #[inline]
    pub(crate) unsafe fn set_aside(&self, object: NonNull<u8>, size: Option<usize>) -> bool {
        let Some(size) = size else { return false };
        // SAFETY: the block is the caller's, if it is an object; the arena's pointer reaches it.
        let object = unsafe { Block::new(self.header.reach(object.addr()), size) };
        // SAFETY: both ends of the block lie in the pool; if it is an object, it is the caller's.
        is_of_pool(&self.header, object) && unsafe { self.seals.unseal(object) }.is_ok()
    }

    /// Puts an object in use again that takes `size` bytes
    /// ([`ManualPool::put_in_use`](tripoint_core::ManualPool::put_in_use)).
    ///
    /// # Safety
    /// - The object was [set aside](Granules::set_aside).
    #[inline]
    pub(crate) unsafe fn put_in_use(&self, object: NonNull<u8>, size: Option<usize>) -> bool {
        let Some(size) = size else { return false };
        // SAFETY: the caller's object, which the arena's pointer reaches.
        let object = unsafe { Block::new(self.header.reach(object.addr()), size) };
        // SAFETY: both ends of the block lie in the pool. Nothing uses an object that was set aside.
        is_of_pool(&self.header, object) && unsafe { self.seals.seal_free(object) }.is_ok()
    }

    /// Notes that a client freed what is no object, or wrote over free memory.
    #[cold]
    pub(crate) fn note_damage(&self) {
        if let Ok(free) = self.free.lock() {
            free.note_damage();
        }
    }

    /// Shows every free block.
    pub(crate) fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        if let Ok(mut free) = self.free.lock() {
            free.walk(visit);
        }
    }

    /// The sizes of the pool. The largest free block counts as the largest allocation that it
    /// has room for, with its seal.
    pub(crate) fn sizes(&self) -> PoolSizes {
        let (free, largest) = self
            .free
            .lock()
            .map_or((0, 0), |mut free| (free.size(), free.largest().saturating_sub(SEAL_SIZE)));
        PoolSizes::of(&self.header, free, largest)
    }

    fn owns(&self, addr: Addr) -> bool {
        self.header.arena().pool_of(addr) == Some(self.header.id())
    }
}

/// How a pool gets more memory (design/core.md `.lock.growth`).
impl<A: Arena, F: FreeMemory, L: LockKind> Granules<A, F, L> {
    /// What `look` finds in the free memory, to which another thread may have added meanwhile.
    ///
    /// # Errors
    /// Those of `look`, and [`Error::Damaged`].
    pub(crate) fn look_again<T>(&self, look: impl FnOnce(&mut F) -> Result<Option<T>>) -> Result<Option<T>> {
        let mut free = self.free.lock()?;
        let found = look(&mut free)?;
        if found.is_none() {
            free.ensure_sound()?;
        }
        Ok(found)
    }

    /// Takes `min..=max` bytes that `look` finds in the free memory, to which another thread may have added meanwhile, or
    /// else from a new extent, whose rest is free from now on. `cover` gets the free memory ready for the extent.
    ///
    /// # Errors
    /// Those of [`Growth::begin`], [`Arena::alloc_tracts`], `look` and `cover`, and [`Error::Damaged`].
    pub(crate) fn take_growing(
        &self,
        (min, max, align): (usize, usize, Align),
        extend_by: usize,
        look: impl Fn(&mut F) -> Result<Option<Block>>,
        cover: impl FnOnce(Block) -> Result<()>,
    ) -> Result<Block> {
        let asking = self.growth.begin()?;
        if let Some(found) = self.look_again(&look)? {
            return Ok(found);
        }
        let covered = extend_for(&self.header, min, max, align, extend_by)
            .and_then(|extension| cover(extension.extent).map(|()| extension));
        match covered {
            Ok(extension) => {
                let _arriving = self.growth.depart(asking);
                self.take_arriving(extension)
            }
            Err(error) => self.growth.look_until_arrived(|| self.look_again(&look))?.ok_or(error),
        }
    }

    /// Takes what is wanted from an extent, and adds the rest to the free memory.
    ///
    /// # Errors
    /// [`Error::Damaged`]
    fn take_arriving(&self, Extension { extent, wanted }: Extension) -> Result<Block> {
        let offset = wanted.base().get() - extent.range().base().get();
        aver!(offset + wanted.size() <= extent.size(), "{wanted:?} is not in the new extent {extent:?}");
        let (front, rest) = extent.split_at(offset).ok_or(Error::Limit)?;
        let (given, back) = rest.split_at(wanted.size()).ok_or(Error::Limit)?;
        let left = [front, back].into_iter().filter(|left| left.size() != 0);
        for left in left.clone() {
            // The page fault, which may clear a huge page, comes before the lock.
            // SAFETY: granules of an extent fresh from the arena, which nothing uses.
            unsafe { left.base().cast::<usize>().write_volatile(0) };
        }
        let mut free = self.free.lock()?;
        for left in left {
            // SAFETY: granules of an extent fresh from the arena, which is covered, and whose blocks all point with the
            // provenance of its range.
            unsafe { free.insert(left) };
        }
        free.ensure_sound()?;
        Ok(given)
    }
}

impl FreeMemory for Land {
    fn size(&self) -> usize {
        Self::size(self)
    }

    fn largest(&mut self) -> usize {
        Self::largest(self)
    }

    fn walk(&mut self, visit: &mut dyn FnMut(Block)) {
        Self::walk(self, visit);
    }

    #[inline]
    unsafe fn insert(&mut self, block: Block) -> Option<Block> {
        // SAFETY: whole granules of the pool, which nothing uses and the caller gives up.
        Some(unsafe { Self::insert(self, block) })
    }

    fn overlaps(&mut self, block: Block) -> bool {
        Self::overlaps(self, block)
    }

    fn ensure_sound(&self) -> Result<(), Damaged> {
        Self::ensure_sound(self)
    }

    fn note_damage(&self) {
        let _ = self.note::<()>(Err(Damaged));
    }

    fn check(&mut self, owns: &dyn Fn(Addr) -> bool) -> Result<(), CheckError> {
        Self::check(self, owns)
    }
}

impl<A: Arena, F: FreeMemory, L: LockKind> Check for Granules<A, F, L> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)?;
        if level >= CheckLevel::Shallow {
            let class = self.header.class();
            let Ok(mut free) = self.free.lock() else { return Ok(()) };
            ensure(class, free.size() <= self.header.total(), "free memory is part of the pool's")?;
            ensure(class, free.ensure_sound().is_ok(), UNDAMAGED)?;
            if level >= CheckLevel::Deep {
                free.check(&|addr| self.owns(addr))?;
            }
        }
        Ok(())
    }
}
