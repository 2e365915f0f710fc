//! Memory that the recorder and the recorded processes map.

use core::ops::Deref;
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use memmap2::MmapRaw;
use rustix::thread::futex;

use super::ring::{Control, Ring};

/// Types that may have any bytes, and are shared by atomic words only.
///
/// # Safety
/// - Every sequence of bytes is a valid value, and every word is atomic.
pub(super) unsafe trait Shareable: Sync {}

// SAFETY: atomic integers only.
unsafe impl Shareable for Control {}
// SAFETY: atomic integers only.
unsafe impl Shareable for Ring {}

/// A file that is mapped as a `T`.
pub(super) struct Shared<T: Shareable> {
    map: MmapRaw,
    file: File,
    of: core::marker::PhantomData<T>,
}

impl<T: Shareable> Shared<T> {
    /// Makes a file of zeros.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        file.set_len(size_of::<T>() as u64)?;
        Self::map(file)
    }

    /// Maps a file of another process.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() < size_of::<T>() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Self::map(file)
    }

    fn map(file: File) -> io::Result<Self> {
        Ok(Self { map: MmapRaw::map_raw(&file)?, file, of: core::marker::PhantomData })
    }

    /// Whether the file still has its size. Beyond the end of a file that another process made shorter, memory is not there.
    pub(super) fn is_whole(&self) -> bool {
        self.file.metadata().is_ok_and(|data| data.len() >= size_of::<T>() as u64)
    }
}

impl<T: Shareable> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping has at least the size of a `T` and begins at a page, any bytes are a `T`, and its words are
        // atomic, so other processes may write them. It is mapped as long as `self` lives.
        unsafe { &*self.map.as_mut_ptr().cast::<T>() }
    }
}

/// Waits until a recorded process rings, if the bell still has this count, but not without end.
pub(super) fn wait_for_bell(control: &Control, count: u32) {
    let time = Duration::from_millis(10).try_into().ok();
    // However the wait ends, the rings are looked at.
    let _ = futex::wait(&control.bell, futex::Flags::empty(), count, time.as_ref());
}

/// Rings the bell.
pub(super) fn ring_bell(control: &Control) {
    control.bell.fetch_add(1, core::sync::atomic::Ordering::Release);
    // It fails only for words that are not mapped.
    let _ = futex::wake(&control.bell, futex::Flags::empty(), 1);
}

/// Tells threads that wait for room that there is some.
pub(super) fn tell_room(ring: &Ring) {
    use core::sync::atomic::Ordering::SeqCst;
    ring.room.fetch_add(1, SeqCst);
    if ring.waiting.load(SeqCst) != 0 {
        // It fails only for words that are not mapped.
        let _ = futex::wake(&ring.room, futex::Flags::empty(), i32::MAX as u32);
    }
}
