//! The objects that make up the process: the program and its libraries, as the loader describes them
//! ([design/stack.md `.objects`](crate::design::stack)).

use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;
use core::{fmt, ptr, slice};

/// A program header of this system's word size.
#[cfg(target_pointer_width = "32")]
type Header = libc::Elf32_Phdr;
/// A program header of this system's word size.
#[cfg(not(target_pointer_width = "32"))]
type Header = libc::Elf64_Phdr;

/// The program or a library, where it is loaded.
#[derive(Clone, Copy)]
pub struct LoadedObject<'a> {
    base: usize,
    name: &'a CStr,
    headers: &'a [Header],
}

impl<'a> LoadedObject<'a> {
    /// What the loader added to the addresses that the object's file has: zero for a program that is not
    /// position-independent.
    #[must_use]
    pub const fn base(&self) -> usize {
        self.base
    }

    /// The path from which the object was loaded. It is empty for the program itself, and need not be the path of a file.
    #[must_use]
    pub const fn name(&self) -> &'a CStr {
        self.name
    }

    /// The memory that a header describes; `None` for damaged headers.
    fn range(&self, header: &Header) -> Option<Range<usize>> {
        let start = self.base.wrapping_add(usize::try_from(header.p_vaddr).ok()?);
        Some(start..start.checked_add(usize::try_from(header.p_memsz).ok()?)?)
    }

    /// The headers of this type.
    fn headers(&self, of_type: u32) -> impl Iterator<Item = &'a Header> {
        self.headers.iter().filter(move |header| header.p_type == of_type)
    }

    /// The memory of the first header of this type.
    fn part(&self, of_type: u32) -> Option<Range<usize>> {
        self.range(self.headers(of_type).next()?)
    }

    /// The memory that is loaded from the object's file.
    pub fn segments(&self) -> impl Iterator<Item = Range<usize>> {
        self.headers(libc::PT_LOAD).filter_map(|header| self.range(header))
    }

    /// The memory from the first segment to the end of the last; `None` if there is no segment.
    #[must_use]
    pub fn extent(&self) -> Option<Range<usize>> {
        self.segments().reduce(|one, other| one.start.min(other.start)..one.end.max(other.end))
    }

    /// The memory of the tables that unwinders read, if the object has such tables.
    #[must_use]
    pub fn unwind_tables(&self) -> Option<Range<usize>> {
        self.part(libc::PT_GNU_EH_FRAME)
    }

    /// The memory of what the loader needs to know of the object, if that is dynamic.
    #[must_use]
    pub fn dynamic_section(&self) -> Option<Range<usize>> {
        self.part(libc::PT_DYNAMIC)
    }

    /// The bytes by which a linker tells builds of the object apart, if it noted any.
    #[must_use]
    pub fn build_id(&self) -> Option<&'a [u8]> {
        self.headers(libc::PT_NOTE).find_map(|header| build_id(self.notes(header)?, header.p_align == 8))
    }

    /// The notes that a header describes; `None` if they are not in memory that can be read.
    fn notes(&self, header: &Header) -> Option<&'a [u8]> {
        let notes = self.range(header)?;
        let is_around = |segment: &Header| {
            segment.p_flags & libc::PF_R != 0
                && self.range(segment).is_some_and(|all| all.start <= notes.start && notes.end <= all.end)
        };
        self.headers(libc::PT_LOAD).find(|segment| is_around(segment))?;
        let bytes = ptr::with_exposed_provenance::<u8>(notes.start);
        // SAFETY: not null, because it is in a segment; the loader keeps segments in memory as long as the object
        // is loaded, which is at least `'a`, this one can be read, and nothing writes to notes.
        Some(unsafe { slice::from_raw_parts(bytes, notes.len()) })
    }
}

impl fmt::Debug for LoadedObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedObject")
            .field("base", &self.base)
            .field("name", &self.name)
            .field("extent", &self.extent())
            .finish_non_exhaustive()
    }
}

/// The type of the note that has the build identifier, and the name before it.
const BUILD_ID: (u32, &[u8]) = (3, b"GNU\0");

/// The build identifier among these notes, each of which begins at a multiple of 8 bytes, or of 4.
fn build_id(mut notes: &[u8], by_eight: bool) -> Option<&[u8]> {
    let unit = if by_eight { 8 } else { 4 };
    loop {
        let (words, rest) = notes.split_first_chunk::<12>()?;
        let word = |index: usize| Some(u32::from_ne_bytes(*words.as_chunks().0.get(index)?));
        let (name_bytes, id_bytes) = (usize::try_from(word(0)?).ok()?, usize::try_from(word(1)?).ok()?);
        let id_from = name_bytes.checked_add(12)?.checked_next_multiple_of(unit)?.checked_sub(12)?;
        let id_to = id_from.checked_add(id_bytes)?;
        let (name, id) = (rest.get(..name_bytes)?, rest.get(id_from..id_to)?);
        if (word(2)?, name) == BUILD_ID {
            return Some(id);
        }
        notes = rest.get(id_to.checked_add(12)?.checked_next_multiple_of(unit)?.checked_sub(12)?..)?;
    }
}

/// Visits the objects that are loaded, the program first, until `visit` returns true.
///
/// The loader's lock is held meanwhile. Nothing is allocated, unless `visit` does. If `visit` unwinds, the
/// process aborts.
pub fn visit_objects(mut visit: impl FnMut(&LoadedObject<'_>) -> bool) {
    let mut visit: &mut dyn FnMut(&LoadedObject<'_>) -> bool = &mut visit;
    // SAFETY: the function has the type that is asked for, and gets the argument it expects.
    unsafe { libc::dl_iterate_phdr(Some(visit_one), (&raw mut visit).cast()) };
}

unsafe extern "C" fn visit_one(info: *mut libc::dl_phdr_info, _size: usize, visit: *mut c_void) -> c_int {
    // SAFETY: what [`visit_objects`] passed; it lives until the loader returns.
    let visit = unsafe { &mut *visit.cast::<&mut dyn FnMut(&LoadedObject<'_>) -> bool>() };
    // SAFETY: the loader passes its description of an object, valid during this call.
    let object = unsafe { &*info };
    let Some(base) = usize::try_from(object.dlpi_addr).ok().filter(|_| !object.dlpi_phdr.is_null()) else {
        return 0;
    };
    let name = if object.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: not null; the loader keeps the name as long as the object, and ends it with a zero.
        unsafe { CStr::from_ptr(object.dlpi_name) }
    };
    // SAFETY: not null, and this many headers, which live as long as the object.
    let headers = unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    visit(&LoadedObject { base, name, headers }).into()
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn note(of_type: u32, name: &[u8], content: &[u8], unit: usize) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [name.len() as u32, content.len() as u32, of_type] {
            note.extend(word.to_ne_bytes());
        }
        for part in [name, content] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(unit), 0);
        }
        note
    }

    #[test]
    fn a_build_id_is_found_among_other_notes() {
        for unit in [4, 8] {
            let other = note(5, b"GNU\0", &[9; 7], unit);
            let stranger = note(3, b"Go\0", &[8; 3], unit);
            let id = note(3, b"GNU\0", &[1, 2, 3, 4, 5], unit);
            let notes = [other.clone(), stranger.clone(), id.clone(), other.clone()].concat();
            assert_eq!(build_id(&notes, unit == 8), Some(&[1, 2, 3, 4, 5][..]));
            assert_eq!(build_id(&[other, stranger].concat(), unit == 8), None);
            // Of a note that is cut off, nothing is returned.
            (0..id.len() - unit).for_each(|end| assert_eq!(build_id(&id[..end], unit == 8), None));
        }
        assert_eq!(build_id(&[0xff; 64], false), None, "more bytes than there are");
    }

    #[test]
    fn the_program_is_the_first_object() {
        let code = ptr::from_ref(&BUILD_ID).addr();
        // What is found is judged afterwards, because a visit must not unwind.
        let mut found = Vec::new();
        visit_objects(|object| {
            let has = |address| object.segments().any(|segment| segment.contains(&address));
            let has_tables = object.unwind_tables().is_some_and(|tables| has(tables.start));
            found.push((has(code), object.extent().is_some_and(|extent| extent.contains(&code)), has_tables));
            false
        });
        assert_eq!(found[0], (true, true, true));
        assert!(found[1..].iter().all(|(has, ..)| !has));
        let mut visited = 0;
        visit_objects(|_| {
            visited += 1;
            true
        });
        assert_eq!(visited, 1, "the visit ends");
    }
}
