//! Populating by touching, for platforms that cannot be asked to.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Reads and writes back one byte of each page.
///
/// The accesses are volatile, so that none is left out; reading alone would map
/// Linux's page of zeros and leave the fault to the first write.
///
/// # Safety
/// - `base` is valid for reads and writes of `size` bytes, initialised or not.
/// - `page_size` is not zero.
/// - Nobody else uses the bytes meanwhile.
pub(super) unsafe fn touch(base: NonNull<u8>, size: usize, page_size: usize) {
    for offset in (0..size).step_by(page_size) {
        // SAFETY: `offset < size`, so the byte is in the caller's range.
        let byte = unsafe { base.add(offset) }.cast::<MaybeUninit<u8>>();
        // SAFETY: the caller lets us read and write its range alone.
        unsafe { byte.write_volatile(byte.read_volatile()) };
    }
}
