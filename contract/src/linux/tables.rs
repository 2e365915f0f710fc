//! The tables that a stack walk reads, brought in before one is needed.
//!
//! They are part of the program's file, page by page brought in at first use; so a
//! walk through functions that no walk met before would fault
//! (design/contract.md `.site.tables`).

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::{ptr, slice};

/// A program header of this system's word size.
#[cfg(target_pointer_width = "32")]
type Header = libc::Elf32_Phdr;
#[cfg(not(target_pointer_width = "32"))]
type Header = libc::Elf64_Phdr;

/// Brings in the unwind tables of every object that is loaded. A kernel that does
/// not do that (Linux before 5.14) leaves them to their first use.
pub(super) fn bring_in() {
    // SAFETY: `visit` has the type asked for, does not unwind, and ignores the
    // argument.
    unsafe { libc::dl_iterate_phdr(Some(visit), ptr::null_mut()) };
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, _data: *mut c_void) -> c_int {
    // SAFETY: the loader passes its description of an object, valid during this call.
    let object = unsafe { &*info };
    if object.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: not null; so many headers, which stay as long as the object.
    let headers = unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    if let (Ok(base), Some(segment)) = (usize::try_from(object.dlpi_addr), segment_of_tables(headers)) {
        populate(base.wrapping_add(segment.start)..base.wrapping_add(segment.end));
    }
    0
}

/// Where in an object the segment with its unwind tables is.
fn segment_of_tables(headers: &[Header]) -> Option<Range<usize>> {
    let range = |header: &Header| {
        let start = usize::try_from(header.p_vaddr).ok()?;
        Some(start..start.checked_add(usize::try_from(header.p_memsz).ok()?)?)
    };
    let tables = range(headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?)?;
    let segments = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).filter_map(range);
    segments.into_iter().find(|segment| segment.contains(&tables.start))
}

fn populate(bytes: Range<usize>) {
    // SAFETY: `sysconf` only reads its argument.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let start = bytes.start & !(page - 1);
    let size = bytes.end.saturating_sub(start);
    // SAFETY: only brings pages in, as reading them would; no memory changes.
    unsafe { libc::madvise(ptr::without_provenance_mut(start), size, libc::MADV_POPULATE_READ) };
}
