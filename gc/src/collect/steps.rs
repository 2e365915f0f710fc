//! Full collections in steps, between which mutators run (design/gc-steps.md).

use core::mem;
use core::time::Duration;

use tripoint_core::internal::Defer;
use tripoint_core::{Arena, BarrierPair, Collected, Event, aver};

use crate::collect::collection::{close, fix_roots, report_sweep, scan_grey, settle};
use crate::collect::ending::{HALF_DONE, close_steps, report_step, sweep_aside};
use crate::collect::pace::{Pace, Within};
use crate::messages::message::Message;
use crate::policy::progress::{Marked, Phase};
use crate::policy::report::{Cause, Collection};
use crate::references::generation::Generation;
use crate::references::list::List;
use crate::references::member::{MemberLink, Tally};
use crate::references::own::Own;
use crate::references::root::RootRecord;
use crate::references::scan::{Pass, Scan};
use crate::stops::heap::Heap;
use crate::stops::mutator::Mutator;
use crate::stops::postponed::Postponed;
use crate::stops::stopped::Stopped;

/// How much a step does before it asks whether to go on: about this many bytes of objects are scanned, or of segments
/// swept.
const PIECE: usize = 4 << 10;

/// Where a collection in steps is after one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// There is more to be marked.
    Marking {
        /// The bytes of objects that this step scanned.
        examined: usize,
    },
    /// All that is kept is known, and there is more to be swept.
    Sweeping {
        /// The bytes of objects that this step scanned before it swept.
        examined: usize,
    },
    /// The collection is over.
    Done(Collection),
}

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Does a part of a collection of the whole heap, for a thread that has no mutator of it, or whose mutator is away.
    /// Waits for the stop for at most about `patience`, and then goes on until the collection is over or `goes_on`
    /// returns false, which is asked after each piece of the work: about 4 KiB of objects. A piece is done
    /// in any case. The next call goes on with the same collection.
    ///
    /// Mutators run between two steps. Objects stay where they are. What was not reachable when the first step of a
    /// collection began is free after its last; what became unreachable since then may be kept.
    ///
    /// While a collection is in steps, the heap begins none of young generations by itself. Every other collection, and
    /// every walk, ends the one in steps, so the next step begins a new one: marks are forgotten, or, if it was already
    /// sweeping, the rest is swept at once, and its report is a message and not a result. `goes_on` must not use the heap.
    ///
    /// A few things are not divided into pieces, and are done in each step or in the one that ends the marking: roots,
    /// each single object, what weak references need, registrations for finalization with what their objects refer to,
    /// a look at all cards, and all objects of pools whose writes are not [noted](crate::Format::notes_writes)
    /// ([design](crate::design::gc_steps)).
    ///
    /// The steady-state contract counts such a step as a collection, because it does not know how long the step was to
    /// take: see [`Heap::step_within`].
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`].
    pub fn step(&'h self, patience: Duration, goes_on: impl FnMut() -> bool) -> Result<Step, Postponed> {
        let stopped = self.stop(patience)?;
        Ok(stopped.step(goes_on))
    }

    /// As [`Heap::step`], in at most the time `allowed`, from the call to the moment before mutators go on. `clock`
    /// returns a time that never goes back, from any beginning. It must not use the heap.
    ///
    /// Waits for the stop for at most about `allowed`. Then the step goes on as long as there is time for two more pieces,
    /// if they take as long as the longest one so far: the second is a reserve. A piece is done in any case. So a step may
    /// take longer than allowed if there was no time for a piece after the stop, if a piece takes more than twice as long
    /// as all before it, or if something is to be done that is not divided into pieces.
    ///
    /// The steady-state contract counts a step that takes longer as a collection, with both times, and one that
    /// does not as nothing. A time whose nanoseconds do not fit in 64 bits, such as [`Duration::MAX`], allows a whole
    /// collection, and is counted as one.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use std::time::Instant;
    /// # use tripoint_core::{Arena, BarrierPair};
    /// # use tripoint_gc::{Heap, Postponed, Step};
    /// # fn when_idle<A: Arena, B: BarrierPair>(heap: &Heap<'_, A, B>) -> Result<Step, Postponed> {
    /// let begin = Instant::now();
    /// heap.step_within(Duration::from_millis(1), || begin.elapsed())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`].
    pub fn step_within(
        &'h self,
        allowed: Duration,
        clock: impl FnMut() -> Duration,
    ) -> Result<Step, Postponed> {
        let pace = Within::begin(allowed, clock);
        let stopped = self.stop(allowed)?;
        Ok(stopped.step_by(pace))
    }
}

impl<A: Arena, B: BarrierPair> Mutator<'_, A, B> {
    /// Does a part of a collection of the whole heap, as [`Heap::step`]. This mutator gives way meanwhile.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Mutator::stop`].
    #[track_caller]
    pub fn step(&mut self, patience: Duration, goes_on: impl FnMut() -> bool) -> Result<Step, Postponed> {
        let stopped = self.stop(patience)?;
        Ok(stopped.step(goes_on))
    }

    /// Does a part of a collection of the whole heap in at most the time `allowed`, as [`Heap::step_within`]. This mutator
    /// gives way meanwhile.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Mutator::stop`].
    #[track_caller]
    pub fn step_within(
        &mut self,
        allowed: Duration,
        clock: impl FnMut() -> Duration,
    ) -> Result<Step, Postponed> {
        let pace = Within::begin(allowed, clock);
        let stopped = self.stop(allowed)?;
        Ok(stopped.step_by(pace))
    }
}

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Does a part of a collection of the whole heap, as [`Heap::step`].
    pub fn step(&self, goes_on: impl FnMut() -> bool) -> Step {
        self.step_by(goes_on)
    }

    /// Does a part of a collection of the whole heap in at most the time `allowed`, as [`Heap::step_within`], but the time
    /// begins here.
    pub fn step_within(&self, allowed: Duration, clock: impl FnMut() -> Duration) -> Step {
        self.step_by(Within::begin(allowed, clock))
    }

    fn step_by(&self, mut pace: impl Pace) -> Step {
        let heap = self.heap();
        heap.arena().event(Event::BeginStep { heap: heap.event_address() });
        let (members, roots) = (heap.members().lock(), heap.roots().lock());
        let mut progress = heap.progress().lock();
        let is_first = progress.phase() == Phase::Idle;
        if is_first {
            heap.tell(Message::Began { number: heap.accounts().next_number(), cause: Cause::Step });
            heap.accounts().begin_steps();
            // From here on, so that what is marked is known also if the pace unwinds.
            progress.go_on(Phase::Marking, Marked::default());
        }
        let own = Own::new(heap.arena(), &members).with_workspace(heap.workspace());
        let mut scan = Scan::new(&own);
        let is_marking = progress.phase() != Phase::Sweeping;
        if is_marking {
            let work = Marking { heap, members: &members, roots: &roots };
            // SAFETY: `self` says that the heap is stopped.
            let is_marked = unsafe { work.mark(&own, is_first, &mut scan, &mut pace) };
            let phase = if is_marked { Phase::Sweeping } else { Phase::Marking };
            progress.go_on(phase, Marked::by(&scan));
            if is_marked {
                report_sweep(heap, &members);
            }
        }
        let examined = scan.examined();
        let mut collected = None;
        let step = if progress.phase() == Phase::Marking {
            Step::Marking { examined }
        } else if is_marking && !pace.goes_on() {
            Step::Sweeping { examined }
        } else {
            // SAFETY: `self` says that the heap is stopped.
            match unsafe { sweep(&members, &mut scan, &mut pace) } {
                Some(tally) => {
                    let report = close_steps(heap, &mut progress, tally);
                    collected = Some(Collected { kept: report.kept, freed: report.freed });
                    Step::Done(report)
                }
                None => Step::Sweeping { examined },
            }
        };
        report_step(heap, examined, collected, pace.time());
        let nowhere = scan.nowhere();
        aver!(nowhere.is_none(), "an exact reference to {nowhere:?}, where no object is");
        step
    }
}

/// What a step needs to mark.
struct Marking<'a, 'h, A: Arena, B: BarrierPair> {
    heap: &'a Heap<'h, A, B>,
    members: &'a List<MemberLink>,
    roots: &'a List<RootRecord>,
}

impl<A: Arena, B: BarrierPair> Marking<'_, '_, A, B> {
    /// Marks until all is marked that is reachable, and then returns true, or until `pace` says that it is enough.
    ///
    /// # Safety
    /// - The heap is stopped by the caller.
    unsafe fn mark(
        &self,
        own: &Own<'_, A>,
        is_first: bool,
        scan: &mut Scan<'_>,
        pace: &mut impl Pace,
    ) -> bool {
        // SAFETY: the caller promises so.
        self.members.for_each(|link| unsafe { link.member().flip() });
        // SAFETY: the caller promises so, and the pools were just flipped.
        self.members.for_each(|link| unsafe { link.member().begin_step(is_first) });
        scan.begin_pass(Pass::Objects);
        if is_first {
            // SAFETY: the caller promises so.
            unsafe { self.fix_roots(scan) };
        }
        let mut were_roots_fixed = is_first;
        pace.begin_pieces();
        loop {
            // SAFETY: the caller promises so.
            let is_closed = unsafe { self.mark_piece(scan) };
            if !is_closed {
                if !pace.goes_on() {
                    return false;
                }
            } else if !were_roots_fixed {
                were_roots_fixed = true;
                // SAFETY: the caller promises so.
                unsafe { self.fix_roots(scan) };
                pace.begin_pieces();
            } else {
                break;
            }
        }
        // SAFETY: the caller promises so. No object is grey, roots were fixed in this stop, and what was written was
        // scanned again.
        unsafe { self.end(own, scan) };
        true
    }

    /// Fixes what roots refer to, and what waits to be finalized.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, and its pools were flipped.
    unsafe fn fix_roots(&self, scan: &mut Scan<'_>) {
        let is_half_done = Defer::new(|| panic!("{HALF_DONE}"));
        // SAFETY: the caller promises so.
        unsafe { fix_roots(self.heap, self.roots, scan) };
        mem::forget(is_half_done);
    }

    /// Scans grey objects and written cards: about a piece. Returns whether none is left.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, and its pools were flipped.
    unsafe fn mark_piece(&self, scan: &mut Scan<'_>) -> bool {
        let is_half_done = Defer::new(|| panic!("{HALF_DONE}"));
        scan.allow(PIECE);
        let mut is_any_written = true;
        while is_any_written && !scan.is_spent() {
            // SAFETY: the caller promises so.
            unsafe { scan_grey(self.members, scan) };
            is_any_written = false;
            if scan.is_spent() {
                break;
            }
            // SAFETY: the caller promises so.
            self.members.for_each(|link| is_any_written |= unsafe { link.member().scan_written(scan) });
        }
        mem::forget(is_half_done);
        !scan.is_spent()
    }

    /// Ends the marking: scans what was written without a note, and fixes what is not strong.
    ///
    /// # Safety
    /// - The heap is stopped by the caller, its pools were flipped, and all was reached and scanned that roots and
    ///   noted writes lead to.
    unsafe fn end(&self, own: &Own<'_, A>, scan: &mut Scan<'_>) {
        self.heap.forget_misplaced(Generation::LAST, own);
        let is_half_done = Defer::new(|| panic!("{HALF_DONE}"));
        scan.allow(usize::MAX);
        // An earlier step may have passed some by.
        scan.expect_pairs();
        // SAFETY: the caller promises so.
        self.members.for_each(|link| unsafe { link.member().scan_unnoted(scan) });
        // SAFETY: the caller promises so.
        unsafe { close(self.members, Generation::LAST, scan) };
        // SAFETY: the caller promises so.
        unsafe { settle(self.heap, self.members, self.roots, Generation::LAST, None, scan) };
        // SAFETY: the caller promises so, and all that is kept was reached and scanned.
        self.members.for_each(|link| unsafe { link.member().set_aside() });
        mem::forget(is_half_done);
    }
}

/// Sweeps what waits, until there is nothing, and then returns what was found, or until `pace` says that it is enough.
///
/// # Safety
/// - The heap of these pools is stopped by the caller.
unsafe fn sweep(members: &List<MemberLink>, scan: &mut Scan<'_>, pace: &mut impl Pace) -> Option<Tally> {
    pace.begin_pieces();
    loop {
        scan.allow(PIECE);
        // SAFETY: the caller promises so.
        let found = unsafe { sweep_aside(members, scan) };
        if found.is_some() || !pace.goes_on() {
            return found;
        }
    }
}
