//! Code that allocates: in Rust, in C, in a handler, and at the end of a thread.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::hint::black_box;

#[inline(never)]
pub(crate) fn culprit_box() {
    drop(black_box(Box::new(7_u64)));
}

#[inline(never)]
pub(crate) fn culprit_unwinding() {
    let _ = std::panic::catch_unwind(|| {
        let _dropped = black_box(Box::new(7_u64));
        std::panic::resume_unwind(Box::new(()));
    });
}

#[inline(never)]
pub(crate) fn culprit_panic() {
    let _ = std::panic::catch_unwind(|| panic!("{}", black_box("on purpose")));
}

pub(crate) extern "C" fn culprit_in_handler(_signal: c_int) {
    culprit_box();
}

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

#[inline(never)]
pub(crate) fn culprit_malloc() {
    // SAFETY: allocated and freed once.
    unsafe { libc::free(black_box(libc::malloc(100))) };
}

#[inline(never)]
pub(crate) fn culprit_strdup() {
    // SAFETY: freed once; the text ends with zero.
    unsafe { libc::free(black_box(libc::strdup(c"text".as_ptr())).cast()) };
}

unsafe extern "C" {
    fn valloc(size: usize) -> *mut c_void;
}

#[inline(never)]
pub(crate) fn culprit_valloc() {
    // SAFETY: allocated and freed once.
    unsafe { libc::free(black_box(valloc(100))) };
}
