//! The words of frozen segments, which any thread reads without a lock (design/gc.md `.frozen.words`).
//!
//! ```text
//!   register                    unregister        reader
//!   version := next             limit := 0        version, limit, first: in this order
//!   first                                         version again: if it is another, all again
//!   limit
//! ```
//!
//! One thread at a time writes, under a lock. A range is empty while its limit is zero, and only an empty one is
//! registered again. Each store releases and each load acquires what was stored before, so a reader that has seen the
//! first object of a later range sees its version too.

use core::mem::offset_of;

use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{Addr, AddrRange};

/// A range of addresses that changes while it is read.
#[derive(Debug)]
pub struct FrozenRange {
    /// How many times it was registered.
    pub version: AtomicUsize,
    /// Where its first object begins.
    pub first: AtomicUsize,
    /// Where its last object ends; zero while it is empty.
    pub limit: AtomicUsize,
}

impl Default for FrozenRange {
    fn default() -> Self {
        Self::new()
    }
}

impl FrozenRange {
    /// Where in a range its first object and its end are, for readers outside of the process.
    pub(crate) const OFFSETS: [usize; 2] = [offset_of!(Self, first), offset_of!(Self, limit)];

    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicUsize::new(0);
        Self { version: zero(), first: zero(), limit: zero() }
    }

    /// The writer: the range, which is empty, becomes `range`.
    pub fn register(&self, range: AddrRange) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Release);
        self.first.store(range.base().get(), Ordering::Release);
        self.limit.store(range.limit().get(), Ordering::Release);
    }

    /// The writer: the range ends here from now on. Objects in front of it are visible to readers that find them in the
    /// range.
    pub fn update(&self, limit: Addr) {
        self.limit.store(limit.get(), Ordering::Release);
    }

    /// Where its last object ends.
    #[must_use]
    pub fn end(&self) -> Addr {
        Addr::new(self.limit.load(Ordering::Acquire))
    }

    /// The writer: the range is empty from here on.
    pub fn unregister(&self) {
        self.update(Addr::ZERO);
    }

    /// Whether `addr` is in the range at a moment during this call. A loop goes on only if the range was registered
    /// again meanwhile.
    #[must_use]
    pub fn contains(&self, addr: Addr) -> bool {
        loop {
            let version = self.version.load(Ordering::Acquire);
            if addr.get() >= self.limit.load(Ordering::Acquire) {
                return false;
            }
            let first = self.first.load(Ordering::Acquire);
            if self.version.load(Ordering::Acquire) == version {
                return first <= addr.get();
            }
        }
    }
}

/// A range that encloses all of several, while it is read.
#[derive(Debug)]
pub struct EnclosingRange {
    base: AtomicUsize,
    limit: AtomicUsize,
}

impl Default for EnclosingRange {
    fn default() -> Self {
        Self::new()
    }
}

impl EnclosingRange {
    /// Encloses nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { base: AtomicUsize::new(usize::MAX), limit: AtomicUsize::new(0) }
    }

    /// The writer: encloses `range` from here on. What was and stays enclosed lies between any two values that the words
    /// have meanwhile, so readers do not miss it, and the words need no order.
    pub fn enclose(&self, range: Option<AddrRange>) {
        let (base, limit) = range.map_or((usize::MAX, 0), |range| (range.base().get(), range.limit().get()));
        self.base.store(base, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Whether it encloses `addr`: two compares.
    #[inline]
    #[must_use]
    pub fn contains(&self, addr: Addr) -> bool {
        self.base.load(Ordering::Relaxed) <= addr.get() && addr.get() < self.limit.load(Ordering::Relaxed)
    }
}
