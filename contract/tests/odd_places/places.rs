//! The places, and what happens there. The functions that should be found have `culprit` in
//! their names.

use core::hint::black_box;
use std::sync::{Mutex, mpsc};
use std::thread;

use tripoint_contract::ViolationSet;

use crate::allocations::{
    AT_END, culprit_box, culprit_in_handler, culprit_malloc, culprit_panic, culprit_strdup,
    culprit_unwinding, culprit_valloc,
};
use crate::pages::{
    PAGE, PAGES, Pages, collapse, culprit_call, culprit_int_80, culprit_mmap, culprit_read, culprit_rewrite,
    culprit_stack, evicted_file, map_huge, of_pages, pipe_with_text,
};
use crate::ring::Ring;
use crate::signals::{block_traps, do_nothing, handle, set_action};
use crate::threads::{
    Forked, culprit_command, culprit_dlopen, culprit_lock, culprit_sleep, culprit_spawn, held_until_asleep,
    wait_for_end,
};

/// A place: what hides there, and the classes that its row shows. Other costs on the way there
/// are left out.
pub(crate) struct Place {
    pub(crate) fault: &'static str,
    pub(crate) classes: ViolationSet,
    /// Prepares the place before the thread is armed. Returns what is done then.
    pub(crate) prepare: fn() -> Box<dyn FnOnce()>,
}

const fn place(fault: &'static str, classes: ViolationSet, prepare: fn() -> Box<dyn FnOnce()>) -> Place {
    Place { fault, classes, prepare }
}

const HEAP: ViolationSet = ViolationSet::ALLOC.union(ViolationSet::DEALLOC);
const FAULTS: ViolationSet = ViolationSet::MINOR_FAULT.union(ViolationSet::MAJOR_FAULT);
const CALL: ViolationSet = ViolationSet::MEMORY_CALL;
const FOREIGN: ViolationSet = ViolationSet::FOREIGN_MALLOC;
const WAIT: ViolationSet = ViolationSet::WAIT;
pub(crate) const ANY: ViolationSet = ViolationSet::all();

pub(crate) const PLACES: &[Place] = &[
    place("a box made and dropped", HEAP, || Box::new(culprit_box)),
    place("a box dropped while unwinding", HEAP, || Box::new(culprit_unwinding)),
    place("the machinery of a panic", ViolationSet::ALLOC, || Box::new(culprit_panic)),
    place("a box made in a signal handler", ViolationSet::ALLOC, || {
        handle(libc::SIGUSR1, culprit_in_handler);
        Box::new(|| {
            // SAFETY: the signal is handled.
            unsafe { libc::raise(libc::SIGUSR1) };
        })
    }),
    place("a destructor of a thread-local, the guard leaked", ViolationSet::ALLOC, || {
        Box::new(|| AT_END.with(|end| end.armed.set(true)))
    }),
    place("a fresh page", FAULTS, || {
        let pages = Pages::map();
        Box::new(move || pages.culprit_touch())
    }),
    place("a page of a file that was evicted", ViolationSet::MAJOR_FAULT, || {
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
    place("waiting for a lock", WAIT, || {
        let (lock, go) = held_until_asleep();
        Box::new(move || {
            drop(go);
            culprit_lock(lock);
        })
    }),
    place("taking a lock that no thread holds", ANY, || {
        let lock: &'static Mutex<()> = Box::leak(Box::default());
        Box::new(move || culprit_lock(lock))
    }),
    place("sleeping", WAIT, || Box::new(culprit_sleep)),
    place("sleeping while SIGTRAP is blocked", WAIT, || {
        Box::new(|| {
            block_traps();
            culprit_sleep();
        })
    }),
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
