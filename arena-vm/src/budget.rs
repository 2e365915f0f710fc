//! How much memory is committed, and how much may be.

#![forbid(unsafe_code)]

use tripoint_core::aver;
use tripoint_core::internal::{AtomicUsize, Ordering};

/// The bytes of an arena that are committed, and those promised to commits that
/// are under way: `committed <= promised`, and no promise is made beyond the
/// limit.
///
/// A thread promises before it calls the platform and settles the promise afterwards,
/// so that several threads that grow the arena at once cannot exceed the limit together
/// ([design/arena-vm.md `.budget`](crate::design::arena_vm)). What is promised again was decommitted before: that is why a
/// promise acquires, and taking one back releases. The other counts order nothing.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: AtomicUsize,
    promised: AtomicUsize,
    committed: AtomicUsize,
    high_water: AtomicUsize,
    regained: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        let zero = || AtomicUsize::new(0);
        Self {
            limit: AtomicUsize::new(limit),
            promised: zero(),
            committed: zero(),
            high_water: zero(),
            regained: zero(),
        }
    }

    /// Promises `size` bytes.
    ///
    /// # Errors
    /// How many bytes the limit is too low by.
    pub(crate) fn promise(&self, size: usize) -> Result<Promise<'_>, usize> {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut promised = self.promised.load(Ordering::Relaxed);
        loop {
            let wanted = promised.saturating_add(size);
            if wanted > limit {
                return Err(wanted - limit);
            }
            match self.promised.compare_exchange(promised, wanted, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(Promise { budget: self, size }),
                Err(now) => promised = now,
            }
        }
    }

    /// Records that `size` bytes are no longer committed.
    pub(crate) fn decommit(&self, size: usize) {
        let committed = self.committed.fetch_sub(size, Ordering::Relaxed);
        aver!(size <= committed, "{size} bytes are decommitted of {committed}");
        let promised = self.promised.fetch_sub(size, Ordering::Release);
        aver!(size <= promised, "{size} bytes are decommitted of {promised} promised");
    }

    /// Sets the limit. A promise that is made at the same moment may be made by the old one.
    ///
    /// # Errors
    /// How many bytes are promised beyond the new limit; the old one stays then.
    pub(crate) fn set_limit(&self, limit: usize) -> Result<(), usize> {
        match self.promised().saturating_sub(limit) {
            0 => {
                self.limit.store(limit, Ordering::Relaxed);
                Ok(())
            }
            excess => Err(excess),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn promised(&self) -> usize {
        self.promised.load(Ordering::Relaxed)
    }

    pub(crate) fn committed(&self) -> usize {
        self.committed.load(Ordering::Relaxed)
    }

    /// The bytes that were committed below the high water: as many as had been decommitted before.
    pub(crate) fn regained(&self) -> usize {
        self.regained.load(Ordering::Relaxed)
    }

    pub(crate) fn high_water(&self) -> usize {
        self.high_water.load(Ordering::Relaxed)
    }
}

/// Bytes that may be committed. What is not kept is taken back when the promise is
/// dropped, also if a hook of the client panics before that.
#[derive(Debug)]
#[must_use]
pub(crate) struct Promise<'b> {
    budget: &'b Budget,
    size: usize,
}

impl Promise<'_> {
    /// Keeps `size` bytes of the promise: they are committed.
    pub(crate) fn keep(mut self, size: usize) {
        aver!(size <= self.size, "{size} bytes are kept of a promise of {}", self.size);
        self.size = self.size.saturating_sub(size);
        let committed = self.budget.committed.fetch_add(size, Ordering::Relaxed) + size;
        let high_water = self.budget.high_water.fetch_max(committed, Ordering::Relaxed);
        self.budget
            .regained
            .fetch_add(size.saturating_sub(committed.saturating_sub(high_water)), Ordering::Relaxed);
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        self.budget.promised.fetch_sub(self.size, Ordering::Release);
    }
}
