//! Whether a thread is inside an operator of C++: what it allocates there is not the program's.

use core::cell::Cell;

std::thread_local! {
    /// How many operators this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is inside an operator, so that what it allocates is not the program's.
#[inline]
pub(crate) fn is_inside() -> bool {
    DEPTH.get() != 0
}

/// Inside an operator until it is dropped, which an exception does, too.
pub(crate) struct Inside;

impl Inside {
    /// Returns whether this is the outermost operator, too.
    #[inline]
    pub(crate) fn enter() -> (Self, bool) {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        (Self, depth == 0)
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
