//! How a process maps an image: what this program asks of the system, and how Linux does it.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;

use core::ptr::{self, NonNull};

use tripoint::author::Block;
use tripoint::gc::{Image, ImageHeader, relocate_image};

use crate::instruments::FINGERPRINT;

/// What this program asks of a system that maps files.
pub(crate) trait FileMemory {
    /// Maps the file read-only at exactly this address, so that processes share it; `None` if the address is taken.
    fn share(&self, file: &File, size: usize, base: usize) -> std::io::Result<Option<NonNull<u8>>>;

    /// Maps a private copy of the file anywhere, for writing.
    fn copy(&self, file: &File, size: usize) -> std::io::Result<NonNull<u8>>;

    /// Makes a mapping read-only.
    ///
    /// # Safety
    /// - It is a mapping of this system, which nothing writes from here on.
    unsafe fn seal(&self, base: NonNull<u8>, size: usize) -> std::io::Result<()>;

    /// Takes an address, so that nothing can be mapped there.
    fn take(&self, base: usize, size: usize) -> std::io::Result<()>;
}

/// Memory by `mmap` and `mprotect`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linux;

impl Linux {
    fn map(place: usize, size: usize, access: i32, flags: i32, file: i32) -> std::io::Result<NonNull<u8>> {
        let place = ptr::without_provenance_mut(place);
        // SAFETY: no flag of this program replaces a mapping: without MAP_FIXED_NOREPLACE the kernel chooses the place.
        let base = unsafe { libc::mmap(place, size, access, flags, file, 0) };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        NonNull::new(base.cast()).ok_or(std::io::ErrorKind::AddrNotAvailable.into())
    }
}

impl FileMemory for Linux {
    fn share(&self, file: &File, size: usize, base: usize) -> std::io::Result<Option<NonNull<u8>>> {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
        match Self::map(base, size, libc::PROT_READ, flags, file.as_raw_fd()) {
            // Kernels before 4.17 may choose another address.
            Ok(mapped) => Ok(Some(mapped).filter(|mapped| mapped.addr().get() == base)),
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn copy(&self, file: &File, size: usize) -> std::io::Result<NonNull<u8>> {
        Self::map(0, size, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE, file.as_raw_fd())
    }

    unsafe fn seal(&self, base: NonNull<u8>, size: usize) -> std::io::Result<()> {
        // SAFETY: the caller promises a mapping that nothing writes any more.
        match unsafe { libc::mprotect(base.as_ptr().cast(), size, libc::PROT_READ) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    fn take(&self, base: usize, size: usize) -> std::io::Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        Self::map(base, size, libc::PROT_NONE, flags, -1).map(drop)
    }
}

/// An image that is mapped as long as the process lives.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) image: Image<'static>,
    /// All of it, for a frozen segment.
    pub(crate) memory: Block,
    /// The number of references that were relocated; `None` if the image is shared.
    pub(crate) relocated: Option<usize>,
}

/// The header of the image in a file.
pub(crate) fn header_of(file: &mut File) -> Result<ImageHeader, Box<dyn core::error::Error>> {
    let mut header = [0; ImageHeader::SIZE];
    file.read_exact(&mut header)?;
    Ok(ImageHeader::parse(&header, FINGERPRINT)?)
}

/// Maps the image in a file: at its address if that is free, and otherwise as a private copy that is relocated.
pub(crate) fn map(system: &impl FileMemory, path: &Path) -> Result<Mapped, Box<dyn core::error::Error>> {
    let mut file = File::open(path)?;
    let header = header_of(&mut file)?;
    let size = header.size();
    if file.metadata()?.len() < size as u64 {
        return Err("the file is shorter than its image: write it anew".into());
    }
    let (base, relocated) = match system.share(&file, size, header.preferred_base())? {
        Some(base) => (base, None),
        None => {
            let base = system.copy(&file, size)?;
            // SAFETY: the copy has `size` bytes, stays mapped, and only this function uses it.
            let bytes = unsafe { core::slice::from_raw_parts_mut(base.as_ptr(), size) };
            let relocated = relocate_image(bytes, FINGERPRINT)?;
            // SAFETY: the copy was mapped by `system`, and nothing writes it from here on.
            unsafe { system.seal(base, size) }?;
            (base, Some(relocated))
        }
    };
    // SAFETY: the mapping has `size` bytes, and stays for the rest of the process. No process writes the file: it was
    // written whole before the first one mapped it.
    let bytes = unsafe { core::slice::from_raw_parts(base.as_ptr(), size) };
    // SAFETY: this is the memory of `bytes`, one mapping, of which frozen segments only read.
    let memory = unsafe { Block::new(base, size) };
    Ok(Mapped { image: Image::open(bytes, FINGERPRINT)?, memory, relocated })
}
