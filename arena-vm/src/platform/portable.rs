//! A platform that asks no operating system, but the global allocator.
//!
//! A reservation is an allocation, which may take real memory at once. So an arena
//! should ask for little. If that is refused, it looks for the most that is granted, as
//! elsewhere. Commit and decommit only matter to the arena's accounting.

use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

use super::touch::touch;
use super::{Platform, PlatformError};

/// The unit of accounting, which is the page size of most systems.
const PAGE_SIZE: usize = 4096;

/// The largest reservation. It is smaller under Miri: an allocation that is too large ends
/// the interpreter, so that the arena could not try a smaller one.
const RESERVE_MAX: usize = if cfg!(miri) { 64 << 20 } else { isize::MAX.unsigned_abs() };

/// The global allocator as a platform. It works on every target that has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Portable;

impl Portable {
    /// Creates the platform; it has no state.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

fn refused(call: &'static str, addr: usize, size: usize) -> PlatformError {
    PlatformError { call, code: 0, addr, size, limit: None }
}

// SAFETY: a reservation is a zeroed allocation. Nothing else uses it, it is valid for reads and
// writes until its release, and only its owner writes to it. The page size is a constant power of
// two.
unsafe impl Platform for Portable {
    fn name(&self) -> &'static str {
        "portable"
    }

    fn page_size(&self) -> usize {
        PAGE_SIZE
    }

    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        let error = refused("reserve", 0, size);
        let layout = Layout::from_size_align(size, align).map_err(|_| error)?;
        if size == 0 || size > RESERVE_MAX {
            return Err(error);
        }
        // SAFETY: the layout's size is not zero.
        NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(error)
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize, align: usize) -> Result<(), PlatformError> {
        let error = refused("release", base.addr().get(), size);
        let layout = Layout::from_size_align(size, align).map_err(|_| error)?;
        // SAFETY: base, size and alignment are those of one `reserve`, so this is the layout that the
        // allocation was made with. Nothing uses it any more, and it is freed once.
        unsafe { dealloc(base.as_ptr(), layout) };
        Ok(())
    }

    unsafe fn commit(&self, _base: NonNull<u8>, _size: usize) -> Result<(), PlatformError> {
        Ok(())
    }

    unsafe fn decommit(&self, _base: NonNull<u8>, _size: usize) -> Result<(), PlatformError> {
        Ok(())
    }

    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the pages are committed, and so valid for reads and writes. Nothing else uses them.
        // The page size is not zero.
        unsafe { touch(base, size, PAGE_SIZE) };
        Ok(())
    }
}
