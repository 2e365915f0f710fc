//! C's `malloc`, and functions of C's library that call it: glibc calls its own by name, so that a program may
//! replace it.

use core::cmp::Ordering;
use core::ffi::{c_char, c_int, c_void};
use core::hint::black_box;
use core::ptr;

use crate::case::{
    C_HEAP, Case, Facts, Group, LIBRARY, OTHER_HEAP, RUST_HEAP, UNBOUNDED, cannot_run, discard, once,
};

const HEAP: Facts = C_HEAP | LIBRARY;

unsafe extern "C" {
    fn asprintf(text: *mut *mut c_char, format: *const c_char, ...) -> c_int;
    fn __libc_malloc(size: usize) -> *mut c_void;
}

/// A block that stays, unless a case frees it.
fn block() -> *mut c_void {
    // SAFETY: any size is allowed.
    let block = unsafe { libc::malloc(100) };
    assert!(!block.is_null());
    black_box(block)
}

/// Frees what C's library allocated for a case, if it did.
fn give_back<T>(block: *mut T) {
    // SAFETY: null, or of `malloc`, as functions of C return it, and not used any more.
    unsafe { libc::free(black_box(block).cast()) };
}

extern "C" fn compare(one: *const c_void, other: *const c_void) -> c_int {
    // SAFETY: `qsort` passes elements of the array, which are numbers of this type.
    let order = unsafe { one.cast::<u64>().read().cmp(&other.cast::<u64>().read()) };
    match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

pub(crate) const GROUP: Group = Group {
    name: "allocation in C",
    cases: &[
        // SAFETY: any size is allowed.
        Case::new("malloc", HEAP, || once(|| discard(unsafe { libc::malloc(black_box(100)) }))),
        Case::new("free", HEAP, || {
            let block = block();
            once(move || give_back(block))
        }),
        // SAFETY: any two numbers are allowed.
        Case::new("calloc", HEAP, || once(|| discard(unsafe { libc::calloc(black_box(10), 10) }))),
        Case::new("realloc", HEAP, || {
            let block = block();
            // SAFETY: a block of `malloc`, which is not used any more.
            once(move || discard(unsafe { libc::realloc(block, black_box(10_000)) }))
        }),
        Case::new("posix_memalign", HEAP, || {
            once(|| {
                let mut block = ptr::null_mut();
                // SAFETY: a pointer that is valid to write; a power of two, and a multiple of a pointer's size.
                discard(unsafe { libc::posix_memalign(&raw mut block, 64, black_box(100)) });
                discard(block);
            })
        }),
        Case::new("aligned_alloc", HEAP, || {
            // SAFETY: a power of two, of which the size is a multiple.
            once(|| discard(unsafe { libc::aligned_alloc(64, black_box(128)) }))
        }),
        Case::new("strdup", HEAP, || {
            // SAFETY: a text that ends with zero.
            once(|| give_back(unsafe { libc::strdup(c"order".as_ptr()) }))
        }),
        Case::new("asprintf", HEAP, || {
            once(|| {
                let mut text = ptr::null_mut();
                // SAFETY: a pointer that is valid to write; a format that ends with zero, with one number, which follows.
                discard(unsafe { asprintf(&raw mut text, c"order %d".as_ptr(), 7) });
                give_back(text);
            })
        }),
        Case::new("getline", HEAP | UNBOUNDED, || {
            // SAFETY: two texts that end with zero.
            let file = unsafe { libc::fopen(c"/proc/self/status".as_ptr(), c"r".as_ptr()) };
            assert!(!file.is_null());
            once(move || {
                let (mut line, mut size) = (ptr::null_mut(), 0);
                // SAFETY: an open stream; a pointer and a number, valid to write, of no line as yet.
                discard(unsafe { libc::getline(&raw mut line, &raw mut size, file) });
            })
        }),
        Case::new("fopen", HEAP | UNBOUNDED, || {
            // SAFETY: two texts that end with zero.
            once(|| discard(unsafe { libc::fopen(c"/dev/null".as_ptr(), c"w".as_ptr()) }))
        }),
        Case::new("printf to a new stream", HEAP | UNBOUNDED, || {
            // SAFETY: two texts that end with zero.
            let file = unsafe { libc::fopen(c"/dev/null".as_ptr(), c"w".as_ptr()) };
            assert!(!file.is_null());
            // SAFETY: an open stream; a format that ends with zero, with one number, which follows.
            once(move || discard(unsafe { libc::fprintf(file, c"order %d\n".as_ptr(), 7) }))
        }),
        Case::new("open_memstream", HEAP, || {
            let (text, size) = (Box::leak(Box::new(ptr::null_mut())), Box::leak(Box::new(0)));
            // SAFETY: a pointer and a number, valid to write for as long as the process runs.
            once(move || discard(unsafe { libc::open_memstream(text, size) }))
        }),
        Case::new("setlocale", HEAP, || {
            // SAFETY: a name that ends with zero, and no locale to change.
            let there = unsafe { libc::newlocale(libc::LC_ALL_MASK, c"C.UTF-8".as_ptr(), ptr::null_mut()) };
            if there.is_null() {
                cannot_run("there is no locale C.UTF-8");
            }
            // SAFETY: a name that ends with zero; no other thread asks for the locale meanwhile.
            once(|| discard(unsafe { libc::setlocale(libc::LC_ALL, c"C.UTF-8".as_ptr()) }))
        })
        .may(UNBOUNDED),
        Case::new("setenv", HEAP, || {
            // SAFETY: two texts that end with zero; no other thread asks for the environment meanwhile.
            once(|| discard(unsafe { libc::setenv(c"A_NEW_VARIABLE".as_ptr(), c"order".as_ptr(), 1) }))
        }),
        Case::new("qsort of a large array", HEAP, || {
            let numbers: &'static mut [u64] = (0..10_000_u64).rev().collect::<Vec<_>>().leak();
            let (first, count) = (numbers.as_mut_ptr().cast(), numbers.len());
            // SAFETY: an array of as many numbers of this size, and a function that compares two of them.
            once(move || unsafe { libc::qsort(first, count, size_of::<u64>(), Some(compare)) })
        }),
        Case::new("getaddrinfo of a number", HEAP, || {
            once(|| {
                // SAFETY: zeros are no hints.
                let mut hints: libc::addrinfo = unsafe { core::mem::zeroed() };
                hints.ai_flags = libc::AI_NUMERICHOST | libc::AI_NUMERICSERV;
                let mut found = ptr::null_mut();
                let (host, port) = (c"127.0.0.1".as_ptr(), c"80".as_ptr());
                // SAFETY: two texts that end with zero, hints, and a pointer that is valid to write.
                discard(unsafe { libc::getaddrinfo(host, port, &raw const hints, &raw mut found) });
            })
        })
        .may(UNBOUNDED),
        Case::new("opendir", HEAP | UNBOUNDED, || {
            // SAFETY: a path that ends with zero.
            once(|| discard(unsafe { libc::opendir(c"/".as_ptr()) }))
        }),
        Case::new("getcwd without a buffer", HEAP | UNBOUNDED, || {
            // SAFETY: without a buffer, glibc allocates one.
            once(|| give_back(unsafe { libc::getcwd(ptr::null_mut(), 0) }))
        }),
        Case::new("realpath without a buffer", HEAP | UNBOUNDED, || {
            // SAFETY: a path that ends with zero; without a buffer, glibc allocates one.
            once(|| give_back(unsafe { libc::realpath(c"/proc/self/exe".as_ptr(), ptr::null_mut()) }))
        }),
        Case::new("regcomp", HEAP, || {
            once(|| {
                // SAFETY: zeros are a value of this type, which is plain data.
                let mut expression: libc::regex_t = unsafe { core::mem::zeroed() };
                // SAFETY: an expression to be made, and a text that ends with zero.
                discard(unsafe { libc::regcomp(&raw mut expression, c"[a-z]*7".as_ptr(), 0) });
            })
        }),
        Case::new("the 40th key of a thread is set", HEAP, || {
            let mut key = 0;
            for _ in 0..40 {
                // SAFETY: a number that is valid to write; no destructor.
                assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, None) }, 0);
            }
            // SAFETY: a key that was made; the value is never read.
            once(move || discard(unsafe { libc::pthread_setspecific(key, (&raw const key).cast()) }))
        }),
        // The name below `malloc`, for programs that define that themselves.
        Case::new("__libc_malloc", OTHER_HEAP | LIBRARY, || {
            // SAFETY: any size is allowed.
            once(|| discard(unsafe { __libc_malloc(black_box(100)) }))
        }),
        Case::new("the allocator of Rust and that of C", HEAP | RUST_HEAP, || {
            once(|| {
                discard(Box::new(black_box(7_u64)));
                give_back(block());
            })
        }),
    ],
};
