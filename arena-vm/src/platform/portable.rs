//! The platform without an operating system to ask: the global allocator.
//!
//! A reservation is an allocation, so it takes real memory wherever the global
//! allocator does, and an arena should ask for little, or rely on its fallback
//! by halves. Commit and decommit are the arena's accounting only.

use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

use super::touch::touch;
use super::{Platform, PlatformError};

/// A page as far as accounting goes; most systems have it so.
const PAGE_SIZE: usize = 4096;

/// The largest reservation. It is smaller under Miri: an allocation that is too large ends
/// the interpreter, so that the arena could not try half of it.
const RESERVE_MAX: usize = if cfg!(miri) { 64 << 20 } else { isize::MAX.unsigned_abs() };

/// The global allocator as a platform. Works wherever `alloc` does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Portable;

impl Portable {
    /// The platform.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

fn refused(call: &'static str, addr: usize, size: usize) -> PlatformError {
    PlatformError { call, code: 0, addr, size, limit: None }
}

// SAFETY: a reservation is a zeroed allocation, which nobody else uses and which
// is valid for reads and writes from the start to its release; only its holder
// writes to it. The page size is a constant power of two.
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
        // SAFETY: the caller gives what `reserve` was asked for and what it gave,
        // so this is the allocation's own layout, freed once.
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
        // SAFETY: committed pages are valid, and the caller's alone.
        unsafe { touch(base, size, PAGE_SIZE) };
        Ok(())
    }

    unsafe fn populate_in_use(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // Touching would race with whoever uses the pages.
        Err(refused("populate_in_use", base.addr().get(), size))
    }

    unsafe fn advise_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(refused("advise_huge_pages", base.addr().get(), size))
    }

    unsafe fn lock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(refused("lock", base.addr().get(), size))
    }

    unsafe fn unlock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(refused("unlock", base.addr().get(), size))
    }

    unsafe fn no_inherit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(refused("no_inherit", base.addr().get(), size))
    }
}
