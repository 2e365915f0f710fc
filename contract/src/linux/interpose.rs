//! `malloc` and the functions like it, for the whole program: C code's calls are counted.
//!
//! The definitions of the final binary go before glibc's for every library that
//! is linked dynamically, and pass on to glibc's under their other names. A call
//! from below `ContractAllocator` is not foreign (design/contract.md `.foreign`).

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::linux::kernel::Kernel;
use crate::linux::system_calls::LinuxKernel;
use crate::thread::current;
use crate::thread::observation::Observation;
use crate::words::class::ViolationClass;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(object: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_free(object: *mut c_void);
}

fn count(size: usize) {
    if !current::is_inside_allocator() {
        current::observe(Observation::new(ViolationClass::ForeignMalloc, size));
    }
}

/// The same as C's function of this name.
///
/// # Safety
/// - There are none beyond those of C's type: any size is allowed.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    count(size);
    // SAFETY: any size is allowed.
    unsafe { __libc_malloc(size) }
}

/// The same as C's function of this name.
///
/// # Safety
/// - There are none beyond those of C's type: any two numbers are allowed.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn calloc(amount: usize, size: usize) -> *mut c_void {
    count(amount.saturating_mul(size));
    // SAFETY: any two numbers are allowed.
    unsafe { __libc_calloc(amount, size) }
}

/// The same as C's function of this name.
///
/// # Safety
/// - `object` is null, or was allocated by one of these functions and not freed.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn realloc(object: *mut c_void, size: usize) -> *mut c_void {
    count(size);
    // SAFETY: the caller vouches that the object is null or glibc's, and not used at its old place if it moves.
    unsafe { __libc_realloc(object, size) }
}

/// The same as C's function of this name.
///
/// # Safety
/// - `object` is null, or was allocated by one of these functions and not freed; it is not used
///   any more.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn free(object: *mut c_void) {
    // C's `free` of a null pointer does nothing, and programs rely on that.
    if !object.is_null() {
        count(0);
    }
    // SAFETY: the caller vouches that the object is null or glibc's, and not used any more.
    unsafe { __libc_free(object) }
}

/// The same as C's function of this name.
///
/// # Safety
/// - `align` is a power of two.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    count(size);
    // SAFETY: the caller vouches that the alignment is a power of two; any size is allowed.
    unsafe { __libc_memalign(align, size) }
}

/// The same as C's function of this name.
///
/// # Safety
/// - `align` is a power of two.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller vouches that the alignment is a power of two.
    unsafe { memalign(align, size) }
}

/// As C's, at the beginning of a page.
///
/// # Safety
/// - There are none beyond those of C's type: any size is allowed.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: the size of a page is a power of two.
    unsafe { memalign(LinuxKernel.page_size(), size) }
}

/// As C's: whole pages.
///
/// # Safety
/// - There are none beyond those of C's type: any size is allowed.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let page = LinuxKernel.page_size();
    let Some(whole) = size.checked_next_multiple_of(page) else { return ptr::null_mut() };
    // SAFETY: the size of a page is a power of two.
    unsafe { memalign(page, whole) }
}

/// The same as C's function of this name.
///
/// # Safety
/// - `object` is valid to write.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn posix_memalign(object: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    // SAFETY: the alignment is a power of two, as was just asked.
    let memory = unsafe { memalign(align, size) };
    if memory.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller vouches that `object` is valid to write.
    unsafe { object.write(memory) };
    0
}
