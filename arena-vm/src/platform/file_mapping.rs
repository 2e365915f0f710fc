//! Files as memory on Linux: shared mappings ([design/arena-vm.md `.file`](crate::design::arena_vm)).

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use super::PlatformError;
use super::errno::errno;

/// Maps the first `size` bytes of an open file. The pages of a regular one get their memory.
pub(super) fn map(file: c_int, size: usize) -> Result<NonNull<u8>, PlatformError> {
    let refused = |code| PlatformError { call: "map_file", code, addr: 0, size, limit: None };
    let length = length(file).map_err(refused)?;
    if length.is_some_and(|length| length < size) {
        return Err(refused(libc::ENXIO));
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses addresses that nothing uses. The call reads no memory.
    let base = unsafe { libc::mmap(ptr::null_mut(), size, access, libc::MAP_SHARED, file, 0) };
    let code = errno();
    let base = NonNull::new(base.cast::<u8>()).filter(|_| base != libc::MAP_FAILED).ok_or(refused(code))?;
    if length.is_some() {
        // SAFETY: the range is the new mapping. The advice changes no byte.
        let populated = unsafe { libc::madvise(base.as_ptr().cast(), size, libc::MADV_POPULATE_WRITE) };
        let code = errno();
        // Linux before 5.14 does not know the advice.
        if populated != 0 && code != libc::EINVAL {
            // SAFETY: the range is the new mapping, which nothing uses.
            let _ = unsafe { unmap(base, size) };
            return Err(refused(code));
        }
    }
    Ok(base)
}

/// Ends a mapping.
///
/// # Safety
/// - The range is one whole [`map`], which nothing uses any more.
pub(super) unsafe fn unmap(base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
    // SAFETY: the range is a whole mapping, which nothing uses any more.
    match unsafe { libc::munmap(base.as_ptr().cast(), size) } {
        0 => Ok(()),
        _ => Err(PlatformError {
            call: "unmap_file",
            code: errno(),
            addr: base.addr().get(),
            size,
            limit: None,
        }),
    }
}

/// The length of a regular file; `None` for a device, whose driver knows how much may be mapped.
fn length(file: c_int) -> Result<Option<usize>, c_int> {
    let mut facts = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: the pointer is to a whole `stat64`, which the call fills in.
    if unsafe { libc::fstat64(file, facts.as_mut_ptr()) } != 0 {
        return Err(errno());
    }
    // SAFETY: zeroed above, and all zeros are a `stat64`; the call has filled it in.
    let facts = unsafe { facts.assume_init() };
    let is_regular = facts.st_mode & libc::S_IFMT == libc::S_IFREG;
    Ok(is_regular.then(|| usize::try_from(facts.st_size).unwrap_or(usize::MAX)))
}
