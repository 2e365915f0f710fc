//! Trips: how any thread takes control of an owner that compares with a limit.
//!
//! An owner (of an allocation point, or of a cache) goes on without a lock as long as it
//! stays below its limit. To **trip** it, another thread stores zero in the limit, and the
//! owner takes its slow path. A trip must not be lost while the owner publishes a new limit:
//! a plain store, or even a compare-exchange, would swallow a trip that comes while another
//! is being handled. So a requester counts first and stores second, both by
//! read-modify-write, and the owner counts again after it has published (design/ap.md
//! `.trip.protocol`):
//!
//! ```text
//!   requester                     owner
//!   requests += 1                 again: observed := requests
//!   limit :=: 0                          handle what is new
//!                                        limit :=: where to stop next
//!                                        if requests != observed: limit :=: 0, again
//! ```
//!
//! Requests are counted in a word and compared for equality. If exactly 2^64 of them, or a multiple, come between
//! two looks of the owner, it takes them for none. On a target of 32 bits these are 2^32, which takes requesters that do nothing
//! else 20 s or more, while the owner does not look once.

use core::ptr;

use crate::primitive::{AtomicPtr, AtomicUsize, Ordering};

/// A limit that an owner compares with: a word in which zero means that it is tripped.
pub trait Limit {
    /// What an owner compares: an address, or a number.
    type Value: Copy;

    /// Stores `value` by a read-modify-write.
    fn publish(&self, value: Self::Value);

    /// Stores zero by a read-modify-write.
    fn close(&self);
}

impl<T> Limit for AtomicPtr<T> {
    type Value = *mut T;

    #[inline(always)]
    fn publish(&self, value: *mut T) {
        self.swap(value, Ordering::AcqRel);
    }

    #[inline(always)]
    fn close(&self) {
        self.publish(ptr::null_mut());
    }
}

impl Limit for AtomicUsize {
    type Value = usize;

    #[inline(always)]
    fn publish(&self, value: usize) {
        self.swap(value, Ordering::AcqRel);
    }

    #[inline(always)]
    fn close(&self) {
        self.publish(0);
    }
}

/// The requests for trips of one owner, which has one limit or several.
///
/// An owner keeps the number of requests that it has observed. A new owner begins with
/// [`Trips::requests`]: earlier requests were not for it.
#[derive(Debug)]
pub struct Trips {
    requests: AtomicUsize,
}

impl Default for Trips {
    fn default() -> Self {
        Self::new()
    }
}

impl Trips {
    /// No requests so far.
    #[must_use]
    pub fn new() -> Self {
        Self { requests: AtomicUsize::new(0) }
    }

    /// The number of requests so far.
    #[must_use]
    #[inline]
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Acquire)
    }

    /// Requests a trip, from any thread or handler: `limits` are all those of the owner.
    /// Wait-free.
    #[inline(always)]
    pub fn request<'l, L: Limit + 'l>(&self, limits: impl IntoIterator<Item = &'l L>) {
        self.requests.fetch_add(1, Ordering::AcqRel);
        limits.into_iter().for_each(Limit::close);
    }

    /// The owner: returns the number of requests that it had not observed, and counts them
    /// as `observed`. It does so before it handles them, because a handler may unwind, and a
    /// trip is handled once.
    #[must_use = "trips that are observed are to be handled"]
    #[inline]
    pub fn observe(&self, observed: &mut usize) -> usize {
        let requests = self.requests();
        requests.wrapping_sub(core::mem::replace(observed, requests))
    }

    /// The owner: publishes `value` in one of its limits, unless a trip is requested
    /// meanwhile; then it handles that and publishes again. Each round calls `handle` with
    /// the number of new requests, which may be zero.
    ///
    /// When it returns, each request has been observed or has left the limit zero. It goes
    /// round once more for each trip that comes while it runs.
    pub fn rearm<L: Limit>(
        &self,
        observed: &mut usize,
        limit: &L,
        value: L::Value,
        mut handle: impl FnMut(usize),
    ) {
        loop {
            handle(self.observe(observed));
            limit.publish(value);
            if self.requests() == *observed {
                return;
            }
            limit.close();
        }
    }
}
