//! The listeners of this process, for a forked child to close
//! (design/contract.md `.call.child`).
//!
//! A child has copies of them. As long as it has, a filtered call of the child waits for a
//! supervisor that the child does not have. So the child closes them before all else.

use core::ptr;
use std::boxed::Box;
use std::os::fd::RawFd;

use tripoint_core::internal::{AtomicPtr, AtomicUsize, Ordering};

/// The place has no listener.
const NOTHING: usize = usize::MAX;
/// The place is kept for the listener of a supervisor.
const CLAIMED: usize = usize::MAX - 1;

/// A listener, in a list that only grows: its places are reused.
struct Entry {
    /// A descriptor, [`NOTHING`] or [`CLAIMED`].
    listener: AtomicUsize,
    next: *const Entry,
}

// SAFETY: `next` is written before the entry is shared, and never again; what it points to
// is never freed.
unsafe impl Sync for Entry {}

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

fn entries() -> impl Iterator<Item = &'static Entry> {
    // SAFETY: null, or an entry, which is never freed.
    let first = unsafe { FIRST.load(Ordering::Acquire).as_ref() };
    // SAFETY: null, or an entry, which was written before it was shared and is never freed.
    core::iter::successors(first, |entry| unsafe { entry.next.as_ref() })
}

/// A place for one listener. It is empty again when this is dropped.
pub(super) struct Place(&'static Entry);

/// Lets a thread note its listener in a place that its supervisor has claimed.
#[derive(Clone, Copy)]
pub(super) struct Note(&'static Entry);

impl Place {
    /// Claims a place. This may allocate, so it comes before there is a filter.
    pub(super) fn claim() -> Self {
        let claim = |entry: &&Entry| {
            entry.listener.compare_exchange(NOTHING, CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        Self(entries().find(claim).unwrap_or_else(add))
    }

    /// For the thread that has the listener before its supervisor.
    pub(super) const fn note(&self) -> Note {
        Note(self.0)
    }
}

impl Note {
    /// Notes the listener, before the supervisor has it. One store.
    pub(super) fn write(self, listener: RawFd) {
        self.0.listener.store(usize::try_from(listener).unwrap_or(CLAIMED), Ordering::Release);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.listener.store(NOTHING, Ordering::Release);
    }
}

fn add() -> &'static Entry {
    let entry = Entry { listener: AtomicUsize::new(CLAIMED), next: ptr::null() };
    let added = Box::into_raw(Box::new(entry));
    let mut first = FIRST.load(Ordering::Relaxed);
    loop {
        // SAFETY: made above, and not shared until it is the first of the list.
        unsafe { (*added).next = first };
        match FIRST.compare_exchange_weak(first, added, Ordering::Release, Ordering::Relaxed) {
            // SAFETY: made above, never freed, and shared only from here on.
            Ok(_) => return unsafe { &*added },
            Err(now) => first = now,
        }
    }
}

/// Closes all of them. Takes no lock and allocates nothing.
///
/// # Safety
/// - Only for a forked child, which has no supervisor, before it does anything else.
pub(super) unsafe fn close_all() {
    for entry in entries() {
        if let Ok(listener) = RawFd::try_from(entry.listener.swap(NOTHING, Ordering::Acquire)) {
            // SAFETY: the child's copy of a descriptor of its parent's supervisor; nothing
            // in the child uses it.
            unsafe { libc::close(listener) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let count = || entries().count();
        let (one, other) = (Place::claim(), Place::claim());
        assert!(!ptr::eq(one.0, other.0));
        drop(one);
        drop(other);
        let before = count();
        // Other tests have places too.
        for _ in 0..1_000 {
            drop(Place::claim());
        }
        assert!(count() < before + 1_000);
    }
}
