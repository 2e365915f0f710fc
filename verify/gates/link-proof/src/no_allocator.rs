//! A global allocator that does not exist.

use alloc::alloc::{GlobalAlloc, Layout};

unsafe extern "C" {
    /// It is defined nowhere. The linker's message names it.
    fn the_hot_path_allocates() -> !;
}

struct NoAllocator;

#[global_allocator]
static ALLOCATOR: NoAllocator = NoAllocator;

// SAFETY: nothing returns, so nothing is promised.
unsafe impl GlobalAlloc for NoAllocator {
    unsafe fn alloc(&self, _layout: Layout) -> *mut u8 {
        // SAFETY: a program that calls it does not link.
        unsafe { the_hot_path_allocates() }
    }

    unsafe fn dealloc(&self, _object: *mut u8, _layout: Layout) {
        // SAFETY: a program that calls it does not link.
        unsafe { the_hot_path_allocates() }
    }
}
