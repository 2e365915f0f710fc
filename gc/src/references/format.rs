//! Formats: how a pool finds the size of an object and the references in it.

use core::ptr::NonNull;

use tripoint_core::{Align, Block};

use crate::references::scan::Scan;

/// How the objects of a pool are made: where each ends, and where its references are (MPS: manual,
/// "object formats").
///
/// If a function of a format unwinds in the middle of a collection, the process ends: objects are half marked or half moved then.
///
/// A class that moves objects asks for the promise of a [`MovableFormat`] as well.
///
/// # Safety
/// - [`Format::align`] and [`Format::header`] never change.
/// - [`Format::skip`] returns the bytes from an object's base to its end, which are as many as were
///   reserved for it or what is left of them is objects too: a multiple of the alignment, and not zero. It
///   reads only what no mutator writes after the object was committed.
/// - [`Format::scan`] passes every reference in the objects to the scan, unless the object that it refers to is kept
///   by another and does not move.
pub unsafe trait Format: Send + Sync + 'static {
    /// The alignment of objects: at least a word.
    fn align(&self) -> Align {
        Align::WORD
    }

    /// The bytes of an object in front of the address by which references know it.
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

    /// The object that depends on the object whose base is at `object`, or null: for the objects of an [`Awl`](crate::Awl).
    /// An object keeps its dependent object alive, although its own references are weak; so its scan may write in it.
    /// It is in a pool whose objects do not move. By default no object depends on another.
    ///
    /// # Safety
    /// - That of [`Format::skip`]. The heap is stopped.
    unsafe fn dependent(&self, object: NonNull<u8>) -> *mut u8 {
        let _ = object;
        core::ptr::null_mut()
    }

    /// Passes all references in these objects to `scan`. The heap is stopped.
    ///
    /// # Safety
    /// - `objects` are whole objects of this format in a row, and no thread uses them meanwhile.
    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>);
}

/// A format whose objects may be moved. It promises something, and has no functions.
///
/// A class that moves objects copies their bytes, and changes each reference that formats and roots fix. Which objects have moved, and where they are
/// now, the pool knows by itself: a format neither marks an object as moved nor recognises one, as formats of MPS
/// do, and never sees one ([design::gc](crate::design::gc) `.move.format`).
///
/// # Safety
/// - Objects stay what they are if their bytes are at another address, and the references in them that
///   [`Format::scan`] fixes are changed. For example, none of them is in a list of the program outside the heap.
pub unsafe trait MovableFormat: Format {}
