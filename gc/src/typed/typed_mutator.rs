//! A thread's way into the typed objects of a heap.

use core::fmt;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::ptr::NonNull;
use core::time::Duration;

use tripoint_ap::AllocationPoint;
use tripoint_core::internal::Defer;
use tripoint_core::{Arena, BarrierPair, BufferKind, Result, SymmetricFence};

use crate::classes::class::{Kind, Swept};
use crate::collect::steps::Step;
use crate::heaps::attendance::Place;
use crate::heaps::mutator::Mutator;
use crate::heaps::postponed::Postponed;
use crate::heaps::stopped::Stopped;
use crate::policy::report::Collection;
use crate::typed::format::Typed;
use crate::typed::inside::{Inside, Point, Points};
use crate::typed::roots::Roots;
use crate::typed::typed_objects::TypedObjects;

/// A thread's way into the typed objects of a heap: its registration, and its allocation points.
///
/// It is away whenever it is not [inside](TypedMutator::enter), so a thread that waits or does other work delays no
/// collection. It may move to another thread.
pub struct TypedMutator<'o, 'h, A: Arena + Clone, B: BarrierPair = SymmetricFence> {
    points: ManuallyDrop<Points<'o, 'h, A, B>>,
    mutator: Mutator<'h, A, B>,
    roots: &'o Roots,
}

impl<'h, A: Arena + Clone, B: BarrierPair> TypedObjects<'h, A, B> {
    /// Registers a mutator of the calling thread, which begins outside. Waits while the heap is stopped.
    ///
    /// # Errors
    /// Those of [`Heap::register`](crate::Heap::register).
    #[track_caller]
    pub fn register<'o>(&'o self) -> Result<TypedMutator<'o, 'h, A, B>> {
        let mutator = self.heap().register()?;
        let points = Points {
            moved: point(&self.moved, &mutator)?,
            moved_leaves: point(&self.moved_leaves, &mutator)?,
            fixed: point(&self.fixed, &mutator)?,
            fixed_leaves: point(&self.fixed_leaves, &mutator)?,
            weak: point(&self.weak, &mutator)?,
            with_references: [self.moved.id(), self.fixed.id(), self.weak.id()],
        };
        mutator.attendance().leave(Place::Away, self.heap().waiting());
        Ok(TypedMutator { points: ManuallyDrop::new(points), mutator, roots: self.roots() })
    }
}

fn point<'o, 'h, A: Arena + Clone, B: BarrierPair, K: Kind<Typed>>(
    pool: &'o Swept<'h, A, B, Typed, K>,
    mutator: &Mutator<'h, A, B>,
) -> Result<Point<'o, 'h, A, B, K>> {
    AllocationPoint::create_in(pool, BufferKind::Mutator, (), |buffer| {
        // SAFETY: the point stays with the mutator, in a `TypedMutator`. It is used inside the heap, and dropped
        // after the mutator came back.
        unsafe { buffer.attend(mutator) };
    })
}

impl<'o, 'h, A: Arena + Clone, B: BarrierPair> TypedMutator<'o, 'h, A, B> {
    /// Calls `body` inside the heap, as soon as no stop is wanted.
    ///
    /// No collection begins while `body` runs, so it may hold references and allocate. References cannot leave it:
    /// `body` works with any lifetime `'g`, so neither its result nor what it captures can have this one. Make a
    /// [`Rooted`](crate::Rooted) of what has to last.
    ///
    /// If a collection is due when `body` has returned ([`Policy`](crate::Policy)), this thread then runs it.
    ///
    /// Stops wait until `body` returns. A stop whose patience ends before that is postponed, and its error says where
    /// `enter` was called.
    ///
    /// Do not stop or collect the same heap in `body`, for example by [`Heap::collect`](crate::Heap::collect): that
    /// would wait for `body` itself, until its patience ends. And do not call this on a thread that has a [`Stopped`] of the
    /// heap: it would wait without end. With one from [`TypedMutator::stop`] it does not compile.
    #[inline]
    #[track_caller]
    pub fn enter<R>(&mut self, body: impl for<'g> FnOnce(&Inside<'g, A, B>) -> R) -> R {
        let Self { points, mutator, roots } = self;
        let (attendance, heap) = (mutator.attendance(), mutator.heap());
        attendance.see_at(Location::caller());
        attendance.come_back(heap.waiting());
        let leave = Defer::new(|| attendance.leave(Place::Away, heap.waiting()));
        let points: NonNull<Points<'o, 'h, A, B>> = NonNull::from(&mut **points);
        // SAFETY: only lifetimes change, to that of this call, during which all of this is borrowed. The mutator runs
        // until `leave` is dropped, and its pools do not have it give way. `body` works with any lifetime, and so knows
        // nothing of this one. The mutator is exclusively borrowed, and so are its points.
        let inside = unsafe { Inside::begin(points.cast(), &*(&raw const *heap).cast(), roots) };
        let result = body(&inside);
        drop(leave);
        if heap.is_due() {
            heap.collect_outside();
        }
        result
    }

    /// Calls `body` as [`TypedMutator::enter`] does. Its error is that of allocations, so that a body with a `?` in it may
    /// end with `Ok(())`.
    ///
    /// # Errors
    /// That of `body`.
    #[inline]
    #[track_caller]
    pub fn try_enter<R>(&mut self, body: impl for<'g> FnOnce(&Inside<'g, A, B>) -> Result<R>) -> Result<R> {
        self.enter(body)
    }

    /// Returns the memory that its allocation points hold and have not used. A thread that will not come inside for long
    /// calls this, so that others can use the memory. The next allocations get new memory.
    pub fn empty(&mut self) {
        self.come_in_for_points();
        let Self { points, mutator, .. } = self;
        let (attendance, heap) = (mutator.attendance(), mutator.heap());
        let _leave = Defer::new(|| attendance.leave(Place::Away, heap.waiting()));
        let Points { moved, moved_leaves, fixed, fixed_leaves, weak, with_references: _ } = &mut **points;
        moved.empty();
        moved_leaves.empty();
        fixed.empty();
        fixed_leaves.empty();
        weak.empty();
    }

    /// Frees all objects that no root leads to, in all automatic pools of the heap. Waits for the stop for at most
    /// about `patience`. This mutator is outside, so only roots keep objects for it.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`](crate::Heap::stop).
    pub fn collect(&mut self, patience: Duration) -> Result<Collection, Postponed> {
        self.mutator.heap().collect(patience)
    }

    /// Stops the heap for this thread, for [walks](Stopped::walk_objects) and the like. Waits for at most about `patience`.
    /// This mutator does not come inside as long as the result lives.
    ///
    /// If another mutator of the same thread did, it would wait without end.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`](crate::Heap::stop).
    pub fn stop(&mut self, patience: Duration) -> Result<Stopped<'_, 'h, A, B>, Postponed> {
        self.mutator.heap().stop(patience)
    }

    /// As [`TypedMutator::collect`], but frees only objects of the generations up to the one with the number `oldest`
    /// ([`Heap::collect_up_to`](crate::Heap::collect_up_to)).
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`](crate::Heap::stop).
    pub fn collect_up_to(&mut self, oldest: usize, patience: Duration) -> Result<Collection, Postponed> {
        self.mutator.heap().collect_up_to(oldest, patience)
    }

    /// Does a part of a collection of the whole heap, as [`Heap::step`](crate::Heap::step). This mutator is outside, so
    /// only roots keep objects for it.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`](crate::Heap::stop).
    pub fn step(&mut self, patience: Duration, goes_on: impl FnMut() -> bool) -> Result<Step, Postponed> {
        self.mutator.heap().step(patience, goes_on)
    }

    /// Does a part of a collection of the whole heap in at most the time `allowed`, as
    /// [`Heap::step_within`](crate::Heap::step_within). This mutator is outside, so only roots keep objects for it.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`](crate::Heap::stop).
    pub fn step_within(
        &mut self,
        allowed: Duration,
        clock: impl FnMut() -> Duration,
    ) -> Result<Step, Postponed> {
        self.mutator.heap().step_within(allowed, clock)
    }

    /// Comes inside to use the points. If this thread stops the heap itself, no other uses them, and it would wait without
    /// end: then it stays away.
    fn come_in_for_points(&self) {
        let (attendance, heap) = (self.mutator.attendance(), self.mutator.heap());
        if !heap.is_stopped_here() {
            attendance.come_back(heap.waiting());
        }
    }

    /// The mutator's number in its heap, by which [`Postponed`] names it.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.mutator.number()
    }
}

impl<A: Arena + Clone, B: BarrierPair> Drop for TypedMutator<'_, '_, A, B> {
    fn drop(&mut self) {
        self.come_in_for_points();
        // The points return their memory while the mutator runs. It leaves when it is dropped itself, after this.
        //
        // SAFETY: this runs once, and the points are not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.points) };
    }
}

impl<A: Arena + Clone, B: BarrierPair> fmt::Debug for TypedMutator<'_, '_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedMutator").field(&self.number()).finish()
    }
}
