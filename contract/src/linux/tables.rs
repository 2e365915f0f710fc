//! The tables that a stack walk reads, brought in before one is needed.
//!
//! They are part of the program's file, page by page brought in at first use; so a
//! walk through functions that no walk met before would fault
//! (design/contract.md `.site.tables`).

use core::ops::Range;
use core::ptr;

use tripoint_stack::{LoadedObject, visit_objects};

/// Brings in the unwind tables of every object that is loaded. A kernel that does
/// not do that (Linux before 5.14) leaves them to their first use.
pub(super) fn bring_in() {
    visit_objects(|object| {
        if let Some(segment) = segment_of_tables(object) {
            populate(segment);
        }
        false
    });
}

/// The segment of an object that contains its unwind tables.
fn segment_of_tables(object: &LoadedObject<'_>) -> Option<Range<usize>> {
    let tables = object.unwind_tables()?;
    object.segments().find(|segment| segment.contains(&tables.start))
}

fn populate(bytes: Range<usize>) {
    // SAFETY: `sysconf` only reads its argument.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let start = bytes.start & !(page - 1);
    let size = bytes.end.saturating_sub(start);
    // SAFETY: only brings pages in, as reading them would; no memory changes.
    unsafe { libc::madvise(ptr::without_provenance_mut(start), size, libc::MADV_POPULATE_READ) };
}
