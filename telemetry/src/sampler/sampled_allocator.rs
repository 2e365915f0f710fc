//! A global allocator whose objects are sampled.

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;

use tripoint_core::{Addr, AllocationSampler};

use crate::live::remember::Remember;
use crate::sampler::global_sampler::{GlobalSampler, THREAD};

/// Any allocator, whose allocations are sampled: those of a whole program, whether or not it has
/// pools.
///
/// An allocation that is not sampled costs four or five instructions and touches no shared memory; a free
/// costs nothing unless samples are [remembered](GlobalSampler::remembering). The bytes that count are those
/// asked for; a reallocation counts as a free of the old object and an allocation of the whole new size. An
/// allocation that fails is not sampled
/// ([design/sampling.md `.global`](crate::design::sampling)).
///
/// ```
/// use std::sync::Mutex;
/// use tripoint_telemetry::{Estimate, GlobalSampler, Mean, SampledAllocator, SampledObject, Sampling};
///
/// static SAMPLING: Sampling = Sampling::off(42); // the seed; take a random one in production
/// static ESTIMATE: Mutex<Estimate> = Mutex::new(Estimate::new(MEAN));
/// const MEAN: Mean = Mean::new(10_000).unwrap();
///
/// #[global_allocator]
/// static ALLOCATOR: SampledAllocator = SampledAllocator::system(GlobalSampler::new(&SAMPLING, add));
///
/// fn add(sampled: SampledObject) {
///     ESTIMATE.lock().unwrap().add(&sampled.sample);
/// }
///
/// SAMPLING.set_mean(Some(MEAN));
/// ALLOCATOR.follow_switch(); // at once; other threads follow after 1 MiB at the latest
/// for number in 0..10_000_u64 {
///     drop(std::hint::black_box(Box::new([number; 12])));
/// }
/// // The estimate is copied out, so that nothing is allocated while the lock is held.
/// let estimate = *ESTIMATE.lock().unwrap();
/// // Of 960,000 bytes, some 96 were drawn.
/// assert!((estimate.bytes() / 960_000.0 - 1.0).abs() < 0.4);
/// ```
///
/// Together with the contract of tripoint, use the contract's own wrapper,
/// `ContractAllocator::with_sampler`, instead of this one: it samples the same objects.
#[derive(Clone, Copy, Debug)]
pub struct SampledAllocator<Inner = System, M = ()> {
    inner: Inner,
    sampler: GlobalSampler<M>,
}

impl<M> SampledAllocator<System, M> {
    /// The system's allocator, sampled.
    #[must_use]
    pub const fn system(sampler: GlobalSampler<M>) -> Self {
        Self::new(System, sampler)
    }
}

impl<Inner, M> SampledAllocator<Inner, M> {
    /// `inner`, sampled.
    pub const fn new(inner: Inner, sampler: GlobalSampler<M>) -> Self {
        Self { inner, sampler }
    }
}

impl<Inner, M: Remember> SampledAllocator<Inner, M> {
    /// Has the calling thread follow the switch at once: sampling on or off, another mean, or another
    /// seed. Otherwise the thread notices a change at its next sample, or after it has allocated 1 MiB.
    pub fn follow_switch(&self) {
        THREAD.with(|thread| thread.countdown.resume(self.sampler.move_stop(thread.countdown.pause())));
    }

    /// Allocates an object with the byte at which the thread stops, as `allocate` does with these
    /// arguments. They are passed on, not captured, so that the fast path need not write them down.
    #[cold]
    #[inline(never)]
    fn stop<A>(&self, size: usize, arguments: A, allocate: impl FnOnce(&Inner, A) -> *mut u8) -> *mut u8 {
        THREAD.with(|thread| {
            let offset = thread.countdown.pause();
            let object = allocate(&self.inner, arguments);
            let address = (!object.is_null()).then(|| Addr::of(object));
            thread.countdown.resume(self.sampler.stopped(size, offset, address));
            object
        })
    }
}

/// Counts `size` bytes down, if the thread has no stop in them.
#[inline(always)]
fn pass(size: usize) -> bool {
    THREAD.with(|thread| thread.countdown.pass(size))
}

// SAFETY: every call is passed on to the inner allocator as it came, and its answer is returned
// as it came, so the inner allocator's promises are this one's. Sampling does not unwind: the
// process aborts if the function that is called for a sample does.
unsafe impl<Inner: GlobalAlloc, M: Remember> GlobalAlloc for SampledAllocator<Inner, M> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller vouches that the layout has a size; it is passed on as it came.
        let allocate = |inner: &Inner, layout: Layout| unsafe { inner.alloc(layout) };
        if !pass(layout.size()) {
            self.stop(layout.size(), layout, allocate)
        } else {
            allocate(&self.inner, layout)
        }
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // Before the memory is returned, because then another object may be there at once.
        self.sampler.freeing(Addr::of(object));
        // SAFETY: the caller vouches that this allocator allocated the object with this layout, so the inner
        // one did, and that it is not used any more.
        unsafe { self.inner.dealloc(object, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller vouches that the layout has a size; it is passed on as it came.
        let allocate = |inner: &Inner, layout: Layout| unsafe { inner.alloc_zeroed(layout) };
        if !pass(layout.size()) {
            self.stop(layout.size(), layout, allocate)
        } else {
            allocate(&self.inner, layout)
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
        if !pass(size) {
            self.stop(size, (object, layout, size), allocate)
        } else {
            allocate(&self.inner, (object, layout, size))
        }
    }
}
