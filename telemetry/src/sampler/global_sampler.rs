//! A sampler of the allocations of a global allocator, thread by thread.

use core::cell::Cell;
use core::fmt;
use core::mem::needs_drop;
use std::process::abort;

use tripoint_core::internal::{AllocationCountdown, Defer};
use tripoint_core::{Addr, AllocationSampler};

use crate::live::live_samples::LiveSamples;
use crate::live::remember::Remember;
use crate::sampled_object::{ObjectKind, SampledObject};
use crate::sampler::sampling::Sampling;
use crate::sampler::thread_draws::ThreadDraws;

/// Samples what threads allocate through a global allocator: a
/// [`SampledAllocator`](crate::SampledAllocator), or the steady-state contract's, which then
/// counts down to samples with the word that it tests anyway.
///
/// Each thread has a stream of draws of its own, which begins with its first allocation. It looks at the
/// switch at each sample, and after it has allocated at most 1 MiB. Only then does it notice that sampling
/// was switched on or off, or that the mean or the seed was replaced, unless it calls `follow_switch` of its
/// allocator.
///
/// A process has one such sampler, because its threads have one countdown each. Several
/// allocators may have copies of it.
///
/// # The function that is called
///
/// `on_sample` is called within the allocation, on the thread that allocates, once the object
/// exists; its memory is not initialised yet, except by `alloc_zeroed`. So the caller's stack can
/// be walked there. The function
///
/// - may allocate: what it allocates is not sampled, so the function is not called again meanwhile.
/// - must not wait for a lock that any code holds while it allocates (standard output and standard
///   error have such locks). To read what the function gathers under a lock of its own, copy that out, and
///   allocate when the lock is released.
/// - must not unwind: allocators must not, so the process aborts.
///
/// It is not called for an allocation that failed.
///
/// # Signal handlers, forks, and the end of a thread
///
/// The thread's state is a thread-local that is initialised at compile time and has no destructor. So a sampled
/// allocation may be made wherever the allocator itself may be called: in a signal handler, after a fork, and in the
/// destructors of thread-locals. A handler that allocates while its own thread counts down may have one draw end a few
/// bytes early or late. After a fork, the child calls [`Sampling::reseed`], then `follow_switch` ([design/sampling.md
/// `.global`](crate::design::sampling)). If another thread of the parent was in the function at that moment and held a
/// lock, the child waits for that lock without end at its next sample. So a child of a program with several threads first
/// switches sampling off ([`Sampling::set_mean`]), unless the function only tries to lock.
#[derive(Clone, Copy)]
pub struct GlobalSampler<M = ()> {
    sampling: &'static Sampling,
    on_sample: fn(SampledObject),
    memory: M,
}

/// The state of the calling thread's draws.
#[derive(Debug)]
enum State {
    /// The thread has drawn nothing yet.
    New,
    Drawn(ThreadDraws),
    /// The draws are in use, further down the stack.
    InUse,
}

/// The state of one thread.
pub(super) struct Thread {
    /// The countdown for [`SampledAllocator`](crate::SampledAllocator); other wrappers have one of their own.
    pub(super) countdown: AllocationCountdown,
    state: Cell<State>,
}

std::thread_local! {
    pub(super) static THREAD: Thread = const {
        assert!(!needs_drop::<Thread>(), "a destructor would have to be registered");
        Thread { countdown: AllocationCountdown::new(), state: Cell::new(State::New) }
    };
}

impl GlobalSampler {
    /// A sampler that follows `sampling`, and calls `on_sample` for each object sampled.
    #[must_use]
    pub const fn new(sampling: &'static Sampling, on_sample: fn(SampledObject)) -> Self {
        Self { sampling, on_sample, memory: () }
    }
}

impl<M: Remember> GlobalSampler<M> {
    /// Has `live` remember each object that is sampled until it is freed or reallocated: an estimate of what is
    /// in use, by call site if [sites are walked](Sampling::set_sites). A free then costs one load more, or a search
    /// in eight places if the load finds an object with the same hash.
    #[must_use]
    pub const fn remembering<const N: usize>(
        self,
        live: &'static LiveSamples<N>,
    ) -> GlobalSampler<&'static LiveSamples<N>> {
        GlobalSampler { sampling: self.sampling, on_sample: self.on_sample, memory: live }
    }

    /// Takes the thread's draws, has `step` use them up to a distance from here, and returns how
    /// much of that may be allocated before the sampler is asked again. `left` is what was left
    /// of what it returned last. Returns `None` if the draws are in use.
    fn draw(&self, left: usize, step: impl FnOnce(&mut ThreadDraws, u64) -> u64) -> Option<usize> {
        THREAD.with(|thread| {
            let (mut draws, distance) = match thread.state.replace(State::InUse) {
                State::Drawn(draws) if draws.are_of(self.sampling) => {
                    let distance = draws.distance(left);
                    (draws, distance)
                }
                State::New | State::Drawn(_) => {
                    let mut draws = ThreadDraws::new(self.sampling);
                    let distance = draws.begin();
                    (draws, distance)
                }
                State::InUse => return None,
            };
            let distance = step(&mut draws, distance);
            let left = draws.step(distance);
            thread.state.set(State::Drawn(draws));
            Some(left)
        })
    }
}

// SAFETY: the process aborts if the function that is called for a sample unwinds; nothing else here does.
// What remembers objects calls `reallocate` once, and returns what it returned: the trait is sealed.
unsafe impl<M: Remember> AllocationSampler for GlobalSampler<M> {
    fn stopped(&self, size: usize, offset: usize, object: Option<Addr>) -> usize {
        let next = self.draw(offset, |draws, distance| {
            let (sample, distance) = draws.allocate(size, distance);
            if let (Some(object), Some(sample)) = (object, sample) {
                let unwinds = Defer::new(|| abort());
                let known = SampledObject::new(ObjectKind::Global, object, sample);
                let sampled = SampledObject { site: self.sampling.site(), ..known };
                (self.on_sample)(sampled);
                core::mem::forget(unwinds);
                self.memory.remember(&sampled);
            }
            distance
        });
        // The code that uses the draws resumes the countdown.
        next.unwrap_or(usize::MAX)
    }

    fn move_stop(&self, left: usize) -> usize {
        self.draw(left, ThreadDraws::follow_switch).unwrap_or(left)
    }

    #[inline(always)]
    fn freeing(&self, object: Addr) {
        self.memory.forget(object);
    }

    #[inline(always)]
    fn reallocating(&self, object: Addr, reallocate: impl FnOnce() -> *mut u8) -> *mut u8 {
        self.memory.forget_unless_refused(object, reallocate)
    }
}

impl<M> fmt::Debug for GlobalSampler<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GlobalSampler").field("mean", &self.sampling.mean()).finish_non_exhaustive()
    }
}
