//! How many bytes are left before the next that is drawn, for one thread or for many.

#![forbid(unsafe_code)]

use core::cell::Cell;
use core::fmt;

use tripoint_core::internal::{AtomicUsize, Ordering};

/// A number of bytes that allocations count down ([`OneThread`] or [`Threads`]).
pub trait Countdown: sealed::Countdown {}

mod sealed {
    pub trait Countdown: super::fmt::Debug {
        /// So many bytes are left.
        fn new(left: usize) -> Self;

        /// Passes over `size` bytes, if so many are left.
        fn pass(&self, size: usize) -> bool;

        /// Sets how many bytes are left, and returns how many were.
        fn replace(&self, left: usize) -> usize;
    }
}

/// A countdown of one thread: two or three instructions an allocation.
#[derive(Debug)]
pub struct OneThread(Cell<usize>);

/// A countdown that threads share: a compare-exchange an allocation.
#[derive(Debug)]
pub struct Threads(AtomicUsize);

impl Countdown for OneThread {}
impl Countdown for Threads {}

impl sealed::Countdown for OneThread {
    fn new(left: usize) -> Self {
        Self(Cell::new(left))
    }

    #[inline]
    fn pass(&self, size: usize) -> bool {
        self.0.get().checked_sub(size).map(|left| self.0.set(left)).is_some()
    }

    fn replace(&self, left: usize) -> usize {
        self.0.replace(left)
    }
}

// This only counts: the word stands for no other memory.
impl sealed::Countdown for Threads {
    fn new(left: usize) -> Self {
        Self(AtomicUsize::new(left))
    }

    #[inline]
    fn pass(&self, size: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size)).is_ok()
    }

    fn replace(&self, left: usize) -> usize {
        self.0.swap(left, Ordering::Relaxed)
    }
}
