//! Who extends a pool, and whether memory is on its way to it (design/core.md `.lock.growth`).

use core::ops::DerefMut;

use tripoint_core::internal::{AtomicUsize, Ordering, yield_now};
use tripoint_core::{LockKind, PoolLock, Result};

/// The growth of a pool: one thread at a time asks the arena for memory, and each brings what it got into the pool while
/// the next asks.
#[derive(Debug)]
pub(crate) struct Growth<L: LockKind> {
    /// The thread that has it asks the arena. It is taken before the lock of the free memory.
    asking: L::Lock<()>,
    /// How many extents are not part of the free memory yet. The two locks keep it in order: it is more before other threads
    /// ask, and less after the free memory has the extent.
    arriving: AtomicUsize,
}

/// An extent on its way into the free memory. It is dropped when it has arrived.
#[derive(Debug)]
pub(crate) struct Arriving<'g>(&'g AtomicUsize);

impl<L: LockKind> Growth<L> {
    /// No memory is on its way.
    pub(crate) fn new() -> Self {
        Self { asking: PoolLock::new(()), arriving: AtomicUsize::new(0) }
    }

    /// Begins to extend the pool: no other thread does before the guard is dropped.
    ///
    /// # Errors
    /// [`Error::Busy`](tripoint_core::Error::Busy): see [`Owned`](tripoint_core::Owned).
    pub(crate) fn begin(&self) -> Result<impl DerefMut + '_> {
        Ok(self.asking.lock()?)
    }

    /// Lets other threads extend the pool, although what the arena supplied to this one has not arrived yet.
    pub(crate) fn depart(&self, asking: impl DerefMut) -> Arriving<'_> {
        self.arriving.fetch_add(1, Ordering::Relaxed);
        drop(asking);
        Arriving(&self.arriving)
    }

    /// What `look` finds in the free memory before all that is on its way has arrived, or right after. The caller has
    /// [begun](Growth::begin) to extend the pool, so nothing more departs meanwhile.
    ///
    /// # Errors
    /// Those of `look`.
    pub(crate) fn look_until_arrived<T>(
        &self,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        loop {
            // Asked first: what arrived before is found.
            let (has_arrived, found) = (self.arriving.load(Ordering::Relaxed) == 0, look()?);
            if found.is_some() || has_arrived {
                return Ok(found);
            }
            yield_now();
        }
    }
}

impl Drop for Arriving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
