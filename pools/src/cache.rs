//! Caches over any pool: one thread's free blocks, by size
//! (MPS: segregated allocation caches).
//!
//! An allocation takes a block from the list of its size class, and a free puts
//! it back. Neither takes a lock, and blocks have no headers, because both calls
//! pass the layout. The number of blocks that a class keeps is bounded: an empty
//! class takes a few blocks from the pool, and a full one returns some
//! (design/cache.md `.cache`).
//!
//! ```
//! use tripoint_core::{ClientArena, ClientArenaOptions};
//! use tripoint_pools::{Cache, CacheClasses, CacheDescriptor, Mvff, MvffOptions};
//!
//! let mut memory = Box::new_uninit_slice(64 << 10);
//! let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
//! let pool = Mvff::create(&arena, MvffOptions::default())?;
//!
//! let descriptor = CacheDescriptor::new(CacheClasses::geometric(512, 8)?);
//! let cache = Cache::create(&pool, &descriptor)?;
//! let order = cache.boxed([0_u8; 300])?;
//! drop(order); // into the cache
//! assert!(descriptor.cached() >= 300);
//!
//! descriptor.trip(); // from any thread
//! drop(cache.boxed(0_u64)?);
//! assert!(descriptor.cached() < 300);
//! # Ok::<(), tripoint_core::Error>(())
//! ```
//!
//! | file | |
//! |---|---|
//! | `sums` | how many blocks are kept and passed on |
//! | `classes` | which sizes a cache keeps, and how many of each |
//! | `capacity` | how much a class keeps if there is a depot |
//! | `class_list` | the free blocks of a class |
//! | `block_list` | the check of such a list |
//! | `hints` | where the blocks of a batch are |
//! | `batches` | batches in a class |
//! | `batch_stack` | batches on a stack for any thread |
//! | `descriptor` | the owner's lists, and what any thread may do to them |
//! | `depot` | what the caches of a pool share |
//! | `slabs` | what a depot cuts blocks from |
//! | `depot_store` | objects of a depot |
//! | `store` | a cache as a store |

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};

use tripoint_core::internal::Ordering;
use tripoint_core::{Block, Error, Magazine, ManualPool, PoolBox, Result};

use crate::link::{Damaged, Health, LinkKey, Watch};
use crate::poison::poison;

pub(crate) mod batch_stack;
mod batches;
mod block_list;
mod capacity;
mod class_list;
mod classes;
mod depot;
mod depot_store;
mod descriptor;
mod hints;
mod slabs;
mod store;
mod sums;

use batches::{cut_batch, fill_with_batch};
pub use classes::{CacheClass, CacheClasses};
pub use depot::Depot;
pub use descriptor::CacheDescriptor;

use descriptor::ClassWords;
use sums::may_keep_more;

const UNSERVED: Error = Error::Parameter("the pool does not serve the blocks of a class");

/// One thread's free blocks of a pool, by size.
///
/// Any thread may [trip](CacheDescriptor::trip) it, which makes it return all that it
/// keeps to the pool, or to slabs, when it next allocates or frees. Flushing and dropping do the same. A
/// cache that is forgotten (`mem::forget`) takes its blocks with it until the pool is
/// dropped, and its descriptor for good.
///
/// Blocks in the cache count as live for the pool.
///
/// With the feature `hardening`, a cache may meet a link that it did not write, or be
/// asked to free what is not a block of its pool. It then loses what it keeps, refuses
/// with [`Error::Damaged`], and keeps nothing from then on; its pool refuses too
/// (design/hardening.md `.cache`).
#[doc(alias("segregated allocation cache", "thread cache"))]
pub struct Cache<'c, P: ManualPool> {
    descriptor: &'c CacheDescriptor,
    pool: &'c P,
    depot: Option<&'c Depot<'c, P>>,
    /// How many trips the owner has observed, and handled.
    observed: Cell<usize>,
    /// The class that is looked at next, to see whether it is used.
    turn: Cell<usize>,
    key: LinkKey,
    health: Health,
}

impl<'c, P: ManualPool> Cache<'c, P> {
    /// A cache for one thread, with the classes of the descriptor.
    ///
    /// # Errors
    /// [`Error::Parameter`] if another cache has the descriptor, or if the
    /// pool does not serve blocks of a class.
    pub fn create(pool: &'c P, descriptor: &'c CacheDescriptor) -> Result<Self> {
        Self::new(pool, None, descriptor)
    }

    /// As [`Cache::create`], for a cache that shares the blocks of a depot. The descriptor has the classes of the
    /// depot.
    ///
    /// Each class then keeps up to two batches, each of half the blocks that it may keep, but at most
    /// [`Magazine::MAX`](tripoint_core::Magazine::MAX). It begins with few, keeps more as it is used, and less when
    /// it is not (design/cache.md `.capacity`). What [flushing](Cache::flush) and trips return goes to the pool, or to slabs;
    /// the whole batches that are kept when the cache is dropped go to the depot.
    ///
    /// # Errors
    /// Those of [`Cache::create`], and [`Error::Parameter`] if the depot has other classes, or if a class keeps only
    /// one block.
    pub fn with_depot(depot: &'c Depot<'c, P>, descriptor: &'c CacheDescriptor) -> Result<Self> {
        depot.ensure_serves(descriptor.classes())?;
        Self::new(depot.pool(), Some(depot), descriptor)
    }

    fn new(pool: &'c P, depot: Option<&'c Depot<'c, P>>, descriptor: &'c CacheDescriptor) -> Result<Self> {
        let serves =
            |class: &CacheClass| class.block().is_some_and(|block| pool.reserve_size(block).is_some());
        if !descriptor.classes().as_slice().iter().all(serves) {
            return Err(UNSERVED);
        }
        if !descriptor.claim() {
            return Err(Error::Parameter("the descriptor belongs to another cache"));
        }
        let (observed, key) = (Cell::new(descriptor.requests()), LinkKey::of(pool.header()));
        if depot.is_some() {
            descriptor.disarm(); // the limits are those of a cache without a depot
            for (index, class) in descriptor.classes().as_slice().iter().enumerate() {
                descriptor.words(index).begin(class);
            }
        }
        Ok(Self { descriptor, pool, depot, observed, turn: Cell::new(0), key, health: Health::new() })
    }

    /// Returns the descriptor that the cache was created with.
    pub const fn descriptor(&self) -> &'c CacheDescriptor {
        self.descriptor
    }

    /// The pool it takes blocks from.
    pub const fn pool(&self) -> &'c P {
        self.pool
    }

    /// Moves `value` into a block that goes back to this cache when it is dropped.
    ///
    /// To have such boxes sampled or logged, put a store that does so in front of the cache, and use
    /// [`PoolBox::new_in`] on that.
    ///
    /// # Errors
    /// Those of [`Store::alloc`](tripoint_core::Store::alloc); `value` is dropped.
    #[inline]
    pub fn boxed<T>(&self, value: T) -> Result<PoolBox<'_, T, Self>> {
        PoolBox::new_in(value, self)
    }

    /// Moves `value` into a block that any thread may free: into its own cache by [`Cache::free_box`], or, if the box is just
    /// dropped, into the pool. What to send to others.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the cache has no depot, and those of [`Store::alloc`](tripoint_core::Store::alloc); `value` is dropped.
    #[inline]
    pub fn depot_boxed<T>(&self, value: T) -> Result<PoolBox<'c, T, Depot<'c, P>>> {
        let depot =
            self.depot.ok_or(Error::Parameter("the cache has no depot: make it by Cache::with_depot"))?;
        let object = PoolBox::into_raw(self.boxed(value)?);
        // SAFETY: owned and initialised; its memory, if it has a size, came from a cache of the depot, which frees it as such.
        Ok(unsafe { PoolBox::from_raw_in(object, depot) })
    }

    /// Drops an object and keeps its block. An object of another depot is dropped as usual.
    #[inline]
    pub fn free_box<T>(&self, object: PoolBox<'_, T, Depot<'c, P>>) {
        if self.depot.is_some_and(|depot| ptr::eq(PoolBox::store(&object), depot)) {
            // SAFETY: the box owned the object, whose memory came from the depot or a cache of it, whose classes are
            // those of this cache.
            drop(unsafe { PoolBox::from_raw_in(PoolBox::into_raw(object), self) });
        }
    }

    /// Returns everything it keeps to the pool, or to slabs.
    pub fn flush(&self) {
        for index in 0..self.classes().len() {
            self.give_back(index, usize::MAX);
        }
    }

    fn classes(&self) -> &'c [CacheClass] {
        self.descriptor.classes().as_slice()
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&self, index: usize, layout: Layout) -> Result<NonNull<u8>> {
        self.observe_trips(index)?;
        let Some(class) = self.classes().get(index) else { return self.alloc_flushing(index, layout) };
        let (words, block) = (self.descriptor.words(index), class.block().ok_or(UNSERVED)?);
        if self.depot.is_some() {
            self.shrink_in_turn(index);
        }
        let is_filled = words.count.load(Ordering::Relaxed) == 0
            && (self.take_batch(index, class, words) || self.take_more(index, class, words, 0));
        if is_filled {
            self.grow(index, class, words);
        }
        if is_filled && let Some(rest) = words.count.load(Ordering::Relaxed).checked_sub(1) {
            // SAFETY: the class keeps `rest + 1` blocks.
            return unsafe { self.pop(index, words, rest) };
        }
        let object = self.alloc_flushing(index, block)?;
        self.take_more(index, class, words, 1);
        Ok(object)
    }

    /// The most blocks that a class keeps.
    fn most(&self, class: &CacheClass, words: &ClassWords) -> usize {
        if self.depot.is_some() { 2 * words.portion() } else { class.count }
    }

    /// How many blocks of a class pass between the cache and the pool at once.
    fn portion(&self, class: &CacheClass, words: &ClassWords) -> usize {
        if self.depot.is_some() { words.portion() } else { Magazine::MAX.min(class.count.div_ceil(3)) }
    }

    /// Fills an empty class with a batch of the depot. Returns false if there is none.
    fn take_batch(&self, index: usize, class: &CacheClass, words: &ClassWords) -> bool {
        let Some(first) = self.depot.and_then(|depot| depot.take(index)) else { return false };
        // SAFETY: what a depot keeps was cut by a cache with equal classes. It changes no more than the second word of
        // a batch's first block.
        unsafe { fill_with_batch(words, class, first) };
        self.grow_for_batch(index, class, words);
        true
    }

    /// Hands the batch that was freed last to the depot, and keeps the rest. Returns false if the depot has no room,
    /// or the class no batch.
    fn put_batch(&self, depot: &Depot<'c, P>, index: usize, class: &CacheClass, words: &ClassWords) -> bool {
        if words.count.load(Ordering::Relaxed) < class.batch() || !depot.admit(index) {
            return false;
        }
        // SAFETY: the class keeps as many blocks as are counted, and the caller owns the cache.
        let batch = unsafe { cut_batch(words, class, self.watch()) };
        match batch.map_err(|damaged| self.lose_all(damaged)) {
            Ok(Some(first)) => {
                // SAFETY: as many blocks as a batch has, linked by the key of the pool; they left the class, and are admitted.
                unsafe { depot.push(index, first) };
                true
            }
            Ok(None) | Err(_) => {
                depot.withdraw(index);
                false
            }
        }
    }

    /// Fills a class up to a [portion](Cache::portion), of which `taken` blocks were allocated already, but with no more
    /// blocks than the pool has (design/cache.md `.third`). Returns whether the class keeps any then.
    fn take_more(&self, index: usize, class: &CacheClass, words: &ClassWords, taken: usize) -> bool {
        let Some(block) = class.block() else { return false };
        let more = self.portion(class, words).saturating_sub(words.count.load(Ordering::Relaxed) + taken);
        let mut passing = Passing { cache: self, words, blocks: Magazine::up_to(more) };
        match self.depot {
            Some(depot) => depot.alloc_many(index, block, &mut passing.blocks),
            None => self.pool.alloc_many(block, &mut passing.blocks),
        }
        drop(passing);
        words.count.load(Ordering::Relaxed) != 0
    }

    /// Allocates in the pool or, the block of a class, in the depot; if that is refused, once more with what the cache and its
    /// depot keep (design/cache.md `.req.exhausted`).
    fn alloc_flushing(&self, index: usize, layout: Layout) -> Result<NonNull<u8>> {
        match self.depot {
            Some(depot) => depot.alloc_block(index, layout).or_else(|_| {
                self.flush();
                depot.alloc_flushing(index, layout)
            }),
            None => self.pool.alloc(layout).or_else(|_| {
                self.flush();
                self.pool.alloc(layout)
            }),
        }
    }

    /// # Safety
    /// As [`Store::free`](tripoint_core::Store::free); `index` is the class of the layout.
    #[cold]
    #[inline(never)]
    unsafe fn free_slow(&self, index: usize, object: NonNull<u8>, layout: Layout) {
        let is_sound = self.observe_trips(index).is_ok();
        let Some(class) = self.classes().get(index) else {
            // SAFETY: no class serves the layout, so the object came from the pool itself, with this
            // layout; the caller frees it once, and nothing uses it any more.
            return unsafe { self.pool.free(object, layout) };
        };
        if !is_sound {
            return;
        }
        let words = self.descriptor.words(index);
        if self.depot.is_some() {
            self.shrink_in_turn(index);
        }
        if words.count.load(Ordering::Relaxed) >= self.most(class, words) {
            self.grow(index, class, words);
        }
        if words.count.load(Ordering::Relaxed) >= self.most(class, words)
            && !self.depot.is_some_and(|depot| self.put_batch(depot, index, class, words))
        {
            self.give_back(index, self.portion(class, words));
        }
        if self.health.ensure().is_err() {
            return;
        }
        // SAFETY: the caller gives up a block of this class.
        unsafe { words.push(object, words.count.load(Ordering::Relaxed), self.key) };
    }

    /// Has a class that was empty, or full, keep twice as many blocks from now on, if it may, and the cache has no more than
    /// its share.
    fn grow(&self, index: usize, class: &CacheClass, words: &ClassWords) {
        let may_grow = self.depot.is_some() && words.portion() < class.batch();
        if may_grow && may_keep_more(self.descriptor.cached(), self.pool.header().total()) {
            self.set_capacity(index, class, words, 2 * words.portion());
        }
    }

    /// Has a class keep up to two portions of this many blocks, or up to two batches.
    fn set_capacity(&self, index: usize, class: &CacheClass, words: &ClassWords, portion: usize) {
        // Closed meanwhile: what handles a trip may unwind, and no class is armed with another limit than its own.
        words.limit.swap(0, Ordering::AcqRel);
        words.set_portion(portion, class);
        self.handle_trips(index);
    }

    /// Lets a class keep the whole batch that it has taken.
    fn grow_for_batch(&self, index: usize, class: &CacheClass, words: &ClassWords) {
        if words.portion() < class.batch() {
            self.set_capacity(index, class, words, class.batch());
        }
    }

    /// Looks at one class, each in its turn. If it is [idle](ClassWords::is_idle), half of what it keeps returns to the pool,
    /// and it keeps half as many from then on.
    fn shrink_in_turn(&self, used: usize) {
        let classes = self.classes();
        let index = self.turn.get();
        self.turn.set(if index + 1 < classes.len() { index + 1 } else { 0 });
        let (Some(class), words) = (classes.get(index), self.descriptor.words(index)) else { return };
        if index != used && words.is_idle() {
            self.give_back(index, words.count.load(Ordering::Relaxed).div_ceil(2));
            self.set_capacity(index, class, words, words.smaller_portion(class));
        }
    }

    /// Handles trips, and arms the class again if it was tripped.
    ///
    /// # Errors
    /// [`Error::Damaged`], once damage was met.
    fn observe_trips(&self, index: usize) -> Result<()> {
        let descriptor = self.descriptor;
        if descriptor.is_tripped(index) || descriptor.trips().requests() != self.observed.get() {
            self.handle_trips(index);
        }
        self.health.ensure().map_err(|damaged| self.lose_all(damaged))
    }

    #[cold]
    #[inline(never)]
    fn handle_trips(&self, index: usize) {
        let trips = self.descriptor.trips();
        let mut observed = self.observed.get();
        let flush = |requests| {
            if requests != 0 {
                self.flush();
            }
        };
        match self.classes().get(index) {
            Some(class) => {
                let words = self.descriptor.words(index);
                trips.rearm(&mut observed, &words.limit, self.most(class, words), flush);
            }
            None => flush(trips.observe(&mut observed)),
        }
        // Only now, so that a flush that unwinds is made again.
        self.observed.set(observed);
    }

    /// Returns up to `most` blocks of a class to the pool.
    fn give_back(&self, index: usize, most: usize) {
        let words = self.descriptor.words(index);
        let Some(block) = self.classes().get(index).and_then(CacheClass::block) else { return };
        let mut left = most;
        while left != 0 {
            // SAFETY: the caller owns the cache.
            let (blocks, outcome) = unsafe { words.take_out(left, self.watch()) };
            if let Err(damaged) = outcome {
                self.lose_all(damaged);
            }
            let mut passing = Passing { cache: self, words, blocks };
            if LinkKey::CHECKS {
                // SAFETY: the block was in the class. One that is in use is not freed.
                let in_use = |block: NonNull<u8>| unsafe { self.put_in_use(index, block) }.then_some(block);
                let count = passing.blocks.len();
                passing.blocks.replace_each(in_use);
                if passing.blocks.len() != count {
                    self.meet_damage();
                }
            }
            if passing.blocks.is_empty() {
                return;
            }
            left -= passing.blocks.len();
            // SAFETY: blocks of a class were allocated in the depot, or in the pool with its layout, and left the class just now.
            unsafe {
                match self.depot {
                    Some(depot) => depot.free_many(index, block, &mut passing.blocks),
                    None => self.pool.free_many(block, &mut passing.blocks),
                }
            }
        }
    }

    /// Takes the block that was freed last. `rest` blocks are left then.
    ///
    /// # Errors
    /// [`Error::Damaged`]
    ///
    /// # Safety
    /// - The class keeps `rest + 1` blocks, and the caller owns the cache.
    #[inline(always)]
    unsafe fn pop(&self, index: usize, words: &ClassWords, rest: usize) -> Result<NonNull<u8>> {
        // SAFETY: the class keeps `rest + 1` blocks, and the caller owns the cache.
        let object = unsafe { words.pop(rest, self.watch()) }.map_err(|damaged| self.lose_all(damaged))?;
        // SAFETY: the block was in the class, which set it aside.
        if LinkKey::CHECKS && !unsafe { self.put_in_use(index, object) } {
            return Err(self.meet_damage());
        }
        Ok(object)
    }

    /// The class that has these words.
    fn index_of(&self, words: &ClassWords) -> usize {
        let has_words = |&index: &usize| ptr::eq(self.descriptor.words(index), words);
        (0..self.classes().len()).find(has_words).unwrap_or(CacheClasses::NONE)
    }

    /// Puts a block in use again that the class has set aside.
    ///
    /// # Safety
    /// - The block was in the class.
    unsafe fn put_in_use(&self, index: usize, object: NonNull<u8>) -> bool {
        let block = self.classes().get(index).and_then(CacheClass::block);
        // SAFETY: the class has set the block aside with its layout.
        block.is_some_and(|block| unsafe { self.pool.put_in_use(object, block) })
    }

    /// What the links of its blocks are read with.
    #[inline(always)]
    const fn watch(&self) -> Watch<'_> {
        Watch::new(self.key, &self.health)
    }

    /// Sets a block of the class aside, if there is one in use at an address. What is larger than every class is left to the
    /// pool.
    ///
    /// # Safety
    /// - If there is such a block, it is the caller's, which gives it up.
    unsafe fn set_aside(&self, index: usize, object: NonNull<u8>) -> bool {
        let Some(block) = self.classes().get(index).and_then(CacheClass::block) else { return true };
        // SAFETY: if there is such a block it is the caller's; blocks of a class are objects of the pool.
        unsafe { self.pool.set_aside(object, block) }
    }

    /// [Poisons](poison) a block of a class. What is larger than every class is left to the
    /// pool.
    ///
    /// # Safety
    /// - `object` is a block of the class, if there is such a class, and nothing uses it.
    #[inline(always)]
    unsafe fn poison(&self, index: usize, object: NonNull<u8>) {
        if let Some(class) = self.classes().get(index) {
            // SAFETY: `object` is a block of the class, which is that large, and nothing uses it.
            unsafe { poison(Block::new(object, class.size)) };
        }
    }

    /// Allocates `layout` if the cache has a block for it, and is not tripped: without the pool, the depot, and any lock.
    /// This is for those who have to do something before they wait for a lock.
    #[inline(always)]
    #[must_use]
    pub fn alloc_cached(&self, layout: Layout) -> Option<NonNull<u8>> {
        let class = self.descriptor.classes().of(layout);
        let words = self.descriptor.words(class);
        let rest = words.count.load(Ordering::Relaxed).wrapping_sub(1);
        if rest < words.limit.load(Ordering::Relaxed) {
            // SAFETY: the class keeps `rest + 1` blocks.
            return unsafe { self.pop(class, words, rest) }.ok();
        }
        None
    }

    /// Frees a block if the cache has room for it, and is not tripped: without the pool, the depot, and any lock.
    /// Returns false if it has not; the block is the caller's then.
    ///
    /// # Safety
    /// - As [`Store::free`](tripoint_core::Store::free).
    #[inline(always)]
    #[must_use = "a block for which there is no room is still allocated"]
    pub unsafe fn free_cached(&self, object: NonNull<u8>, layout: Layout) -> bool {
        let class = self.descriptor.classes().of(layout);
        let words = self.descriptor.words(class);
        // Otherwise damage would be met, and all lost, by an owner whose cache was tripped and may be used by another thread.
        if LinkKey::CHECKS && words.count.load(Ordering::Relaxed) >= words.limit.load(Ordering::Relaxed) {
            return false;
        }
        // SAFETY: the caller gives up a block of the class of its layout.
        let refused = unsafe { self.keep(class, words, object) };
        if LinkKey::CHECKS
            && let Some(object) = refused
        {
            // SAFETY: set aside just now, and not kept.
            unsafe { self.put_in_use(class, object) };
        }
        refused.is_none()
    }

    /// Keeps a block that is freed, if there is room. Returns it if not, by a pointer that reaches all of it.
    ///
    /// # Safety
    /// - `object` is a block of the class, if there is such a class, that the caller gives up.
    #[inline(always)]
    unsafe fn keep(&self, class: usize, words: &ClassWords, object: NonNull<u8>) -> Option<NonNull<u8>> {
        let object = self.pool.header().reach(object.addr());
        // SAFETY: the block is the caller's, if it is a block of the class.
        if LinkKey::CHECKS && !unsafe { self.set_aside(class, object) } {
            self.meet_damage();
            return None;
        }
        // SAFETY: the caller gives up a block of this class.
        unsafe { self.poison(class, object) };
        let count = words.count.load(Ordering::Relaxed);
        // Not full, not tripped: one compare.
        if count < words.limit.load(Ordering::Relaxed) {
            // SAFETY: the caller gives up a block of this class.
            unsafe { words.push(object, count, self.key) };
            return None;
        }
        Some(object)
    }

    /// Notes that what was freed is no block in use, or what was kept is one, and loses all.
    #[cold]
    fn meet_damage(&self) -> Error {
        self.watch().accepts(|_| false);
        self.lose_all(Damaged)
    }

    /// Loses the blocks it keeps, trips every class for good, and notifies the pool.
    #[cold]
    fn lose_all(&self, damaged: Damaged) -> Error {
        self.pool.note_damage();
        for index in 0..self.classes().len() {
            let words = self.descriptor.words(index);
            words.limit.swap(0, Ordering::AcqRel);
            words.head.set(None);
            words.count.store(0, Ordering::Relaxed);
        }
        damaged.into()
    }
}

/// Blocks on their way between a class and the pool. The class keeps those that are left when this is dropped: what it
/// got, or what the pool did not take because an event hook unwound.
struct Passing<'a, 'c, P: ManualPool> {
    cache: &'a Cache<'c, P>,
    words: &'a ClassWords,
    blocks: Magazine,
}

impl<P: ManualPool> Drop for Passing<'_, '_, P> {
    fn drop(&mut self) {
        if LinkKey::CHECKS {
            let (cache, index) = (self.cache, self.cache.index_of(self.words));
            // SAFETY: blocks of the class that nothing uses, and that are not in it.
            self.blocks.replace_each(|block| unsafe { cache.set_aside(index, block) }.then_some(block));
        }
        // SAFETY: blocks of the class that nothing uses: they are fresh, or left the class and were not freed.
        unsafe { self.words.put_back(&self.blocks, self.cache.key) };
    }
}

impl<P: ManualPool> Drop for Cache<'_, P> {
    fn drop(&mut self) {
        if let Some(depot) = self.depot {
            for (index, class) in self.classes().iter().enumerate() {
                while self.put_batch(depot, index, class, self.descriptor.words(index)) {}
            }
            self.descriptor.disarm(); // the limits are not those of a cache without a depot
        }
        self.flush();
        self.descriptor.release();
    }
}
