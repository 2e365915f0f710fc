//! Calls about memory: by functions of C's library, by its `syscall`, and by the instruction.

use core::ffi::{c_int, c_long, c_void};
use core::ptr;

use crate::case::{Act, Case, Facts, Group, LIBRARY, MEMORY_CALL, UNBOUNDED, discard, once};
use crate::cases::pages::{PAGE, PAGES, map, touched};

const CALL: Facts = MEMORY_CALL | LIBRARY;

/// Makes a system call by the instruction, without C's library. What it returns is not looked at: it was made.
///
/// # Safety
/// - The call, with these arguments, does what its caller may do by C's function of this call.
pub(crate) unsafe fn by_instruction(call: c_long, [a, b, c, d]: [usize; 4]) -> usize {
    let mut result = call as usize;
    // SAFETY: a system call changes these three registers alone, and memory; the caller vouches for what the call does.
    // The fifth and sixth argument of a mapping are: no file, from its beginning.
    unsafe {
        core::arch::asm!(
            "syscall",
            inout("rax") result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") -1_isize, in("r9") 0,
            out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    result
}

/// Does a call of the pages of a case.
fn of_pages(call: unsafe fn(*mut c_void) -> c_int) -> Act {
    let pages = touched(PAGES);
    // SAFETY: the calls here take whole pages that are the case's alone, and that nothing uses afterwards.
    once(move || discard(unsafe { call(pages.cast()) }))
}

const SIZE: usize = PAGES * PAGE;

pub(crate) const GROUP: Group = Group {
    name: "system calls about memory",
    cases: &[
        Case::new("mmap", CALL, || once(|| discard(map(PAGES)))),
        // SAFETY: whole pages of the case.
        Case::new("munmap", CALL, || of_pages(|pages| unsafe { libc::munmap(pages, SIZE) })),
        Case::new("mprotect", CALL, || {
            // SAFETY: whole pages of the case.
            of_pages(|pages| unsafe { libc::mprotect(pages, SIZE, libc::PROT_READ) })
        }),
        Case::new("madvise, of pages that are not needed", CALL, || {
            // SAFETY: whole pages of the case, whose contents are not needed.
            of_pages(|pages| unsafe { libc::madvise(pages, SIZE, libc::MADV_DONTNEED) })
        }),
        Case::new("posix_madvise", CALL, || {
            // SAFETY: whole pages of the case, which stay as they are.
            of_pages(|pages| unsafe { libc::posix_madvise(pages, SIZE, libc::POSIX_MADV_WILLNEED) })
        }),
        Case::new("mremap", CALL, || {
            let pages = touched(PAGES);
            // SAFETY: whole pages of the case, of which the first one stays.
            once(move || discard(unsafe { libc::mremap(pages.cast(), SIZE, PAGE, 0) }))
        }),
        // SAFETY: whole pages of the case.
        Case::new("mlock", CALL, || of_pages(|pages| unsafe { libc::mlock(pages, SIZE) })),
        // SAFETY: whole pages of the case.
        Case::new("munlock", CALL, || of_pages(|pages| unsafe { libc::munlock(pages, SIZE) })),
        Case::new("sbrk", CALL, || {
            // SAFETY: more memory at the end of the heap, which glibc's allocator expects to happen.
            once(|| discard(unsafe { libc::sbrk(4_096) }))
        }),
        Case::new("memfd_create", CALL, || {
            // SAFETY: a name that ends with zero.
            once(|| discard(unsafe { libc::memfd_create(c"orders".as_ptr(), 0) }))
        }),
        Case::new("shmat", CALL | UNBOUNDED, || {
            // SAFETY: numbers only.
            let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, PAGE, 0o600) };
            if segment < 0 {
                crate::case::cannot_run("there is no shared memory of System V");
            }
            once(move || {
                // SAFETY: the kernel chooses unused addresses; the segment ends with its last user.
                unsafe {
                    discard(libc::shmat(segment, ptr::null(), 0));
                    libc::shmctl(segment, libc::IPC_RMID, ptr::null_mut());
                }
            })
        }),
        Case::new("mmap by C's `syscall`", CALL, || {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            once(move || {
                // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
                discard(unsafe { libc::syscall(libc::SYS_mmap, 0, PAGE, libc::PROT_READ, flags, -1, 0) })
            })
        }),
        Case::new("mmap by the instruction", MEMORY_CALL, || {
            let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
            once(move || {
                // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
                discard(unsafe { by_instruction(libc::SYS_mmap, [0, PAGE, libc::PROT_READ as usize, flags]) })
            })
        }),
        Case::new("munmap by the instruction", MEMORY_CALL, || {
            let pages = touched(PAGES).expose_provenance();
            // SAFETY: whole pages of the case, which nothing uses afterwards.
            once(move || discard(unsafe { by_instruction(libc::SYS_munmap, [pages, SIZE, 0, 0]) }))
        }),
        Case::new("madvise by the instruction", MEMORY_CALL, || {
            let pages = touched(PAGES).expose_provenance();
            let advice = libc::MADV_DONTNEED as usize;
            // SAFETY: whole pages of the case, whose contents are not needed.
            once(move || discard(unsafe { by_instruction(libc::SYS_madvise, [pages, SIZE, advice, 0]) }))
        }),
        Case::new("brk by the instruction", MEMORY_CALL, || {
            // SAFETY: a break of zero is refused, and changes nothing.
            once(|| discard(unsafe { by_instruction(libc::SYS_brk, [0; 4]) }))
        }),
    ],
};
