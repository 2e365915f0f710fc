//! What the caches of a pool share: whole batches of free blocks, by size class.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::internal::{AtomicUsize, Ordering, Update};
use tripoint_core::{
    Check, CheckError, CheckLevel, Describe, Error, Magazine, ManualPool, Result, aver, ensure, line,
};

use super::batch_stack::BatchStack;
use super::block_list::ensure_list;
use super::classes::{CLASSES_MAX, CacheClass, CacheClasses};
use super::slabs::{SLAB, SlabClass, Slabs};
use crate::blocks::{FreeBlock, Link};
use crate::link::{Damaged, LinkKey};

/// Batches of free blocks between a pool and its caches ([`Cache::with_depot`](super::Cache::with_depot)).
///
/// A cache that has too many blocks of a class hands a batch of them to the depot, and one that has none takes a
/// batch. Both take a short lock of the class, and the same time however many blocks a batch has. So blocks
/// that one thread allocates and another frees return to the first without the pool's lock.
///
/// The depot keeps at most a number of bytes. It returns what it keeps to the pool when it is
/// [flushed](Depot::flush) or dropped, and when the pool refuses an allocation of a cache. While caches free and do not
/// allocate, it also does so as soon as it has refused as many bytes as it may keep. A full depot returns batches that no
/// cache asks for (design/cache.md `.depot`, `.depot.shrink`, `.depot.idle`, `.req.home`).
///
/// Its blocks count as live for the pool.
///
/// ```
/// use tripoint_core::{ClientArena, ClientArenaOptions};
/// use tripoint_pools::{Cache, CacheClasses, CacheDescriptor, Depot, Tlsf, TlsfOptions};
///
/// let mut memory = Box::new_uninit_slice(256 << 10);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let pool = Tlsf::create(&arena, TlsfOptions::default())?;
/// let classes = CacheClasses::geometric(512, 16)?;
/// let depot = Depot::new(&pool, classes, 64 << 10); // shared by all threads
///
/// let descriptor = CacheDescriptor::new(classes); // one for each thread
/// let cache = Cache::with_depot(&depot, &descriptor)?;
/// let orders: Result<Vec<_>, _> = (0..100).map(|number| cache.boxed([number; 10])).collect();
/// drop(orders?); // more than the cache keeps
/// assert!(depot.kept() > 0);
/// depot.flush();
/// assert_eq!(depot.kept(), 0);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct Depot<'p, P: ManualPool> {
    pool: &'p P,
    key: LinkKey,
    classes: CacheClasses,
    stacks: [BatchStack; CLASSES_MAX],
    kept: AtomicUsize,
    /// The bytes that were not admitted since a cache last looked for a batch.
    refused: AtomicUsize,
    /// Counts the looks for an idle class.
    turn: AtomicUsize,
    bound: usize,
    slabs: Option<Slabs>,
}

impl<'p, P: ManualPool> Depot<'p, P> {
    /// An empty depot for caches with these classes, that keeps at most `bound` bytes. For a program that drops large structures
    /// see [`Depot::with_slabs`].
    #[must_use]
    pub fn new(pool: &'p P, classes: CacheClasses, bound: usize) -> Self {
        let stacks = core::array::from_fn(|_| BatchStack::new());
        let key = LinkKey::of(pool.header());
        let [kept, refused, turn] = [0, 0, 0].map(AtomicUsize::new);
        Self { pool, key, classes, stacks, kept, refused, turn, bound, slabs: None }
    }

    /// As [`Depot::new`], for a program that makes and drops large structures in a pool of many MiB. Blocks of up to 1 KiB come from
    /// *slabs*: the depot allocates 64 KiB in the pool at a time, cuts them into blocks of one class, and frees them when none of
    /// these is in use. So the pool sees one call for many blocks, and what is freed in any order is allocated in the order of
    /// addresses (design/cache.md `.slab`).
    ///
    /// - What was allocated by this depot, or a cache of it, is freed by this depot or a cache of it: a cache that is not
    ///   of this depot cannot free it, and these free nothing else. What is in use when the depot is dropped stays allocated until
    ///   the pool is dropped.
    /// - Blocks of the size of a slab have to be left in the pool, aligned to their size: a small object is refused, although there
    ///   is room for it, if each slab of its class is full, and the pool finds no block for a slab. [`Depot::free_in_slabs`] says what
    ///   is free there.
    /// - Each class of up to 1 KiB that is used has a slab of its own: the 32 of a whole program take 2 MiB. So the pool should have
    ///   at least ten times as much.
    /// - What the depot keeps besides slabs is allocated in the order in which it was freed, so lies scattered if that was random: half
    ///   a MiB as `bound` is enough for what threads exchange.
    /// - A slab returns to the pool only if none of its blocks is in use: one object that stays keeps 64 KiB from all other sizes. If
    ///   the pool has a limit and a few objects outlive many, use [`Depot::new`].
    ///
    /// The depot has no slabs if the pool does not serve their layout, or [observes each
    /// object](ManualPool::OBSERVES_OBJECTS), and with the feature `hardening`: [`Depot::has_slabs`].
    #[must_use]
    pub fn with_slabs(pool: &'p P, classes: CacheClasses, bound: usize) -> Self {
        let is_served = pool.reserve_size(SLAB).is_some();
        let slabs = (is_served && !P::OBSERVES_OBJECTS && !LinkKey::CHECKS).then(Slabs::new);
        let mut depot = Self::new(pool, classes, bound);
        depot.slabs = slabs;
        depot
    }

    /// Whether it has [slabs](Depot::with_slabs).
    #[must_use]
    pub const fn has_slabs(&self) -> bool {
        self.slabs.is_some()
    }

    /// The bytes of free blocks in its slabs at this moment. They count as live for the pool, and are not [kept](Depot::kept). Any
    /// thread may ask.
    #[must_use]
    pub fn free_in_slabs(&self) -> usize {
        self.all_slabs().map(|(class, slabs)| class.size * slabs.free()).sum()
    }

    /// The pool whose blocks it keeps.
    #[must_use]
    pub const fn pool(&self) -> &'p P {
        self.pool
    }

    /// Returns the size classes that its caches have.
    #[must_use]
    pub const fn classes(&self) -> &CacheClasses {
        &self.classes
    }

    /// The most bytes that it keeps.
    #[must_use]
    pub const fn bound(&self) -> usize {
        self.bound
    }

    /// The bytes in the blocks that it keeps at this moment. Any thread may ask.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Returns everything it keeps to the pool, and slabs that have no block in use. Any thread may call this.
    ///
    /// If an event hook unwinds meanwhile, the blocks of the batch that was on its way, or the slabs, stay allocated until the
    /// pool is dropped.
    pub fn flush(&self) {
        for (index, class) in self.classes.as_slice().iter().enumerate() {
            while let Some(first) = self.pop(index) {
                self.free_batch(index, class, first);
            }
        }
        for (class, slabs) in self.all_slabs() {
            // SAFETY: the size of the class.
            if let Some(slab) = unsafe { slabs.take_unused(class.size) } {
                // SAFETY: allocated in the pool as a slab; none of its blocks is in use, and it left its class.
                unsafe { self.pool.free(slab, SLAB) };
            }
        }
    }

    /// Takes a batch of a class for a cache, if it has one.
    pub(crate) fn take(&self, index: usize) -> Option<NonNull<FreeBlock>> {
        // Written seldom, because all caches share the line of these words.
        if self.refused.load(Ordering::Relaxed) != 0 {
            self.refused.store(0, Ordering::Relaxed);
        }
        self.pop(index)
    }

    /// Takes a batch of a class out, if there is one.
    fn pop(&self, index: usize) -> Option<NonNull<FreeBlock>> {
        self.count_out(index, self.stacks.get(index)?.take(self.key))
    }

    /// Counts out what was taken from a class.
    fn count_out(
        &self,
        index: usize,
        taken: Result<Option<NonNull<FreeBlock>>, Damaged>,
    ) -> Option<NonNull<FreeBlock>> {
        let Ok(first) = taken else {
            self.pool.note_damage();
            return None;
        };
        let first = first?;
        self.withdraw(index);
        Some(first)
    }

    /// Counts a batch of a class in, which is [pushed](Depot::push) or [withdrawn](Depot::withdraw) next. Returns
    /// false if it would exceed the bound, or if the program shrinks. Then others may return to the pool.
    pub(crate) fn admit(&self, index: usize) -> bool {
        let Some(class) = self.classes.as_slice().get(index) else { return false };
        let shrinks = self.refused.load(Ordering::Relaxed) > self.bound;
        let more =
            |kept: usize| kept.checked_add(class.batch_size()).filter(|&kept| kept <= self.bound && !shrinks);
        let is_admitted = self.kept.update_by(more).is_ok();
        if !is_admitted {
            self.refused.fetch_add(class.batch_size(), Ordering::Relaxed);
        }
        if !is_admitted && self.kept() != 0 {
            if shrinks { self.return_batch(index) } else { self.return_idle_batch(index) }
        }
        is_admitted
    }

    /// Looks at one class, each in its turn. If no cache looked for a batch of it since the last look, a batch of it returns to the
    /// pool, to make room for those of class `index` (design/cache.md `.depot.idle`).
    #[cold]
    fn return_idle_batch(&self, index: usize) {
        let classes = self.classes.as_slice();
        let idle = self.turn.fetch_add(1, Ordering::Relaxed) % classes.len().max(1);
        if idle != index
            && let (Some(class), Some(stack)) = (classes.get(idle), self.stacks.get(idle))
            && let Some(first) = self.count_out(idle, stack.take_idle(self.key))
        {
            self.free_batch(idle, class, first);
        }
    }

    /// Returns a batch to the pool, of this class or else of the next that has any (design/cache.md `.depot.shrink`).
    #[cold]
    fn return_batch(&self, index: usize) {
        let classes = self.classes.as_slice();
        for (index, class) in classes.iter().enumerate().cycle().skip(index).take(classes.len()) {
            if let Some(first) = self.pop(index) {
                return self.free_batch(index, class, first);
            }
        }
    }

    /// Counts a batch out that was admitted, and is not pushed.
    pub(crate) fn withdraw(&self, index: usize) {
        let size = self.classes.as_slice().get(index).map_or(0, CacheClass::batch_size);
        self.kept.fetch_sub(size, Ordering::Relaxed);
    }

    /// Keeps a batch.
    ///
    /// # Safety
    /// - `first` begins a list of [`CacheClass::batch`] blocks of this class of the pool, linked with
    ///   the pool's key, which nothing uses. The batch was [admitted](Depot::admit).
    pub(crate) unsafe fn push(&self, index: usize, first: NonNull<FreeBlock>) {
        if let Some(stack) = self.stacks.get(index) {
            // SAFETY: a list of free blocks of the pool, which have two words at least and live as long as the pool.
            unsafe { stack.push(first, self.key) };
        }
    }

    /// Returns the blocks of a batch to the pool.
    fn free_batch(&self, index: usize, class: &CacheClass, first: NonNull<FreeBlock>) {
        let Some(block) = class.block() else { return };
        let mut magazine = Magazine::up_to(class.batch());
        let mut next: Link = Some(first);
        while let Some(first) = next.filter(|_| magazine.room() != 0) {
            let left = magazine.room() - 1;
            // SAFETY: a block of a batch begins with its link.
            let link = unsafe { FreeBlock::read(first, CacheClass::ALIGN, self.key) };
            let Some(link) = link.ok().filter(|next| !LinkKey::CHECKS || next.is_none() == (left == 0))
            else {
                return self.pool.note_damage();
            };
            next = link;
            // SAFETY: a block of the class, which the cache that kept it set aside.
            if LinkKey::CHECKS && !unsafe { self.pool.put_in_use(first.cast(), block) } {
                return self.pool.note_damage();
            }
            let full = magazine.push(first.cast()).is_err();
            aver!(!full, "a batch of {class:?} has more blocks than it may");
        }
        // SAFETY: free blocks, which were allocated in the pool with the layout of the class, each once in the batch.
        unsafe { self.free_many(index, block, &mut magazine) };
    }

    /// The slabs of a class, and the size of its blocks; none if they do not come from slabs.
    fn slabs_of(&self, index: usize) -> Option<(&SlabClass, usize)> {
        let (slabs, class) = (self.slabs.as_ref()?, self.classes.as_slice().get(index)?);
        Some((slabs.of(index, class)?, class.size))
    }

    /// The slabs of all classes that have them.
    fn all_slabs(&self) -> impl Iterator<Item = (&CacheClass, &SlabClass)> {
        let classes = self.classes.as_slice().iter().enumerate();
        classes.filter_map(|(index, class)| Some((class, self.slabs_of(index)?.0)))
    }

    /// Allocates the block of a class; the pool may grow.
    ///
    /// # Errors
    /// Those of the pool.
    pub(crate) fn alloc_block(&self, index: usize, block: Layout) -> Result<NonNull<u8>> {
        let Some((slabs, size)) = self.slabs_of(index) else { return self.pool.alloc(block) };
        let mut one = Magazine::up_to(1);
        // SAFETY: the size of the class.
        unsafe { slabs.take_many(size, &mut one) };
        if let Some(block) = one.pop() {
            return Ok(block);
        }
        let slab = self.pool.alloc(SLAB)?;
        // SAFETY: just allocated as a slab in the pool, which outlives the depot; the size of the class.
        Ok(unsafe { slabs.add(slab, size) })
    }

    /// As [`Depot::alloc_block`], after it has returned to the pool all that it keeps.
    ///
    /// # Errors
    /// Those of the pool.
    pub(crate) fn alloc_flushing(&self, index: usize, block: Layout) -> Result<NonNull<u8>> {
        self.flush();
        self.alloc_block(index, block)
    }

    /// Adds blocks of a class to a magazine, as [`Store::alloc_many`] does.
    pub(crate) fn alloc_many(&self, index: usize, block: Layout, blocks: &mut Magazine) {
        match self.slabs_of(index) {
            // SAFETY: the size of the class.
            Some((slabs, size)) => unsafe { slabs.take_many(size, blocks) },
            None => self.pool.alloc_many(block, blocks),
        }
    }

    /// Frees a block of a class.
    ///
    /// # Safety
    /// - As [`Depot::free_many`].
    pub(crate) unsafe fn free_block(&self, index: usize, block: Layout, object: NonNull<u8>) {
        if self.slabs_of(index).is_none() {
            // SAFETY: a block of the class, or an object that none serves, which was allocated in the pool with this layout.
            return unsafe { self.pool.free(object, block) };
        }
        let mut one = Magazine::up_to(1);
        let _ = one.push(object);
        // SAFETY: a block of the class, as the caller promises.
        unsafe { self.free_many(index, block, &mut one) };
    }

    /// Frees blocks of a class.
    ///
    /// # Safety
    /// - They came from this depot as blocks of this class, and nothing uses them. The pointers reach all of the pool.
    pub(crate) unsafe fn free_many(&self, index: usize, block: Layout, blocks: &mut Magazine) {
        let Some((slabs, size)) = self.slabs_of(index) else {
            // SAFETY: blocks of the class, or objects that none serves, which were allocated in the pool with this layout.
            return unsafe { self.pool.free_many(block, blocks) };
        };
        // SAFETY: blocks of the class that nothing uses, which came from its slabs.
        let mut unused = unsafe { slabs.give_many(size, blocks) };
        if !blocks.is_empty() {
            self.pool.note_damage();
        }
        if !unused.is_empty() {
            // SAFETY: allocated in the pool as slabs; none of their blocks is in use, and they left their class.
            unsafe { self.pool.free_many(SLAB, &mut unused) };
        }
    }

    /// Whether a cache of these classes can use it.
    pub(crate) fn ensure_serves(&self, classes: &CacheClasses) -> Result<()> {
        if *classes != self.classes {
            return Err(Error::Parameter("a cache and its depot have the same classes"));
        }
        if classes.as_slice().iter().any(|class| class.count < 2) {
            return Err(Error::Parameter("with a depot, a class keeps at least two blocks"));
        }
        Ok(())
    }
}

impl<P: ManualPool> Drop for Depot<'_, P> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<P: ManualPool> Check for Depot<'_, P> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        const CLASS: &str = "Depot";
        self.pool.header().check(CheckLevel::Cheap)?;
        ensure(CLASS, self.kept() <= self.bound, "a depot keeps no more than it may")?;
        if level < CheckLevel::Deep {
            return Ok(());
        }
        let header = self.pool.header();
        for (class, stack) in self.classes.as_slice().iter().zip(&self.stacks) {
            let reach = |first: NonNull<FreeBlock>| header.reach(first.addr()).cast();
            stack.visit(self.key, reach, |first| {
                ensure_list(CLASS, header, self.key, class, Some(first), class.batch())
            })?;
        }
        for (class, slabs) in self.all_slabs() {
            slabs.check(CLASS, header, class.size)?;
        }
        Ok(())
    }
}

impl<P: ManualPool> Describe for Depot<'_, P> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        line(out, depth, "depot", format_args!("of pool {} #{}", P::CLASS, self.pool.header().id().get()))?;
        line(out, depth + 1, "kept", format_args!("{} of {} bytes", self.kept(), self.bound()))?;
        if self.has_slabs() {
            line(out, depth + 1, "slabs", format_args!("{} bytes free in them", self.free_in_slabs()))?;
        }
        for (class, stack) in self.classes.as_slice().iter().zip(&self.stacks) {
            let (size, batches) = (class.size, stack.batches());
            line(
                out,
                depth + 1,
                "class",
                format_args!("{size} bytes, {batches} batches of {}", class.batch()),
            )?;
        }
        Ok(())
    }
}

impl<P: ManualPool> fmt::Debug for Depot<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Depot")
            .field("kept", &self.kept())
            .field("bound", &self.bound())
            .finish_non_exhaustive()
    }
}
