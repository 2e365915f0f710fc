//! The word by which a thread finds what it uses without a lock, and by which others learn that it does not use it now.
//!
//! The owner empties the word while it uses what it leads to. Another thread may use that in the owner's place while the
//! owner is *at rest*, if the owner compares with a limit before it goes on without a lock ([`Trips`](super::trips::Trips)):
//!
//! ```text
//!   owner                         another thread
//!   slot := empty                 lock
//!   light barrier                 trip: limits :=: 0
//!   limit not 0? use it           heavy barrier
//!     else lock, use it, unlock   slot not empty? use it
//!   slot := what it leads to      unlock
//! ```
//!
//! By the barriers, either the owner sees the limit of zero, or the other thread sees that the slot is empty. If the slot is
//! full, the owner's last use came before; before its next one the owner finds the limit of zero, and waits for the lock
//! (design/adaptors.md `.cached.rest`).

#![forbid(unsafe_code)]

use core::ptr;

use crate::primitive::{AtomicPtr, Ordering};

/// A word that leads to what its owner uses; it is empty while the owner does.
#[derive(Debug)]
pub struct OwnerSlot<T>(AtomicPtr<T>);

impl<T> OwnerSlot<T> {
    /// A word that leads to nothing yet.
    #[cfg(not(any(tripoint_loom, tripoint_shuttle)))]
    #[must_use]
    pub const fn empty() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// A word that leads to nothing yet.
    #[cfg(any(tripoint_loom, tripoint_shuttle))]
    #[must_use]
    pub fn empty() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The owner: what the word leads to; null if it is empty.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> *mut T {
        self.0.load(Ordering::Relaxed)
    }

    /// The owner: empties the word, before the owner looks at a limit. `light` is the light side of a
    /// [`BarrierPair`](crate::BarrierPair), and keeps handlers of the owner's thread from seeing the word full.
    #[inline(always)]
    pub fn take(&self, light: impl FnOnce()) {
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
        light();
    }

    /// The owner: has the word lead to `kept`, whose use has ended.
    #[inline(always)]
    pub fn restore(&self, kept: *mut T) {
        self.0.store(kept, Ordering::Release);
    }

    /// Another thread, after the heavy side of the barrier: whether the owner is at rest.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        !self.0.load(Ordering::Acquire).is_null()
    }
}
