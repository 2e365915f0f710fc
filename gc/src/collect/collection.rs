//! One collection, from the stop to the sweep.

use core::mem;
use core::time::Duration;

use tripoint_core::internal::Defer;
use tripoint_core::{Arena, BarrierPair, Event, aver};

use crate::messages::message::Message;
use crate::policy::report::{Cause, Collection, Work};
use crate::references::list::List;
use crate::references::member::{MemberLink, Tally};
use crate::references::own::Own;
use crate::references::scan::{Pass, Scan};
use crate::stops::heap::Heap;
use crate::stops::mutator::Mutator;
use crate::stops::postponed::Postponed;
use crate::stops::stopped::Stopped;

/// Why the process ends.
const HALF_DONE: &str = "a format, a root function or an event hook unwound in the middle of a collection, which has left objects \
     half marked or half moved: have it return";

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Frees all objects that no root leads to, in all automatic pools of the heap, for a thread that has no
    /// mutator of it, or whose mutator is away. Waits for the stop for at most about `patience`.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`].
    pub fn collect(&'h self, patience: Duration) -> Result<Collection, Postponed> {
        let stopped = self.stop(patience)?;
        Ok(run(&stopped, Cause::Requested))
    }
}

impl<A: Arena, B: BarrierPair> Mutator<'_, A, B> {
    /// Frees all objects that no root leads to, in all automatic pools of the heap. Waits for the stop for at most
    /// about `patience`. This mutator gives way meanwhile: only roots keep what it refers to.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Mutator::stop`].
    #[track_caller]
    pub fn collect(&mut self, patience: Duration) -> Result<Collection, Postponed> {
        let stopped = self.stop(patience, || ())?;
        Ok(run(&stopped, Cause::Requested))
    }
}

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Frees all objects that no root leads to, in all automatic pools of the heap. What a
    /// [walk](Stopped::walk_objects) shows afterwards, during the same stop, is live.
    pub fn collect(&self) -> Collection {
        run(self, Cause::Requested)
    }
}

/// Collects the heap that is stopped.
pub(crate) fn run<A: Arena, B: BarrierPair>(stopped: &Stopped<'_, '_, A, B>, cause: Cause) -> Collection {
    let heap = stopped.heap();
    heap.arena().event(Event::BeginCollection { heap: heap.event_address(), reason: cause.reason() });
    heap.tell(Message::Began { number: heap.accounts().next_number(), cause });
    let (members, roots) = (heap.members().lock(), heap.roots().lock());
    // SAFETY: `stopped` says that the heap is stopped.
    members.for_each(|link| unsafe { link.member().flip() });
    let own = Own::new(heap.arena(), &members);
    heap.forget_misplaced(&own);
    // A panic while one unwinds ends the process (design/gc.md `.collect.whole`).
    let is_half_done = Defer::new(|| panic!("{HALF_DONE}"));
    // SAFETY: the heap is stopped, and its pools were flipped.
    members.for_each(|link| unsafe { link.member().condemn() });
    let mut scan = Scan::new(&own);
    for pass in [Pass::AmbiguousRoots, Pass::ExactRoots] {
        scan.begin_pass(pass);
        // SAFETY: the heap is stopped, and roots were registered by a promise.
        roots.for_each(|root| unsafe { root.scan(&mut scan) });
    }
    scan.begin_pass(Pass::Objects);
    heap.mailbox().lock().keep_finalizable(&mut scan);
    // SAFETY: the heap is stopped, and all of its pools were flipped above.
    unsafe { close(&members, &mut scan) };
    if heap.mailbox().lock().find_dead(&mut scan) {
        // SAFETY: the heap is stopped, and all of its pools were flipped above.
        unsafe { close(&members, &mut scan) };
    }
    scan.begin_pass(Pass::Weak);
    // SAFETY: the heap is stopped, and roots were registered by a promise.
    roots.for_each(|root| unsafe { root.scan_weak(&mut scan) });
    // SAFETY: the heap is stopped, and all that is kept was reached and scanned.
    members.for_each(|link| unsafe { link.member().scan_weak(&mut scan) });
    let mut tally = Tally::default();
    // SAFETY: the heap is stopped, and no pool has grey objects any more: all that is reachable is black.
    members.for_each(|link| tally += unsafe { link.member().sweep() });
    mem::forget(is_half_done);
    let (Tally { kept, freed, zones, moved, refused }, examined) = (tally, scan.examined());
    heap.history().age(zones);
    let references = scan.references();
    let report = heap.accounts().close(cause, Work { kept, freed, moved, refused, examined, references });
    heap.counts().count_collection(cause);
    heap.tell(Message::Ended(report));
    heap.arena().event(Event::EndCollection { heap: heap.event_address(), examined, kept, freed });
    let nowhere = scan.nowhere();
    aver!(nowhere.is_none(), "an exact reference to {nowhere:?}, where no object is");
    report
}

/// Scans grey objects until there are none.
///
/// # Safety
/// - The heap of these pools is stopped by the caller, and all of them are flipped.
unsafe fn close(members: &List<MemberLink>, scan: &mut Scan<'_>) {
    let mut is_any_grey = true;
    while is_any_grey {
        is_any_grey = false;
        // SAFETY: the caller promises so.
        members.for_each(|link| is_any_grey |= unsafe { link.member().scan(scan) });
    }
}
