//! Formats: how a pool finds the size of an object and the references in it.

use core::ptr::NonNull;

use tripoint_core::{Align, Block};

use crate::outlines::format_outline::FormatOutline;
use crate::scans::scan::Scan;

/// How the objects of a pool are made: where each ends, and where its references are (MPS: manual,
/// "object formats").
///
/// If a function of a format unwinds in the middle of a collection, the process ends, because objects are then half
/// marked or half moved.
///
/// A class that moves objects asks for the promise of a [`MovableFormat`] as well.
///
/// A pool keeps its format by value, in a descriptor of the arena, in which there is room for a few words. A reference to a
/// format, `&'static F`, is a format too.
///
/// # Safety
/// - [`Format::align`] and [`Format::header`] never change.
/// - Every object is longer than its header, by a byte at least: otherwise references to it would lead to the object
///   behind it.
/// - [`Format::skip`] returns the bytes from an object's base to its end: a multiple of the alignment, and not zero.
///   They are those that were reserved for it, so padding is part of the object. If they are fewer, the client commits
///   further objects in the rest, such as one without references. The function reads only
///   what no mutator writes after the object was committed.
/// - [`Format::scan`] passes every reference in the objects to the scan, unless the object that it refers to is kept
///   by another and does not move. No exact reference that it passes leads into an automatic pool of the heap other
///   than to an object.
/// - If [`Format::notes_writes`] returns true, writes are noted as it says.
pub unsafe trait Format: Send + Sync + 'static {
    /// The alignment of objects: at least a word.
    fn align(&self) -> Align {
        Align::WORD
    }

    /// The bytes of an object in front of the address by which references know it: a multiple of a word. A fill for an
    /// object that is not longer returns [`Error::Parameter`](tripoint_core::Error::Parameter), and in debug builds a pool
    /// panics when it finds such an object.
    fn header(&self) -> usize {
        0
    }

    /// Returns the size of the object whose base is at `object`, its header included.
    ///
    /// # Safety
    /// - `object` is the base of an object of this format that was committed and is still there.
    unsafe fn skip(&self, object: NonNull<u8>) -> usize;

    /// The name of the type of the object whose base is at `object`, for walks. By default types have no names.
    ///
    /// # Safety
    /// - That of [`Format::skip`].
    unsafe fn type_name(&self, object: NonNull<u8>) -> Option<&'static str> {
        let _ = object;
        None
    }

    /// How objects are laid out, as data, for [readers outside of the process](crate::design::inspection), which call no
    /// function of it. By default they know nothing of the objects. A pool asks for it when it is created.
    fn outline(&self) -> FormatOutline {
        FormatOutline::UNKNOWN
    }

    /// The object that depends on the object whose base is at `object`, or null: for the objects of an
    /// [`Awl`](crate::Awl). An object keeps its dependent object alive, although its own references are weak, so
    /// [`Format::scan`] may write in the dependent object. That has to be in a pool whose objects do not move. By
    /// default no object has one.
    ///
    /// # Safety
    /// - That of [`Format::skip`]. The heap is stopped.
    unsafe fn dependent(&self, object: NonNull<u8>) -> *mut u8 {
        let _ = object;
        core::ptr::null_mut()
    }

    /// Whether objects of this format may be written to an [image](crate::ImagePlan), which other processes read. By
    /// default they may. An object that has an address of its program in it, for example of a table of functions, means
    /// nothing to another process: a format of such objects returns false, and images refuse them.
    fn is_for_images(&self) -> bool {
        true
    }

    /// Whether all writes of references in objects of this format are noted. If this returns true, each store of a
    /// reference to an object of the heap in an object that was committed before is followed by
    /// [`Swept::note_write`](crate::Swept::note_write), before the mutator that stored it gives way or is away. A change of what
    /// [`Format::dependent`] returns for an object is noted as a store in that object. It always returns the same.
    ///
    /// Collections of young generations then look only at those older objects that were written, or are known to refer
    /// to younger ones. By default this returns false: collections ask the platform what was written, and if it does not
    /// know, look at all older objects of the pool.
    ///
    /// If this returns true and a write is not noted, a collection may free an object that is still in use, or leave a
    /// reference to where it was. Stress does not find that, because it collects the whole heap.
    fn notes_writes(&self) -> bool {
        false
    }

    /// Passes all references in these objects to `scan`. They are one or several: a class that moves objects passes all
    /// copies that begin on a card together. The heap is stopped.
    ///
    /// # Safety
    /// - `objects` are whole objects of this format in a row, and no thread uses them meanwhile.
    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>);
}

/// A format whose objects may be moved. It is a promise, without functions.
///
/// A class that moves objects copies their bytes, and changes each reference that formats and roots fix. The pool keeps
/// account of which objects have moved, and where they are now. A format is not called for an object that has moved, so
/// it needs none of the functions that MPS has for this ([design::gc](crate::design::gc) `.move.format`).
///
/// # Safety
/// - Objects are still valid if their bytes are at another address, and the references in them that [`Format::scan`]
///   fixes are changed. For example, no list of the program outside the heap leads to one of them.
pub unsafe trait MovableFormat: Format {}

// SAFETY: each function is that of the format that is referred to, which is the same as long as there is a pool.
unsafe impl<F: Format> Format for &'static F {
    fn align(&self) -> Align {
        (**self).align()
    }

    fn header(&self) -> usize {
        (**self).header()
    }

    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises an object of this format that was committed and is still there.
        unsafe { (**self).skip(object) }
    }

    unsafe fn type_name(&self, object: NonNull<u8>) -> Option<&'static str> {
        // SAFETY: the caller promises an object of this format that was committed and is still there.
        unsafe { (**self).type_name(object) }
    }

    fn outline(&self) -> FormatOutline {
        (**self).outline()
    }

    unsafe fn dependent(&self, object: NonNull<u8>) -> *mut u8 {
        // SAFETY: the caller promises an object of this format that is still there, and that the heap is stopped.
        unsafe { (**self).dependent(object) }
    }

    fn is_for_images(&self) -> bool {
        (**self).is_for_images()
    }

    fn notes_writes(&self) -> bool {
        (**self).notes_writes()
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        // SAFETY: the caller promises whole objects in a row, which no thread uses meanwhile.
        unsafe { (**self).scan(objects, scan) }
    }
}

// SAFETY: the format that is referred to promises this of the same objects.
unsafe impl<F: MovableFormat> MovableFormat for &'static F {}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    /// A format that differs in each function from what formats do by default.
    struct Odd([u8; 3]);

    // SAFETY: there are no objects.
    unsafe impl Format for Odd {
        fn align(&self) -> Align {
            Align::new(64).unwrap()
        }

        fn header(&self) -> usize {
            16
        }

        unsafe fn skip(&self, _object: NonNull<u8>) -> usize {
            192
        }

        unsafe fn type_name(&self, _object: NonNull<u8>) -> Option<&'static str> {
            Some("odd")
        }

        unsafe fn dependent(&self, object: NonNull<u8>) -> *mut u8 {
            object.as_ptr()
        }

        fn is_for_images(&self) -> bool {
            false
        }

        fn notes_writes(&self) -> bool {
            true
        }

        unsafe fn scan(&self, objects: Block, _scan: &mut Scan<'_>) {
            assert_eq!(objects.base().addr(), NonNull::from(&self.0[0]).addr());
        }
    }

    /// Each function is asked of what is referred to, also those that formats have by default.
    #[test]
    fn a_reference_to_a_format_is_that_format() {
        static ODD: Odd = Odd([0; 3]);
        let (format, place) = (&ODD, NonNull::from(&ODD.0[0]));
        fn answers<F: Format>(format: F, place: NonNull<u8>) -> (Align, usize, bool, bool, usize, *mut u8) {
            // SAFETY: this format reads no object.
            let (size, dependent) = unsafe { (format.skip(place), format.dependent(place)) };
            // SAFETY: this format reads no object.
            assert_eq!(unsafe { format.type_name(place) }, Some("odd"));
            (format.align(), format.header(), format.is_for_images(), format.notes_writes(), size, dependent)
        }
        let expected = (Align::new(64).unwrap(), 16, false, true, 192, place.as_ptr());
        assert_eq!(answers::<&'static Odd>(format, place), expected);
    }
}
