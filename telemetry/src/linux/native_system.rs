//! The calls of Linux itself.

use core::ffi::{CStr, c_int};
use core::ptr::{self, NonNull};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use tripoint_core::internal::{AtomicU64, Ordering};

use crate::linux::memory;
use crate::linux::system::System;

/// Linux.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linux;

/// Only the owner may read or write.
const MODE: libc::mode_t = 0o600;

/// The value since Linux 6.3; not every libc defines it.
const MFD_NOEXEC_SEAL: libc::c_uint = 8;

/// The error number of this thread's last refused call.
fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// The outcome of a call that returns a negative number if it is refused.
fn answer(code: c_int) -> Result<c_int, i32> {
    if code < 0 { Err(errno()) } else { Ok(code) }
}

/// The owner of a file that was just opened.
fn own(code: c_int) -> Result<OwnedFd, i32> {
    // SAFETY: the call that returned this number opened the file, and no other owner knows of it.
    answer(code).map(|file| unsafe { OwnedFd::from_raw_fd(file) })
}

/// The most bytes that a file may have (`ulimit -f`). Beyond them the system sends SIGXFSZ, which ends a process that
/// does not expect it. If the system does not say what the limit is, the bytes are asked for anyway.
fn largest_file() -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call writes to this value only.
    let _ = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    limit.rlim_cur
}

/// A part of a file as the system takes it, unless the process may not make a file that long.
fn within_limits(start: usize, bytes: usize) -> Result<(libc::off_t, libc::off_t), i32> {
    let end = start.checked_add(bytes).ok_or(libc::EFBIG)?;
    let offset = |bytes: usize| libc::off_t::try_from(bytes).map_err(|_| libc::EFBIG);
    let (start, bytes, _) = (offset(start)?, offset(bytes)?, offset(end)?);
    let is_allowed = libc::rlim_t::try_from(end).is_ok_and(|end| end <= largest_file());
    if is_allowed { Ok((start, bytes)) } else { Err(libc::EFBIG) }
}

/// Locks or unlocks a file, without waiting.
fn flock(file: BorrowedFd<'_>, operation: c_int) -> Result<(), i32> {
    // SAFETY: the file is open. The call reads no memory of the process.
    answer(unsafe { libc::flock(file.as_raw_fd(), operation | libc::LOCK_NB) }).map(drop)
}

// SAFETY: a mapping of a file is shared with its other mappings, and with nothing else. It starts at a page
// and stays until `munmap`. New pages of a file are zero. The word of the parent is in a mapping of its own.
unsafe impl System for Linux {
    fn available_memory(&self) -> Result<u64, i32> {
        memory::available(Path::new("/")).ok_or(libc::ENODATA)
    }

    fn create_anonymous(&self, name: &CStr) -> Result<OwnedFd, i32> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name ends with a zero byte.
        let create = |flags| own(unsafe { libc::memfd_create(name.as_ptr(), flags) });
        // Older systems cannot seal a file against execution, and refuse the flag.
        create(flags | MFD_NOEXEC_SEAL).or_else(|_| create(flags))
    }

    fn restrict_file(&self, file: BorrowedFd<'_>) -> Result<(), i32> {
        // SAFETY: the file is open.
        answer(unsafe { libc::fchmod(file.as_raw_fd(), MODE) }).map(drop)
    }

    fn create_file(&self, path: &CStr) -> Result<OwnedFd, i32> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero byte, and the call has the mode that O_CREAT asks for.
        own(unsafe { libc::open(path.as_ptr(), flags, MODE) })
    }

    fn remove_file(&self, path: &CStr) {
        // SAFETY: the path ends with a zero byte.
        let _ = unsafe { libc::unlink(path.as_ptr()) };
    }

    fn rename_file(&self, from: &CStr, to: &CStr) -> Result<(), i32> {
        // SAFETY: both paths end with a zero byte.
        answer(unsafe { libc::rename(from.as_ptr(), to.as_ptr()) }).map(drop)
    }

    fn link_file(&self, from: &CStr, to: &CStr) -> Result<(), i32> {
        // SAFETY: both paths end with a zero byte.
        answer(unsafe { libc::link(from.as_ptr(), to.as_ptr()) }).map(drop)
    }

    fn lock_file(&self, file: BorrowedFd<'_>) -> Result<(), i32> {
        flock(file, libc::LOCK_EX)
    }

    fn unlock_file(&self, file: BorrowedFd<'_>) {
        let _ = flock(file, libc::LOCK_UN);
    }

    fn is_locked(&self, file: BorrowedFd<'_>) -> bool {
        let is_locked = flock(file, libc::LOCK_SH) == Err(libc::EWOULDBLOCK);
        self.unlock_file(file);
        is_locked
    }

    fn allocate_file(&self, file: BorrowedFd<'_>, start: usize, bytes: usize) -> Result<(), i32> {
        let (start, bytes) = within_limits(start, bytes)?;
        // SAFETY: the file is open. The call reads no memory of the process.
        answer(unsafe { libc::fallocate(file.as_raw_fd(), 0, start, bytes) }).map(drop)
    }

    fn write_zeros(&self, file: BorrowedFd<'_>, start: usize, bytes: usize) -> Result<(), i32> {
        static ZEROS: [u8; 4096] = [0; 4096];
        let (mut at, mut left) = within_limits(start, bytes)?;
        while left > 0 {
            let now = usize::try_from(left).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
            // SAFETY: the file is open, and there are at least that many zeros.
            let written = unsafe { libc::pwrite(file.as_raw_fd(), ZEROS.as_ptr().cast(), now, at) };
            let written = libc::off_t::try_from(written).map_err(|_| libc::EFBIG)?;
            match written {
                ..0 => return Err(errno()),
                0 => return Err(libc::EIO),
                1.. => (at, left) = (at + written, left - written),
            }
        }
        Ok(())
    }

    fn map_file(&self, file: BorrowedFd<'_>, bytes: usize) -> Result<NonNull<u8>, i32> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the system chooses addresses that nothing uses, and the file is open.
        let base =
            unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED { Err(errno()) } else { NonNull::new(base.cast()).ok_or(libc::ENOMEM) }
    }

    unsafe fn unmap_file(&self, base: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller says that this is a mapping which nothing uses any more.
        let _ = unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
    }

    unsafe fn populate_memory(&self, base: NonNull<u8>, bytes: usize) -> Result<(), i32> {
        // SAFETY: the caller says that this is a mapping. The advice changes no byte.
        answer(unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) }).map(drop)
    }

    unsafe fn lock_memory(&self, base: NonNull<u8>, bytes: usize) -> Result<(), i32> {
        // SAFETY: the caller says that this is a mapping. Locking changes no byte.
        answer(unsafe { libc::mlock(base.as_ptr().cast(), bytes) }).map(drop)
    }

    fn seal_file(&self, file: BorrowedFd<'_>, writes: bool) -> Result<(), i32> {
        let size = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
        let seals = if writes { size | libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL } else { size };
        // SAFETY: the file is open, and the argument is the number that the command takes.
        answer(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }).map(drop)
    }

    fn is_in_memory(&self, file: BorrowedFd<'_>) -> Result<bool, i32> {
        let mut about = core::mem::MaybeUninit::<libc::statfs>::uninit();
        // SAFETY: the file is open, and there is memory for a whole `statfs`.
        answer(unsafe { libc::fstatfs(file.as_raw_fd(), about.as_mut_ptr()) })?;
        // SAFETY: the call succeeded, so it has filled in the value.
        let kind = unsafe { about.assume_init() }.f_type;
        #[allow(clippy::unnecessary_cast, reason = "its type differs between targets")]
        let in_memory = [libc::TMPFS_MAGIC as i64, libc::HUGETLBFS_MAGIC as i64, RAMFS_MAGIC];
        #[allow(clippy::unnecessary_cast, reason = "its type differs between targets")]
        Ok(in_memory.contains(&(kind as i64)))
    }

    fn word_of_the_parent(&self) -> Result<&'static AtomicU64, i32> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let bytes = size_of::<AtomicU64>();
        // SAFETY: the system chooses addresses that nothing uses.
        let page = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(errno());
        }
        // The system rounds up to the whole page.
        //
        // SAFETY: this is the new mapping. The advice changes no byte of this process.
        if let Err(code) = answer(unsafe { libc::madvise(page, bytes, libc::MADV_WIPEONFORK) }) {
            // SAFETY: nothing uses the mapping yet.
            let _ = unsafe { libc::munmap(page, bytes) };
            return Err(code);
        }
        // SAFETY: the mapping is readable and writable, starts at a page, is at least a page long, reads as
        // zero, and is never unmapped. No other reference to it exists.
        let word: &'static AtomicU64 = unsafe { &*page.cast() };
        word.store(1, Ordering::Relaxed);
        Ok(word)
    }

    fn random_numbers(&self) -> Result<[u64; 2], i32> {
        let mut numbers = [0_u64; 2];
        let bytes = size_of_val(&numbers);
        // SAFETY: the call writes at most as many bytes as there are, and any are numbers.
        let got = unsafe { libc::getrandom(numbers.as_mut_ptr().cast(), bytes, 0) };
        if usize::try_from(got) == Ok(bytes) { Ok(numbers) } else { Err(errno()) }
    }
}

/// Not every libc defines it.
const RAMFS_MAGIC: i64 = 0x8584_58f6;
