//! A global allocator that counts the calls of each thread, and has its allocations sampled.

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;

use tripoint_core::internal::AllocationCountdown;
use tripoint_core::{Addr, AllocationSampler};

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
///
/// # With a sampler
///
/// [`with_sampler`](Self::with_sampler) has the same wrapper sample what threads allocate, registered or
/// not: with the `GlobalSampler` of `tripoint-telemetry`, the objects that its `SampledAllocator` would
/// sample. That costs nothing more than the contract alone, because one word of the thread says both
/// whether it is registered and where its next sample is. A registered thread's allocations are
/// charged to it as ever. What the sampler's report does is charged as well, so on an armed
/// thread it must not allocate.
///
/// ```
/// use tripoint_contract::ContractAllocator;
/// use tripoint_core::{Addr, AllocationSampler};
///
/// /// Has a look at every hundredth byte, more or less.
/// #[derive(Debug)]
/// struct EveryHundred;
///
/// // SAFETY: no method unwinds, and the method that reallocates is the trait's own.
/// unsafe impl AllocationSampler for EveryHundred {
///     fn stopped(&self, size: usize, offset: usize, object: Option<Addr>) -> usize {
///         let _ = (size, offset, object); // … kept somewhere, without allocating on hot threads
///         100
///     }
///
///     fn move_stop(&self, left: usize) -> usize {
///         left
///     }
/// }
///
/// #[global_allocator]
/// static ALLOCATOR: ContractAllocator<std::alloc::System, EveryHundred> =
///     ContractAllocator::with_sampler(std::alloc::System, EveryHundred);
/// # drop(Box::new([1_u8; 500]));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ContractAllocator<Inner = System, Sampler = ()> {
    inner: Inner,
    sampler: Sampler,
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
        Self::with_sampler(inner, ())
    }
}

impl<Inner, Sampler> ContractAllocator<Inner, Sampler> {
    /// `inner`, counted, and sampled by `sampler`. A process has one allocator with a sampler.
    pub const fn with_sampler(inner: Inner, sampler: Sampler) -> Self {
        Self { inner, sampler }
    }
}

impl<Inner, Sampler: AllocationSampler> ContractAllocator<Inner, Sampler> {
    /// Has the sampler draw again at once, on the calling thread, if it was switched on or off or
    /// otherwise changed. Without this a thread notices some time later: the sampler says when.
    pub fn follow_switch(&self) {
        let left = current::with_countdown(AllocationCountdown::pause);
        let distance = self.sampler.move_stop(left);
        current::with_countdown(|countdown| countdown.resume(distance));
    }

    /// Allocates an object with the byte at which the thread's sampler has its stop, as `allocate` does with
    /// these arguments. They are passed on, not captured, so that the fast path need not write them down.
    #[cold]
    #[inline(never)]
    fn stop<A>(&self, size: usize, arguments: A, allocate: impl FnOnce(&Inner, A) -> *mut u8) -> *mut u8 {
        let offset = current::with_countdown(AllocationCountdown::pause);
        let object = current::inside_allocator(|| allocate(&self.inner, arguments));
        let address = (!object.is_null()).then(|| Addr::of(object));
        let distance = self.sampler.stopped(size, offset, address);
        // Another one, if the sampler's report has registered the thread.
        current::with_countdown(|countdown| countdown.resume(distance));
        object
    }
}

// SAFETY: every call is passed on to the inner allocator as it came, and its answer is returned
// as it came, so the inner allocator's promises are this one's. Counting does not allocate or unwind,
// and samplers promise that they do not unwind.
unsafe impl<Inner: GlobalAlloc, Sampler: AllocationSampler> GlobalAlloc
    for ContractAllocator<Inner, Sampler>
{
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller vouches that the layout has a size; it is passed on as it came.
        let allocate = |inner: &Inner, layout: Layout| unsafe { inner.alloc(layout) };
        if current::observe_allocation(ViolationClass::Alloc, layout.size()) {
            self.stop(layout.size(), layout, allocate)
        } else {
            current::inside_allocator(|| allocate(&self.inner, layout))
        }
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        current::observe(Observation::new(ViolationClass::Dealloc, layout.size()));
        // Before the memory is returned, because then another object may be there at once.
        self.sampler.freeing(Addr::of(object));
        // SAFETY: the caller vouches that this allocator allocated the object with this layout, so the inner
        // one did, and that it is not used any more.
        current::inside_allocator(|| unsafe { self.inner.dealloc(object, layout) });
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller vouches that the layout has a size; it is passed on as it came.
        let allocate = |inner: &Inner, layout: Layout| unsafe { inner.alloc_zeroed(layout) };
        if current::observe_allocation(ViolationClass::Alloc, layout.size()) {
            self.stop(layout.size(), layout, allocate)
        } else {
            current::inside_allocator(|| allocate(&self.inner, layout))
        }
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller vouches that this allocator allocated the object with this layout, so the inner
        // one did, and that the new size is not zero and does not overflow when it is rounded up.
        let reallocate = |inner: &Inner, (object, layout, size): (*mut u8, Layout, usize)| unsafe {
            inner.realloc(object, layout, size)
        };
        let allocate = |inner: &Inner, arguments: (*mut u8, Layout, usize)| {
            self.sampler.reallocating(Addr::of(arguments.0), || reallocate(inner, arguments))
        };
        if current::observe_allocation(ViolationClass::Realloc, size) {
            self.stop(size, (object, layout, size), allocate)
        } else {
            current::inside_allocator(|| allocate(&self.inner, (object, layout, size)))
        }
    }
}
