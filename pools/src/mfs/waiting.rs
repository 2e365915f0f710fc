//! What a buffer keeps of its fill: units that do not touch, and that wait until it comes to them.

use core::ptr;

use tripoint_core::internal::{AtomicPtr, AtomicUsize, Ordering};
use tripoint_core::{Block, BufferClass};

use super::free_list::{Chain, FreeList, FreeUnit};
use crate::link::{Damaged, LinkKey};

/// The class of buffers of an [`Mfs`](crate::Mfs): the units of the last fill that wait for the buffer, as a chain
/// (design/pool-mfs.md `.mfs.waiting`).
///
/// Only the owner changes it, so it is read and written without read-modify-writes.
#[derive(Debug)]
pub struct WaitingUnits {
    /// The first unit. Each begins with the link to the next, as often as `count` says.
    first: AtomicPtr<FreeUnit>,
    count: AtomicUsize,
    unit: usize,
}

impl WaitingUnits {
    /// No units, and for units of `unit` bytes.
    pub(crate) fn none(unit: usize) -> Self {
        Self { first: AtomicPtr::new(ptr::null_mut()), count: AtomicUsize::new(0), unit }
    }

    /// The number of units.
    #[inline]
    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Keeps the units of a chain. There should be none yet.
    pub(super) fn keep(&self, chain: &Chain) {
        self.first.store(chain.first().as_ptr(), Ordering::Relaxed);
        self.count.store(chain.count(), Ordering::Relaxed);
    }

    /// The units, as a list that goes on behind them: what it takes out of them has to be [counted](Self::count).
    ///
    /// # Safety
    /// - The caller is the buffer's owner, and takes units only as long as some wait.
    unsafe fn list(&self, key: LinkKey) -> FreeList {
        let first = ptr::NonNull::new(self.first.load(Ordering::Relaxed));
        // SAFETY: the units wait for this buffer, whose owner the caller is.
        unsafe { FreeList::from_link(first, key) }
    }

    /// Takes the first unit, and those after it that touch; `None` if no unit waits.
    ///
    /// # Errors
    /// [`Damaged`] if a link was written over. The units that waited are lost then.
    ///
    /// # Safety
    /// - The caller is the buffer's owner.
    #[inline]
    pub(super) unsafe fn take_run(&self, key: LinkKey) -> Result<Option<Block>, Damaged> {
        let count = self.count();
        if count == 0 {
            return Ok(None);
        }
        // SAFETY: the caller is the owner; no more than `count` units are taken.
        let mut list = unsafe { self.list(key) };
        let (run, taken) = list.pop_run(self.unit, count);
        let left = count - taken;
        let is_whole = list.watch().accepts(|_| left == 0 || list.first().is_some());
        self.count.store(if is_whole { left } else { 0 }, Ordering::Relaxed);
        self.first.store(list.first().map_or(ptr::null_mut(), ptr::NonNull::as_ptr), Ordering::Relaxed);
        list.ensure_sound().map(|()| run)
    }

    /// Takes all units.
    ///
    /// # Errors
    /// As [`WaitingUnits::take_run`].
    ///
    /// # Safety
    /// - The caller is the buffer's owner.
    pub(super) unsafe fn take_all(&self, key: LinkKey) -> Result<Option<Chain>, Damaged> {
        let count = self.count();
        if count == 0 {
            return Ok(None);
        }
        // SAFETY: the caller is the owner; no more than `count` units are taken.
        let mut list = unsafe { self.list(key) };
        let chain = list.take(count);
        self.count.store(0, Ordering::Relaxed);
        list.watch().accepts(|_| chain.as_ref().is_some_and(|chain| chain.count() == count));
        list.ensure_sound().map(|()| chain)
    }
}

impl BufferClass for WaitingUnits {
    /// All buffers of a pool have units of one size, and a buffer without an owner has no memory, and so no units.
    unsafe fn renew(&self, _fresh: Self) {}

    #[inline(always)]
    fn waiting(&self) -> usize {
        self.count() * self.unit
    }
}
