//! Which memory was written, as the platform knows it.

use core::fmt;

use crate::values::addr::AddrRange;

/// What a [`WriteWatch`] knows of the writes to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "if it is unknown what was written, all of the range counts as written"]
pub enum Written {
    /// Every page that was written was passed on.
    Known,
    /// Any page may have been written, whatever was passed on.
    Unknown,
}

/// A platform's watch over the memory of an arena: a collector asks it which pages of older objects were
/// written, if mutators do not say so themselves ([`Arena::write_watch`](crate::Arena::write_watch)).
///
/// # Safety
/// - If [`WriteWatch::take_written`] returns [`Written::Known`], every page of the range was passed on that a thread
///   of this process has written since the last call for that page, or ever if there was none. A collector frees
///   objects to which only a write leads that it does not know of.
pub unsafe trait WriteWatch: fmt::Debug + Sync {
    /// Passes the pages of `range` that were written since the last call for them to `visit`, in order of
    /// addresses, and watches all pages of the range from here on. Neighbours may be passed as one.
    ///
    /// Pages that were not watched so far are passed, too, if they were ever written. Some may be passed that were
    /// not written. What counts is when a call was made, and not what it returned: after
    /// [`Written::Unknown`], too, the next call returns what was written since. If `visit` unwinds, all of the
    /// range counts as written.
    ///
    /// A write that happens before the call is passed by it. A write at the same time is passed by this call or by
    /// the next. Writes of devices, and of the kernel to memory that was pinned before the call, may be missed. This
    /// allocates nothing.
    ///
    /// # Safety
    /// - `range` is made of whole grains of tracts that [`Arena::alloc_tracts`](crate::Arena::alloc_tracts) allocated
    ///   for pools of the caller, and that were not freed since: what one caller is passed, no other is.
    /// - No other thread makes a call for these pages at the same time.
    unsafe fn take_written(&self, range: AddrRange, visit: &mut dyn FnMut(AddrRange)) -> Written;
}
