//! Memory of a file: of a device's driver, of another process, or of a file system of huge pages
//! ([design/arena-vm.md `.file`](crate::design::arena_vm)).

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::platform::native::Native;
use crate::platform::{Platform, PlatformError};

/// The beginning of an open file, mapped and shared: what is written is seen by every process that has the file mapped, and by
/// the device that the file stands for. Lend it to a [`ClientArena`](tripoint_core::ClientArena), and pools live in it.
///
/// ```
/// # #[cfg(not(miri))]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::os::fd::AsRawFd;
/// use tripoint_arena_vm::MappedFile;
/// use tripoint_core::{Arena, ClientArena, ClientArenaOptions};
///
/// # let path = std::env::temp_dir().join(format!("mapped-file-{}", std::process::id()));
/// let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
/// # std::fs::remove_file(&path)?;
/// file.set_len(1 << 20)?;
/// // SAFETY: no other process has the file, so that nothing else changes it or makes it shorter.
/// let mut mapped = unsafe { MappedFile::create(file.as_raw_fd(), 1 << 20) }?;
/// let arena = ClientArena::create(mapped.memory(), ClientArenaOptions::default())?;
/// let pool = arena.register()?;
/// arena.alloc_tracts(4096, pool)?;
/// # Ok(())
/// # }
/// # #[cfg(miri)]
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct MappedFile<P: Platform = Native> {
    platform: P,
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the value alone owns the mapping, in whichever thread it is, and the platform may be sent.
unsafe impl<P: Platform> Send for MappedFile<P> {}
// SAFETY: a shared value returns only its size.
unsafe impl<P: Platform> Sync for MappedFile<P> {}

impl MappedFile {
    /// Maps the first `size` bytes of an open file: a descriptor for reading and writing, which may be closed
    /// afterwards. `size` is a multiple of the page size that the file has.
    ///
    /// All pages of a regular file get their memory now, so that a file system without room is an error here, and not a
    /// signal later.
    ///
    /// # Errors
    /// What the platform refused, with what to do: a file that is shorter, that may not be written to, or whose file system
    /// has too little room.
    ///
    /// # Safety
    /// - While the value lives, the file is not made shorter.
    /// - While its memory is lent to an arena, only the program's own devices and partners change the file, and only as pools
    ///   of the arena let them. What the arena and its pools rely on lies in the file as well: a partner that may be hostile
    ///   must not have the file.
    /// - A child process that is forked meanwhile has the same memory, and no copy: it neither uses nor drops the arena and its
    ///   pools.
    pub unsafe fn create(file: i32, size: usize) -> Result<Self, PlatformError> {
        // SAFETY: the caller keeps to the duties of this method.
        unsafe { Self::create_on(Native::new(), file, size) }
    }
}

impl<P: Platform> MappedFile<P> {
    /// As [`MappedFile::create`], on a platform.
    ///
    /// # Errors
    /// As [`MappedFile::create`].
    ///
    /// # Safety
    /// As [`MappedFile::create`].
    pub unsafe fn create_on(platform: P, file: i32, size: usize) -> Result<Self, PlatformError> {
        let base = platform.map_file(file, size)?;
        Ok(Self { platform, base, size })
    }

    /// The size in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The memory of the file, to lend.
    pub const fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the mapping is valid for reads and writes of `size` bytes until it is dropped, and the value is borrowed
        // exclusively meanwhile. Who mapped it has promised that nothing else changes it in ways that matter.
        unsafe { core::slice::from_raw_parts_mut(self.base.cast().as_ptr(), self.size) }
    }
}

impl<P: Platform> Drop for MappedFile<P> {
    fn drop(&mut self) {
        // If the platform refuses, addresses are lost, and no caller is left that could act on it.
        //
        // SAFETY: base and size are those of one mapping. Its only owner is being dropped, so nothing uses it any more.
        let _ = unsafe { self.platform.unmap_file(self.base, self.size) };
    }
}
