//! A system that refuses one call, so that tests can drive every error path.

use core::ffi::CStr;
use core::ptr::NonNull;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tripoint_core::internal::{AtomicBool, AtomicU64, AtomicUsize, Ordering, Update};

use crate::linux::native_system::Linux;
use crate::linux::system::System;
use crate::recorder::report::SystemCall;

/// Linux, but one of its calls is refused.
#[derive(Debug)]
pub struct Refusing {
    call: SystemCall,
    code: i32,
    /// How many calls of this kind still succeed.
    allowed: AtomicUsize,
    /// How many of those after them are still refused.
    refused: AtomicUsize,
    /// How many mappings were not unmapped yet.
    mapped: AtomicUsize,
    asked: AtomicBool,
    unlocked_renames: AtomicUsize,
    /// The bytes of memory that there are, if not as many as Linux says.
    available: Option<u64>,
}

impl Refusing {
    /// Refuses a call with this code, from the one after `allowed` on.
    #[must_use]
    pub const fn new(call: SystemCall, code: i32, allowed: usize) -> Self {
        Self::times(call, code, allowed, usize::MAX)
    }

    /// Refuses a call with this code so often, from the one after `allowed` on.
    #[must_use]
    pub const fn times(call: SystemCall, code: i32, allowed: usize, refused: usize) -> Self {
        Self {
            call,
            code,
            allowed: AtomicUsize::new(allowed),
            refused: AtomicUsize::new(refused),
            mapped: AtomicUsize::new(0),
            asked: AtomicBool::new(false),
            unlocked_renames: AtomicUsize::new(0),
            available: None,
        }
    }

    /// The same with this many bytes of memory.
    #[must_use]
    pub const fn with_memory(self, bytes: u64) -> Self {
        Self { available: Some(bytes), ..self }
    }

    /// How many files are mapped.
    pub fn mapped(&self) -> usize {
        self.mapped.load(Ordering::Relaxed)
    }

    /// How many files were renamed while their new directory was not locked.
    pub fn unlocked_renames(&self) -> usize {
        self.unlocked_renames.load(Ordering::Relaxed)
    }

    /// Whether no call of the kind was made.
    pub fn was_not_asked(&self) -> bool {
        !self.asked.load(Ordering::Relaxed)
    }

    fn ask(&self, call: SystemCall) -> Result<(), i32> {
        if call != self.call {
            return Ok(());
        }
        self.asked.store(true, Ordering::Relaxed);
        let one = |left: usize| left.checked_sub(1);
        let take = |from: &AtomicUsize| from.update_by(one).is_ok();
        if take(&self.allowed) || !take(&self.refused) { Ok(()) } else { Err(self.code) }
    }
}

// SAFETY: what is not refused is Linux's answer.
unsafe impl System for Refusing {
    fn available_memory(&self) -> Result<u64, i32> {
        self.ask(SystemCall::AvailableMemory)?;
        self.available.map_or_else(|| Linux.available_memory(), Ok)
    }

    fn create_anonymous(&self, name: &CStr) -> Result<OwnedFd, i32> {
        self.ask(SystemCall::CreateAnonymous)?;
        Linux.create_anonymous(name)
    }

    fn restrict_file(&self, file: BorrowedFd<'_>) -> Result<(), i32> {
        self.ask(SystemCall::Mode)?;
        Linux.restrict_file(file)
    }

    fn create_file(&self, path: &CStr) -> Result<OwnedFd, i32> {
        self.ask(SystemCall::CreateFile)?;
        Linux.create_file(path)
    }

    fn remove_file(&self, path: &CStr) {
        Linux.remove_file(path);
    }

    fn rename_file(&self, from: &CStr, to: &CStr) -> Result<(), i32> {
        self.ask(SystemCall::Rename)?;
        // A lock of this process counts as well, because it belongs to what the other caller has opened.
        let parent = Path::new(OsStr::from_bytes(to.to_bytes())).parent();
        if let Some(directory) = parent.and_then(|parent| File::open(parent).ok())
            && !Linux.is_locked(directory.as_fd())
        {
            self.unlocked_renames.fetch_add(1, Ordering::Relaxed);
        }
        Linux.rename_file(from, to)
    }

    fn link_file(&self, from: &CStr, to: &CStr) -> Result<(), i32> {
        Linux.link_file(from, to)
    }

    fn lock_file(&self, file: BorrowedFd<'_>) -> Result<(), i32> {
        self.ask(SystemCall::FileLock)?;
        Linux.lock_file(file)
    }

    fn unlock_file(&self, file: BorrowedFd<'_>) {
        Linux.unlock_file(file);
    }

    fn is_locked(&self, file: BorrowedFd<'_>) -> bool {
        Linux.is_locked(file)
    }

    fn allocate_file(&self, file: BorrowedFd<'_>, start: usize, bytes: usize) -> Result<(), i32> {
        self.ask(SystemCall::Allocate)?;
        Linux.allocate_file(file, start, bytes)
    }

    fn write_zeros(&self, file: BorrowedFd<'_>, start: usize, bytes: usize) -> Result<(), i32> {
        Linux.write_zeros(file, start, bytes)
    }

    fn map_file(&self, file: BorrowedFd<'_>, bytes: usize) -> Result<NonNull<u8>, i32> {
        self.ask(SystemCall::Map)?;
        let base = Linux.map_file(file, bytes)?;
        self.mapped.fetch_add(1, Ordering::Relaxed);
        Ok(base)
    }

    unsafe fn unmap_file(&self, base: NonNull<u8>, bytes: usize) {
        self.mapped.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's mapping is one of Linux, and nothing uses it any more.
        unsafe { Linux.unmap_file(base, bytes) };
    }

    unsafe fn populate_memory(&self, base: NonNull<u8>, bytes: usize) -> Result<(), i32> {
        self.ask(SystemCall::Populate)?;
        // SAFETY: the caller's mapping is one of Linux.
        unsafe { Linux.populate_memory(base, bytes) }
    }

    unsafe fn lock_memory(&self, base: NonNull<u8>, bytes: usize) -> Result<(), i32> {
        self.ask(SystemCall::Lock)?;
        // SAFETY: the caller's mapping is one of Linux.
        unsafe { Linux.lock_memory(base, bytes) }
    }

    fn seal_file(&self, file: BorrowedFd<'_>, writes: bool) -> Result<(), i32> {
        self.ask(SystemCall::Seal)?;
        Linux.seal_file(file, writes)
    }

    fn is_in_memory(&self, file: BorrowedFd<'_>) -> Result<bool, i32> {
        self.ask(SystemCall::FileSystem)?;
        Linux.is_in_memory(file)
    }

    fn word_of_the_parent(&self) -> Result<&'static AtomicU64, i32> {
        self.ask(SystemCall::WipeOnFork)?;
        Linux.word_of_the_parent()
    }

    fn random_numbers(&self) -> Result<[u64; 2], i32> {
        self.ask(SystemCall::Random)?;
        Linux.random_numbers()
    }
}
