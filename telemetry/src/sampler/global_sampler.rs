//! What samples allocations of a global allocator, thread by thread.

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
/// Each thread has a stream of draws of its own, which begins with its first allocation. It
/// looks at the switch at each sample, and after at most 1 MiB that it has allocated: so late does a
/// thread notice that sampling was switched on or off, or that mean or seed were replaced, unless
/// it calls `follow_switch` of its allocator. Until then it goes by the switch as it was.
///
/// A process has one such sampler, because its threads have one countdown each. Several
/// allocators may have copies of it.
///
/// # The function that is called
///
/// `on_sample` is called within the allocation, on the thread that allocates, once the object
/// exists; its memory is not initialised yet, unless it was to be zeroed. So the caller's stack can
/// be walked there. The function
///
/// - may allocate: what it allocates is not sampled, and so it is not called again meanwhile.
/// - may not wait for a lock that any code holds while it allocates (standard output and standard
///   error are such). To read what it gathers under a lock of its own, copy that out, and allocate
///   when the lock is released.
/// - may not unwind: allocators must not, so the process aborts.
///
/// It is not called for an allocation that failed.
///
/// # Signal handlers, forks, and the end of a thread
///
/// The thread's state is a thread-local that is initialised at compile time and has no destructor. So
/// a sampled allocation may be made wherever one of the allocator itself may: in
/// a signal handler, after a fork, and in the destructors of thread-locals. A handler that allocates
/// while its own thread counts down may have one draw end a few bytes early or late.
/// After a fork, the child calls [`Sampling::reseed`], then `follow_switch`
/// ([design/sampling.md `.global`](crate::design::sampling)).
#[derive(Clone, Copy)]
pub struct GlobalSampler<M = ()> {
    sampling: &'static Sampling,
    on_sample: fn(SampledObject),
    memory: M,
}

/// What the calling thread knows of its draws.
#[derive(Debug)]
enum State {
    /// It has drawn nothing yet.
    New,
    Drawn(ThreadDraws),
    /// They are in use, further down the stack.
    InUse,
}

/// The thread's own.
pub(super) struct Thread {
    /// For [`SampledAllocator`](crate::SampledAllocator); other wrappers have one of their own.
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
    /// A sampler that `sampling` switches, and that calls `on_sample` for each object sampled.
    #[must_use]
    pub const fn new(sampling: &'static Sampling, on_sample: fn(SampledObject)) -> Self {
        Self { sampling, on_sample, memory: () }
    }
}

impl<M: Remember> GlobalSampler<M> {
    /// Has `live` remember each object that is sampled until it is freed or reallocated: an estimate of what is
    /// in use, by call site if [sites are walked](Sampling::set_sites). A free then costs one load more.
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

impl<M: Remember> AllocationSampler for GlobalSampler<M> {
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
        // Who uses the draws resumes the countdown.
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
