//! Memory that has no page yet, or no longer.

use core::ffi::{c_int, c_void};
use core::hint::black_box;
use core::ptr;
use std::os::fd::AsRawFd;

use crate::case::{Act, Case, FAULT, Facts, Group, LIBRARY, UNBOUNDED, cannot_run, discard, once};
use crate::helper::{fork_a_sleeper, pipe};

/// The size of a page on x86-64, in bytes.
pub(crate) const PAGE: usize = 4_096;
/// How many pages a case is about, unless it is about one.
pub(crate) const PAGES: usize = 16;
/// The size of a huge page, in bytes.
const HUGE: usize = 2 << 20;

/// Around a fault in a file, the kernel maps what it has, up to this number of bytes: what should fault by itself is as large.
const AROUND: usize = 65_536;

fn map_as(size: usize, flags: c_int, file: c_int) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
    let base = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, file, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    base.cast()
}

/// Maps pages that nothing has touched.
pub(crate) fn map(pages: usize) -> *mut u8 {
    map_as(pages * PAGE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
}

/// Maps pages, and writes to each.
pub(crate) fn touched(pages: usize) -> *mut u8 {
    let base = map(pages);
    write_to(base, pages);
    base
}

/// Writes to each page.
fn write_to(base: *mut u8, pages: usize) {
    for page in 0..pages {
        // SAFETY: the first byte of a page of a mapping that only the case uses.
        unsafe { base.add(page * PAGE).write_volatile(1) };
    }
}

fn read_from(base: *mut u8, pages: usize) {
    for page in 0..pages {
        // SAFETY: the first byte of a page of a mapping that only the case uses.
        discard(unsafe { base.add(page * PAGE).read_volatile() });
    }
}

/// Advice about whole pages of a case. Returns whether the kernel takes it.
fn advise(base: *mut u8, size: usize, advice: c_int) -> bool {
    // SAFETY: whole pages of a mapping that only the case uses; what they contain does not matter.
    unsafe { libc::madvise(base.cast(), size, advice) == 0 }
}

/// A new file of some pages, which has no name any more.
fn file(pages: usize) -> std::fs::File {
    use std::io::Write;
    let name = format!("violations-{}", std::process::id());
    let path = std::env::current_exe().expect("the program has a path").with_file_name(name);
    let mut file = std::fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .expect("the folder takes files");
    std::fs::remove_file(path).expect("it was just made");
    file.write_all(&vec![7; pages * PAGE]).expect("the disk takes it");
    file
}

/// Maps a new file. It stays mapped without its descriptor.
fn mapped_file(flags: c_int) -> *mut u8 {
    map_as(PAGES * PAGE, flags, file(PAGES).as_raw_fd())
}

/// Whether a page has memory, as the kernel says.
fn is_there(base: *mut u8) -> bool {
    let mut there = 0_u8;
    // SAFETY: one page, and a byte for it.
    assert_eq!(unsafe { libc::mincore(base.cast(), PAGE, &raw mut there) }, 0);
    there & 1 != 0
}

/// A huge page of the case, written to.
fn huge_page() -> *mut u8 {
    let base = map(2 * HUGE / PAGE);
    let base = base.wrapping_add(base.addr().next_multiple_of(HUGE) - base.addr());
    advise(base, HUGE, libc::MADV_HUGEPAGE);
    write_to(base, HUGE / PAGE);
    base
}

/// Takes pages of the stack, one more than the number.
#[inline(never)]
fn deep(pages: usize) {
    let mut page = [0_u8; PAGE];
    black_box(&mut page);
    if pages > 0 {
        deep(black_box(pages - 1));
    }
    black_box(&mut page);
}

// A function of the program on pages of its own.
core::arch::global_asm!(
    ".pushsection .text.apart, \"ax\", @progbits",
    ".balign 65536",
    ".globl function_apart",
    "function_apart:",
    "ret",
    ".balign 65536",
    ".popsection",
);

unsafe extern "C" {
    safe fn function_apart();
}

/// Takes the pages of the function from the program, as if it had never been called.
fn forget_function() {
    let page = (function_apart as extern "C" fn() as *mut c_void).cast::<u8>();
    // SAFETY: whole pages of the program's own text, which are as its file has them.
    unsafe { libc::munlock(page.cast(), AROUND) };
    if !advise(page, AROUND, libc::MADV_DONTNEED) {
        cannot_run("the program's text does not leave memory");
    }
}

/// Calls a function of a library that was loaded before, for the first time.
#[cfg(foreign_code)]
fn call_of_library() -> Act {
    let path = concat!(env!("LAZY_LIBRARY"), "\0");
    // SAFETY: a path that ends with zero; the library does nothing when it is loaded. The name ends with zero.
    let function = unsafe {
        let library = libc::dlopen(path.as_ptr().cast(), libc::RTLD_LAZY);
        assert!(!library.is_null());
        libc::dlsym(library, c"lazy_first".as_ptr())
    };
    assert!(!function.is_null());
    // SAFETY: the function has this type in the library's source.
    let function: extern "C" fn() -> c_int = unsafe { core::mem::transmute(function) };
    once(move || discard(function()))
}

#[cfg(not(foreign_code))]
fn call_of_library() -> Act {
    cannot_run("there was no compiler for C++")
}

/// What the kernel's own writes go to.
fn read_into(base: *mut u8, input: c_int) {
    for page in 0..PAGES {
        // SAFETY: one byte of a mapping that only the case uses, which the kernel writes.
        discard(unsafe { libc::read(input, base.add(page * PAGE).cast(), 1) });
    }
}

const LIBRARY_CALL: Facts = FAULT | UNBOUNDED | LIBRARY;

pub(crate) const GROUP: Group = Group {
    name: "page faults",
    cases: &[
        Case::new("fresh pages are written", FAULT, || {
            let base = map(PAGES);
            once(move || write_to(base, PAGES))
        }),
        Case::new("fresh pages are read", FAULT, || {
            let base = map(PAGES);
            once(move || read_from(base, PAGES))
        }),
        Case::new("pages that were only read are written", FAULT, || {
            let base = map(PAGES);
            advise(base, PAGES * PAGE, libc::MADV_NOHUGEPAGE);
            read_from(base, PAGES);
            once(move || write_to(base, PAGES))
        }),
        Case::new("a vector is filled up to a capacity that nothing wrote before", FAULT, || {
            let numbers = Box::leak(Box::new(Vec::<u64>::with_capacity(1 << 20)));
            once(move || numbers.extend(0..100_000))
        }),
        Case::new("pages of a file are read", FAULT, || {
            let base = mapped_file(libc::MAP_SHARED);
            once(move || read_from(base, PAGES))
        }),
        Case::new("pages of a file are read that the system gave up", FAULT, || {
            let file = file(PAGES);
            file.sync_all().expect("the disk takes it");
            // SAFETY: numbers only.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
            let base = map_as(PAGES * PAGE, libc::MAP_SHARED, file.as_raw_fd());
            if is_there(base) {
                cannot_run("this file system gives up nothing");
            }
            once(move || read_from(base, 1))
        }),
        Case::new("pages of a file are written to, of its own copy", FAULT, || {
            let base = mapped_file(libc::MAP_PRIVATE);
            read_from(base, PAGES);
            once(move || write_to(base, PAGES))
        }),
        Case::new("pages are written that a child shares", FAULT, || {
            let base = touched(PAGES);
            fork_a_sleeper();
            once(move || write_to(base, PAGES))
        }),
        Case::new("the stack grows", FAULT, || once(|| deep(64))),
        Case::new("pages are written that were given back", FAULT, || {
            let base = touched(PAGES);
            advise(base, PAGES * PAGE, libc::MADV_DONTNEED);
            once(move || write_to(base, PAGES))
        }),
        Case::new("pages are written that were free for the taking, and taken", FAULT, || {
            let base = touched(PAGES);
            advise(base, PAGES * PAGE, libc::MADV_FREE);
            advise(base, PAGES * PAGE, libc::MADV_PAGEOUT);
            if is_there(base) {
                cannot_run("the kernel does not take free pages when it is asked to");
            }
            once(move || write_to(base, PAGES))
        }),
        Case::new("a part of a huge page is written that was given back", FAULT, || {
            let base = huge_page();
            advise(base, PAGES * PAGE, libc::MADV_DONTNEED);
            // Otherwise the kernel may put a huge page there again by itself.
            advise(base, HUGE, libc::MADV_NOHUGEPAGE);
            once(move || write_to(base, PAGES))
        }),
        Case::new("a huge page is written that a child shares", FAULT, || {
            let base = huge_page();
            fork_a_sleeper();
            once(move || write_to(base, PAGES))
        }),
        Case::new("a function of the program is called whose pages are not there", FAULT, || {
            forget_function();
            once(|| function_apart())
        }),
        Case::new("a function of a library is called, and binds another", FAULT, call_of_library),
        Case::new("`read` into fresh pages", LIBRARY_CALL, || {
            let ([input, output], base) = (pipe(), map(PAGES));
            // SAFETY: as many bytes as the text has.
            unsafe { libc::write(output, [7_u8; PAGES].as_ptr().cast(), PAGES) };
            once(move || read_into(base, input))
        }),
        Case::new("fresh pages of a memory file are written", FAULT, || {
            // SAFETY: a name that ends with zero, and numbers.
            let file = unsafe {
                let file = libc::memfd_create(c"orders".as_ptr(), 0);
                assert_eq!(libc::ftruncate(file, (PAGES * PAGE) as libc::off_t), 0);
                file
            };
            let base = map_as(PAGES * PAGE, libc::MAP_SHARED, file);
            once(move || write_to(base, PAGES))
        }),
    ],
};
