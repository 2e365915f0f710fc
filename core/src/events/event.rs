//! Events of slow paths, which the program that owns the arena can observe.

use crate::primitive::defer::Defer;
use crate::shared::counters::BufferKind;
use crate::values::addr::{Addr, AddrRange};
use crate::values::pool_id::PoolId;
use crate::values::step_time::StepTime;

/// Something that a slow path did. There is one list for all layers. Sizes are in bytes.
///
/// | events | are reported by |
/// |---|---|
/// | of arenas, pools and points; trips, flips, commits that failed | the arena in which they happen, to its hook |
/// | of heaps: stops and collections | the heap, to the hook of its arena |
/// | of frames and of single objects | a control or a store that was switched on to report them |
/// | of the contract | the contract |
///
/// `buffer` is the address of a point's buffer, which tells the points of an arena apart. After a
/// point is destroyed, another point may have its buffer. `heap` is the address of a collector's heap, which tells
/// the heaps of an arena apart as long as each exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An arena was created.
    CreateArena {
        /// The range of its addresses ([`Arena::range`](crate::Arena::range)).
        range: AddrRange,
    },
    /// An arena is about to release its memory.
    DestroyArena {
        /// The range of its addresses ([`Arena::range`](crate::Arena::range)).
        range: AddrRange,
    },
    /// The arena committed memory that it did not have before.
    Grow {
        /// The bytes that were committed.
        size: usize,
    },
    /// The arena returned committed memory to the platform.
    Shrink {
        /// The bytes that were decommitted.
        size: usize,
    },
    /// A frozen arena refused to grow.
    GrowthRefused {
        /// The bytes that were asked for.
        size: usize,
    },
    /// A pool was created.
    CreatePool {
        /// The pool.
        pool: PoolId,
        /// The name of its class.
        class: &'static str,
    },
    /// A pool is being destroyed. The tracts that it still has are about to be returned to the arena.
    DestroyPool {
        /// The pool.
        pool: PoolId,
        /// The name of its class.
        class: &'static str,
    },
    /// A pool got tracts from its arena.
    Extend {
        /// The pool.
        pool: PoolId,
        /// The first address.
        base: Addr,
        /// The bytes, which are whole grains.
        size: usize,
    },
    /// A pool is about to return tracts to its arena, and does not use them any more.
    Retract {
        /// The pool.
        pool: PoolId,
        /// The first address.
        base: Addr,
        /// The bytes, which are whole grains.
        size: usize,
    },
    /// An allocation point was created.
    CreatePoint {
        /// The pool that it allocates in.
        pool: PoolId,
        /// Its buffer.
        buffer: Addr,
        /// Whether the buffer serves the program or the pool system itself.
        kind: BufferKind,
    },
    /// An allocation point is being dropped. Its buffer is already empty.
    DestroyPoint {
        /// The pool that it allocated in.
        pool: PoolId,
        /// Its buffer.
        buffer: Addr,
    },
    /// A buffer was filled.
    Fill {
        /// The pool that the memory is from.
        pool: PoolId,
        /// The buffer.
        buffer: Addr,
        /// Where the next object begins.
        base: Addr,
        /// The bytes from there to the buffer's end.
        size: usize,
    },
    /// A buffer returned what it did not use, or objects that were popped.
    Empty {
        /// The pool that the memory was returned to.
        pool: PoolId,
        /// The buffer.
        buffer: Addr,
        /// The first address; zero for objects that were popped, because those may have been in
        /// several blocks.
        base: Addr,
        /// The bytes that were returned.
        size: usize,
    },
    /// The owner of a buffer handled one or more trips.
    Trip {
        /// The pool of the buffer.
        pool: PoolId,
        /// The buffer.
        buffer: Addr,
        /// How many trips were requested since trips were last handled.
        requests: usize,
    },
    /// A buffer was flipped.
    Flip {
        /// The pool of the buffer.
        pool: PoolId,
        /// The buffer.
        buffer: Addr,
        /// The memory of the objects that the flip saw.
        objects: AddrRange,
    },
    /// A commit failed because a flip had not seen the object.
    CommitFailed {
        /// The pool of the buffer.
        pool: PoolId,
        /// The buffer.
        buffer: Addr,
        /// The address of the object.
        object: Addr,
        /// Its size, as the pool rounded it.
        size: usize,
    },
    /// A frame was pushed.
    PushFrame {
        /// The pool of the buffer.
        pool: PoolId,
        /// The buffer.
        buffer: Addr,
        /// Where the next object begins; zero if the buffer has no memory.
        init: Addr,
    },
    /// A frame was popped.
    PopFrame {
        /// The pool of the buffer.
        pool: PoolId,
        /// The buffer.
        buffer: Addr,
        /// The address that [`Event::PushFrame`] had.
        init: Addr,
        /// The bytes of the objects that were taken back.
        size: usize,
    },
    /// Memory for an object was reserved.
    Reserve {
        /// The pool of the buffer.
        pool: PoolId,
        /// The buffer.
        buffer: Addr,
        /// The address of the object; in a batch, of the first.
        object: Addr,
        /// The size, as the pool rounded it; in a batch, of all objects together.
        size: usize,
        /// The size of one object: less than `size` for a batch.
        unit: usize,
        /// The name of the object's type, if the call that allocates it names one.
        type_name: Option<&'static str>,
    },
    /// What was reserved was committed.
    Commit {
        /// The pool of the buffer.
        pool: PoolId,
        /// The buffer.
        buffer: Addr,
        /// The address of the object; in a batch, of the first.
        object: Addr,
        /// The bytes that were committed: of a batch perhaps less than was reserved.
        size: usize,
    },
    /// What was reserved was abandoned, or its commit failed.
    Abandon {
        /// The pool of the buffer.
        pool: PoolId,
        /// The buffer.
        buffer: Addr,
        /// The address of the object; in a batch, of the first.
        object: Addr,
    },
    /// A pool or a cache allocated an object, without a point.
    Alloc {
        /// The pool.
        pool: PoolId,
        /// The address of the object.
        object: Addr,
        /// The size that was asked for.
        size: usize,
        /// The alignment that was asked for.
        align: usize,
        /// The name of the object's type, if the call that allocated it has a type.
        type_name: Option<&'static str>,
    },
    /// An object was freed to a pool or a cache.
    Free {
        /// The pool.
        pool: PoolId,
        /// The address that the object had.
        object: Addr,
        /// The size that it was allocated with.
        size: usize,
        /// The alignment that it was allocated with.
        align: usize,
    },
    /// An object was sampled.
    Sample {
        /// The name of the way by which it was allocated, as the sampler calls it.
        kind: &'static str,
        /// The pool; none for an object of the program's global allocator, or if it is not known.
        pool: Option<PoolId>,
        /// The name of the pool's class, if it is known.
        class: Option<&'static str>,
        /// The address of the object.
        object: Addr,
        /// Its size.
        size: usize,
        /// The byte that was drawn, counted from the object's first, which is zero.
        offset: usize,
        /// The mean in bytes that was in force when the byte was drawn.
        mean: u32,
        /// The name of the object's type, if the call that allocates it names one.
        type_name: Option<&'static str>,
    },
    /// A thread begins to stop a heap: all of its mutators have to give way.
    BeginStop {
        /// The heap.
        heap: Addr,
        /// The number of the thread's mutator; zero if the thread has none there.
        mutator: u32,
    },
    /// A heap is stopped: all of its mutators have given way. The time since [`Event::BeginStop`] on the same thread
    /// is the time to stop.
    Stop {
        /// The heap.
        heap: Addr,
    },
    /// A heap was not stopped in the time that was allowed. All of its mutators go on.
    PostponeStop {
        /// The heap.
        heap: Addr,
        /// The number of a mutator that did not give way; zero if another thread stopped the heap meanwhile.
        mutator: u32,
    },
    /// A stop is about to end. The time since [`Event::Stop`] on the same thread is how long the heap was stopped.
    EndStop {
        /// The heap.
        heap: Addr,
    },
    /// A mutator is about to wait because its heap is being stopped, on its thread. A mutator that is away waits
    /// only if it comes back during the stop.
    GiveWay {
        /// The heap.
        heap: Addr,
        /// The number of the mutator.
        mutator: u32,
    },
    /// A mutator that gave way goes on. The time since [`Event::GiveWay`] on the same thread is its pause.
    GoOn {
        /// The heap.
        heap: Addr,
        /// The number of the mutator.
        mutator: u32,
    },
    /// A collection of a stopped heap begins, all of which is done in this stop.
    BeginCollection {
        /// The heap.
        heap: Addr,
        /// The name of the reason.
        reason: &'static str,
    },
    /// A collection, or one in steps, knows all objects that it keeps, and begins to sweep. Until here it marked objects
    /// where they are, or copied them.
    BeginSweep {
        /// The heap.
        heap: Addr,
        /// The bytes of the objects that were copied.
        copied: usize,
    },
    /// A collection has ended: what it freed is free.
    EndCollection {
        /// The heap.
        heap: Addr,
        /// The bytes of the objects that were searched for references.
        examined: usize,
        /// The bytes that were kept: in objects, and in buffers that are still attached.
        kept: usize,
        /// The bytes that were freed.
        freed: usize,
    },
    /// A step of a collection of a stopped heap begins.
    BeginStep {
        /// The heap.
        heap: Addr,
    },
    /// A step has ended, and perhaps its collection.
    EndStep {
        /// The heap.
        heap: Addr,
        /// The bytes of the objects that the step searched for references.
        examined: usize,
        /// What the whole collection found, if this was its last step.
        collected: Option<Collected>,
        /// The time that the step was allowed, and that it took, waiting for the stop included; none if its caller has
        /// no clock.
        time: Option<StepTime>,
    },
    /// The program entered a phase.
    Phase {
        /// The name of the phase that it left.
        from: &'static str,
        /// The name of the phase that it entered.
        to: &'static str,
    },
    /// A thread did something that the contract counts, or an alarm was raised.
    Violation {
        /// The name of the record's kind.
        kind: &'static str,
        /// The name of the violation's class.
        class: &'static str,
        /// The index of the thread's slot in the contract, which is not the number that its records have.
        slot: usize,
        /// How many there were.
        count: usize,
        /// The bytes concerned; zero for faults.
        bytes: usize,
        /// The address that faulted, or the first argument of a memory call; otherwise zero.
        address: usize,
        /// The number of the memory call; otherwise zero.
        call: usize,
    },
    /// A thread began an amnesty.
    BeginAmnesty {
        /// The index of the thread's slot in the contract, which is not the number that its records have.
        slot: usize,
        /// The name of the reason.
        reason: &'static str,
    },
    /// A thread ended an amnesty.
    EndAmnesty {
        /// The index of the thread's slot in the contract, which is not the number that its records have.
        slot: usize,
        /// The name of the reason.
        reason: &'static str,
    },
}

/// What a collection in steps kept and freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// The bytes that were kept: in objects, and in buffers that are still attached.
    pub kept: usize,
    /// The bytes that were freed.
    pub freed: usize,
}

/// A hook that observes [`Event`]s.
///
/// It is called on the thread that runs the slow path, sometimes while a pool is locked. So
/// it must not call any pool of the arena that it observes, not even to read sizes, and should
/// return soon.
///
/// A hook should not unwind. If one does, the step that it observes was already done and
/// counted, or is done nevertheless, so nothing is lost; tracts that a pool was about to get
/// ([`Event::Extend`]) are returned to the arena. The exception is an event of memory in the middle of a
/// collection, between [`Event::BeginCollection`] and [`Event::EndCollection`] on the same thread: if a hook
/// unwinds there, the process ends.
///
/// A pair of hooks is a hook, and so is a reference to a hook, shared or exclusive. The second of a
/// pair observes an event even if the first unwinds.
///
/// ```
/// use tripoint_core::{Counter, Event, EventHook};
///
/// struct Growth(Counter);
///
/// impl EventHook for Growth {
///     fn event(&self, event: Event) {
///         if let Event::Grow { size } = event {
///             self.0.add(size as u64);
///         }
///     }
/// }
///
/// let growth = Growth(Counter::new());
/// growth.event(Event::Grow { size: 4096 }); // an arena's call
/// assert_eq!(growth.0.get(), 4096);
/// ```
pub trait EventHook: Sync {
    /// Observes one event.
    fn event(&self, event: Event);

    /// Observes one event whose call site is known: return addresses, the innermost
    /// first. By default this calls [`event`](EventHook::event), without the site.
    fn event_at(&self, event: Event, site: &[usize]) {
        let _ = site;
        self.event(event);
    }
}

impl<H: EventHook + ?Sized> EventHook for &H {
    fn event(&self, event: Event) {
        (**self).event(event);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        (**self).event_at(event, site);
    }
}

/// What `Box::leak` returns is a hook as well.
impl<H: EventHook + ?Sized> EventHook for &mut H {
    fn event(&self, event: Event) {
        (**self).event(event);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        (**self).event_at(event, site);
    }
}

/// Both hooks observe all events, the first hook first.
impl<A: EventHook, B: EventHook> EventHook for (A, B) {
    fn event(&self, event: Event) {
        let _second = Defer::new(|| self.1.event(event));
        self.0.event(event);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        let _second = Defer::new(|| self.1.event_at(event, site));
        self.0.event_at(event, site);
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::primitive::{AtomicUsize, Ordering};
    use std::sync::Mutex;
    use std::vec::Vec;

    /// Records what it observes, and unwinds at shrinks.
    #[derive(Default)]
    struct Recorder(Mutex<Vec<(Event, Vec<usize>)>>);

    impl Recorder {
        fn take(&self) -> Vec<(Event, Vec<usize>)> {
            core::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl EventHook for Recorder {
        fn event(&self, event: Event) {
            self.event_at(event, &[]);
        }

        fn event_at(&self, event: Event, site: &[usize]) {
            self.0.lock().unwrap().push((event, site.to_vec()));
            if let Event::Shrink { .. } = event {
                std::panic::resume_unwind(std::boxed::Box::new("on purpose"));
            }
        }
    }

    /// A hook that takes no sites.
    struct Siteless<'r>(&'r Recorder);

    impl EventHook for Siteless<'_> {
        fn event(&self, event: Event) {
            self.0.event(event);
        }
    }

    #[test]
    fn both_of_a_pair_observe_events_and_their_sites() {
        let (first, second, third) = (Recorder::default(), Recorder::default(), Recorder::default());
        let hooks = (&first, (&second, Siteless(&third)));
        let (grow, refused) = (Event::Grow { size: 1 }, Event::GrowthRefused { size: 2 });
        hooks.event(grow);
        hooks.event_at(refused, &[7, 8]);
        for hook in [&first, &second] {
            assert_eq!(hook.take(), [(grow, Vec::new()), (refused, Vec::from([7, 8]))]);
        }
        assert_eq!(third.take(), [(grow, Vec::new()), (refused, Vec::new())]);
    }

    #[test]
    fn an_exclusive_reference_to_a_hook_observes_what_the_hook_does() {
        let (mut first, second) = (Recorder::default(), Recorder::default());
        let hooks = (&mut first, &second);
        let (grow, refused) = (Event::Grow { size: 1 }, Event::GrowthRefused { size: 2 });
        hooks.event(grow);
        hooks.event_at(refused, &[7, 8]);
        for hook in [&first, &second] {
            assert_eq!(hook.take(), [(grow, Vec::new()), (refused, Vec::from([7, 8]))]);
        }
    }

    /// Counts events.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl EventHook for Count {
        fn event(&self, _: Event) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_second_of_a_pair_observes_what_the_first_unwinds_at() {
        let (first, second) = (Recorder::default(), Count::default());
        let hooks = (&first, &second);
        let unwound =
            |event: &dyn Fn()| std::panic::catch_unwind(core::panic::AssertUnwindSafe(event)).is_err();
        assert!(unwound(&|| hooks.event(Event::Shrink { size: 1 })));
        assert!(unwound(&|| hooks.event_at(Event::Shrink { size: 1 }, &[3])));
        assert_eq!(second.0.load(Ordering::Relaxed), 2);
    }
}
