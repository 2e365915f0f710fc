//! What says that a heap is stopped (design/gc.md `.stop.witness`).

use core::marker::PhantomData;

/// Says that a heap is stopped by this thread: no mutator of it runs, and what each did to it is visible here.
/// [`Stopped`](crate::Stopped) makes one, which is then borrowed; and the check of a frozen segment does, whose scan is
/// passed to no pool and no root. It is of the heap that is stopped: it is passed to pools
/// and roots of that heap, and to no others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtStop<'s>(PhantomData<(&'s (), *const ())>);

impl AtStop<'_> {
    /// Says that a heap is stopped.
    ///
    /// # Safety
    /// - The value is passed only to pools and roots of one heap, which is stopped by the calling thread as long as the
    ///   value's lifetime lasts.
    pub(crate) const unsafe fn new() -> Self {
        Self(PhantomData)
    }
}

/// Says that a heap is stopped, and that all of its pools were flipped in this stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flipped<'s>(AtStop<'s>);

impl<'s> Flipped<'s> {
    /// Says that pools were flipped.
    ///
    /// # Safety
    /// - [`Member::flip`](crate::heaps::member::Member::flip) was called of all pools of the heap in this stop. (One
    ///   that is created later in it has nothing to be flipped.)
    pub(crate) const unsafe fn new(at: AtStop<'s>) -> Self {
        Self(at)
    }

    /// Says that the heap is stopped.
    pub(crate) const fn at_stop(self) -> AtStop<'s> {
        self.0
    }
}
