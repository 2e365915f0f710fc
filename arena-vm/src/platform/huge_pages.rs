//! Explicit huge pages on Linux: one mapping, whose pages are taken and given back by advice
//! ([design/arena-vm.md `.explicit`](crate::design::arena_vm)).

use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use tripoint_core::NodeSet;

use super::PlatformError;
use super::errno::errno;
use super::kernel_file::{Path, number};
use crate::chosen_memory::{HugePageSize, HugePages, Placement};

/// Maps huge pages in place of a range, and takes none.
///
/// # Safety
/// - The range is whole huge pages of a reservation, which nothing uses.
pub(super) unsafe fn map(base: NonNull<u8>, size: usize, pages: HugePages) -> Result<(), PlatformError> {
    let refused =
        |code| PlatformError { call: "map_huge_pages", code, addr: base.addr().get(), size, limit: None };
    let kept =
        pages.mount.map(|mount| MountFile::make(mount, size, pages.size)).transpose().map_err(refused)?;
    let source = match (&kept, pages.size) {
        (Some(_), _) => 0,
        (None, HugePageSize::TwoMiB) => libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB,
        (None, HugePageSize::OneGiB) => libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_HUGE_1GB,
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE | libc::MAP_FIXED | source;
    let file = kept.as_ref().map_or(-1, |file| file.0);
    // Without access at first: after `mlockall` the kernel would take a page for each that is accessible.
    //
    // SAFETY: the caller says that nothing uses what is replaced. The call reads no memory.
    let mapped = unsafe { libc::mmap(base.as_ptr().cast(), size, libc::PROT_NONE, flags, file, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(refused(errno()));
    }
    // SAFETY: the range is the new mapping. It only gains access.
    match unsafe { libc::mprotect(base.as_ptr().cast(), size, libc::PROT_READ | libc::PROT_WRITE) } {
        0 => Ok(()),
        _ => Err(refused(errno())),
    }
}

/// Takes a huge page for each of a range. If that is refused, the range is empty.
///
/// # Safety
/// - The range is whole huge pages of one [`map`], which nothing uses.
pub(super) unsafe fn fill(
    base: NonNull<u8>,
    size: usize,
    pages: HugePageSize,
    placement: Placement,
) -> Result<(), PlatformError> {
    // SAFETY: the range is a part of a mapping of ours. The advice changes no byte of pages that are there.
    if unsafe { libc::madvise(base.as_ptr().cast(), size, libc::MADV_POPULATE_WRITE) } == 0 {
        return Ok(());
    }
    let code = errno();
    // What was taken so far is given back, and counted as free.
    //
    // SAFETY: the range is huge pages of a mapping of ours, which nothing uses.
    let _ = unsafe { empty(base, size) };
    let free = free(pages, placement.nodes()).saturating_mul(pages.bytes());
    let limit = (code != libc::EINVAL && free < size).then_some((pages.resource(), free));
    Err(PlatformError { call: "fill_huge_pages", code, addr: base.addr().get(), size, limit })
}

/// Gives the huge pages of a range back.
///
/// # Safety
/// - The range is whole huge pages of one [`map`], which nothing uses.
pub(super) unsafe fn empty(base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
    // SAFETY: the range is a part of a mapping of ours, whose contents nothing needs.
    match unsafe { libc::madvise(base.as_ptr().cast(), size, libc::MADV_DONTNEED) } {
        0 => Ok(()),
        _ => Err(PlatformError {
            call: "empty_huge_pages",
            code: errno(),
            addr: base.addr().get(),
            size,
            limit: None,
        }),
    }
}

/// How many huge pages nothing has taken or been promised: of all nodes, or of some.
fn free(pages: HugePageSize, nodes: Option<NodeSet>) -> usize {
    let kib = pages.bytes() >> 10;
    let Some(nodes) = nodes else {
        let of_system = |what: &str| {
            let path = Path::new(format_args!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/{what}_hugepages"));
            number(path.as_c_str()).unwrap_or(0)
        };
        return of_system("free").saturating_sub(of_system("resv"));
    };
    let of_node = |node: usize| {
        let place =
            format_args!("/sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB/free_hugepages");
        number(Path::new(place).as_c_str()).unwrap_or(0)
    };
    nodes.nodes().map(of_node).sum()
}

/// A file without a name in a mounted `hugetlbfs`, closed when it is dropped; a mapping of it stays.
struct MountFile(c_int);

impl MountFile {
    fn make(mount: &CStr, size: usize, pages: HugePageSize) -> Result<Self, c_int> {
        let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: the path is a text that ends with a zero byte, and the mode follows.
        let file = unsafe { libc::open(mount.as_ptr(), flags, 0o600) };
        if file < 0 {
            return Err(errno());
        }
        let file = Self(file);
        if !file.has_pages(pages)? {
            return Err(libc::EINVAL);
        }
        // The default is a 32-bit size on 32-bit targets.
        let size = libc::off64_t::try_from(size).map_err(|_| libc::EFBIG)?;
        // SAFETY: the file is open.
        if unsafe { libc::ftruncate64(file.0, size) } == 0 { Ok(file) } else { Err(errno()) }
    }

    /// Whether the file is one of huge pages of this size.
    fn has_pages(&self, pages: HugePageSize) -> Result<bool, c_int> {
        let mut facts = MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: the file is open, and the pointer is to a whole `statfs`, which the call fills in.
        if unsafe { libc::fstatfs(self.0, facts.as_mut_ptr()) } != 0 {
            return Err(errno());
        }
        // SAFETY: zeroed above, and all zeros are a `statfs`; the call has filled it in.
        let facts = unsafe { facts.assume_init() };
        let is_of_huge_pages = facts.f_type as u32 == 0x9584_58f6;
        Ok(is_of_huge_pages && usize::try_from(facts.f_bsize) == Ok(pages.bytes()))
    }
}

impl Drop for MountFile {
    fn drop(&mut self) {
        // SAFETY: this value alone has the descriptor, which is not used again.
        let _ = unsafe { libc::close(self.0) };
    }
}
