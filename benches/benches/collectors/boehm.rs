//! The Boehm collector: a library of the system, if it is there.

use core::alloc::Layout;
use core::ffi::{c_uint, c_void};
use core::ptr::NonNull;

use tripoint::{Error, Store};

#[link(name = "gc")]
unsafe extern "C" {
    fn GC_set_markers_count(count: c_uint);
    fn GC_init();
    fn GC_malloc(size: usize) -> *mut c_void;
    fn GC_malloc_atomic(size: usize) -> *mut c_void;
}

/// Begins to collect, with one thread: others that help would take processor time of their own.
pub(crate) fn begin() {
    // SAFETY: this is the first call of the library, on the main thread, whose stack it scans.
    unsafe {
        GC_set_markers_count(1);
        GC_init();
    }
}

/// Objects that are freed when no word of the stack, of static memory or of another object leads to them. To free one does
/// nothing.
pub(crate) struct Boehm;

/// Objects in which there are no references.
pub(crate) struct BoehmLeaves;

// SAFETY: the library returns memory of that size, aligned to two words, or null. It is kept as long as a variable or an
// object leads to it.
unsafe impl Store for Boehm {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
        // SAFETY: the collector was begun.
        NonNull::new(unsafe { GC_malloc(layout.size()) }.cast()).ok_or(Error::Memory)
    }

    #[inline]
    unsafe fn free(&self, _object: NonNull<u8>, _layout: Layout) {}
}

// SAFETY: as `Boehm` does, the library returns memory of that size, which is kept in the same way.
unsafe impl Store for BoehmLeaves {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
        // SAFETY: the collector was begun.
        NonNull::new(unsafe { GC_malloc_atomic(layout.size()) }.cast()).ok_or(Error::Memory)
    }

    #[inline]
    unsafe fn free(&self, _object: NonNull<u8>, _layout: Layout) {}
}
