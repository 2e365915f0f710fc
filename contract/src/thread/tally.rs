//! How many events of each class one thread had.

use tripoint_core::internal::{AtomicUsize, Ordering};

use crate::words::atomics::{const_fn, zeros};
use crate::words::class::ViolationClass;

/// The numbers of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of events.
    pub count: usize,
    /// Bytes concerned.
    pub bytes: usize,
    /// Number of events that an amnesty excused; part of `count`.
    pub excused: usize,
    /// Bytes that an amnesty excused; part of `bytes`.
    pub excused_bytes: usize,
}

impl Tally {
    /// Number of events that nothing excuses.
    #[must_use]
    pub const fn unexcused(self) -> usize {
        self.count.wrapping_sub(self.excused)
    }

    /// Bytes that nothing excuses.
    #[must_use]
    pub const fn unexcused_bytes(self) -> usize {
        self.bytes.wrapping_sub(self.excused_bytes)
    }
}

/// The numbers of all classes. Each class has one writer at a time, so adding is
/// a load and a store; any thread may read.
#[derive(Debug)]
pub(crate) struct Tallies {
    count: [AtomicUsize; ViolationClass::COUNT],
    bytes: [AtomicUsize; ViolationClass::COUNT],
    excused: [AtomicUsize; ViolationClass::COUNT],
    excused_bytes: [AtomicUsize; ViolationClass::COUNT],
}

impl Tallies {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { count: zeros(), bytes: zeros(), excused: zeros(), excused_bytes: zeros() }
        }
    }

    /// Adds events of a class. Only the class's writer calls this.
    #[inline(always)]
    pub(crate) fn add(&self, class: ViolationClass, count: usize, bytes: usize, excused: bool) {
        let index = class.index();
        if excused {
            increase(&self.excused[index], count);
            increase(&self.excused_bytes[index], bytes);
        }
        increase(&self.count[index], count);
        increase(&self.bytes[index], bytes);
    }

    /// Forgets everything. Called before anything uses it.
    pub(crate) fn reset(&self) {
        let words = [&self.count, &self.bytes, &self.excused, &self.excused_bytes];
        words.into_iter().flatten().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    pub(crate) fn get(&self, class: ViolationClass) -> Tally {
        let index = class.index();
        Tally {
            count: self.count[index].load(Ordering::Relaxed),
            bytes: self.bytes[index].load(Ordering::Relaxed),
            excused: self.excused[index].load(Ordering::Relaxed),
            excused_bytes: self.excused_bytes[index].load(Ordering::Relaxed),
        }
    }
}

/// Adds to a word that no other thread writes.
#[inline(always)]
pub(crate) fn increase(word: &AtomicUsize, amount: usize) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}
