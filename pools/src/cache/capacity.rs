//! How much a class keeps, in a cache with a depot: more as it is used, and less when it is not
//! (design/cache.md `.capacity`).

use tripoint_core::ManualPool;
use tripoint_core::internal::Ordering;

use super::Cache;
use super::classes::CacheClass;
use super::descriptor::ClassWords;

/// The blocks that pass at once between the pool and a class that was seldom used, if they are small.
const FIRST: usize = 8;

/// The bytes of them, if they are large.
const FIRST_SIZE: usize = 4 << 10;

/// The part of a pool's memory that a cache may keep for its classes to keep more.
const SHARE: usize = 16;

/// The portion that a class begins with, and shrinks to.
fn first_portion(class: &CacheClass) -> usize {
    FIRST.min((FIRST_SIZE / class.size).max(1))
}

impl ClassWords {
    /// Begins with a small portion.
    pub(super) fn begin(&self, class: &CacheClass) {
        self.set_portion(first_portion(class), class);
        self.seen.store(0, Ordering::Relaxed);
    }

    /// How many blocks pass between the pool and the class at once. It keeps up to twice as many.
    pub(super) fn portion(&self) -> usize {
        self.portion.load(Ordering::Relaxed) as usize
    }

    fn set_portion(&self, portion: usize, class: &CacheClass) {
        // A batch is at most a magazine, far below 2^32.
        self.portion.store(portion.min(class.batch()) as u32, Ordering::Relaxed);
    }

    /// Whether it keeps blocks, as many as when this was last asked: then it was hardly used.
    fn is_idle(&self) -> bool {
        // Only compared: what a wrapped count is mistaken for keeps some blocks longer, or shorter.
        let count = self.count.load(Ordering::Relaxed) as u32;
        self.seen.swap(count, Ordering::Relaxed) == count && count != 0
    }
}

impl<P: ManualPool> Cache<'_, P> {
    /// Has a class that was empty, or full, keep twice as many blocks from now on, if it may, and the cache has no more than
    /// its share.
    pub(super) fn grow(&self, index: usize, class: &CacheClass, words: &ClassWords) {
        let may_grow = self.depot.is_some() && words.portion() < class.batch();
        if may_grow && self.descriptor.cached() <= self.pool.header().total() / SHARE {
            self.set_capacity(index, class, words, 2 * words.portion());
        }
    }

    /// Has a class keep up to two portions of so many blocks, or up to two batches.
    fn set_capacity(&self, index: usize, class: &CacheClass, words: &ClassWords, portion: usize) {
        // Closed meanwhile: what handles a trip may unwind, and no class is armed with another limit than its own.
        words.limit.swap(0, Ordering::AcqRel);
        words.set_portion(portion, class);
        self.handle_trips(index);
    }

    /// Lets a class keep the whole batch that it has taken.
    pub(super) fn grow_for_batch(&self, index: usize, class: &CacheClass, words: &ClassWords) {
        if words.portion() < class.batch() {
            self.set_capacity(index, class, words, class.batch());
        }
    }

    /// Looks at one class, each in its turn. If it is [idle](ClassWords::is_idle), half of what it keeps returns to the pool,
    /// and it keeps half as many from then on.
    pub(super) fn shrink_in_turn(&self, used: usize) {
        let classes = self.classes();
        let index = self.turn.get();
        self.turn.set(if index + 1 < classes.len() { index + 1 } else { 0 });
        let (Some(class), words) = (classes.get(index), self.descriptor.words(index)) else { return };
        if index != used && words.is_idle() {
            self.give_back(index, words.count.load(Ordering::Relaxed).div_ceil(2));
            let portion = words.portion().div_ceil(2).max(first_portion(class));
            self.set_capacity(index, class, words, portion);
        }
    }
}
