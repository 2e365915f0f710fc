//! Windows: addresses by `VirtualAlloc`, which reserves and commits apart ([design/arena-vm.md
//! `.windows`](crate::design::arena_vm)).

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use super::touch::touch;
use super::{Platform, PlatformError};

/// The page size of Windows on all processors that it runs on.
const PAGE_SIZE: usize = 4096;

/// Reservations begin at multiples of this.
const GRANULARITY: usize = 64 << 10;

const MEM_COMMIT: u32 = 0x1000;
const MEM_RESERVE: u32 = 0x2000;
const MEM_DECOMMIT: u32 = 0x4000;
const MEM_RELEASE: u32 = 0x8000;
const PAGE_NOACCESS: u32 = 0x01;
const PAGE_READWRITE: u32 = 0x04;

/// Pages that are unlocked were not locked.
const ERROR_NOT_LOCKED: i32 = 158;

/// `MEMORY_BASIC_INFORMATION`, of which only the second field is read.
#[derive(Default)]
#[repr(C)]
struct Region {
    base: usize,
    allocation_base: usize,
    rest: [usize; 5],
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn VirtualAlloc(address: *mut c_void, size: usize, kind: u32, protection: u32) -> *mut c_void;
    fn VirtualFree(address: *mut c_void, size: usize, kind: u32) -> i32;
    fn VirtualLock(address: *mut c_void, size: usize) -> i32;
    fn VirtualUnlock(address: *mut c_void, size: usize) -> i32;
    fn VirtualQuery(address: *const c_void, region: *mut Region, size: usize) -> usize;
    fn GetLastError() -> u32;
    fn SwitchToThread() -> i32;
}

/// Windows, by `VirtualAlloc` and `VirtualFree`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windows;

impl Windows {
    /// Creates the platform; it has no state.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

/// The last call, refused.
fn refused(call: &'static str, addr: usize, size: usize) -> PlatformError {
    // SAFETY: it has no duties.
    let code = unsafe { GetLastError() }.cast_signed();
    PlatformError { call, code, addr, size, limit: None }
}

/// What a call says that returns zero if it is refused.
fn answer(is_done: i32, call: &'static str, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
    if is_done != 0 { Ok(()) } else { Err(refused(call, base.addr().get(), size)) }
}

fn yield_now() {
    // SAFETY: it has no duties.
    let _ = unsafe { SwitchToThread() };
}

// SAFETY: the page size is a constant power of two. A reservation is addresses that the system keeps free for it until they
// are released, with provenance for all of them. Committed pages are valid for reads and writes until they are decommitted;
// the system changes them only then, and zeroes pages that it commits; those that are committed already it leaves alone.
unsafe impl Platform for Windows {
    fn name(&self) -> &'static str {
        "windows"
    }

    fn page_size(&self) -> usize {
        PAGE_SIZE
    }

    fn yielding(&self) -> Option<fn()> {
        Some(yield_now)
    }

    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        // The addresses before and behind what is aligned are reserved with it, and released with it.
        let overflow = PlatformError { call: "reserve", code: 0, addr: 0, size, limit: None };
        let all = size.checked_add(align.saturating_sub(GRANULARITY)).ok_or(overflow)?;
        // SAFETY: new addresses, wherever the system has them.
        let base = unsafe { VirtualAlloc(ptr::null_mut(), all, MEM_RESERVE, PAGE_NOACCESS) }.cast::<u8>();
        let head = base.align_offset(align);
        // SAFETY: from a multiple of the granularity the next multiple of `align` is at most the slack away, which was
        // reserved with the rest.
        NonNull::new(base).map(|base| unsafe { base.add(head) }).ok_or_else(|| refused("reserve", 0, size))
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize, _align: usize) -> Result<(), PlatformError> {
        let mut region = Region::default();
        // SAFETY: the region is large enough for what the system writes, and its size is passed.
        let is_known =
            unsafe { VirtualQuery(base.as_ptr().cast(), &raw mut region, size_of::<Region>()) } != 0;
        if !is_known {
            return Err(refused("release", base.addr().get(), size));
        }
        let all = base.as_ptr().with_addr(region.allocation_base).cast();
        // SAFETY: that is the address that `reserve` got from the system, of a reservation that nothing uses any more.
        answer(unsafe { VirtualFree(all, 0, MEM_RELEASE) }, "release", base, size)
    }

    unsafe fn commit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: pages of one reservation; contents of those that are committed stay.
        let committed = unsafe { VirtualAlloc(base.as_ptr().cast(), size, MEM_COMMIT, PAGE_READWRITE) };
        answer((!committed.is_null()).into(), "commit", base, size)
    }

    unsafe fn decommit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: pages of one reservation, which nothing uses any more. Those that are not committed stay so.
        answer(unsafe { VirtualFree(base.as_ptr().cast(), size, MEM_DECOMMIT) }, "decommit", base, size)
    }

    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the pages are committed, and so valid for reads and writes. Nothing else uses them. The page size is not
        // zero.
        unsafe { touch(base, size, PAGE_SIZE) };
        Ok(())
    }

    unsafe fn lock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: committed pages of one reservation.
        answer(unsafe { VirtualLock(base.as_ptr().cast(), size) }, "lock", base, size)
    }

    unsafe fn unlock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: pages of one reservation.
        match answer(unsafe { VirtualUnlock(base.as_ptr().cast(), size) }, "unlock", base, size) {
            Err(refusal) if refusal.code == ERROR_NOT_LOCKED => Ok(()),
            answer => answer,
        }
    }

    unsafe fn no_inherit(&self, _base: NonNull<u8>, _size: usize) -> Result<(), PlatformError> {
        // No process of Windows has the memory of the one that started it.
        Ok(())
    }
}
