//! Linux: one private mapping without access, opened page by page.
//!
//! Commit is `mprotect`, because neighbours merge into one VMA, and the kernel allows a
//! process only some 65,000 VMAs. Decommit maps the range again, so that no trace of its
//! earlier use stays ([design/arena-vm.md `.linux`](crate::design::arena_vm)).

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use libc::c_int;

use tripoint_core::{AddrRange, NodeSet, Resource, aver};

use super::errno::errno;
use super::touch::touch;
use super::userfault::{self, Pages};
use super::{
    Platform, PlatformError, Watch, control_groups, file_mapping, futex, huge_pages, mappings, nodes, room,
    smaps, zeroing,
};
use crate::chosen_memory::{HugePages, PageSizes, Placement};

/// The value since Linux 6.1; not every libc defines it.
const MADV_COLLAPSE: c_int = 25;

/// Linux, by `mmap`, `mprotect`, `madvise` and `mlock`.
#[derive(Clone, Copy, Debug)]
pub struct Linux {
    page_size: usize,
    /// The most mappings that the process may have.
    mappings: usize,
}

impl Default for Linux {
    fn default() -> Self {
        Self::new()
    }
}

impl Linux {
    /// The platform: asks the system for its page size and its limit of mappings.
    #[must_use]
    pub fn new() -> Self {
        // SAFETY: `sysconf` only reads its argument.
        let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let known = usize::try_from(page_size).ok().filter(|size| size.is_power_of_two());
        aver!(known.is_some(), "the page size is {page_size}");
        // The smallest page that Linux has.
        Self { page_size: known.unwrap_or(4096), mappings: mappings::most() }
    }

    /// Reserves addresses at a multiple of `align`: at `place`, if that is not null and they are free there, and else
    /// anywhere.
    fn reserve_near(&self, place: *mut u8, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        let slack = align.saturating_sub(self.page_size);
        let overflow = PlatformError { call: "reserve", code: libc::ENOMEM, addr: 0, size, limit: None };
        let base = reserve_addresses(place, size.checked_add(slack).ok_or(overflow)?)?;
        let head = base.align_offset(align);
        // SAFETY: the mapping has `size + slack` bytes. From a page boundary the next multiple of
        // `align` is at most `slack` away, so `head <= slack`, and both are inside the mapping or
        // at its end.
        let (aligned, end) = unsafe { (base.add(head), base.add(head + size)) };
        // SAFETY: both ranges are empty or whole pages of the new mapping, outside the part that is
        // kept. Nothing uses them.
        let trimmed = unsafe { Self::trim(base, head).and_then(|()| Self::trim(end, slack - head)) };
        if let Err(error) = trimmed {
            // Gaps that are unmapped already are no error. If this fails too, addresses are lost,
            // but no memory.
            //
            // SAFETY: this is the whole new mapping, which nothing uses yet.
            let _ = unsafe { Self::trim(base, size + slack) };
            return Err(error);
        }
        Ok(aligned)
    }

    /// Where the kernel puts what is mapped next, if that has `size` bytes in whole pages.
    fn next_mapping(&self, size: usize) -> Result<usize, PlatformError> {
        let size = size.next_multiple_of(self.page_size);
        let next = reserve_addresses(ptr::null_mut(), size)?;
        // SAFETY: this was mapped just now, and nothing uses it.
        unsafe { Self::trim(next, size) }.map(|()| next.addr().get())
    }

    /// Unmaps what aligning left over. Does nothing for a size of zero.
    ///
    /// # Safety
    /// - The range is empty, or whole pages of a mapping that nothing uses.
    unsafe fn trim(base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        if size == 0 {
            return Ok(());
        }
        // SAFETY: the range is not empty, so it is whole pages of a mapping that nothing uses.
        answer("reserve", base, size, unsafe { libc::munmap(base.as_ptr().cast(), size) })
    }
}

/// The outcome of a call that returns zero for success.
fn answer(call: &'static str, base: NonNull<u8>, size: usize, code: c_int) -> Result<(), PlatformError> {
    if code == 0 {
        return Ok(());
    }
    Err(PlatformError { call, code: errno(), addr: base.addr().get(), size, limit: None })
}

/// The process's limit of a resource, in bytes; `usize::MAX` if there is none.
fn limit_of(resource: Resource) -> usize {
    let kind = match resource {
        Resource::LockedMemory => libc::RLIMIT_MEMLOCK,
        _ => libc::RLIMIT_AS,
    };
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is to a whole `rlimit`, which the call fills in or leaves as it is.
    let _ = unsafe { libc::getrlimit(kind, &raw mut limit) };
    match limit.rlim_cur {
        libc::RLIM_INFINITY => usize::MAX,
        bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
    }
}

/// Adds the limit of the resource that a call lacked to its refusal.
fn for_want_of(resource: Resource) -> impl FnOnce(PlatformError) -> PlatformError {
    move |refusal| PlatformError { limit: Some((resource, limit_of(resource))), ..refusal }
}

/// `mmap` without access and without a claim to memory: at fresh addresses, or at `place` if `fixed` is one of the
/// flags for that.
///
/// # Safety
/// - `fixed` is `MAP_FIXED` only if the range is pages of a reservation that nothing uses.
unsafe fn map_without_access(
    call: &'static str,
    place: *mut u8,
    size: usize,
    fixed: c_int,
) -> Result<NonNull<u8>, PlatformError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: without MAP_FIXED the kernel chooses addresses that nothing uses, and refuses others if it must not
    // replace them. With it, the caller says that nothing uses what is replaced. The call reads no memory.
    let base = unsafe { libc::mmap(place.cast(), size, libc::PROT_NONE, flags, -1, 0) };
    let failed = PlatformError { call, code: errno(), addr: place.addr(), size, limit: None };
    if base == libc::MAP_FAILED {
        return Err(failed);
    }
    if fixed != 0 && base.addr() != place.addr() {
        // Linux before 4.17 does not know MAP_FIXED_NOREPLACE, and maps elsewhere what it must not replace.
        //
        // SAFETY: the range was mapped just now, and nothing uses it.
        let _ = unsafe { libc::munmap(base, size) };
        return Err(failed);
    }
    aver!(!base.is_null(), "{call} mapped {size} bytes at address zero");
    let base = NonNull::new(base.cast()).ok_or(failed)?;
    // Debuggers that dump a process do not read all of the addresses (design/arena-vm.md `.dump`). If this is refused, they do.
    //
    // SAFETY: the range was mapped just now. The advice changes no byte.
    let _ = unsafe { advise(call, base, size, libc::MADV_DONTDUMP) };
    Ok(base)
}

/// Reserves fresh addresses, at `place` if they are free there. A refusal names the limit that was reached. The code is
/// EAGAIN if the process locks what it maps (`mlockall`).
fn reserve_addresses(place: *mut u8, size: usize) -> Result<NonNull<u8>, PlatformError> {
    // SAFETY: without a flag nothing is replaced.
    unsafe { map_without_access("reserve", place, size, 0) }.map_err(|refusal| {
        let locked = refusal.code == libc::EAGAIN;
        for_want_of(if locked { Resource::LockedMemory } else { Resource::AddressSpace })(refusal)
    })
}

/// Gives advice for a range.
///
/// # Safety
/// - The range is pages of a reservation.
/// - The advice changes no byte of them.
unsafe fn advise(
    call: &'static str,
    base: NonNull<u8>,
    size: usize,
    advice: c_int,
) -> Result<(), PlatformError> {
    let addr: *mut c_void = base.as_ptr().cast();
    // SAFETY: the range is pages of a reservation, and the advice changes no byte of them.
    answer(call, base, size, unsafe { libc::madvise(addr, size, advice) })
}

// SAFETY: `mmap` returns addresses that nothing else uses until `munmap`. Private anonymous pages
// read as zero at first, are readable and writable while they are protected so, and are lost only
// when something is mapped in their place. The page size is a constant of the system.
unsafe impl Platform for Linux {
    fn name(&self) -> &'static str {
        "linux"
    }

    fn page_size(&self) -> usize {
        self.page_size
    }

    fn yielding(&self) -> Option<fn()> {
        Some(futex::yield_now)
    }

    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        self.reserve_near(ptr::null_mut(), size, align)
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize, _align: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is a whole reservation of this platform, which nothing uses any more.
        answer("release", base, size, unsafe { libc::munmap(base.as_ptr().cast(), size) })
    }

    unsafe fn commit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is pages of a reservation. They only gain access.
        answer("commit", base, size, unsafe { libc::mprotect(base.as_ptr().cast(), size, access) })?;
        // SAFETY: the range is pages of a reservation. The advice changes no byte.
        unsafe { advise("commit", base, size, libc::MADV_DODUMP) }
    }

    unsafe fn decommit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is pages of a reservation, which nothing uses any more.
        unsafe { map_without_access("decommit", base.as_ptr(), size, libc::MAP_FIXED) }.map(drop)
    }

    unsafe fn zero(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is committed pages of a reservation, which nothing else uses.
        unsafe { zeroing::zero(base, size, self.page_size) }
    }

    unsafe fn discard(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is committed pages of a reservation, whose contents are not needed.
        unsafe { zeroing::discard("discard", base, size) }
    }

    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is pages of a reservation. The advice changes no byte.
        match unsafe { advise("populate", base, size, libc::MADV_POPULATE_WRITE) } {
            // Linux before 5.14 does not know the advice.
            Err(error) if error.code == libc::EINVAL => {
                // SAFETY: the pages are committed, and so valid for reads and writes. Nothing else
                // uses them. A page size is not zero.
                unsafe { touch(base, size, self.page_size) };
                Ok(())
            }
            answer => answer,
        }
    }

    unsafe fn populate_in_use(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is pages of a reservation. The advice changes no byte.
        unsafe { advise("populate_in_use", base, size, libc::MADV_POPULATE_WRITE) }
    }

    unsafe fn advise_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is pages of a reservation. The advice changes no byte.
        unsafe { advise("advise_huge_pages", base, size, libc::MADV_HUGEPAGE) }
    }

    unsafe fn collapse(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is pages of a reservation. The advice changes no byte.
        unsafe { advise("collapse", base, size, MADV_COLLAPSE) }
    }

    unsafe fn map_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        pages: HugePages,
    ) -> Result<(), PlatformError> {
        // SAFETY: the range is huge pages of a reservation, which nothing uses.
        unsafe { huge_pages::map(base, size, pages) }
    }

    unsafe fn fill_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        pages: HugePages,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        // SAFETY: the range is huge pages that were mapped as such, which nothing uses.
        unsafe { huge_pages::fill(base, size, pages.size, placement) }
    }

    unsafe fn empty_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is huge pages that were mapped as such, which nothing uses.
        unsafe { huge_pages::empty(base, size) }
    }

    fn memory_nodes(&self) -> Result<NodeSet, PlatformError> {
        nodes::usable()
    }

    unsafe fn place(
        &self,
        base: NonNull<u8>,
        size: usize,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        // SAFETY: the range is pages of a reservation.
        unsafe { nodes::place(base, size, placement) }
    }

    unsafe fn locate(
        &self,
        base: NonNull<u8>,
        size: usize,
        page_size: usize,
        visit: &mut dyn FnMut(usize, Option<usize>),
    ) -> Result<(), PlatformError> {
        nodes::locate(base, size, page_size, visit)
    }

    fn page_sizes(&self, range: AddrRange, visit: &mut dyn FnMut(PageSizes)) -> Result<(), PlatformError> {
        let (addr, size) = (range.base().get(), range.size());
        if smaps::visit(range, visit) {
            return Ok(());
        }
        Err(PlatformError { call: "page_sizes", code: errno(), addr, size, limit: None })
    }

    fn map_file(&self, file: i32, size: usize) -> Result<NonNull<u8>, PlatformError> {
        file_mapping::map(file, size)
    }

    unsafe fn unmap_file(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is one mapping of a file, which nothing uses any more.
        unsafe { file_mapping::unmap(base, size) }
    }

    unsafe fn lock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is committed pages of a reservation. Locking changes no byte.
        answer("lock", base, size, unsafe { libc::mlock(base.as_ptr().cast(), size) })
            .map_err(for_want_of(Resource::LockedMemory))
    }

    unsafe fn unlock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is pages of a reservation, committed or not. Unlocking changes no byte.
        answer("unlock", base, size, unsafe { libc::munlock(base.as_ptr().cast(), size) })
    }

    unsafe fn no_inherit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is pages of a reservation. For this process the advice changes no byte.
        unsafe { advise("no_inherit", base, size, libc::MADV_DONTFORK) }
    }

    fn open_watch(&self, watch: &Watch) -> Result<(), PlatformError> {
        userfault::open(watch, self.page_size)
    }

    fn is_watch_open(&self, watch: &Watch) -> bool {
        userfault::is_open(watch)
    }

    unsafe fn watch(&self, watch: &Watch, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        userfault::watch(watch, Pages { base: base.addr().get(), size })
    }

    unsafe fn take_written(
        &self,
        watch: &Watch,
        base: NonNull<u8>,
        size: usize,
        visit: &mut dyn FnMut(AddrRange),
    ) -> Result<usize, PlatformError> {
        userfault::take_written(watch, Pages { base: base.addr().get(), size }, visit)
    }

    unsafe fn close_watch(&self, watch: &Watch) {
        userfault::close(watch, self.page_size);
    }

    fn account_mappings(&self, before: usize, now: usize) -> usize {
        mappings::account(self.mappings, before, now)
    }

    fn reserve_with_room(
        &self,
        size: usize,
        room: usize,
        align: usize,
    ) -> Result<NonNull<u8>, PlatformError> {
        let base = self.reserve_near(room::place_for(room.saturating_add(align)), room, align)?;
        // SAFETY: the size is at most the room, which was reserved just now.
        let end = unsafe { base.add(size) };
        // SAFETY: the range is empty, or whole pages at the end of the new mapping. Nothing uses them.
        let is_room = unsafe { Self::trim(end, room - size) }.and_then(|()| {
            let next = self.next_mapping((room - size) / 2)?;
            match room::is_kept_free(base.addr().get() + size, room - size, next) {
                true => Ok(()),
                false => {
                    Err(PlatformError { call: "reserve_with_room", code: 0, addr: next, size, limit: None })
                }
            }
        });
        if let Err(error) = is_room {
            // SAFETY: this is what is left of the new mapping, which nothing uses yet.
            let _ = unsafe { Self::trim(base, size) };
            return Err(error);
        }
        room::note(base.addr());
        Ok(base)
    }

    unsafe fn extend(
        &self,
        base: NonNull<u8>,
        size: usize,
        more: usize,
        _room: usize,
        _align: usize,
    ) -> Result<usize, PlatformError> {
        // SAFETY: the reservation has this size, and had room for more when it was made.
        let end = unsafe { base.add(size) };
        // SAFETY: what is there is not replaced.
        unsafe { map_without_access("extend", end.as_ptr(), more, libc::MAP_FIXED_NOREPLACE) }.map(|_| size)
    }

    fn memory_limit(&self) -> Option<usize> {
        control_groups::memory_limit("")
    }
}
