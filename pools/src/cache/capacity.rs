//! How much a class keeps, in a cache with a depot: more as it is used, and less when it is not
//! (design/cache.md `.capacity`).

use tripoint_core::internal::Ordering;

use super::classes::CacheClass;
use super::descriptor::ClassWords;

/// The blocks that pass at once between the pool and a class that was seldom used, if they are small.
const FIRST: usize = 8;

/// The bytes of them, if they are large.
const FIRST_SIZE: usize = 4 << 10;

/// The part of a pool's memory that a cache may keep for its classes to keep more.
const SHARE: usize = 32;

/// Whether a cache that keeps `cached` bytes of a pool's `total` may keep more.
pub(super) const fn may_keep_more(cached: usize, total: usize) -> bool {
    cached <= total / SHARE
}

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

    pub(super) fn set_portion(&self, portion: usize, class: &CacheClass) {
        // A batch is at most a magazine, far below 2^32.
        self.portion.store(portion.min(class.batch()) as u32, Ordering::Relaxed);
    }

    /// The portion of a class that was hardly used: half of what it is.
    pub(super) fn smaller_portion(&self, class: &CacheClass) -> usize {
        self.portion().div_ceil(2).max(first_portion(class))
    }

    /// Whether it keeps blocks, as many as when this was last asked: then it was hardly used.
    pub(super) fn is_idle(&self) -> bool {
        // Only compared: if a wrapped count is mistaken for another, some blocks are kept longer, or shorter.
        let count = self.count.load(Ordering::Relaxed) as u32;
        self.seen.swap(count, Ordering::Relaxed) == count && count != 0
    }
}
