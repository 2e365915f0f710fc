//! General allocators, and none.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::NonNull;

use super::memory::Memory;
use super::worker::{Threads, Worker};

/// An allocator that knows its threads by itself.
#[derive(Debug)]
pub(super) struct General<G>(pub(super) G);

// SAFETY: the promises of a global allocator are those of `Memory`, for layouts that are not empty.
unsafe impl<G: GlobalAlloc> Memory for General<G> {
    #[inline]
    fn alloc(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        // SAFETY: no layout of a window is empty.
        NonNull::new(unsafe { if zeroed { self.0.alloc_zeroed(layout) } else { self.0.alloc(layout) } })
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the block came from this allocator with this layout, and is used no more.
        unsafe { self.0.dealloc(block.as_ptr(), layout) };
    }

    #[inline]
    unsafe fn resize(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the block came from this allocator with the layout `from`; the new size is not zero, and a layout has it
        // with this alignment.
        NonNull::new(unsafe { self.0.realloc(block.as_ptr(), from, to.size()) })
    }
}

impl<G: GlobalAlloc + Sync> Threads for General<G> {
    fn on_thread(&self, worker: &mut Worker<'_>) {
        worker.run(self);
    }
}

/// No allocator: the same block every time, one for each thread. What remains is the cost of the replay itself.
#[derive(Debug)]
pub(super) struct Same;

/// The block that each request of a thread returns, aligned for most of them.
#[repr(align(4096))]
struct Block(UnsafeCell<[u8; 64]>);

// SAFETY: it does not keep the promises, and so it is replayed only if nothing but the first byte of a block is used
// (`Measure::Time`, `Measure::Latency`), by the thread that allocated it.
unsafe impl Memory for Block {
    #[inline]
    fn alloc(&self, _layout: Layout, _zeroed: bool) -> Option<NonNull<u8>> {
        NonNull::new(self.0.get().cast())
    }

    #[inline]
    unsafe fn free(&self, _block: NonNull<u8>, _layout: Layout) {}

    #[inline]
    unsafe fn resize(&self, block: NonNull<u8>, _from: Layout, _to: Layout) -> Option<NonNull<u8>> {
        Some(block)
    }
}

impl Threads for Same {
    fn on_thread(&self, worker: &mut Worker<'_>) {
        worker.run(&Block(UnsafeCell::new([0; 64])));
    }
}
