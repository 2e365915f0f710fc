//! The calls of Linux that telemetry makes: one trait, so that tests can refuse each call.

use core::ffi::CStr;
use core::fmt;
use core::ptr::NonNull;
use std::os::fd::{BorrowedFd, OwnedFd};

use tripoint_core::internal::AtomicU64;

/// The calls of the system that may be refused. An error is the system's number (`errno`).
///
/// # Safety
/// [`System::map_file`] returns memory of the file, of at least as many bytes as were asked for, which begins at a page
/// and is zero at first. It stays mapped until it is unmapped, and nothing else in the process has a reference to it.
/// [`System::word_of_the_parent`] returns a word that nothing else uses.
pub unsafe trait System: fmt::Debug {
    /// The bytes of memory that the system can provide without ending a process for them.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn available_memory(&self) -> Result<u64, i32>;

    /// Creates a file in memory without a path.
    ///
    /// # Errors
    /// The system's error number. The same holds for the other calls.
    fn create_anonymous(&self, name: &CStr) -> Result<OwnedFd, i32>;

    /// Lets only its owner read or write a file without a path.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn restrict_file(&self, file: BorrowedFd<'_>) -> Result<(), i32>;

    /// Creates a file that only its owner may read or write. The path must not have a file yet.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn create_file(&self, path: &CStr) -> Result<OwnedFd, i32>;

    /// Removes a file that was created, if the system allows.
    fn remove_file(&self, path: &CStr);

    /// Gives a file that was created another path, and removes the file that was there.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn rename_file(&self, from: &CStr, to: &CStr) -> Result<(), i32>;

    /// Gives a file a second name, which no file may have yet.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn link_file(&self, from: &CStr, to: &CStr) -> Result<(), i32>;

    /// Locks a file or a directory until it is closed, or until it is [unlocked](System::unlock_file), without waiting:
    /// `EWOULDBLOCK` if it is locked already.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn lock_file(&self, file: BorrowedFd<'_>) -> Result<(), i32>;

    /// Unlocks what was locked, also for children that were forked meanwhile.
    fn unlock_file(&self, file: BorrowedFd<'_>);

    /// Whether a file is locked, other than through this descriptor.
    fn is_locked(&self, file: BorrowedFd<'_>) -> bool;

    /// Extends a file to `start + bytes` bytes, with memory or blocks for all from `start` on. A file that would be
    /// larger than the process may make is an error, and no signal. A signal of another kind may interrupt the call
    /// (`EINTR`). A file system that does not have the call returns `EOPNOTSUPP`.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn allocate_file(&self, file: BorrowedFd<'_>, start: usize, bytes: usize) -> Result<(), i32>;

    /// The same, by writing zeros.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn write_zeros(&self, file: BorrowedFd<'_>, start: usize, bytes: usize) -> Result<(), i32>;

    /// Maps a file for reading and writing, shared with other processes.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn map_file(&self, file: BorrowedFd<'_>, bytes: usize) -> Result<NonNull<u8>, i32>;

    /// Unmaps what was mapped.
    ///
    /// # Safety
    /// Base and bytes are those of one [`System::map_file`], and nothing uses the memory any more.
    unsafe fn unmap_file(&self, base: NonNull<u8>, bytes: usize);

    /// Puts memory behind every page. A system that does not have the call, or does not allow it, returns `EINVAL`,
    /// `ENOSYS`, `EOPNOTSUPP` or `EPERM`.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    ///
    /// # Safety
    /// Base and bytes are those of one [`System::map_file`].
    unsafe fn populate_memory(&self, base: NonNull<u8>, bytes: usize) -> Result<(), i32>;

    /// Locks the memory.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    ///
    /// # Safety
    /// Base and bytes are those of one [`System::map_file`].
    unsafe fn lock_memory(&self, base: NonNull<u8>, bytes: usize) -> Result<(), i32>;

    /// Seals a file without a path: its size stays. If `writes` is true, the file can no longer be written to or
    /// mapped for writing, except through mappings that exist already.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn seal_file(&self, file: BorrowedFd<'_>, writes: bool) -> Result<(), i32>;

    /// Whether a file is kept in memory, not on a device.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn is_in_memory(&self, file: BorrowedFd<'_>) -> Result<bool, i32>;

    /// A word that is one, and zero in every child that is forked from now on.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn word_of_the_parent(&self) -> Result<&'static AtomicU64, i32>;

    /// Two random numbers.
    ///
    /// # Errors
    /// See [`System::create_anonymous`].
    fn random_numbers(&self) -> Result<[u64; 2], i32>;
}
