//! The places, and what happens there. The functions that should be found have `culprit` in
//! their names.

use core::cell::Cell;
use core::ffi::{c_int, c_long, c_void};
use core::hint::black_box;
use core::ptr;
use core::time::Duration;
use std::process::Command;
use std::sync::{Mutex, mpsc};
use std::thread;

use tripoint_contract::ClassSet;

const PAGE: usize = 4096;
/// How many pages are touched, if a place touches pages.
pub(crate) const PAGES: usize = 16;

/// A place: what hides there, and the classes that its row shows. Other costs on the way there
/// are left out.
pub(crate) struct Place {
    pub(crate) fault: &'static str,
    pub(crate) classes: ClassSet,
    /// Prepares the place before the thread is armed. Returns what is done then.
    pub(crate) prepare: fn() -> Box<dyn FnOnce()>,
}

const fn place(fault: &'static str, classes: ClassSet, prepare: fn() -> Box<dyn FnOnce()>) -> Place {
    Place { fault, classes, prepare }
}

const HEAP: ClassSet = ClassSet::ALLOC.union(ClassSet::DEALLOC);
const FAULTS: ClassSet = ClassSet::MINOR_FAULT.union(ClassSet::MAJOR_FAULT);
const CALL: ClassSet = ClassSet::MEMORY_CALL;
const FOREIGN: ClassSet = ClassSet::FOREIGN_MALLOC;
pub(crate) const ANY: ClassSet = ClassSet::all();

pub(crate) const PLACES: &[Place] = &[
    place("a box made and dropped", HEAP, || Box::new(culprit_box)),
    place("a box dropped while unwinding", HEAP, || Box::new(culprit_unwinding)),
    place("the machinery of a panic", ClassSet::ALLOC, || Box::new(culprit_panic)),
    place("a box made in a signal handler", ClassSet::ALLOC, || {
        handle(libc::SIGUSR1, culprit_in_handler);
        Box::new(|| {
            // SAFETY: the signal is handled.
            unsafe { libc::raise(libc::SIGUSR1) };
        })
    }),
    place("a destructor of a thread-local, the guard leaked", ClassSet::ALLOC, || {
        Box::new(|| AT_END.with(|end| end.armed.set(true)))
    }),
    place("a fresh page", FAULTS, || {
        let pages = Pages::map();
        Box::new(move || pages.culprit_touch())
    }),
    place("a page of a file that was evicted", ClassSet::MAJOR_FAULT, || {
        let file = evicted_file();
        Box::new(move || culprit_read(file))
    }),
    place("growth of the stack", FAULTS, || Box::new(|| culprit_stack(64))),
    place("overflow of the stack", ANY, || Box::new(|| culprit_stack(usize::MAX))),
    place("pages copied on write after a fork of its own", FAULTS, || {
        let pages = Pages::touched();
        Box::new(move || {
            let child = Forked::waiting();
            pages.culprit_touch();
            drop(child);
        })
    }),
    place("pages copied on write after a fork of another thread", FAULTS, || {
        let pages = Pages::touched();
        let child = thread::spawn(Forked::waiting).join().unwrap();
        Box::new(move || {
            pages.culprit_touch();
            drop(child);
        })
    }),
    place("`read` into fresh pages", FAULTS, || {
        let (pages, text) = (Pages::map(), pipe_with_text());
        Box::new(move || pages.culprit_read_into(text))
    }),
    place("huge pages put behind it by another thread", FAULTS, || {
        let (go, wait) = mpsc::channel::<()>();
        let (done, finished) = mpsc::channel();
        let (huge, address) = map_huge();
        thread::spawn(move || {
            let _ = wait.recv();
            done.send(collapse(address)).unwrap();
        });
        Box::new(move || {
            drop(go);
            let _ = finished.recv();
            culprit_rewrite(huge);
        })
    }),
    place("`mmap`", CALL, || Box::new(|| discard(culprit_mmap()))),
    place("`munmap`", CALL, || {
        let pages = Pages::map();
        Box::new(move || culprit_call(libc::SYS_munmap, [pages.base.addr(), PAGES * PAGE, 0, 0, 0]))
    }),
    place("`brk`", CALL, || Box::new(|| culprit_call(libc::SYS_brk, [0; 5]))),
    place("`mremap`", CALL, || {
        let pages = Pages::map();
        Box::new(move || culprit_call(libc::SYS_mremap, [pages.base.addr(), PAGES * PAGE, PAGE, 0, 0]))
    }),
    place("`madvise`", CALL, || of_pages(libc::SYS_madvise, [libc::MADV_DONTNEED as usize, 0, 0])),
    place("`mprotect`", CALL, || of_pages(libc::SYS_mprotect, [libc::PROT_READ as usize, 0, 0])),
    place("`pkey_mprotect`", CALL, || of_pages(libc::SYS_pkey_mprotect, [3, usize::MAX, 0])),
    place("`mlock`", CALL, || of_pages(libc::SYS_mlock, [0; 3])),
    place("`mlock2`", CALL, || of_pages(libc::SYS_mlock2, [0; 3])),
    place("`process_madvise`", CALL, || Box::new(|| culprit_call(libc::SYS_process_madvise, [0; 5]))),
    place("`mbind`", CALL, || of_pages(libc::SYS_mbind, [0; 3])),
    place("`memfd_create`", CALL, || {
        Box::new(|| culprit_call(libc::SYS_memfd_create, [c"odd".as_ptr().addr(), 0, 0, 0, 0]))
    }),
    place("`fallocate`", CALL, || {
        Box::new(|| culprit_call(libc::SYS_fallocate, [usize::MAX, 0, 0, PAGE, 0]))
    }),
    place("`io_uring_setup`", CALL, || Box::new(|| culprit_call(libc::SYS_io_uring_setup, [0; 5]))),
    place("`madvise` by an `io_uring` that was there", CALL, || {
        let (ring, pages) = (Ring::new(), Pages::touched());
        Box::new(move || ring.culprit_madvise(&pages))
    }),
    place("`mmap` by `int 0x80`", CALL, || Box::new(culprit_int_80)),
    place("`ftruncate` of a memory file", ANY, || {
        // SAFETY: a name that ends with zero.
        let file = unsafe { libc::memfd_create(c"odd".as_ptr(), 0) };
        // SAFETY: a descriptor of one's own.
        Box::new(move || discard(unsafe { libc::ftruncate(file, 1 << 20) }))
    }),
    place("`dlopen`", CALL, || Box::new(culprit_dlopen)),
    place("`malloc` of C", FOREIGN, || Box::new(culprit_malloc)),
    place("`strdup`", FOREIGN, || Box::new(culprit_strdup)),
    place("`valloc`", FOREIGN, || Box::new(culprit_valloc)),
    place("starting a thread", HEAP.union(CALL), || Box::new(culprit_spawn)),
    place("the work of a thread that it started", ANY, || {
        // Started before it is armed, so that only the work is examined.
        let (go, wait) = mpsc::sync_channel::<()>(0);
        let worker = thread::spawn(move || {
            let _ = wait.recv();
            culprit_box();
            discard(culprit_mmap());
        });
        let worker = Mutex::new(Some(worker));
        Box::new(move || {
            drop(go);
            wait_for_end(&worker);
        })
    }),
    place("the work of a child that it forked", HEAP.union(CALL).union(FOREIGN), || {
        Box::new(|| Forked::run(|| discard(culprit_mmap())))
    }),
    place("running a program", HEAP, || Box::new(culprit_command)),
    place("waiting for a lock", ANY, || {
        let lock: &'static Mutex<()> = Box::leak(Box::default());
        let (held, is_held) = mpsc::channel();
        thread::spawn(move || {
            let guard = lock.lock().unwrap();
            held.send(()).unwrap();
            thread::sleep(Duration::from_millis(20));
            drop(guard);
        });
        is_held.recv().unwrap();
        Box::new(move || culprit_lock(lock))
    }),
    place("sleeping", ANY, || Box::new(|| thread::sleep(Duration::from_millis(1)))),
    place("writing to the standard output", ANY, || {
        println!("warm");
        Box::new(|| println!("written"))
    }),
    place("a fresh page while SIGTRAP is blocked", FAULTS, || {
        let pages = Pages::map();
        Box::new(move || {
            block_traps();
            pages.culprit_touch();
        })
    }),
    place("`mmap` while SIGTRAP is blocked", CALL, || {
        Box::new(|| {
            block_traps();
            discard(culprit_mmap());
        })
    }),
    place("a fresh page, a SIGTRAP handler installed later", FAULTS, || {
        let pages = Pages::map();
        Box::new(move || {
            handle(libc::SIGTRAP, do_nothing);
            pages.culprit_touch();
        })
    }),
    place("`mmap`, a SIGTRAP handler installed later", CALL, || {
        Box::new(|| {
            handle(libc::SIGTRAP, do_nothing);
            discard(culprit_mmap());
        })
    }),
    place("a fresh page, SIGTRAP ignored later", FAULTS, || {
        let pages = Pages::map();
        Box::new(move || {
            set_action(libc::SIGTRAP, libc::SIG_IGN);
            pages.culprit_touch();
        })
    }),
    place("a fresh page, SIGTRAP at its default later", FAULTS, || {
        let pages = Pages::map();
        Box::new(move || {
            set_action(libc::SIGTRAP, libc::SIG_DFL);
            pages.culprit_touch();
        })
    }),
    place("`mmap`, SIGTRAP at its default later", CALL, || {
        Box::new(|| {
            set_action(libc::SIGTRAP, libc::SIG_DFL);
            discard(culprit_mmap());
        })
    }),
    place("a breakpoint", ANY, || {
        // SAFETY: a breakpoint changes nothing.
        Box::new(|| unsafe { core::arch::asm!("int3") })
    }),
];

fn discard<T>(result: T) {
    let _ = black_box(result);
}

#[inline(never)]
fn culprit_box() {
    drop(black_box(Box::new(7_u64)));
}

#[inline(never)]
fn culprit_unwinding() {
    let _ = std::panic::catch_unwind(|| {
        let _dropped = black_box(Box::new(7_u64));
        std::panic::resume_unwind(Box::new(()));
    });
}

#[inline(never)]
fn culprit_panic() {
    let _ = std::panic::catch_unwind(|| panic!("{}", black_box("on purpose")));
}

extern "C" fn culprit_in_handler(_signal: c_int) {
    culprit_box();
}

extern "C" fn do_nothing(_signal: c_int) {}

/// A value that allocates when its thread ends.
pub(crate) struct AtEnd {
    pub(crate) armed: Cell<bool>,
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        if self.armed.get() {
            culprit_box();
        }
    }
}

thread_local! {
    pub(crate) static AT_END: AtEnd = const { AtEnd { armed: Cell::new(false) } };
}

/// Pages that only the place uses.
#[derive(Clone, Copy)]
struct Pages {
    base: *mut u8,
}

impl Pages {
    fn map() -> Self {
        Self { base: culprit_mmap() }
    }

    fn touched() -> Self {
        let pages = Self::map();
        pages.culprit_touch();
        pages
    }

    #[inline(never)]
    fn culprit_touch(self) {
        for page in 0..PAGES {
            // SAFETY: the first byte of a page of the mapping, ours alone.
            unsafe { self.base.add(page * PAGE).write_volatile(1) };
        }
    }

    #[inline(never)]
    fn culprit_read_into(self, pipe: c_int) {
        for page in 0..PAGES {
            // SAFETY: a byte of the mapping, which the kernel writes.
            assert_eq!(unsafe { libc::read(pipe, self.base.add(page * PAGE).cast(), 1) }, 1);
        }
    }
}

#[inline(never)]
fn culprit_mmap() -> *mut u8 {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
    let base = unsafe { libc::mmap(ptr::null_mut(), PAGES * PAGE, access, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    base.cast()
}

/// Makes a call, and ignores whether it succeeds: it was made.
#[inline(never)]
fn culprit_call(call: c_long, [a, b, c, d, e]: [usize; 5]) {
    // SAFETY: of the pages of a place, or without effect: a break of zero, no descriptor.
    black_box(unsafe { libc::syscall(call, a, b, c, d, e) });
}

fn of_pages(call: c_long, [c, d, e]: [usize; 3]) -> Box<dyn FnOnce()> {
    let pages = Pages::touched();
    Box::new(move || culprit_call(call, [pages.base.addr(), PAGES * PAGE, c, d, e]))
}

/// `mmap2` by its number for 32-bit code, of a page at an address that it chooses.
#[inline(never)]
fn culprit_int_80() {
    let call = 192_usize;
    // SAFETY: a mapping at unused addresses that the kernel chooses. The call keeps all
    // registers but these; `rbx` and `rbp` are the compiler's, so they are put back.
    unsafe {
        core::arch::asm!(
            "push rbx", "push rbp",
            "xor ebx, ebx", "mov ecx, 4096", "mov edx, 3", "mov esi, 0x22", "mov edi, -1", "xor ebp, ebp",
            "int 0x80",
            "pop rbp", "pop rbx",
            inout("rax") call => _, out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
}

/// Takes a page for each call of itself.
#[inline(never)]
fn culprit_stack(calls: usize) {
    let mut page = [0_u8; PAGE];
    black_box(&mut page);
    if calls > 0 {
        culprit_stack(black_box(calls - 1));
    }
    black_box(&mut page);
}

#[inline(never)]
fn culprit_dlopen() {
    // SAFETY: a library that does nothing when it is opened.
    let library = unsafe { libc::dlopen(c"libutil.so.1".as_ptr(), libc::RTLD_NOW) };
    black_box(library);
}

#[inline(never)]
fn culprit_malloc() {
    // SAFETY: allocated and freed once.
    unsafe { libc::free(black_box(libc::malloc(100))) };
}

#[inline(never)]
fn culprit_strdup() {
    // SAFETY: freed once; the text ends with zero.
    unsafe { libc::free(black_box(libc::strdup(c"text".as_ptr())).cast()) };
}

unsafe extern "C" {
    fn valloc(size: usize) -> *mut c_void;
}

#[inline(never)]
fn culprit_valloc() {
    // SAFETY: allocated and freed once.
    unsafe { libc::free(black_box(valloc(100))) };
}

#[inline(never)]
fn culprit_spawn() {
    thread::spawn(|| {}).join().unwrap();
}

#[inline(never)]
fn culprit_command() {
    assert!(Command::new("/bin/true").output().unwrap().status.success());
}

#[inline(never)]
fn culprit_lock(lock: &Mutex<()>) {
    drop(lock.lock());
}

/// Waits by asking, which allocates nothing.
fn wait_for_end(worker: &Mutex<Option<thread::JoinHandle<()>>>) {
    while !worker.lock().unwrap().as_ref().unwrap().is_finished() {
        thread::yield_now();
    }
}

#[inline(never)]
fn culprit_read(file: *const u8) {
    // SAFETY: the first byte of the mapping.
    black_box(unsafe { file.read_volatile() });
}

/// A mapped page of a file, which is only on the device.
fn evicted_file() -> *const u8 {
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
        println!("SKIPPED: this file system evicts nothing");
    }
    base.cast()
}

fn map_huge() -> (*mut u8, usize) {
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
fn collapse(address: usize) -> bool {
    // SAFETY: whole pages of a mapping, whose contents do not change.
    unsafe { libc::madvise(ptr::with_exposed_provenance_mut(address), 2 << 20, 25) == 0 }
}

#[inline(never)]
fn culprit_rewrite(huge: *mut u8) {
    for page in 0..512 {
        // SAFETY: the first byte of a page of the mapping, ours alone.
        unsafe { huge.add(page * PAGE).write_volatile(1) };
    }
}

fn pipe_with_text() -> c_int {
    let mut ends = [0; 2];
    // SAFETY: two descriptors, valid to write; as many bytes as the text has.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        assert_eq!(libc::write(ends[1], [7_u8; PAGES].as_ptr().cast(), PAGES), PAGES as isize);
    }
    ends[0]
}

/// A child of this process, which waits until this is dropped.
struct Forked {
    child: libc::pid_t,
    hold: c_int,
}

impl Forked {
    fn waiting() -> Self {
        let mut ends = [0; 2];
        // SAFETY: two descriptors, valid to write.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: the child calls what a child of many threads may.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut byte = 0_u8;
            // SAFETY: descriptors of its own, a byte, valid to write.
            unsafe {
                libc::close(ends[1]);
                libc::read(ends[0], (&raw mut byte).cast(), 1);
                libc::_exit(0);
            }
        }
        Self { child, hold: ends[1] }
    }

    fn run(work: fn()) {
        // SAFETY: the child calls what a child of many threads may; it is waited for.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                work();
                libc::_exit(0);
            }
            libc::waitpid(child, ptr::null_mut(), 0);
        }
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        // SAFETY: opened and forked above.
        unsafe {
            libc::close(self.hold);
            libc::waitpid(self.child, ptr::null_mut(), 0);
        }
    }
}

fn set_action(signal: c_int, handler: libc::sighandler_t) {
    // SAFETY: a zeroed `sigaction` is a value; a handler of this type, or one of the numbers.
    unsafe {
        let mut action = core::mem::MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &raw const action, ptr::null_mut()), 0);
    }
}

fn handle(signal: c_int, handler: extern "C" fn(c_int)) {
    set_action(signal, handler as libc::sighandler_t);
}

fn block_traps() {
    let mut traps = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised by the first call.
    unsafe {
        libc::sigemptyset(traps.as_mut_ptr());
        libc::sigaddset(traps.as_mut_ptr(), libc::SIGTRAP);
        libc::pthread_sigmask(libc::SIG_BLOCK, traps.as_ptr(), ptr::null_mut());
    }
}

/// `MADV_DONTNEED_LOCKED`, since Linux 5.18: the process's memory is locked.
const DONTNEED_LOCKED: u32 = 24;

/// An `io_uring` with one entry, set up before.
struct Ring {
    descriptor: c_int,
    entries: *mut u8,
    ring: *mut u8,
    tail: usize,
    array: usize,
}

impl Ring {
    /// `descriptor` is -1 if the kernel returned none.
    fn new() -> Self {
        let mut parameters = [0_u32; 30];
        // SAFETY: as large as the kernel's structure, and zeroed.
        let descriptor =
            unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) } as c_int;
        let map = |offset| {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
            unsafe { libc::mmap(ptr::null_mut(), PAGE, access, libc::MAP_SHARED, descriptor, offset) }
                .cast::<u8>()
        };
        // Where in the ring the kernel says that tail and array are.
        let (tail, array) = (parameters[11] as usize, parameters[16] as usize);
        Self { descriptor, entries: map(0x1000_0000), ring: map(0), tail, array }
    }

    /// Makes the kernel take the pages away by this ring.
    #[inline(never)]
    fn culprit_madvise(&self, pages: &Pages) {
        if self.descriptor < 0 {
            println!("SKIPPED: no io_uring here");
            return;
        }
        // SAFETY: the one entry of 64 bytes, and words of the ring where the kernel said,
        // which only this thread writes; the pages are the place's.
        unsafe {
            self.entries.write(25);
            self.entries.add(16).cast::<u64>().write(pages.base.addr() as u64);
            self.entries.add(24).cast::<u32>().write((PAGES * PAGE) as u32);
            self.entries.add(28).cast::<u32>().write(DONTNEED_LOCKED);
            self.ring.add(self.array).cast::<u32>().write(0);
            self.ring.add(self.tail).cast::<u32>().write_volatile(1);
            let (submit, wait, events, nothing) = (1_usize, 1_usize, 1_usize, 0_usize);
            let ring = self.descriptor as usize;
            let made = libc::syscall(libc::SYS_io_uring_enter, ring, submit, wait, events, nothing, nothing);
            assert_eq!(made, 1);
            // Until the kernel has done it, on a thread of its own.
            while pages.base.read_volatile() != 0 {
                thread::yield_now();
            }
        }
    }
}
