//! A global allocator that counts the calls of each thread.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

thread_local! {
    // Initialised at compile time and without a destructor: reading it never
    // allocates.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How often this thread has called the global allocator, frees included.
pub(crate) fn calls_of_this_thread() -> u64 {
    CALLS.get()
}

fn count() {
    CALLS.set(CALLS.get() + 1);
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's duties are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's duties are the system allocator's.
        unsafe { System.dealloc(object, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's duties are the system allocator's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's duties are the system allocator's.
        unsafe { System.realloc(object, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_a_deliberate_box() {
        let before = calls_of_this_thread();
        drop(core::hint::black_box(Box::new(1_u64)));
        assert_eq!(calls_of_this_thread() - before, 2);
    }
}
