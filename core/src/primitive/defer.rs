//! Work that is done at the end of a block, however the block ends.

use core::fmt;

/// Does its work when it is dropped, also if that is by unwinding.
pub struct Defer<F: FnMut()>(F);

impl<F: FnMut()> Defer<F> {
    /// Defers `work` until the value is dropped.
    #[inline]
    #[must_use = "the work is done when this value is dropped"]
    pub const fn new(work: F) -> Self {
        Self(work)
    }
}

impl<F: FnMut()> Drop for Defer<F> {
    #[inline]
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<F: FnMut()> fmt::Debug for Defer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Defer")
    }
}
