//! The functions that take the place of the C library's.
//!
//! What allocates is recorded after the real call has returned, what frees before it is called: so no address is
//! recorded as allocated before its last object is recorded as freed (design/cli-traces.md `.order`). Inside an operator
//! of C++ nothing is recorded: the operator is.

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::inside::is_inside;
use crate::ring::code;
use crate::{before, record, system};

/// `EINVAL` and `ENOMEM`.
const EINVAL: c_int = 22;
const ENOMEM: c_int = 12;

/// A function of the next library.
struct Real {
    name: &'static CStr,
    at: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr) -> Self {
        Self { name, at: AtomicPtr::new(ptr::null_mut()) }
    }
}

static MALLOC: Real = Real::new(c"malloc");
static CALLOC: Real = Real::new(c"calloc");
static REALLOC: Real = Real::new(c"realloc");
static FREE: Real = Real::new(c"free");
static MEMALIGN: Real = Real::new(c"memalign");
static ALIGNED_ALLOC: Real = Real::new(c"aligned_alloc");
static POSIX_MEMALIGN: Real = Real::new(c"posix_memalign");
static VALLOC: Real = Real::new(c"valloc");
static PVALLOC: Real = Real::new(c"pvalloc");
static USABLE_SIZE: Real = Real::new(c"malloc_usable_size");
static FORK: Real = Real::new(c"fork");

static ALL: [&Real; 11] = [
    &MALLOC,
    &CALLOC,
    &REALLOC,
    &FREE,
    &MEMALIGN,
    &ALIGNED_ALLOC,
    &POSIX_MEMALIGN,
    &VALLOC,
    &PVALLOC,
    &USABLE_SIZE,
    &FORK,
];

/// Zero before the functions are looked up, one meanwhile, and two when they are known.
static LOOKED_UP: AtomicU32 = AtomicU32::new(0);

/// The real function, or none while it is looked up.
#[inline]
fn real(function: &Real) -> Option<*mut c_void> {
    if LOOKED_UP.load(Ordering::Acquire) != 2 {
        look_up();
    }
    let at = function.at.load(Ordering::Relaxed);
    (!at.is_null()).then_some(at)
}

#[cold]
#[inline(never)]
fn look_up() {
    const NEXT: *mut c_void = ptr::without_provenance_mut(usize::MAX);
    if LOOKED_UP.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
        for function in ALL {
            // SAFETY: the handle that means the next library, and a text that ends with a zero.
            let at = unsafe { system::dlsym(NEXT, function.name.as_ptr()) };
            function.at.store(at, Ordering::Relaxed);
        }
        LOOKED_UP.store(2, Ordering::Release);
    }
}

/// Records an operation of the program's own.
#[inline]
fn record(code: u8, address: *const c_void, size: usize, align_log2: u8) {
    if !is_inside() {
        record::record(code, address, size, align_log2);
    }
}

pub(crate) fn log2(align: usize) -> u8 {
    align.max(1).trailing_zeros() as u8
}

/// Records what was allocated, and returns it.
#[inline]
fn allocated(code: u8, object: *mut c_void, size: usize, align: usize) -> *mut c_void {
    if !object.is_null() {
        record(code, object, size, log2(align));
    }
    object
}

fn refused() -> *mut c_void {
    system::set_errno(ENOMEM);
    ptr::null_mut()
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    match real(&MALLOC) {
        Some(at) => {
            // SAFETY: the C library's function of this name has this type.
            let real: unsafe extern "C" fn(usize) -> *mut c_void = unsafe { transmute(at) };
            // SAFETY: `malloc` has no conditions.
            allocated(code::PLAIN, unsafe { real(size) }, size, 1)
        }
        None => before::alloc(size, 16),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match real(&CALLOC) {
        Some(at) => {
            // SAFETY: the C library's function of this name has this type.
            let real: unsafe extern "C" fn(usize, usize) -> *mut c_void = unsafe { transmute(at) };
            // SAFETY: `calloc` has no conditions.
            allocated(code::ZEROED, unsafe { real(count, size) }, count.wrapping_mul(size), 1)
        }
        None => count.checked_mul(size).map_or(ptr::null_mut(), |size| before::alloc(size, 16)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(object: *mut c_void, size: usize) -> *mut c_void {
    if before::has(object) {
        let moved = malloc(size);
        if !moved.is_null() {
            // SAFETY: an object of `before`, which keeps its size.
            let copied = unsafe { before::size_of(object) }.min(size);
            // SAFETY: both objects have that many bytes, and are not the same.
            unsafe { moved.cast::<u8>().copy_from_nonoverlapping(object.cast(), copied) };
        }
        return moved;
    }
    let Some(at) = real(&REALLOC) else {
        return if object.is_null() { before::alloc(size, 16) } else { refused() };
    };
    // SAFETY: the C library's function of this name has this type.
    let real: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void = unsafe { transmute(at) };
    if object.is_null() {
        // SAFETY: the caller's duties are those of the real function.
        return allocated(code::PLAIN, unsafe { real(object, size) }, size, 1);
    }
    record(code::REALLOC, object, size, 0);
    // SAFETY: the caller's duties are those of the real function.
    let moved = unsafe { real(object, size) };
    record(code::REALLOCATED, moved, size, 0);
    moved
}

#[unsafe(no_mangle)]
unsafe extern "C" fn reallocarray(object: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's duties are those of `realloc`.
        Some(size) => unsafe { realloc(object, size) },
        None => refused(),
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(object: *mut c_void) {
    if object.is_null() || before::has(object) {
        return;
    }
    if let Some(at) = real(&FREE) {
        record(code::FREE, object, 0, 0);
        // SAFETY: the C library's function of this name has this type.
        let real: unsafe extern "C" fn(*mut c_void) = unsafe { transmute(at) };
        // SAFETY: the caller's duties are those of the real function.
        unsafe { real(object) };
    }
}

/// The functions with an alignment and a size.
#[inline]
unsafe fn aligned(function: &Real, align: usize, size: usize) -> *mut c_void {
    match real(function) {
        Some(at) => {
            // SAFETY: both functions that this is called with have this type.
            let real: unsafe extern "C" fn(usize, usize) -> *mut c_void = unsafe { transmute(at) };
            // SAFETY: the caller's duties are those of the real function.
            allocated(code::ALIGNED, unsafe { real(align, size) }, size, align)
        }
        None if align.is_power_of_two() && align <= 4096 => before::alloc(size, align),
        None => refused(),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's duties are those of the real function.
    unsafe { aligned(&MEMALIGN, align, size) }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's duties are those of the real function.
    unsafe { aligned(&ALIGNED_ALLOC, align, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    match real(&POSIX_MEMALIGN) {
        Some(at) => {
            // SAFETY: the C library's function of this name has this type.
            let real: unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int =
                unsafe { transmute(at) };
            // SAFETY: the caller's duties are those of the real function.
            let error = unsafe { real(place, align, size) };
            if error == 0 {
                // SAFETY: the real function has written the object there.
                allocated(code::ALIGNED, unsafe { *place }, size, align);
            }
            error
        }
        None if !align.is_power_of_two() || align > 4096 => EINVAL,
        None => {
            let object = before::alloc(size, align);
            if object.is_null() {
                return ENOMEM;
            }
            // SAFETY: the caller's place for the object.
            unsafe { *place = object };
            0
        }
    }
}

/// The functions that align to a page.
#[inline]
unsafe fn page_aligned(function: &Real, size: usize) -> *mut c_void {
    match real(function) {
        Some(at) => {
            // SAFETY: both functions that this is called with have this type.
            let real: unsafe extern "C" fn(usize) -> *mut c_void = unsafe { transmute(at) };
            // SAFETY: the caller's duties are those of the real function.
            allocated(code::ALIGNED, unsafe { real(size) }, size, 4096)
        }
        None => before::alloc(size, 4096),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's duties are those of the real function.
    unsafe { page_aligned(&VALLOC, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's duties are those of the real function.
    unsafe { page_aligned(&PVALLOC, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(object: *mut c_void) -> usize {
    if before::has(object) {
        // SAFETY: an object of `before`, which keeps its size.
        return unsafe { before::size_of(object) };
    }
    real(&USABLE_SIZE).map_or(0, |at| {
        // SAFETY: the C library's function of this name has this type.
        let real: unsafe extern "C" fn(*mut c_void) -> usize = unsafe { transmute(at) };
        // SAFETY: the caller's duties are those of the real function.
        unsafe { real(object) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fork() -> c_int {
    let Some(at) = real(&FORK) else {
        system::set_errno(ENOMEM);
        return -1;
    };
    // SAFETY: the C library's function of this name has this type.
    let real: unsafe extern "C" fn() -> c_int = unsafe { transmute(at) };
    // SAFETY: the caller's duties are those of the real function.
    let child = unsafe { real() };
    if child > 0 {
        record(code::FORK, ptr::without_provenance(child as usize), 0, 0);
    }
    child
}
