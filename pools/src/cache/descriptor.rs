//! The words of a cache: its owner's lists, and what any thread may do to them.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `head`, `count` | the owner | the owner; any thread looks at `count` |
//! | `portion`, `seen` | the owner | the owner |
//! | `limit` | the owner to re-arm, any thread to trip (zero only) | the owner |
//! | `trips` | any thread, before it zeroes the limits | the owner |
//! | `owned` | the creator of a cache | the same |
//!
//! Both sides of a trip follow the protocol of allocation points, [`Trips`], with the
//! limit of each class as a limit of its own (design/cache.md `.trip`).

use tripoint_core::internal::Trips;
use tripoint_core::internal::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::classes::{CLASSES_MAX, CacheClass, CacheClasses};
use crate::blocks::OwnList;

/// The words of one class.
///
/// ```text
/// count == the blocks in the list of `head`
/// count <= class.count
/// limit == class.count, with a depot 2 * portion; or 0 if tripped
/// portion <= class.batch()
/// ```
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct ClassWords {
    pub(crate) head: OwnList,
    pub(crate) count: AtomicUsize,
    /// The most blocks kept, or zero so that every call takes the slow path.
    pub(crate) limit: AtomicUsize,
    /// With a depot, how many blocks pass between the pool and the class at once.
    pub(crate) portion: AtomicU32,
    /// What `head` and `count` were at the last look at whether the class is used.
    pub(crate) seen: AtomicU32,
}

/// What a cache works with, kept where other threads can reach it: its classes,
/// its lists, and the words by which it is tripped.
///
/// A [`Cache`](super::Cache) owns it for as long as it lives; after that,
/// another cache may own it.
#[derive(Debug)]
#[repr(align(64))]
pub struct CacheDescriptor {
    /// One for each class, and a last one that is empty, full and never armed, for
    /// layouts that no class serves.
    words: [ClassWords; CLASSES_MAX + 1],
    classes: CacheClasses,
    trips: Trips,
    owned: AtomicBool,
}

impl CacheDescriptor {
    /// A descriptor for a cache of these classes.
    #[must_use]
    pub fn new(classes: CacheClasses) -> Self {
        let limit = |index| classes.as_slice().get(index).map_or(0, |class: &CacheClass| class.count);
        let words = |index| ClassWords {
            head: OwnList::none(),
            count: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit(index)),
            portion: AtomicU32::new(0),
            seen: AtomicU32::new(0),
        };
        Self {
            words: core::array::from_fn(words),
            classes,
            trips: Trips::new(),
            owned: AtomicBool::new(false),
        }
    }

    /// Returns the size classes that a cache of this descriptor keeps.
    #[inline]
    #[must_use]
    pub const fn classes(&self) -> &CacheClasses {
        &self.classes
    }

    /// Asks the cache to return everything it keeps to its pool, at its next allocation or
    /// free. Any thread, signal handler or interrupt handler may call this: it is at most
    /// 49 read-modify-writes, takes no lock, and is never lost. If no cache owns the
    /// descriptor, it has no effect.
    pub fn trip(&self) {
        let words = self.words.iter().take(self.classes.as_slice().len());
        self.trips.request(words.map(|words| &words.limit));
    }

    /// The number of trips requested so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.trips.requests()
    }

    /// The bytes in the blocks that are kept at this moment. Any thread may
    /// ask.
    #[must_use]
    pub fn cached(&self) -> usize {
        let sizes = self.classes.as_slice().iter().zip(&self.words);
        sizes.map(|(class, words)| class.size * words.count.load(Ordering::Relaxed)).sum()
    }

    /// Whether allocations and frees of the class take the slow path.
    #[must_use]
    pub fn is_tripped(&self, class: usize) -> bool {
        self.words.get(class).is_none_or(|words| words.limit.load(Ordering::Acquire) == 0)
    }

    /// The requests for trips.
    pub(crate) const fn trips(&self) -> &Trips {
        &self.trips
    }

    /// The words of a class, or of none ([`CacheClasses::NONE`]).
    #[inline(always)]
    pub(crate) fn words(&self, class: usize) -> &ClassWords {
        debug_assert!(class <= CacheClasses::NONE);
        // SAFETY: indices of classes come from `CacheClasses::of`, whose table and
        // search give at most `NONE`, the index of the last words.
        unsafe { self.words.get_unchecked(class) }
    }

    /// Makes each class take the slow path at its next call, which arms it again; nothing is returned. Any thread may call this.
    pub fn disarm(&self) {
        for words in self.words.iter().take(self.classes.as_slice().len()) {
            words.limit.swap(0, Ordering::AcqRel);
        }
    }

    /// Takes the descriptor for a cache. Returns false if it has one.
    pub(crate) fn claim(&self) -> bool {
        self.owned.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Releases the descriptor.
    pub(crate) fn release(&self) {
        self.owned.store(false, Ordering::Release);
    }
}
