//! Threads, processes, panics, signal handlers and libraries.

use core::ffi::{c_int, c_void};
use core::hint::black_box;
use core::ptr;
use std::backtrace::Backtrace;
use std::panic::{catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use crate::case::{
    C_HEAP, Case, FAULT, Facts, Group, LIBRARY, MEMORY_CALL, RUST_HEAP, UNBOUNDED, WAIT, cannot_run, discard,
    forever, once,
};
use crate::cases::pages::{PAGES, map};

const HEAP: Facts = RUST_HEAP | LIBRARY;

/// The pages that a handler writes to.
static FRESH: Mutex<usize> = Mutex::new(0);

extern "C" fn allocates(_signal: c_int) {
    discard(Box::new(black_box(7_u64)));
}

extern "C" fn allocates_in_c(_signal: c_int) {
    // SAFETY: any size is allowed.
    discard(unsafe { libc::malloc(black_box(100)) });
}

extern "C" fn writes(_signal: c_int) {
    let fresh = FRESH.lock().map_or(0, |fresh| *fresh);
    // SAFETY: the first byte of a mapping that only this handler uses.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(fresh).write_volatile(1) };
}

/// Handles a signal, and raises it in the steady part.
fn signalled(handler: extern "C" fn(c_int)) -> crate::case::Act {
    // SAFETY: zeros are an action without flags and with an empty mask; its handler takes one number.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()), 0);
    }
    // SAFETY: the signal is handled.
    once(|| discard(unsafe { libc::raise(libc::SIGUSR1) }))
}

extern "C" fn ends(_nothing: *mut c_void) -> *mut c_void {
    ptr::null_mut()
}

pub(crate) const GROUP: Group = Group {
    name: "threads, processes, panics, handlers",
    cases: &[
        Case::new("a thread is started", HEAP | UNBOUNDED, || {
            once(|| core::mem::forget(thread::spawn(|| {})))
        })
        .may(C_HEAP),
        Case::new("pthread_create", MEMORY_CALL | UNBOUNDED | LIBRARY, || {
            once(|| {
                let mut thread = 0;
                // SAFETY: a number that is valid to write; a function that takes and returns nothing.
                discard(unsafe { libc::pthread_create(&raw mut thread, ptr::null(), ends, ptr::null_mut()) });
            })
        })
        .may(C_HEAP),
        Case::new("a panic is caught", HEAP, || {
            once(|| discard(catch_unwind(|| panic!("{}", black_box("on purpose")))))
        })
        .may(C_HEAP),
        Case::new("a panic poisons a lock", HEAP, || {
            let lock = forever(Mutex::new(7));
            once(|| {
                discard(catch_unwind(|| {
                    let _held = lock.lock();
                    panic!("{}", black_box("on purpose"));
                }));
            })
        })
        .may(C_HEAP),
        Case::new("a payload is unwound with", HEAP, || {
            once(|| discard(catch_unwind(|| resume_unwind(Box::new(7)))))
        })
        .may(C_HEAP),
        Case::new("a backtrace is captured", HEAP, || once(|| discard(Backtrace::force_capture())))
            .may(C_HEAP | UNBOUNDED),
        Case::new("a signal handler makes a box", HEAP, || signalled(allocates)),
        Case::new("a signal handler calls malloc", C_HEAP | LIBRARY, || signalled(allocates_in_c)),
        Case::new("a signal handler writes to a fresh page", FAULT, || {
            *FRESH.lock().expect("no thread panics") = map(PAGES).expose_provenance();
            signalled(writes)
        }),
        Case::new("dlopen", C_HEAP | MEMORY_CALL | LIBRARY | UNBOUNDED, || {
            let library = c"libresolv.so.2".as_ptr();
            // SAFETY: a name that ends with zero; only a library that is loaded already would be found.
            if !unsafe { libc::dlopen(library, libc::RTLD_NOW | libc::RTLD_NOLOAD) }.is_null() {
                cannot_run("the library is there already");
            }
            // SAFETY: a name that ends with zero; the library does nothing when it is loaded.
            once(move || discard(unsafe { libc::dlopen(library, libc::RTLD_NOW) }))
        }),
        Case::new("fork", WAIT | UNBOUNDED | LIBRARY | FAULT, || {
            once(|| {
                // SAFETY: the child ends at once, by a call that a child of many threads may make.
                unsafe {
                    let child = libc::fork();
                    if child == 0 {
                        libc::_exit(0);
                    }
                    libc::waitpid(child, ptr::null_mut(), 0);
                }
            })
        })
        .may(C_HEAP | MEMORY_CALL),
        Case::new("posix_spawn", MEMORY_CALL | WAIT | UNBOUNDED | LIBRARY, || {
            once(|| {
                let mut child = 0;
                let program = c"/bin/true".as_ptr();
                let arguments = [program.cast_mut(), ptr::null_mut()];
                let environment = [ptr::null_mut()];
                // SAFETY: a number that is valid to write, a path, and two lists that end with null, of texts that end
                // with zero.
                unsafe {
                    libc::posix_spawn(
                        &raw mut child,
                        program,
                        ptr::null(),
                        ptr::null(),
                        arguments.as_ptr(),
                        environment.as_ptr(),
                    );
                    libc::waitpid(child, ptr::null_mut(), 0);
                }
            })
        })
        .may(C_HEAP),
        Case::new("a program is run", HEAP | MEMORY_CALL | WAIT | UNBOUNDED, || {
            once(|| discard(Command::new("/bin/true").status()))
        })
        .may(C_HEAP),
        Case::new("system", MEMORY_CALL | WAIT | UNBOUNDED | LIBRARY, || {
            // SAFETY: a command that ends with zero.
            once(|| discard(unsafe { libc::system(c"true".as_ptr()) }))
        })
        .may(C_HEAP),
    ],
};
