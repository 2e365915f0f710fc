//! Pages, and the calls that map, move and take them.

use core::ffi::{c_int, c_long};
use core::hint::black_box;
use core::ptr;

pub(crate) const PAGE: usize = 4096;
/// How many pages are touched, if a place touches pages.
pub(crate) const PAGES: usize = 16;

/// Pages that only the place uses.
#[derive(Clone, Copy)]
pub(crate) struct Pages {
    pub(crate) base: *mut u8,
}

impl Pages {
    pub(crate) fn map() -> Self {
        Self { base: culprit_mmap() }
    }

    pub(crate) fn touched() -> Self {
        let pages = Self::map();
        pages.culprit_touch();
        pages
    }

    #[inline(never)]
    pub(crate) fn culprit_touch(self) {
        for page in 0..PAGES {
            // SAFETY: the first byte of a page of the mapping, ours alone.
            unsafe { self.base.add(page * PAGE).write_volatile(1) };
        }
    }

    #[inline(never)]
    pub(crate) fn culprit_read_into(self, pipe: c_int) {
        for page in 0..PAGES {
            // SAFETY: a byte of the mapping, which the kernel writes.
            assert_eq!(unsafe { libc::read(pipe, self.base.add(page * PAGE).cast(), 1) }, 1);
        }
    }
}

#[inline(never)]
pub(crate) fn culprit_mmap() -> *mut u8 {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
    let base = unsafe { libc::mmap(ptr::null_mut(), PAGES * PAGE, access, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    base.cast()
}

/// Makes a call, and ignores whether it succeeds: it was made.
#[inline(never)]
pub(crate) fn culprit_call(call: c_long, [a, b, c, d, e]: [usize; 5]) {
    // SAFETY: of the pages of a place, or without effect: a break of zero, no descriptor.
    black_box(unsafe { libc::syscall(call, a, b, c, d, e) });
}

pub(crate) fn of_pages(call: c_long, [c, d, e]: [usize; 3]) -> Box<dyn FnOnce()> {
    let pages = Pages::touched();
    Box::new(move || culprit_call(call, [pages.base.addr(), PAGES * PAGE, c, d, e]))
}

/// `mmap2` by its number for 32-bit code, of a page at an address that it chooses.
#[inline(never)]
pub(crate) fn culprit_int_80() {
    let call = 192_usize;
    // The stack pointer stays as it is: unwinders are told where it is by the function, which knows nothing of a push here, and
    // a walk would go on at whatever lies in the place of the return address.
    // SAFETY: a mapping at unused addresses that the kernel chooses. The call keeps all registers but `rax` and `r8` to `r11`. `rbx`
    // is the compiler's, so it is put back. The offset, in `rbp`, means nothing for a mapping without a file.
    unsafe {
        core::arch::asm!(
            "xchg {zero}, rbx",
            "int 0x80",
            "xchg {zero}, rbx",
            zero = inout(reg) 0_usize => _,
            inout("rax") call => _, in("rcx") PAGE, in("rdx") 3, in("rsi") 0x22, in("rdi") 0xffff_ffff_u64,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            options(nostack),
        );
    }
}

/// Takes a page for each call of itself.
#[inline(never)]
pub(crate) fn culprit_stack(calls: usize) {
    let mut page = [0_u8; PAGE];
    black_box(&mut page);
    if calls > 0 {
        culprit_stack(black_box(calls - 1));
    }
    black_box(&mut page);
}

#[inline(never)]
pub(crate) fn culprit_read(file: *const u8) {
    // SAFETY: the first byte of the mapping.
    black_box(unsafe { file.read_volatile() });
}

/// A mapped page of a file, which is only on the device.
pub(crate) fn evicted_file() -> *const u8 {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let path = std::env::current_exe().unwrap().with_extension(format!("odd-{}", std::process::id()));
    let mut file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all(&[1; PAGE]).unwrap();
    file.sync_all().unwrap();
    std::fs::remove_file(path).unwrap();
    let descriptor = file.as_raw_fd();
    // SAFETY: numbers; and without MAP_FIXED the kernel chooses unused addresses.
    let base = unsafe {
        libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED);
        libc::mmap(ptr::null_mut(), PAGE, libc::PROT_READ, libc::MAP_PRIVATE, descriptor, 0)
    };
    let mut there = 0_u8;
    // SAFETY: a byte for the one page.
    assert_eq!(unsafe { libc::mincore(base, PAGE, &raw mut there) }, 0);
    if there & 1 != 0 {
        tripoint_oracle::skipped!("this file system evicts nothing");
    }
    base.cast()
}

pub(crate) fn map_huge() -> (*mut u8, usize) {
    const HUGE: usize = 2 << 20;
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
    let base = unsafe { libc::mmap(ptr::null_mut(), 2 * HUGE, access, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    let base = base.cast::<u8>();
    let base = base.wrapping_add(base.addr().next_multiple_of(HUGE) - base.addr());
    culprit_rewrite(base);
    (base, base.expose_provenance())
}

/// Returns false if the kernel has no huge page.
pub(crate) fn collapse(address: usize) -> bool {
    // SAFETY: whole pages of a mapping, whose contents do not change.
    unsafe { libc::madvise(ptr::with_exposed_provenance_mut(address), 2 << 20, 25) == 0 }
}

#[inline(never)]
pub(crate) fn culprit_rewrite(huge: *mut u8) {
    for page in 0..512 {
        // SAFETY: the first byte of a page of the mapping, ours alone.
        unsafe { huge.add(page * PAGE).write_volatile(1) };
    }
}

pub(crate) fn pipe_with_text() -> c_int {
    let mut ends = [0; 2];
    // SAFETY: two descriptors, valid to write; as many bytes as the text has.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        assert_eq!(libc::write(ends[1], [7_u8; PAGES].as_ptr().cast(), PAGES), PAGES as isize);
    }
    ends[0]
}
