//! A program whose global allocator is an undefined symbol. It links only if no
//! code that it can reach allocates (design/gates.md `.link`).
#![no_std]
#![no_main]

extern crate alloc;

mod hot;
mod no_allocator;

use core::ffi::c_int;
use core::panic::PanicInfo;

// The start of a C program, which calls `main`.
#[link(name = "c")]
unsafe extern "C" {
    fn abort() -> !;
}

/// Runs the hot path. As in C, zero means success.
// SAFETY: no other item of the program is called `main`.
#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    c_int::from(hot::run().is_err())
}

#[panic_handler]
fn panic(_panic: &PanicInfo<'_>) -> ! {
    // SAFETY: C's `abort` has no duties for its caller.
    unsafe { abort() }
}
