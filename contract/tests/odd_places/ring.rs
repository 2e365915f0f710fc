//! An `io_uring`, through which the kernel works on its own.

use core::ffi::c_int;
use core::ptr;
use std::thread;

use crate::pages::{PAGE, PAGES, Pages};

/// `MADV_DONTNEED_LOCKED`, since Linux 5.18: the process's memory is locked.
pub(crate) const DONTNEED_LOCKED: u32 = 24;

/// An `io_uring` with one entry, set up before.
pub(crate) struct Ring {
    descriptor: c_int,
    entries: *mut u8,
    ring: *mut u8,
    tail: usize,
    array: usize,
}

impl Ring {
    /// `descriptor` is -1 if the kernel returned none.
    pub(crate) fn new() -> Self {
        let mut parameters = [0_u32; 30];
        // SAFETY: as large as the kernel's structure, and zeroed.
        let descriptor =
            unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) } as c_int;
        let map = |offset| {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
            unsafe { libc::mmap(ptr::null_mut(), PAGE, access, libc::MAP_SHARED, descriptor, offset) }
                .cast::<u8>()
        };
        // Where in the ring the kernel says that tail and array are.
        let (tail, array) = (parameters[11] as usize, parameters[16] as usize);
        Self { descriptor, entries: map(0x1000_0000), ring: map(0), tail, array }
    }

    /// Makes the kernel take the pages away by this ring.
    #[inline(never)]
    pub(crate) fn culprit_madvise(&self, pages: &Pages) {
        if self.descriptor < 0 {
            tripoint_oracle::skipped!("no io_uring here");
            return;
        }
        // SAFETY: the one entry of 64 bytes, and words of the ring where the kernel said,
        // which only this thread writes; the pages are the place's.
        unsafe {
            self.entries.write(25);
            self.entries.add(16).cast::<u64>().write(pages.base.addr() as u64);
            self.entries.add(24).cast::<u32>().write((PAGES * PAGE) as u32);
            self.entries.add(28).cast::<u32>().write(DONTNEED_LOCKED);
            self.ring.add(self.array).cast::<u32>().write(0);
            self.ring.add(self.tail).cast::<u32>().write_volatile(1);
            let (submit, wait, events, nothing) = (1_usize, 1_usize, 1_usize, 0_usize);
            let ring = self.descriptor as usize;
            let made = libc::syscall(libc::SYS_io_uring_enter, ring, submit, wait, events, nothing, nothing);
            assert_eq!(made, 1);
            // Until the kernel has done it, on a thread of its own.
            while pages.base.read_volatile() != 0 {
                thread::yield_now();
            }
        }
    }
}
