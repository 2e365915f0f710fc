//! The end of a collection in steps, whichever way it ends (design/gc-steps.md `.alone`).

use core::mem;

use tripoint_core::internal::Defer;
use tripoint_core::{Arena, BarrierPair, Collected, Event, StepTime};

use crate::at_stop::AtStop;
use crate::heaps::heap::Heap;
use crate::heaps::member::MemberLink;
use crate::list::List;
use crate::messages::message::Message;
use crate::outlines::heap_outline::Doing;
use crate::policy::progress::{Phase, Progress};
use crate::policy::report::{Cause, Collection, Work};
use crate::policy::tally::Tally;
use crate::scans::scan::Scan;
use crate::segments::generation::Generation;
use crate::segments::writes::Writes;

/// Why the process ends.
pub(crate) const HALF_DONE: &str = "a format, a root function or an event hook unwound in the middle of a collection, which has left objects \
     half marked or half moved: have it return";

/// Ends a collection in steps, if there is one, because another or a walk begins: marks are forgotten, or what waits is
/// swept.
pub(crate) fn end_steps<A: Arena, B: BarrierPair>(
    at: AtStop<'_>,
    heap: &Heap<'_, A, B>,
    members: &List<MemberLink>,
) {
    let mut progress = heap.progress().lock();
    match progress.phase() {
        Phase::Idle => {}
        Phase::Marking => {
            members.for_each(|link| link.member().forget_marks(at));
            progress.end();
            heap.accounts().end_steps();
            heap.tell(Message::GivenUp { number: heap.accounts().next_number() });
        }
        Phase::Sweeping => {
            let address = heap.event_address();
            heap.arena().event(Event::BeginStep { heap: address });
            let tally = sweep_aside(heap, members, &mut Scan::idle(at));
            let Collection { kept, freed, .. } = close_steps(heap, &mut progress, tally.unwrap_or_default());
            // No time was allowed for it.
            report_step(heap, 0, Some(Collected { kept, freed }), None);
        }
    }
}

/// Sweeps what waits, until there is nothing, and then returns what was found, or until the scan is spent.
pub(crate) fn sweep_aside<A: Arena, B: BarrierPair>(
    heap: &Heap<'_, A, B>,
    members: &List<MemberLink>,
    scan: &mut Scan<'_>,
) -> Option<Tally> {
    heap.outline().set_doing(Doing::Sweeping);
    let is_half_done = Defer::new(|| panic!("{HALF_DONE}"));
    let mut sum = Some(Tally::default());
    members.for_each(|link| {
        let tally = link.member().sweep_aside(scan);
        sum = sum.zip(tally).map(|(mut sum, tally)| {
            sum += tally;
            sum
        });
    });
    mem::forget(is_half_done);
    heap.outline().set_doing(Doing::Nothing);
    sum
}

/// Closes the accounts of a collection in steps that is over, and returns its report.
pub(crate) fn close_steps<A: Arena, B: BarrierPair>(
    heap: &Heap<'_, A, B>,
    progress: &mut Progress,
    tally: Tally,
) -> Collection {
    let work = Work { tally, marked: progress.end(), cards: 0, writes: Writes::Unneeded };
    heap.accounts().end_steps();
    let report = heap.accounts().close(Cause::Step, Generation::LAST, work);
    heap.counts().count_collection(&report);
    heap.tell(Message::Ended(report));
    report
}

/// Counts a step, and reports that it has ended.
pub(crate) fn report_step<A: Arena, B: BarrierPair>(
    heap: &Heap<'_, A, B>,
    examined: usize,
    collected: Option<Collected>,
    time: Option<StepTime>,
) {
    heap.counts().count_step(time);
    heap.arena().event(Event::EndStep { heap: heap.event_address(), examined, collected, time });
}
