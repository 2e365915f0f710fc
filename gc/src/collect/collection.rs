//! One collection, from the stop to the sweep.

use core::mem;
use core::time::Duration;

use tripoint_core::internal::Defer;
use tripoint_core::{Arena, BarrierPair, Event, WriteWatch, aver};

use crate::at_stop::{AtStop, Flipped};
use crate::collect::ending::{HALF_DONE, end_steps};
use crate::collect::flip::flip;
use crate::heaps::heap::Heap;
use crate::heaps::member::{Member, MemberLink};
use crate::heaps::mutator::Mutator;
use crate::heaps::own::Own;
use crate::heaps::postponed::Postponed;
use crate::heaps::stopped::Stopped;
use crate::list::List;
use crate::messages::message::Message;
use crate::outlines::heap_outline::Doing;
use crate::policy::progress::Marked;
use crate::policy::report::{Cause, Collection, Work};
use crate::policy::tally::Tally;
use crate::roots::root::RootRecord;
use crate::scans::scan::{Pass, Scan};
use crate::segments::generation::{GENERATIONS, Generation};
use crate::segments::writes::Writes;

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Frees all objects that no root leads to, in all automatic pools of the heap, for a thread that has no
    /// mutator of it, or whose mutator is away. Waits for the stop for at most about `patience`.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`].
    pub fn collect(&'h self, patience: Duration) -> Result<Collection, Postponed> {
        self.collect_up_to(GENERATIONS, patience)
    }

    /// As [`Heap::collect`], but frees only objects of the generations up to the one with the number `oldest`. With zero
    /// these are the objects that classes that move objects allocated since the last collection, and the few that a
    /// collection could not move. From [`GENERATIONS`] less one on they are all objects.
    ///
    /// All objects of the other generations are kept, and so is what they refer to. The time that it takes depends on
    /// these only by their cards, a byte for 512 bytes, if their writes are [known](crate::Writes)
    /// ([design](crate::design::gc_generations)).
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`].
    pub fn collect_up_to(&'h self, oldest: usize, patience: Duration) -> Result<Collection, Postponed> {
        let mut stopped = self.stop(patience)?;
        Ok(stopped.collect_up_to(oldest))
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
        self.collect_up_to(GENERATIONS, patience)
    }

    /// As [`Mutator::collect`], but frees only objects of the generations up to the one with the number `oldest`
    /// ([`Heap::collect_up_to`]).
    ///
    /// # Errors
    /// [`Postponed`], as from [`Mutator::stop`].
    #[track_caller]
    pub fn collect_up_to(&mut self, oldest: usize, patience: Duration) -> Result<Collection, Postponed> {
        let mut stopped = self.stop(patience)?;
        Ok(stopped.collect_up_to(oldest))
    }
}

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Frees all objects that no root leads to, in all automatic pools of the heap. What a
    /// [walk](Stopped::walk_objects) shows afterwards, during the same stop, is live.
    pub fn collect(&mut self) -> Collection {
        self.collect_up_to(GENERATIONS)
    }

    /// As [`Stopped::collect`], but frees only objects of the generations up to the one with the number `oldest`
    /// ([`Heap::collect_up_to`]).
    pub fn collect_up_to(&mut self, oldest: usize) -> Collection {
        run(self, Cause::Requested, Generation::at_most(oldest))
    }
}

/// Collects the generations up to `oldest` of the heap that is stopped.
pub(crate) fn run<A: Arena, B: BarrierPair>(
    stopped: &mut Stopped<'_, '_, A, B>,
    cause: Cause,
    oldest: Generation,
) -> Collection {
    let (heap, at) = (stopped.heap(), stopped.at_stop());
    let (members, roots) = (heap.members().lock(), heap.roots().lock());
    // First, so that it is not taken for a part of this collection.
    end_steps(at, heap, &members);
    heap.arena().event(Event::BeginCollection { heap: heap.event_address(), reason: cause.reason() });
    heap.tell(Message::Began { number: heap.accounts().next_number(), cause });
    let flipped = flip(at, heap, &members);
    let own = Own::new(heap.arena(), &members).with_workspace(heap.workspace());
    // A panic while one unwinds ends the process (design/gc.md `.collect.whole`).
    let is_half_done = Defer::new(|| panic!("{HALF_DONE}"));
    heap.outline().set_doing(Doing::Moving);
    members.for_each(|link| link.member().condemn(flipped, oldest));
    heap.forget_misplaced(oldest, &own);
    let mut scan = Scan::new(at, &own).up_to(oldest);
    fix_roots(heap, &roots, &mut scan);
    let (mut cards, mut writes) = (0, Writes::Unneeded);
    let watch = watch_of(heap, &members, oldest);
    // What formats write to dependent objects is on no card (design/gc.md `.watched.own`).
    let has_dependents = any(&members, |member| member.has_dependents());
    let (early, late) = if has_dependents { (watch, None) } else { (None, watch) };
    if oldest != Generation::LAST {
        members.for_each(|link| {
            writes = writes.max(link.member().note_watched(at, oldest, watch));
            // SAFETY: these generations of all pools were condemned above.
            cards += unsafe { link.member().scan_older(oldest, &mut scan) };
        });
    }
    // SAFETY: these generations of all pools were condemned above.
    unsafe { close(flipped, &members, oldest, &mut scan) };
    // SAFETY: these generations of all pools were condemned above, and all that roots lead to was reached and scanned.
    unsafe { settle(flipped, heap, &members, &roots, oldest, early, &mut scan) };
    report_sweep(heap, &members);
    heap.outline().set_doing(Doing::Sweeping);
    let (mut tally, is_stressed) = (Tally::default(), heap.accounts().is_stressed());
    // SAFETY: these generations were condemned, and no pool has grey objects any more: all that is reachable is black.
    members.for_each(|link| tally += unsafe { link.member().sweep(at, oldest, is_stressed) });
    heap.outline().set_doing(Doing::Nothing);
    forget_watched(at, &members, late);
    mem::forget(is_half_done);
    heap.history().age(tally.zones);
    let marked = Marked::by(&scan);
    let report = heap.accounts().close(cause, oldest, Work { tally, marked, cards, writes });
    heap.counts().count_collection(&report);
    heap.tell(Message::Ended(report));
    let Collection { examined, kept, freed, .. } = report;
    heap.arena().event(Event::EndCollection { heap: heap.event_address(), examined, kept, freed });
    let nowhere = scan.nowhere();
    aver!(nowhere.is_none(), "an exact reference to {nowhere:?}, where no object is");
    report
}

/// Who can say which objects were written, if a pool has to ask. A collection of the whole heap asks only to leave out
/// what it writes itself, and not before there was one of young generations: pages that are watched cost the program a
/// fault each (design/gc.md `.watched.full`).
fn watch_of<'a, A: Arena, B: BarrierPair>(
    heap: &'a Heap<'_, A, B>,
    members: &List<MemberLink>,
    oldest: Generation,
) -> Option<&'a dyn WriteWatch> {
    let is_of_use = oldest != Generation::LAST || heap.counts().young_collections.get() > 0;
    let needs_watch = is_of_use && any(members, |member| member.needs_watch());
    if needs_watch { heap.arena().write_watch().ok() } else { None }
}

/// Leaves out what the collection has written so far from what the platform says next time.
fn forget_watched(at: AtStop<'_>, members: &List<MemberLink>, watch: Option<&dyn WriteWatch>) {
    if let Some(watch) = watch {
        members.for_each(|link| link.member().forget_watched(at, watch));
    }
}

fn any(members: &List<MemberLink>, is_so: impl Fn(&dyn Member) -> bool) -> bool {
    let mut is_any = false;
    members.for_each(|link| is_any |= is_so(link.member()));
    is_any
}

/// Reports that all objects are known that are kept, and what was copied for that.
pub(crate) fn report_sweep<A: Arena, B: BarrierPair>(heap: &Heap<'_, A, B>, members: &List<MemberLink>) {
    let mut copied = 0;
    members.for_each(|link| copied += link.member().copied());
    heap.arena().event(Event::BeginSweep { heap: heap.event_address(), copied });
}

/// Fixes what roots refer to, and what waits to be finalized.
pub(crate) fn fix_roots<A: Arena, B: BarrierPair>(
    heap: &Heap<'_, A, B>,
    roots: &List<RootRecord>,
    scan: &mut Scan<'_>,
) {
    for pass in [Pass::AmbiguousRoots, Pass::ExactRoots] {
        scan.begin_pass(pass);
        roots.for_each(|root| root.scan(scan));
    }
    scan.begin_pass(Pass::Objects);
    heap.mailbox().lock().keep_finalizable(scan);
}

/// Settles what becomes of references that are not strong: those for finalization, and weak ones.
///
/// # Safety
/// - The generations up to `oldest` of all of these pools were condemned, and all that roots lead to in them was reached
///   and scanned.
pub(crate) unsafe fn settle<A: Arena, B: BarrierPair>(
    flipped: Flipped<'_>,
    heap: &Heap<'_, A, B>,
    members: &List<MemberLink>,
    roots: &List<RootRecord>,
    oldest: Generation,
    watch: Option<&dyn WriteWatch>,
    scan: &mut Scan<'_>,
) {
    scan.begin_pass(Pass::Short);
    roots.for_each(|root| root.scan_short(scan));
    scan.begin_pass(Pass::Objects);
    if heap.mailbox().lock().find_dead(oldest, scan) {
        // SAFETY: these generations of all pools were condemned (`# Safety`).
        unsafe { close(flipped, members, oldest, scan) };
    }
    forget_watched(flipped.at_stop(), members, watch);
    scan.begin_pass(Pass::Weak);
    roots.for_each(|root| root.scan_weak(scan));
    // SAFETY: these generations of all pools were condemned (`# Safety`), and all that is kept was reached and scanned.
    members.for_each(|link| unsafe { link.member().scan_weak(oldest, scan) });
}

/// How often all weak pairs are looked at before values wait for their keys, which takes memory: for most tables that is enough.
const LOOKS: usize = 2;

/// Scans grey objects until there are none, and none is the value of a weak pair whose key was reached.
///
/// # Safety
/// - The generations up to `oldest` of all of these pools were condemned.
pub(crate) unsafe fn close(
    flipped: Flipped<'_>,
    members: &List<MemberLink>,
    oldest: Generation,
    scan: &mut Scan<'_>,
) {
    scan_grey(flipped, members, scan);
    // Also if no object was grey: a pair of an older object, whose key is older, may have a young value.
    let (mut may_find_more, mut looks) = (true, 0);
    while may_find_more && scan.has_pairs() {
        let waits = looks >= LOOKS;
        looks += 1;
        if waits {
            scan.begin_waiting();
        }
        scan.begin_pass(Pass::Pairs);
        // SAFETY: these generations of all pools were condemned (`# Safety`). No object is grey: all were just scanned.
        members.for_each(|link| unsafe { link.member().scan_pairs(oldest, scan) });
        scan.begin_pass(if waits { Pass::Waiting } else { Pass::Objects });
        may_find_more = scan_grey(flipped, members, scan);
        while scan.fix_ready() {
            may_find_more = true;
            scan_grey(flipped, members, scan);
        }
    }
    scan.end_waiting();
    scan.begin_pass(Pass::Objects);
}

/// Scans grey objects until there are none, or the scan is [spent](Scan::is_spent). Returns whether there were any.
pub(crate) fn scan_grey(flipped: Flipped<'_>, members: &List<MemberLink>, scan: &mut Scan<'_>) -> bool {
    let (mut is_any_grey, mut were_any) = (true, false);
    while is_any_grey && !scan.is_spent() {
        is_any_grey = false;
        members.for_each(|link| is_any_grey |= link.member().scan(flipped, scan));
        were_any |= is_any_grey;
    }
    were_any
}
