//! Memory that only grows, and whose addresses are memory at once: that of WebAssembly ([design/arena-vm.md
//! `.linear`](crate::design::arena_vm)).

use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{Align, Lock};

use super::released::{Released, Wanted};
use super::touch::touch;
use super::{Platform, PlatformError};

/// The unit of accounting, which is the page size of most systems. Linear memory grows by more than that.
const PAGE_SIZE: usize = 4096;

/// Memory that only grows, at its end, and that others have parts of.
///
/// # Safety
/// - What [`LinearMemory::grow`] returns is zero, valid for reads and writes for good, and its caller's alone.
/// - It has the provenance of all that was and will be returned.
pub unsafe trait LinearMemory: Send + Sync + fmt::Debug {
    /// By how many bytes it grows at least: a power of two, of which its end is always a multiple.
    const UNIT: Align;

    /// The address where it ends; `None` if that is the end of all addresses.
    fn end(&self) -> Option<usize>;

    /// Adds `size` bytes, a multiple of the unit, and returns where they begin: at the end, wherever that is by now.
    fn grow(&self, size: usize) -> Option<NonNull<u8>>;

    /// What platforms on this memory have released.
    fn released(&self) -> &Lock<Released>;
}

/// A platform on such memory. What it releases serves other reservations: nothing shrinks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linear<M>(M);

impl<M> Linear<M> {
    /// Creates the platform on a memory.
    pub const fn on(memory: M) -> Self {
        Self(memory)
    }
}

fn refused(call: &'static str, addr: usize, size: usize) -> PlatformError {
    PlatformError { call, code: 0, addr, size, limit: None }
}

impl<M: LinearMemory> Linear<M> {
    /// Takes zeroed memory: the lowest that was released, or else new memory at the end.
    fn take(&self, wanted: Wanted) -> Option<NonNull<u8>> {
        let mut released = self.0.released().lock();
        loop {
            if let Some(base) = released.take(wanted) {
                return Some(base);
            }
            let end = self.0.end()?;
            // What was released at the end is the beginning.
            let place = wanted.place(released.begin_of_run_to(end).unwrap_or(end))?;
            let more = M::UNIT.round_up((place + wanted.size).checked_sub(end)?)?;
            let base = self.0.grow(more)?;
            // SAFETY: new memory, zero and this caller's alone. If others took what was at the end meanwhile, another
            // round finds that it is elsewhere.
            unsafe { released.give(base, more) };
        }
    }

    /// Takes what a reservation of `reserved` bytes from `base` is to be extended by: what follows, or else what is nearest
    /// above.
    fn take_behind(&self, end: usize, more: usize, limit: usize, align: Align) -> Option<NonNull<u8>> {
        let follows = Wanted { size: more, align, from: end, limit: end.checked_add(more)? };
        self.take(follows).or_else(|| self.take(Wanted { limit, ..follows }))
    }
}

// SAFETY: a reservation is zeroed memory that `take` took out of what was released or added just now, so nothing else uses it
// until its release. It stays valid for good, has one provenance with all that extends it (`LinearMemory`), and only its
// owner writes to it. The page size is a constant power of two.
unsafe impl<M: LinearMemory> Platform for Linear<M> {
    fn name(&self) -> &'static str {
        "linear memory"
    }

    fn page_size(&self) -> usize {
        PAGE_SIZE
    }

    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        let error = refused("reserve", 0, size);
        if size == 0 || !size.is_multiple_of(PAGE_SIZE) {
            return Err(error);
        }
        // So that what is left over is whole pages, too.
        let align = Align::new(align.max(PAGE_SIZE)).ok_or(error)?;
        self.take(Wanted { size, align, from: 0, limit: usize::MAX }).ok_or(error)
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize, _align: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is a reservation or a part of one, which is valid for writes and which nothing uses.
        unsafe { base.write_bytes(0, size) };
        // SAFETY: it is zero now, valid for good, and released once.
        unsafe { self.0.released().lock().give(base, size) };
        Ok(())
    }

    unsafe fn commit(&self, _base: NonNull<u8>, _size: usize) -> Result<(), PlatformError> {
        Ok(())
    }

    unsafe fn decommit(&self, _base: NonNull<u8>, _size: usize) -> Result<(), PlatformError> {
        Ok(())
    }

    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the pages are committed, and so valid for reads and writes. Nothing else uses them. The page size is not
        // zero.
        unsafe { touch(base, size, PAGE_SIZE) };
        Ok(())
    }

    fn reserve_with_room(
        &self,
        size: usize,
        _room: usize,
        align: usize,
    ) -> Result<NonNull<u8>, PlatformError> {
        self.reserve(size, align)
    }

    unsafe fn extend(
        &self,
        base: NonNull<u8>,
        size: usize,
        more: usize,
        room: usize,
        align: usize,
    ) -> Result<usize, PlatformError> {
        let base = base.addr().get();
        let error = refused("extend", base, more);
        let align = Align::new(align).ok_or(error)?;
        let behind = self.take_behind(base + size, more, base.saturating_add(room), align).ok_or(error)?;
        Ok(behind.addr().get() - base)
    }

    fn reserves_memory(&self) -> bool {
        true
    }
}
