//! The watch of writes on Linux: `userfaultfd` protects pages, a write takes the protection away in the kernel, and the
//! page map says which pages have it no more, and protects them again ([design/arena-vm.md
//! `.watch`](crate::design::arena_vm)).

use core::ffi::{c_int, c_long, c_ulong};
use core::ptr::{self, NonNull};

use libc::{EAGAIN, EBADF, EINVAL, ENOSYS, ENOTTY};

use tripoint_core::internal::{AtomicU32, Ordering};
use tripoint_core::{Addr, AddrRange, aver};

use super::errno::errno;
use super::{PlatformError, Watch};

/// `UFFD_USER_MODE_ONLY`: a process without privilege may have such a descriptor.
const USER_MODE_ONLY: c_int = 1;
/// `UFFD_API`
const API: u64 = 0xaa;
/// `UFFD_FEATURE_WP_UNPOPULATED` and `UFFD_FEATURE_WP_ASYNC`: pages without memory can be protected, too, and the kernel
/// ends the protection by itself.
const FEATURES: u64 = 1 << 13 | 1 << 15;
/// `UFFDIO_REGISTER_MODE_WP`
const PROTECT: u64 = 1 << 1;
/// `PM_SCAN_WP_MATCHING` and `PM_SCAN_CHECK_WPASYNC`: protect what is returned, and fail if a page is not registered.
const SCAN_FLAGS: u64 = 1 << 0 | 1 << 1;
/// `PAGE_IS_WRITTEN`
const WRITTEN: u64 = 1 << 1;

/// `UFFDIO_API`, `UFFDIO_REGISTER` and `PAGEMAP_SCAN`, as most architectures number them. The others do not have this
/// kind of protection, and refuse the numbers.
const IOCTL_API: c_ulong = 0xc018_aa3f;
const IOCTL_REGISTER: c_ulong = 0xc020_aa00;
const IOCTL_SCAN: c_ulong = 0xc060_6610;

/// `struct uffdio_api`
#[repr(C)]
struct ApiArgument {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`
#[repr(C)]
struct RegisterArgument {
    start: u64,
    size: u64,
    mode: u64,
    ioctls: u64,
}

/// `struct pm_scan_arg`
#[derive(Default)]
#[repr(C)]
struct ScanArgument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    found: u64,
    found_room: u64,
    pages_most: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

/// `struct page_region`
#[derive(Clone, Copy)]
#[repr(C)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// The regions that one call returns at most: 3 KiB of stack.
const REGIONS: usize = 128;

/// What the word of a watch points to: two pages that a child of this process has as zeros. So a child finds its
/// watch closed. It must not use the descriptors, which are about the memory of its parent, nor close them, because it
/// may have closed them already, and their numbers may be those of other files.
#[repr(C)]
struct Place {
    state: AtomicU32,
    /// The number of the `userfaultfd`.
    protector: AtomicU32,
    /// The number of the page map.
    map: AtomicU32,
}

const CLOSED: u32 = 0;
const OPENING: u32 = 1;
const OPEN: u32 = 2;

/// A descriptor that is closed when it is dropped.
struct Descriptor(c_int);

impl Descriptor {
    /// The outcome of a call that returns a descriptor.
    fn of(outcome: c_long) -> Result<Self, c_int> {
        c_int::try_from(outcome).ok().filter(|&number| number >= 0).map(Self).ok_or_else(errno)
    }

    /// Its number, for the caller, which closes it from here on.
    fn into_number(self) -> c_int {
        let number = self.0;
        core::mem::forget(self);
        number
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: this value alone has the descriptor, which is not used again.
        let _ = unsafe { libc::close(self.0) };
    }
}

/// The addresses of pages: the first one, and a number of bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Pages {
    pub(super) base: usize,
    pub(super) size: usize,
}

fn refusal(call: &'static str, pages: Pages) -> impl Fn(c_int) -> PlatformError {
    move |code| PlatformError { call, code, addr: pages.base, size: pages.size, limit: None }
}

/// The place of a watch, if it was ever opened.
fn place_of(watch: &Watch) -> Option<&Place> {
    // SAFETY: the word is null, or points to a mapping of ours that begins with a place. That stays until the watch is
    // closed for good, and consists of atomic words.
    unsafe { watch.word().load(Ordering::Acquire).cast::<Place>().as_ref() }
}

/// The descriptors of a watch that is open in this process: of `userfaultfd`, and of the page map.
fn descriptors(watch: &Watch) -> Option<(c_int, c_int)> {
    let place = place_of(watch)?;
    let is_open = place.state.load(Ordering::Acquire) == OPEN;
    let number = |word: &AtomicU32| word.load(Ordering::Relaxed).cast_signed();
    is_open.then(|| (number(&place.protector), number(&place.map)))
}

/// Whether the watch is open in this process.
pub(super) fn is_open(watch: &Watch) -> bool {
    descriptors(watch).is_some()
}

/// Opens a watch, or opens it again in a child.
pub(super) fn open(watch: &Watch, page_size: usize) -> Result<(), PlatformError> {
    let refused = refusal("open_watch", Pages::default());
    let place = match place_of(watch) {
        Some(place) => place,
        None => make_place(watch, page_size).map_err(&refused)?,
    };
    match place.state.compare_exchange(CLOSED, OPENING, Ordering::Acquire, Ordering::Acquire) {
        Ok(_) => {}
        Err(OPEN) => return Ok(()),
        // Another thread is about to open it.
        Err(_) => return Err(refused(EAGAIN)),
    }
    let opened = open_descriptors().and_then(|(protector, map)| {
        try_out(&protector, &map, NonNull::from(place).cast(), page_size)?;
        place.protector.store(protector.into_number().cast_unsigned(), Ordering::Relaxed);
        place.map.store(map.into_number().cast_unsigned(), Ordering::Relaxed);
        Ok(())
    });
    place.state.store(if opened.is_ok() { OPEN } else { CLOSED }, Ordering::Release);
    opened.map_err(refused)
}

/// Maps the place of a watch. Of several threads that do so at once, one has its place used by all.
fn make_place(watch: &Watch, page_size: usize) -> Result<&Place, c_int> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the kernel chooses addresses that nothing uses.
    let fresh = unsafe { libc::mmap(ptr::null_mut(), 2 * page_size, access, flags, -1, 0) };
    if fresh == libc::MAP_FAILED {
        return Err(errno());
    }
    // SAFETY: both pages are those mapped above. The advice changes no byte in this process.
    let wiped = unsafe { libc::madvise(fresh, 2 * page_size, libc::MADV_WIPEONFORK) };
    let code = errno();
    let is_first = || {
        let word = watch.word();
        word.compare_exchange(ptr::null_mut(), fresh.cast(), Ordering::AcqRel, Ordering::Acquire).is_ok()
    };
    if wiped != 0 || !is_first() {
        // SAFETY: both pages are those mapped above, which no other thread knows of.
        let _ = unsafe { libc::munmap(fresh, 2 * page_size) };
    }
    place_of(watch).ok_or(code)
}

/// Opens the two descriptors, which programs that this one executes do not get.
fn open_descriptors() -> Result<(Descriptor, Descriptor), c_int> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
    // SAFETY: the call takes flags only.
    let protector = Descriptor::of(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) })?;
    let mut argument = ApiArgument { api: API, features: FEATURES, ioctls: 0 };
    // SAFETY: the call reads and writes a `struct uffdio_api`, which this is.
    unsafe { ioctl(protector.0, IOCTL_API, (&raw mut argument).cast()) }?;
    // SAFETY: the path is a pointer to a text that ends with a zero byte; a file that is only read needs no mode.
    let map = unsafe { libc::open(c"/proc/self/pagemap".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    Ok((protector, Descriptor::of(c_long::from(map))?))
}

/// Watches the second page of a place through two writes. So a kernel or an emulator that has the calls and does not
/// do what they say is refused.
fn try_out(protector: &Descriptor, map: &Descriptor, place: NonNull<u8>, page: usize) -> Result<(), c_int> {
    // SAFETY: the place has two pages.
    let tried = unsafe { place.add(page) };
    let pages = Pages { base: tried.addr().get(), size: page };
    register(protector.0, pages)?;
    for is_written in [true, false, true] {
        if is_written {
            // SAFETY: the page is mapped, and only the thread that opens the watch uses it. A volatile write is not
            // left out.
            unsafe { tried.write_volatile(1) };
        }
        let mut written = 0;
        let done = scan(map.0, pages, &mut |found| written += found.size())?;
        if (done, written) != (page, if is_written { page } else { 0 }) {
            return Err(ENOSYS);
        }
    }
    Ok(())
}

/// Whether a call was refused because the number is not that of our descriptor any more: the program has closed it, and
/// may have opened another file since.
const fn is_lost(code: c_int) -> bool {
    matches!(code, EBADF | ENOTTY | EINVAL)
}

/// Finds a watch closed whose descriptor is lost, so that it can be opened again. Neither number is closed
/// (design/arena-vm.md `.watch.lost`).
fn heed_loss(watch: &Watch, code: c_int) {
    if let Some(place) = place_of(watch).filter(|_| is_lost(code)) {
        // If another thread has found that out, or this is a child, it is closed.
        let _ = place.state.compare_exchange(OPEN, CLOSED, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Watches pages from here on.
pub(super) fn watch(watch: &Watch, pages: Pages) -> Result<(), PlatformError> {
    let (protector, _) = descriptors(watch).ok_or(EBADF).map_err(refusal("watch", pages))?;
    register(protector, pages).inspect_err(|&code| heed_loss(watch, code)).map_err(refusal("watch", pages))
}

/// Passes pages that were written, and watches them again. Returns for how many bytes that was done.
pub(super) fn take_written(
    watch: &Watch,
    pages: Pages,
    visit: &mut dyn FnMut(AddrRange),
) -> Result<usize, PlatformError> {
    let (_, map) = descriptors(watch).ok_or(EBADF).map_err(refusal("take_written", pages))?;
    let scanned = scan(map, pages, visit).inspect_err(|&code| heed_loss(watch, code));
    scanned.map_err(refusal("take_written", pages))
}

/// Closes a watch for good, and unmaps its place. Descriptors that are lost are not closed: by now their numbers may be
/// those of other files.
pub(super) fn close(watch: &Watch, page_size: usize) {
    if let (Some((protector, map)), Some(place)) = (descriptors(watch), place_of(watch)) {
        let tried = Pages { base: ptr::from_ref(place).addr() + page_size, size: page_size };
        if !scan(map, tried, &mut |_| ()).is_err_and(is_lost) {
            drop((Descriptor(protector), Descriptor(map)));
        }
    }
    let place = watch.word().swap(ptr::null_mut(), Ordering::AcqRel);
    if !place.is_null() {
        // SAFETY: the word pointed to a mapping of two pages, and no thread uses the watch any more.
        let _ = unsafe { libc::munmap(place.cast(), 2 * page_size) };
    }
}

fn register(protector: c_int, pages: Pages) -> Result<(), c_int> {
    let (start, size) = (pages.base as u64, pages.size as u64);
    let mut argument = RegisterArgument { start, size, mode: PROTECT, ioctls: 0 };
    // SAFETY: the call reads and writes a `struct uffdio_register`, which this is. It changes no byte of the pages.
    unsafe { ioctl(protector, IOCTL_REGISTER, (&raw mut argument).cast()) }.map(drop)
}

fn scan(map: c_int, pages: Pages, visit: &mut dyn FnMut(AddrRange)) -> Result<usize, c_int> {
    let mut found = [Region { start: 0, end: 0, categories: 0 }; REGIONS];
    let mut argument = ScanArgument {
        size: size_of::<ScanArgument>() as u64,
        flags: SCAN_FLAGS,
        start: pages.base as u64,
        end: (pages.base + pages.size) as u64,
        found: found.as_mut_ptr().expose_provenance() as u64,
        found_room: REGIONS as u64,
        all_of: WRITTEN,
        returned: WRITTEN,
        ..ScanArgument::default()
    };
    // SAFETY: the call reads and writes a `struct pm_scan_arg`, which this is, and writes at most as many regions as
    // there is room for, to memory of this function. It changes no byte of the pages.
    let count = unsafe { ioctl(map, IOCTL_SCAN, (&raw mut argument).cast()) }?;
    let done = usize::try_from(argument.walk_end.wrapping_sub(argument.start)).unwrap_or(0);
    let is_sound = (1..=pages.size).contains(&done) && count <= REGIONS;
    aver!(is_sound, "the page map returned {count} regions and {done} of {} bytes", pages.size);
    if !is_sound {
        return Err(ENOSYS);
    }
    for region in &found[..count] {
        let address = |value: u64| usize::try_from(value).map(Addr::new).ok();
        let found = address(region.start).zip(address(region.end));
        visit(found.and_then(|(start, end)| AddrRange::new(start, end)).ok_or(ENOSYS)?);
    }
    Ok(done)
}

/// An `ioctl`: what it returns, or the code of its failure.
///
/// # Safety
/// - `argument` is what the request reads and writes.
unsafe fn ioctl(descriptor: c_int, request: c_ulong, argument: *mut u8) -> Result<usize, c_int> {
    // By the system call, because C libraries differ in the type of a request.
    //
    // SAFETY: the caller says that the request reads and writes this argument.
    let outcome = unsafe { libc::syscall(libc::SYS_ioctl, descriptor, request, argument) };
    usize::try_from(outcome).map_err(|_| errno())
}
