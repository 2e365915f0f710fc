//! A global allocator that counts the calls of each thread.

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;

use crate::thread::current;
use crate::thread::observation::Observation;
use crate::words::class::ViolationClass;

/// Any allocator, whose calls are counted per thread: alloc, realloc and dealloc apart.
///
/// It works without a [`Contract`](crate::Contract): [`current::count`] counts what
/// the calling thread did, and [`current::watch`] finds where. With one, the calls of a
/// registered thread are charged to it, with their site.
///
/// ```
/// use tripoint_contract::{ContractAllocator, ViolationClass, current};
///
/// #[global_allocator]
/// static ALLOCATOR: ContractAllocator = ContractAllocator::system();
///
/// let (before, _) = current::count(ViolationClass::Alloc);
/// drop(std::hint::black_box(Box::new(7)));
/// assert_eq!(current::count(ViolationClass::Alloc).0, before + 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ContractAllocator<Inner = System> {
    inner: Inner,
}

impl ContractAllocator<System> {
    /// The system's allocator, counted.
    #[must_use]
    pub const fn system() -> Self {
        Self::new(System)
    }
}

impl<Inner> ContractAllocator<Inner> {
    /// `inner`, counted.
    pub const fn new(inner: Inner) -> Self {
        Self { inner }
    }
}

// SAFETY: every call is passed on to the inner allocator as it came, and its answer is returned
// as it came, so the inner allocator's promises are this one's. Counting does not allocate or unwind.
unsafe impl<Inner: GlobalAlloc> GlobalAlloc for ContractAllocator<Inner> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        current::observe(Observation::new(ViolationClass::Alloc, layout.size()));
        // SAFETY: the caller vouches that the layout has a size; it is passed on as it came.
        current::inside_allocator(|| unsafe { self.inner.alloc(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        current::observe(Observation::new(ViolationClass::Dealloc, layout.size()));
        // SAFETY: the caller vouches that this allocator allocated the object with this layout, so the inner
        // one did, and that it is not used any more.
        current::inside_allocator(|| unsafe { self.inner.dealloc(object, layout) });
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        current::observe(Observation::new(ViolationClass::Alloc, layout.size()));
        // SAFETY: the caller vouches that the layout has a size; it is passed on as it came.
        current::inside_allocator(|| unsafe { self.inner.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        current::observe(Observation::new(ViolationClass::Realloc, size));
        // SAFETY: the caller vouches that this allocator allocated the object with this layout, so the inner
        // one did, and that the new size is not zero and does not overflow when it is rounded up.
        current::inside_allocator(|| unsafe { self.inner.realloc(object, layout, size) })
    }
}
