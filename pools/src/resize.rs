//! How a pool resizes an object: in place, or not at all.

#![forbid(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::ManualPool;

/// A pointer to all of an object, if its pool says that it may change its layout in place. The pool itself changes
/// nothing.
#[inline]
pub(crate) fn resize_in_place<P: ManualPool>(
    pool: &P,
    object: NonNull<u8>,
    from: Layout,
    to: Layout,
) -> Option<NonNull<u8>> {
    pool.resizes_in_place(from, to).then(|| pool.header().reach(object.addr()))
}
