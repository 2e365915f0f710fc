//! How many bytes are left before the next byte drawn, for one thread or for many.

#![forbid(unsafe_code)]

use core::cell::Cell;
use core::fmt;

use tripoint_core::internal::{AtomicUsize, Ordering, Update};

/// A number of bytes that allocations count down ([`OneThread`] or [`Threads`]).
pub trait Countdown: sealed::Countdown {}

mod sealed {
    pub trait Countdown: super::fmt::Debug {
        /// A countdown with `left` bytes.
        fn new(left: usize) -> Self;

        /// Passes over `size` bytes, and returns true, if as many are left.
        fn pass(&self, size: usize) -> bool;

        /// Sets how many bytes are left, and returns how many were.
        fn replace(&self, left: usize) -> usize;
    }
}

/// A countdown of one thread, which takes two or three instructions per allocation.
#[derive(Debug)]
pub struct OneThread(Cell<usize>);

/// A countdown that threads share, which takes a compare-exchange per allocation.
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
        self.0.update_by(|left| left.checked_sub(size)).is_ok()
    }

    fn replace(&self, left: usize) -> usize {
        self.0.swap(left, Ordering::Relaxed)
    }
}
