//! Full collections in steps, between which mutators run (design/gc-steps.md).

use core::mem;
use core::time::Duration;

use tripoint_core::internal::Defer;
use tripoint_core::{Addr, Arena, BarrierPair, Collected, Event, aver};

use crate::at_stop::{AtStop, Flipped};
use crate::collect::collection::{close, fix_roots, report_sweep, scan_grey, settle};
use crate::collect::ending::{HALF_DONE, close_steps, report_step, sweep_aside};
use crate::collect::flip::flip_all;
use crate::collect::pace::{Pace, Within};
use crate::heaps::heap::Heap;
use crate::heaps::member::MemberLink;
use crate::heaps::mutator::Mutator;
use crate::heaps::own::Own;
use crate::heaps::postponed::Postponed;
use crate::heaps::stopped::Stopped;
use crate::list::List;
use crate::messages::message::Message;
use crate::outlines::heap_outline::Doing;
use crate::policy::progress::{Marked, Phase, Progress};
use crate::policy::report::{Cause, Collection};
use crate::roots::root::RootRecord;
use crate::scans::scan::{Pass, Scan};
use crate::segments::generation::Generation;

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
    /// sweeping, the rest is swept at once, and its report is a message and not a result. `goes_on` may create
    /// and drop pools and roots. An object that only roots led to which it has dropped counts as freed.
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
        let mut stopped = self.stop(patience)?;
        Ok(stopped.step(goes_on))
    }

    /// As [`Heap::step`], in at most the time `allowed`, from the call to the moment before mutators go on. `clock`
    /// returns a time that never goes back, from any beginning.
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
        let mut stopped = self.stop(allowed)?;
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
        let mut stopped = self.stop(patience)?;
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
        let mut stopped = self.stop(allowed)?;
        Ok(stopped.step_by(pace))
    }
}

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Does a part of a collection of the whole heap, as [`Heap::step`].
    pub fn step(&mut self, goes_on: impl FnMut() -> bool) -> Step {
        self.step_by(goes_on)
    }

    /// Does a part of a collection of the whole heap in at most the time `allowed`, as [`Heap::step_within`], but the time
    /// begins here.
    pub fn step_within(&mut self, allowed: Duration, clock: impl FnMut() -> Duration) -> Step {
        self.step_by(Within::begin(allowed, clock))
    }

    /// No lock is taken whenever `pace` is asked: its closures may create and drop pools and roots, as between two steps.
    fn step_by(&mut self, mut pace: impl Pace) -> Step {
        let heap = self.heap();
        heap.arena().event(Event::BeginStep { heap: heap.event_address() });
        let mut work = Work { heap, at: self.at_stop(), fixed: None, examined: 0, nowhere: None };
        let is_marking = heap.progress().lock().phase() != Phase::Sweeping;
        let is_marked = !is_marking || work.mark(&mut pace);
        let mut collected = None;
        let examined = work.examined;
        let step = if !is_marked {
            Step::Marking { examined }
        } else if is_marking && !pace.goes_on() {
            Step::Sweeping { examined }
        } else {
            match work.sweep(&mut pace) {
                Some(report) => {
                    collected = Some(Collected { kept: report.kept, freed: report.freed });
                    Step::Done(report)
                }
                None => Step::Sweeping { examined },
            }
        };
        report_step(heap, examined, collected, pace.time());
        let nowhere = work.nowhere;
        aver!(nowhere.is_none(), "an exact reference to {nowhere:?}, where no object is");
        step
    }
}

/// What a piece of the marking came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// There is more to be scanned.
    Spent,
    /// What roots refer to was fixed, and is to be scanned.
    RootsFixed,
    /// All is marked that is reachable.
    Last,
}

/// What a step does, piece by piece.
struct Work<'a, 'h, A: Arena, B: BarrierPair> {
    heap: &'a Heap<'h, A, B>,
    at: AtStop<'a>,
    /// How many roots there had ever been when they were last fixed in this step: those that came since are not.
    fixed: Option<usize>,
    examined: usize,
    /// A place that an exact reference leads to, and where no object is.
    nowhere: Option<Addr>,
}

impl<'a, A: Arena, B: BarrierPair> Work<'a, '_, A, B> {
    /// Marks until all is marked that is reachable, and then returns true, or until `pace` says that it is enough.
    fn mark(&mut self, pace: &mut impl Pace) -> bool {
        let flipped = self.begin();
        pace.begin_pieces();
        loop {
            match self.mark_piece(flipped) {
                Piece::Last => return true,
                Piece::RootsFixed => pace.begin_pieces(),
                Piece::Spent if pace.goes_on() => {}
                Piece::Spent => return false,
            }
        }
    }

    /// Begins a step, and a collection, if this is its first.
    fn begin(&mut self) -> Flipped<'a> {
        let heap = self.heap;
        let (members, roots) = (heap.members().lock(), heap.roots().lock());
        let mut progress = heap.progress().lock();
        let is_first = progress.phase() == Phase::Idle;
        if is_first {
            heap.tell(Message::Began { number: heap.accounts().next_number(), cause: Cause::Step });
            heap.accounts().begin_steps();
            progress.go_on(Phase::Marking, Marked::default());
        }
        let flipped = flip_all(self.at, &members);
        members.for_each(|link| link.member().begin_step(flipped, is_first));
        if is_first {
            let own = Own::new(heap.arena(), &members).with_workspace(heap.workspace());
            let mut scan = Scan::new(self.at, &own);
            self.fix_roots(&roots, &mut scan);
            self.account(&mut progress, Phase::Marking, &scan);
        }
        flipped
    }

    /// Scans grey objects and written cards: about a piece. If none is left, fixes what roots refer to, if this step has not
    /// done so, or else ends the marking.
    fn mark_piece(&mut self, flipped: Flipped<'_>) -> Piece {
        let heap = self.heap;
        let (members, roots) = (heap.members().lock(), heap.roots().lock());
        let mut progress = heap.progress().lock();
        let own = Own::new(heap.arena(), &members).with_workspace(heap.workspace());
        let mut scan = Scan::new(self.at, &own);
        scan.begin_pass(Pass::Objects);
        let is_closed = scan_piece(flipped, &members, &mut scan);
        let piece = if !is_closed {
            Piece::Spent
        } else if self.fixed != Some(roots.pushed()) {
            self.fix_roots(&roots, &mut scan);
            Piece::RootsFixed
        } else {
            // SAFETY: each object that was there is condemned since the step began, none is grey, roots were fixed in this
            // stop, and what was written was scanned again.
            unsafe { end_marking(flipped, heap, &members, &roots, &own, &mut scan) };
            Piece::Last
        };
        let phase = if piece == Piece::Last { Phase::Sweeping } else { Phase::Marking };
        self.account(&mut progress, phase, &scan);
        if piece == Piece::Last {
            report_sweep(heap, &members);
        }
        piece
    }

    /// Fixes what roots refer to, and what waits to be finalized.
    fn fix_roots(&mut self, roots: &List<RootRecord>, scan: &mut Scan<'_>) {
        let is_half_done = Defer::new(|| panic!("{HALF_DONE}"));
        self.fixed = Some(roots.pushed());
        fix_roots(self.heap, roots, scan);
        mem::forget(is_half_done);
    }

    /// Notes what a scan has done.
    fn account(&mut self, progress: &mut Progress, phase: Phase, scan: &Scan<'_>) {
        progress.go_on(phase, Marked::by(scan));
        self.examined += scan.examined();
        self.nowhere = scan.nowhere().or(self.nowhere);
    }

    /// Sweeps what waits, until there is nothing, and then ends the collection and returns its report, or until `pace` says
    /// that it is enough.
    fn sweep(&mut self, pace: &mut impl Pace) -> Option<Collection> {
        pace.begin_pieces();
        loop {
            {
                let members = self.heap.members().lock();
                let mut progress = self.heap.progress().lock();
                let mut scan = Scan::idle(self.at);
                scan.allow(PIECE);
                if let Some(tally) = sweep_aside(self.heap, &members, &mut scan) {
                    return Some(close_steps(self.heap, &mut progress, tally));
                }
            }
            if !pace.goes_on() {
                return None;
            }
        }
    }
}

/// Scans grey objects and written cards: about a piece. Returns whether none is left.
fn scan_piece(flipped: Flipped<'_>, members: &List<MemberLink>, scan: &mut Scan<'_>) -> bool {
    let is_half_done = Defer::new(|| panic!("{HALF_DONE}"));
    scan.allow(PIECE);
    let mut is_any_written = true;
    while is_any_written && !scan.is_spent() {
        scan_grey(flipped, members, scan);
        is_any_written = false;
        if scan.is_spent() {
            break;
        }
        members.for_each(|link| is_any_written |= link.member().scan_written(flipped, scan));
    }
    mem::forget(is_half_done);
    !scan.is_spent()
}

/// Ends the marking: scans what was written without a note, and fixes what is not strong.
///
/// # Safety
/// - All objects of these pools are condemned, and all was reached and scanned that roots and noted writes lead to.
unsafe fn end_marking<A: Arena, B: BarrierPair>(
    flipped: Flipped<'_>,
    heap: &Heap<'_, A, B>,
    members: &List<MemberLink>,
    roots: &List<RootRecord>,
    own: &Own<'_, A>,
    scan: &mut Scan<'_>,
) {
    heap.forget_misplaced(Generation::LAST, own);
    let is_half_done = Defer::new(|| panic!("{HALF_DONE}"));
    scan.allow(usize::MAX);
    // An earlier piece may have passed some by.
    scan.expect_pairs();
    members.for_each(|link| link.member().scan_unnoted(flipped, scan));
    // SAFETY: all objects are condemned (`# Safety`).
    unsafe { close(flipped, members, Generation::LAST, scan) };
    // SAFETY: all objects are condemned, and all was reached and scanned that roots lead to (`# Safety`).
    unsafe { settle(flipped, heap, members, roots, Generation::LAST, None, scan) };
    heap.outline().set_doing(Doing::Sweeping);
    // SAFETY: all that is kept was reached and scanned.
    members.for_each(|link| unsafe { link.member().set_aside(flipped.at_stop()) });
    heap.outline().set_doing(Doing::Nothing);
    mem::forget(is_half_done);
}
