//! The objects that make up the process: the program and its libraries, as the loader
//! describes them.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::slice;

/// A program header of this system's word size.
#[cfg(target_pointer_width = "32")]
pub(super) type Header = libc::Elf32_Phdr;
/// A program header of this system's word size.
#[cfg(not(target_pointer_width = "32"))]
pub(super) type Header = libc::Elf64_Phdr;

/// Where an object is loaded, and its headers.
pub(super) struct Object<'a> {
    base: usize,
    pub(super) headers: &'a [Header],
}

impl Object<'_> {
    /// The memory that a header describes; `None` for damaged headers.
    pub(super) fn range(&self, header: &Header) -> Option<Range<usize>> {
        let start = self.base.wrapping_add(usize::try_from(header.p_vaddr).ok()?);
        Some(start..start.checked_add(usize::try_from(header.p_memsz).ok()?)?)
    }

    /// The memory of the first header of this type.
    pub(super) fn part(&self, of_type: u32) -> Option<Range<usize>> {
        self.range(self.headers.iter().find(|header| header.p_type == of_type)?)
    }
}

/// Visits all objects, the program first, until `visit` returns true.
pub(super) fn visit(mut visit: impl FnMut(&Object<'_>) -> bool) {
    let mut visit: &mut dyn FnMut(&Object<'_>) -> bool = &mut visit;
    // SAFETY: the function has the type that is asked for, and gets the argument it expects.
    unsafe { libc::dl_iterate_phdr(Some(visit_one), (&raw mut visit).cast()) };
}

unsafe extern "C" fn visit_one(info: *mut libc::dl_phdr_info, _size: usize, visit: *mut c_void) -> c_int {
    // SAFETY: what [`visit`] passed; it lives until the loader returns.
    let visit = unsafe { &mut *visit.cast::<&mut dyn FnMut(&Object<'_>) -> bool>() };
    // SAFETY: the loader passes its description of an object, valid during this call.
    let object = unsafe { &*info };
    let Some(base) = usize::try_from(object.dlpi_addr).ok().filter(|_| !object.dlpi_phdr.is_null()) else {
        return 0;
    };
    // SAFETY: not null, and this many headers, which live as long as the object.
    let headers = unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    visit(&Object { base, headers }).into()
}
