//! Populating by touching, for platforms that have no call for it.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Reads and writes back one byte of each page.
///
/// The accesses are volatile, so that the compiler leaves none out. Reading alone would map
/// Linux's page of zeros, and the first write would still fault.
///
/// # Safety
/// - `base` is valid for reads and writes of `size` bytes, initialised or not.
/// - `page_size` is not zero.
/// - Nothing else uses the bytes meanwhile.
pub(super) unsafe fn touch(base: NonNull<u8>, size: usize, page_size: usize) {
    for offset in (0..size).step_by(page_size) {
        // SAFETY: `offset < size`, so the byte is in the range, which is one allocation.
        let byte = unsafe { base.add(offset) }.cast::<MaybeUninit<u8>>();
        // SAFETY: the byte is valid for reads and writes, and nothing else uses it. It may be
        // uninitialised, as its type is.
        unsafe { byte.write_volatile(byte.read_volatile()) };
    }
}
