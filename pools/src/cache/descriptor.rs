//! The words of a cache: its owner's lists, and what anybody may do to them.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `head`, `count` | the owner | the owner; anyone looks at `count` |
//! | `limit` | the owner to re-arm, anyone to trip (zero only) | the owner |
//! | `requests` | anyone, before tripping | the owner |
//! | `owned` | whoever creates a cache | the same |
//!
//! A trip must not be lost, so both sides follow the protocol of allocation points
//! (design/ap.md `.trip.protocol`), for each class by itself
//! (design/cache.md `.trip`).

use core::ptr;

use tripoint_core::internal::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use super::classes::{CLASSES_MAX, CacheClass, CacheClasses};

/// The first word of a block in a cache.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct FreeBlock {
    pub(crate) next: *mut FreeBlock,
}

/// The words of one class.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct ClassWords {
    pub(crate) head: AtomicPtr<FreeBlock>,
    pub(crate) count: AtomicUsize,
    /// The most blocks kept, or zero to make every get and put give way.
    pub(crate) limit: AtomicUsize,
}

/// What a cache works with, kept where other threads can reach it: its classes,
/// its lists, and the words by which it is tripped.
///
/// A [`Cache`](super::Cache) owns it for as long as it lives; after that another
/// may.
#[derive(Debug)]
#[repr(align(64))]
pub struct CacheDescriptor {
    /// One for each class, and a last one that is empty, full and never armed, for
    /// what no class serves.
    words: [ClassWords; CLASSES_MAX + 1],
    classes: CacheClasses,
    requests: AtomicUsize,
    owned: AtomicBool,
}

impl CacheDescriptor {
    /// A descriptor for a cache of these classes.
    #[must_use]
    pub fn new(classes: CacheClasses) -> Self {
        let limit = |index| classes.as_slice().get(index).map_or(0, |class: &CacheClass| class.count);
        let words = |index| ClassWords {
            head: AtomicPtr::new(ptr::null_mut()),
            count: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit(index)),
        };
        Self {
            words: core::array::from_fn(words),
            classes,
            requests: AtomicUsize::new(0),
            owned: AtomicBool::new(false),
        }
    }

    /// The classes.
    #[must_use]
    pub const fn classes(&self) -> &CacheClasses {
        &self.classes
    }

    /// Asks the cache to give everything it keeps to its pool, at its next get or
    /// put. From any thread, signal handler or interrupt handler: at most 33
    /// read-modify-writes, takes no lock, never lost. Harms nobody where no cache
    /// owns the descriptor.
    pub fn trip(&self) {
        self.requests.fetch_add(1, Ordering::AcqRel);
        for words in self.words.iter().take(self.classes.as_slice().len()) {
            words.limit.swap(0, Ordering::AcqRel);
        }
    }

    /// How many trips were asked for so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Acquire)
    }

    /// The bytes in the blocks kept, at this moment; any thread may look.
    #[must_use]
    pub fn cached(&self) -> usize {
        let sizes = self.classes.as_slice().iter().zip(&self.words);
        sizes.map(|(class, words)| class.size * words.count.load(Ordering::Relaxed)).sum()
    }

    /// Whether gets and puts of the class give way.
    #[must_use]
    pub fn is_tripped(&self, class: usize) -> bool {
        self.words.get(class).is_none_or(|words| words.limit.load(Ordering::Acquire) == 0)
    }

    /// The owner: arms a class again. `handled` is the number of trips it has
    /// handled; `on_trip` handles one or more new ones.
    ///
    /// When it returns, any trip requested and not handled has left the class
    /// tripped. It goes round once more for each trip that comes while it runs.
    pub(crate) fn rearm(&self, class: usize, handled: &mut usize, on_trip: &mut impl FnMut()) {
        loop {
            self.observe_trips(handled, on_trip);
            self.publish_limit(class);
            if self.requests() == *handled {
                return;
            }
            if let Some(words) = self.words.get(class) {
                words.limit.swap(0, Ordering::AcqRel);
            }
        }
    }

    /// The owner: hears of trips not handled before.
    pub(crate) fn observe_trips(&self, handled: &mut usize, on_trip: &mut impl FnMut()) {
        let seen = self.requests();
        if seen != *handled {
            on_trip();
            *handled = seen;
        }
    }

    /// The step of [`CacheDescriptor::rearm`] that alone would lose trips: arms a
    /// class without a second look.
    pub(crate) fn publish_limit(&self, class: usize) {
        if let (Some(words), Some(class)) = (self.words.get(class), self.classes.as_slice().get(class)) {
            words.limit.swap(class.count, Ordering::AcqRel);
        }
    }

    /// The words of a class, or of none ([`CacheClasses::NONE`]).
    #[inline(always)]
    pub(crate) fn words(&self, class: usize) -> &ClassWords {
        debug_assert!(class <= CacheClasses::NONE);
        // SAFETY: indices of classes come from `CacheClasses::of`, whose table and
        // search give at most `NONE`, the index of the last words.
        unsafe { self.words.get_unchecked(class) }
    }

    /// Takes the descriptor for a cache; false where it has one.
    pub(crate) fn claim(&self) -> bool {
        self.owned.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Gives the descriptor up.
    pub(crate) fn release(&self) {
        self.owned.store(false, Ordering::Release);
    }
}
