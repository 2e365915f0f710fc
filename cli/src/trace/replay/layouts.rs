//! The layouts of a trace's objects.

use core::alloc::Layout;

use crate::trace::format::Kind;

/// The alignment that `malloc` promises for any type of C.
const MALLOC_ALIGN: usize = 16;

/// The layout of an object. Sizes of zero become one, because a layout of no bytes has no object.
pub(super) fn layout_of(kind: Kind, size: u64) -> Result<Layout, &'static str> {
    let size = usize::try_from(size.max(1)).map_err(|_| "it has sizes of a wider machine")?;
    let align = kind.align().unwrap_or(1).max(MALLOC_ALIGN);
    Layout::from_size_align(size, align).map_err(|_| "it has a size that no machine has")
}
