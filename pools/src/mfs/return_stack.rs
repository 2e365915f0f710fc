//! Units that other threads freed, chained on a stack until the pool takes them.
//!
//! Any thread pushes whole chains, and one takes the whole stack. No thread takes single units off
//! it, so a unit that is pushed again meanwhile confuses no thread (design/pool-mfs.md
//! `.returns.aba`).

use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicPtr, Ordering};

use crate::blocks::{Chain, FreeBlock, List};
use crate::link::LinkKey;

/// The units that a thread frees at once.
pub(crate) const BATCH: usize = 64;

/// A stack of free units: any thread pushes chains, any thread takes everything.
///
/// It has a cache line to itself, which freeing threads write.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct ReturnStack {
    head: AtomicPtr<FreeBlock>,
    key: LinkKey,
}

impl ReturnStack {
    /// An empty stack, for units of the pool with this key.
    pub(crate) fn of(key: LinkKey) -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()), key }
    }

    /// Pushes a chain: one compare-exchange, and one more for each push of another
    /// thread that comes first.
    pub(crate) fn push(&self, chain: Chain) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the last unit of a chain is free, and stays valid as long as the stack
            // that it goes into is used (`Chain::of`).
            unsafe { FreeBlock::link(chain.last().cast(), NonNull::new(head), self.key) };
            // Release: the thread that takes the units sees their links, and what their
            // last user did (design/pool-mfs.md `.returns.order`).
            let pushed = self.head.compare_exchange_weak(
                head,
                chain.first().as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match pushed {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes everything: one swap, or a load if there is nothing.
    pub(crate) fn take(&self) -> List {
        if self.head.load(Ordering::Relaxed).is_null() {
            return List::of(self.key);
        }
        let first = NonNull::new(self.head.swap(ptr::null_mut(), Ordering::Acquire));
        // SAFETY: pushed units are free, linked to each other and to nothing else,
        // and the swap took all of them from all other threads.
        unsafe { List::from_link(first, self.key) }
    }
}
