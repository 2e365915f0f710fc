//! How much a class keeps, in a cache with a depot: more as it is used, and less when it is not
//! (design/cache.md `.capacity`).

use tripoint_core::internal::Ordering;

use super::classes::CacheClass;
use super::descriptor::ClassWords;
use super::sums::{BLOCK_ALIGN, first_portion, portion_within, smaller_portion};

impl ClassWords {
    /// Begins with a small portion.
    pub(super) fn begin(&self, class: &CacheClass) {
        self.set_portion(first_portion(class.size), class);
        self.seen.store(0, Ordering::Relaxed);
    }

    /// How many blocks pass between the pool and the class at once. It keeps up to twice as many.
    pub(super) fn portion(&self) -> usize {
        self.portion.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_portion(&self, portion: usize, class: &CacheClass) {
        self.portion.store(portion_within(portion, class.batch()), Ordering::Relaxed);
    }

    /// The portion of a class that was hardly used: half of what it is.
    pub(super) fn smaller_portion(&self, class: &CacheClass) -> usize {
        smaller_portion(self.portion(), class.size)
    }

    /// Whether it keeps the same blocks as when this was last asked: then it was hardly used.
    pub(super) fn is_idle(&self) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        let first = self.head.first().map_or(0, |first| first.addr().get());
        // Only compared: if one list is mistaken for another, some blocks are kept shorter.
        let list = (first / BLOCK_ALIGN) as u32 ^ (count as u32).rotate_right(8);
        self.seen.swap(list, Ordering::Relaxed) == list && count != 0
    }
}
