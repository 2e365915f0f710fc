//! A mapped file, which is unmapped unless telemetry takes it over.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::os::fd::{AsFd, OwnedFd};

use tripoint_core::internal::AtomicU64;

use crate::linux::system::System;
use crate::recorder::report::{Refusal, SystemCall};

/// A file and its memory.
#[derive(Debug)]
pub(super) struct Mapping<'s> {
    system: &'s dyn System,
    pub(super) file: OwnedFd,
    base: NonNull<u8>,
    bytes: usize,
}

/// The most bytes that are allocated with one call: some 300 µs of work.
const ALLOCATED_AT_ONCE: usize = 1 << 20;

/// The least bytes that are asked for after an interruption.
const PAGE: usize = 4096;

/// How often in succession a call may be interrupted. From the ninth time on it asks for one page, so only a system
/// that does nothing but interrupt reaches this number.
const MOST_INTERRUPTIONS: u32 = 1000;

/// Extends a new file to `bytes` bytes, with memory or blocks for all of it.
fn allocate(system: &dyn System, file: &OwnedFd, bytes: usize) -> Result<(), i32> {
    let (mut start, mut part, mut interruptions) = (0, ALLOCATED_AT_ONCE, 0);
    while start < bytes {
        let now = part.min(bytes - start);
        let allocated = match system.allocate_file(file.as_fd(), start, now) {
            // Some file systems do not have the call, for example ramfs and some network file systems.
            Err(libc::EOPNOTSUPP | libc::ENOSYS) => system.write_zeros(file.as_fd(), start, now),
            allocated => allocated,
        };
        match allocated {
            Ok(()) => (start, interruptions) = (start + now, 0),
            // The system does not repeat this call by itself, even if the handler was installed with `SA_RESTART`. A
            // smaller part ends before the next of the signals that come at intervals, such as those of a profiler.
            Err(libc::EINTR) if interruptions < MOST_INTERRUPTIONS => {
                interruptions += 1;
                part = (part / 2).max(PAGE);
            }
            Err(code) => return Err(code),
        }
    }
    Ok(())
}

impl<'s> Mapping<'s> {
    /// Extends a new file to `bytes` bytes, maps it, and puts memory behind each page.
    pub(super) fn new(system: &'s dyn System, file: OwnedFd, bytes: usize) -> Result<Self, Refusal> {
        let refused = |call| move |code| Refusal { call, code, bytes };
        allocate(system, &file, bytes).map_err(refused(SystemCall::Allocate))?;
        let base = system.map_file(file.as_fd(), bytes).map_err(refused(SystemCall::Map))?;
        let mapping = Self { system, file, base, bytes };
        // SAFETY: base and bytes are those of the mapping.
        match unsafe { system.populate_memory(base, bytes) } {
            // Linux before 5.14 does not have the call, and a sandbox may not allow it. All pages are written to before
            // the first event anyway.
            Ok(()) | Err(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP | libc::EPERM) => Ok(mapping),
            Err(code) => Err(refused(SystemCall::Populate)(code)),
        }
    }

    /// Locks the memory.
    pub(super) fn lock_in_memory(&self) -> Result<(), Refusal> {
        // SAFETY: base and bytes are those of the mapping.
        let locked = unsafe { self.system.lock_memory(self.base, self.bytes) };
        locked.map_err(|code| Refusal { call: SystemCall::Lock, code, bytes: self.bytes })
    }

    /// The words of the file, which stays mapped until the process ends, and the file.
    pub(super) fn into_words(self) -> (&'static [AtomicU64], OwnedFd) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used any more and not dropped, so the file has one owner.
        let file = unsafe { core::ptr::read(&raw const this.file) };
        // SAFETY: the mapping has that many bytes, starts at a page, was zero, and is not unmapped any more.
        // Its words are atomics, which other processes may change. No other reference to it exists in
        // this process, because `this` is gone.
        let words = unsafe {
            core::slice::from_raw_parts(this.base.cast().as_ptr(), this.bytes / size_of::<AtomicU64>())
        };
        (words, file)
    }
}

impl Drop for Mapping<'_> {
    fn drop(&mut self) {
        // SAFETY: base and bytes are those of the mapping, and no reference to its memory was made.
        unsafe { self.system.unmap_file(self.base, self.bytes) };
    }
}
