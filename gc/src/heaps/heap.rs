//! A heap: the mutators that give way to each other.

use core::alloc::Layout;
use core::fmt;
use core::mem;
use core::num::NonZeroUsize;
use core::ptr::{self, NonNull};
use core::time::Duration;

use tripoint_core::internal::{AtomicBool, AtomicU32, AtomicUsize, Defer, Ordering, Registry, RegistryNode};
use tripoint_core::{
    Addr, Arena, BarrierPair, Counter, Event, Lock, Parking, Result, StepTime, SymmetricFence,
};

use crate::heaps::attendance::{Attendance, Waiting};
use crate::heaps::frozen_table::{FrozenRecord, FrozenTable};
use crate::heaps::listing::{self, Place};
use crate::heaps::member::MemberLink;
use crate::heaps::postponed::{Late, Postponed};
use crate::heaps::record::Record;
use crate::heaps::stop_word::StopWord;
use crate::heaps::this_thread::this_thread;
use crate::list::List;
use crate::locations::history::History;
use crate::messages::mailbox::Mailbox;
use crate::messages::message::{Guardian, Notice};
use crate::messages::registrations::Guarded;
use crate::outlines::heap_outline::HeapOutline;
use crate::outlines::pool_outline::PoolOutline;
use crate::policy::accounts::Accounts;
use crate::policy::progress::Progress;
use crate::policy::report::{Cause, Collection};
use crate::roots::root::RootRecord;
use crate::scans::workspace::Workspace;
use crate::segments::generation::GENERATIONS;

/// Options for a heap.
#[derive(Clone, Copy, Debug)]
pub struct HeapOptions<'h, B: BarrierPair = SymmetricFence> {
    /// The barriers of mutators, which are light, and of stops, which are heavy. By default a fence on
    /// both sides, which works everywhere.
    pub barrier: B,
    /// How threads wait for each other. By default [as the arena has them wait](Arena::parking): in the kernel over an
    /// `ArenaVm` on Linux, and by spinning over a [`ClientArena`](tripoint_core::ClientArena).
    pub parking: Option<&'h dyn Parking>,
}

impl Default for HeapOptions<'_> {
    fn default() -> Self {
        Self { barrier: SymmetricFence, parking: None }
    }
}

/// What happened to a heap so far.
#[derive(Debug, Default)]
pub struct HeapCounts {
    /// How many times it was stopped.
    pub stops: Counter,
    /// How many stops were postponed.
    pub postponed: Counter,
    /// How many times a mutator waited for the end of a stop.
    pub pauses: Counter,
    /// How many collections there were, of any cause.
    pub collections: Counter,
    /// How many of the collections began because one was due.
    pub by_threshold: Counter,
    /// How many of the collections were of young generations only.
    pub young_collections: Counter,
    /// How many of the collections began because memory was refused.
    pub by_refusal: Counter,
    /// The bytes of objects that collections copied.
    pub copied: Counter,
    /// How many steps there were of [collections in steps](Heap::step).
    pub steps: Counter,
    /// How many of the steps took longer than they were allowed ([`Heap::step_within`]).
    pub late_steps: Counter,
    /// The time that steps took whose callers have a clock, in nanoseconds.
    pub step_time: Counter,
    /// The longest of these times, in nanoseconds.
    pub longest_step: Counter,
    /// How many messages about collections were lost because there was no room, since
    /// [`Heap::enable_messages`] was first called.
    pub lost_messages: Counter,
}

impl HeapCounts {
    pub(crate) fn count_collection(&self, report: &Collection) {
        self.collections.add(1);
        if report.generations != GENERATIONS {
            self.young_collections.add(1);
        }
        self.copied.add(report.moved as u64);
        match report.cause {
            Cause::Requested | Cause::Stress | Cause::Step => {}
            Cause::Threshold => self.by_threshold.add(1),
            Cause::Refused => self.by_refusal.add(1),
        }
    }

    /// Counts a step. The heap is stopped by the caller, so there is one at a time.
    pub(crate) fn count_step(&self, time: Option<StepTime>) {
        self.steps.add(1);
        if let Some(time) = time {
            let taken = time.taken_ns();
            self.step_time.add(taken);
            self.longest_step.add(taken.saturating_sub(self.longest_step.get()));
            self.late_steps.add((time.taken > time.allowed).into());
        }
    }
}

/// Mutators that give way to each other, and the automatic pools and roots that are collected together. It takes
/// descriptor memory of the arena: one record for each mutator that there was at the same time, and one for each root.
pub struct Heap<'h, A: Arena, B: BarrierPair = SymmetricFence> {
    word: StopWord,
    /// Which thread stops it, or began to; zero if none does, or that is not known.
    stopped_by: AtomicUsize,
    records: Registry,
    last_number: AtomicU32,
    counts: HeapCounts,
    accounts: Accounts,
    progress: Lock<Progress>,
    history: History,
    mailbox: Lock<Mailbox>,
    /// Whether there is room for messages about collections.
    expects_messages: AtomicBool,
    /// Its automatic pools.
    members: Lock<List<MemberLink>>,
    roots: Lock<List<RootRecord>>,
    workspace: Workspace,
    frozen: FrozenTable,
    /// What readers outside of the process follow: this, and the outlines of its pools.
    outline: HeapOutline,
    outlines: Lock<List<PoolOutline>>,
    place: Lock<Place>,
    options: HeapOptions<'h, B>,
    arena: A,
}

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Creates a heap without mutators.
    ///
    /// # Errors
    /// There are none at present.
    pub fn create(arena: A, options: HeapOptions<'h, B>) -> Result<Self> {
        let (word, records, last_number) = (StopWord::new(), Registry::new(), AtomicU32::new(0));
        let (members, roots) = (Lock::new(List::new()), Lock::new(List::new()));
        let (counts, accounts) = (HeapCounts::default(), Accounts::new());
        let frozen = FrozenTable::new();
        let (outline, outlines) = (HeapOutline::new(), Lock::new(List::new()));
        let place = Lock::new(Place::default());
        let (mailbox, expects_messages) = (Lock::new(Mailbox::new()), AtomicBool::new(false));
        Ok(Self {
            word,
            stopped_by: AtomicUsize::new(0),
            records,
            last_number,
            counts,
            accounts,
            progress: Lock::new(Progress::default()),
            history: History::new(),
            mailbox,
            expects_messages,
            members,
            roots,
            workspace: Workspace::new(),
            frozen,
            outline,
            outlines,
            place,
            options,
            arena,
        })
    }

    /// Whether a stop is wanted or lasts: one load. This is what a class whose points give way
    /// answers to [`GivesWay::wants_stop`](tripoint_core::GivesWay::wants_stop).
    #[inline(always)]
    #[must_use]
    pub fn wants_stop(&self) -> bool {
        self.word.is_wanted()
    }

    /// What has happened to the heap so far.
    #[must_use]
    pub const fn counts(&self) -> &HeapCounts {
        &self.counts
    }

    /// What was allocated, and when a collection is due.
    pub(crate) const fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// How far a collection in steps is. Its lock is taken after that of the roots.
    pub(crate) const fn progress(&self) -> &Lock<Progress> {
        &self.progress
    }

    /// Where objects moved.
    pub(crate) const fn history(&self) -> &History {
        &self.history
    }

    /// Its messages. No other lock is taken while this is held.
    pub(crate) const fn mailbox(&self) -> &Lock<Mailbox> {
        &self.mailbox
    }

    pub(crate) fn expect_messages(&self) {
        self.expects_messages.store(true, Ordering::Relaxed);
    }

    pub(crate) fn expects_messages(&self) -> bool {
        self.expects_messages.load(Ordering::Relaxed)
    }

    /// Frees the record of a registration, and returns the object.
    ///
    /// # Safety
    /// - The record was taken out of the mailbox of this heap, and is not used afterwards.
    pub(crate) unsafe fn free_guardian(&self, guardian: NonNull<Guardian>) -> *mut u8 {
        // SAFETY: the record is initialised, as all in the mailbox are, and only the caller uses it.
        let object = unsafe { guardian.as_ref() }.object.get();
        // SAFETY: records of the mailbox come from `alloc_descriptor` of this arena with this layout.
        unsafe { self.arena.free_descriptor(guardian.cast(), Layout::new::<Guardian>()) };
        object
    }

    /// The arena that the heap's memory comes from.
    #[must_use]
    pub const fn arena(&self) -> &A {
        &self.arena
    }

    /// The automatic pools. Their lock is taken before that of a pool.
    pub(crate) const fn members(&self) -> &Lock<List<MemberLink>> {
        &self.members
    }

    /// The roots. Their lock is taken after that of the members.
    pub(crate) const fn roots(&self) -> &Lock<List<RootRecord>> {
        &self.roots
    }

    /// The memory that collections use for themselves.
    pub(crate) const fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The frozen segments, which collections do not look at.
    pub(crate) const fn frozen(&self) -> &FrozenTable {
        &self.frozen
    }

    /// The outline that readers outside of the process follow.
    pub(crate) const fn outline(&self) -> &HeapOutline {
        &self.outline
    }

    /// The outlines of its pools. No other lock is taken while this is held.
    pub(crate) const fn outlines(&self) -> &Lock<List<PoolOutline>> {
        &self.outlines
    }

    /// Has readers outside of the process find the heap, which stays where it is while it is borrowed for what is made
    /// next.
    pub(crate) fn list(&'h self) {
        let pools = self.outlines.value_address() + List::<PoolOutline>::FIRST;
        let roots = self.roots.value_address() + List::<RootRecord>::FIRST;
        let outline = self.outline.place(pools, roots, self.frozen.registry_address());
        // Threads may make pools at the same time.
        let mut place = self.place.lock();
        *place = listing::list(*place, outline);
    }

    /// The barriers of its mutators and its stops.
    pub(crate) const fn barrier(&self) -> B {
        self.options.barrier
    }

    pub(crate) fn waiting(&self) -> Waiting<'_, B> {
        Waiting { word: &self.word, barrier: self.options.barrier, parking: self.parking() }
    }

    fn parking(&self) -> &dyn Parking {
        self.options.parking.unwrap_or_else(|| self.arena.parking())
    }

    /// What distinguishes it from other heaps while it is borrowed.
    pub(crate) fn address(&self) -> *mut () {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// Its address, by which events name it.
    pub(crate) fn event_address(&self) -> Addr {
        Addr::of(self.address())
    }

    /// Reports that a thread begins to stop it, whose mutator has this number. Called before that leaves, as a hook
    /// may unwind.
    pub(crate) fn begin_stop(&self, mutator: u32) {
        self.arena.event(Event::BeginStop { heap: self.event_address(), mutator });
    }

    /// Counts and reports that it is stopped. Called when a guard ends the stop if a hook unwinds.
    pub(crate) fn count_stop(&self) {
        self.counts.stops.add(1);
        self.arena.event(Event::Stop { heap: self.event_address() });
    }

    /// Counts and reports that it was not stopped. Called after the thread's mutator came back.
    pub(crate) fn postpone(&self, postponed: Postponed) -> Postponed {
        self.counts.postponed.add(1);
        let mutator = match postponed {
            Postponed::Late(late) => late.number,
            Postponed::Busy => 0,
        };
        self.arena.event(Event::PostponeStop { heap: self.event_address(), mutator });
        postponed
    }

    /// Calls `wait` for a mutator that has to wait until a stop has ended, and reports both ends. `wait` is called also
    /// if a hook unwinds: the mutator must not run before.
    pub(crate) fn pause(&self, mutator: u32, wait: impl FnMut()) {
        let heap = self.event_address();
        self.counts.pauses.add(1);
        let waits = Defer::new(wait);
        self.arena.event(Event::GiveWay { heap, mutator });
        drop(waits);
        self.arena.event(Event::GoOn { heap, mutator });
    }

    /// Has the mutator of a record come back, as soon as no stop is wanted.
    pub(crate) fn come_back(&self, record: &Record) {
        let Record { attendance, number, .. } = record;
        if let Err(turn) = attendance.try_come_back(self.waiting()) {
            self.pause(*number, || attendance.wait_and_come_back(turn, self.waiting()));
        }
    }

    /// Stops the heap. If the caller has a mutator, it has left already.
    pub(crate) fn try_stop(&self, patience: Duration, mut trip: impl FnMut()) -> Result<(), Postponed> {
        let mut patience = patience;
        while !self.word.want() {
            if self.is_stopped_here() {
                return Err(Postponed::Busy);
            }
            let Some(turn) = self.word.turn() else { continue };
            match self.word.wait_for_end(turn, self.parking(), patience) {
                Some(left) => patience = left,
                None => return Err(Postponed::Busy),
            }
        }
        // Unless all give way; also if `trip` unwinds.
        let ends = Defer::new(|| self.end_stop());
        self.stopped_by.store(this_thread().map_or(0, NonZeroUsize::get), Ordering::Relaxed);
        self.members.lock().for_each(|link| link.member().trip());
        trip();
        self.options.barrier.heavy();
        self.word.wait_for_all(self.parking(), patience, || self.first_running()).map_err(Postponed::Late)?;
        mem::forget(ends);
        Ok(())
    }

    pub(crate) fn end_stop(&self) {
        self.stopped_by.store(0, Ordering::Relaxed);
        self.word.end(self.parking());
    }

    /// Whether the stop that lasts is one of this thread, which would wait for its end without end. It is not known on each
    /// platform.
    pub(crate) fn is_stopped_here(&self) -> bool {
        let is_here = |thread: NonZeroUsize| thread.get() == self.stopped_by.load(Ordering::Relaxed);
        self.wants_stop() && this_thread().is_some_and(is_here)
    }

    /// Reports that a stop is about to end.
    pub(crate) fn report_end(&self) {
        self.arena.event(Event::EndStop { heap: self.event_address() });
    }

    /// A mutator that is running.
    fn first_running(&self) -> Option<Late> {
        self.records.iter().find_map(|node| {
            // SAFETY: all nodes of the list begin records, which are valid as long as the heap, and only
            // ever borrowed shared.
            let record = unsafe { node.cast::<Record>().as_ref() };
            let Record { attendance, number, .. } = record;
            attendance.is_running().then(|| Late { number: *number, seen_at: attendance.seen_at() })
        })
    }

    /// Claims a record that an earlier mutator left, or makes one.
    pub(crate) fn claim(&self) -> Result<NonNull<Record>> {
        let layout = Layout::new::<Record>();
        if let Some(node) = self.records.claim(layout) {
            return Ok(node.cast());
        }
        let record = self.arena.alloc_descriptor(layout)?.cast::<Record>();
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let fresh = Record { node: RegistryNode::new(layout), attendance: Attendance::new(), number };
        // SAFETY: this is fresh memory with the layout of a record.
        unsafe { record.write(fresh) };
        // SAFETY: the node is the record's first field, is initialised and is in no list. It stays in
        // place until the heap is dropped.
        unsafe { self.records.push(record.cast()) };
        Ok(record)
    }

    /// Releases a record.
    ///
    /// # Safety
    /// - The caller claimed it in this heap, and does not use it afterwards. It is away.
    pub(crate) unsafe fn release(&self, record: NonNull<Record>) {
        // SAFETY: `claim` took it from this list or put it there; the caller had it, and does not
        // use it afterwards.
        unsafe { self.records.release(record.cast()) };
    }
}

impl<A: Arena, B: BarrierPair> Drop for Heap<'_, A, B> {
    fn drop(&mut self) {
        self.free_all();
        self.arena.event(Event::DropHeap { heap: self.event_address() });
    }
}

impl<A: Arena, B: BarrierPair> Heap<'_, A, B> {
    /// Takes the heap off the list of heaps, and frees all that it has. It is being dropped.
    fn free_all(&mut self) {
        listing::unlist(*self.place.get_mut());
        self.workspace.end(&self.arena);
        // The walk reads a node's link before it yields the node, so each may be freed as it comes.
        for node in self.records.iter() {
            // SAFETY: records come from `alloc_descriptor` of this arena with this layout (`claim`), and each
            // is in the list once. Mutators borrow the heap, which is being dropped.
            unsafe { self.arena.free_descriptor(node.cast(), Layout::new::<Record>()) };
        }
        for record in self.frozen.records() {
            // SAFETY: records come from `alloc_descriptor` of this arena with this layout (`Heap::register_frozen`),
            // and each is in the list once. Segments borrow the heap, which is being dropped.
            unsafe { self.arena.free_descriptor(record, Layout::new::<FrozenRecord>()) };
        }
        let mut left = self.mailbox.get_mut().unguard_all(|_| true);
        while let Some(guardian) = left.shift() {
            // SAFETY: it was just taken out of the mailbox.
            unsafe { self.free_guardian(guardian) };
        }
        while let Some(guardian) = self.mailbox.get_mut().take_unused_guardian() {
            // SAFETY: it was just taken out of the mailbox.
            unsafe { self.free_guardian(guardian) };
        }
        while let Some(queue) = self.mailbox.get_mut().take_queue() {
            // SAFETY: records of the mailbox come from `alloc_descriptor` of this arena with this layout, and this one
            // was just taken out.
            unsafe { self.arena.free_descriptor(queue.cast(), Layout::new::<Guarded>()) };
        }
        while let Some(notice) = self.mailbox.get_mut().take_room() {
            // SAFETY: records of the mailbox come from `alloc_descriptor` of this arena with this layout, and this one
            // was just taken out.
            unsafe { self.arena.free_descriptor(notice.cast(), Layout::new::<Notice>()) };
        }
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for Heap<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap").field("counts", &self.counts).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(tripoint_loom, miri))))]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::format;
    use std::string::String;

    use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
    use tripoint_core::{ClientArena, ClientArenaOptions, Spinning};

    fn parking_of<A: Arena>(arena: A, parking: Option<&dyn Parking>) -> String {
        let heap = Heap::create(arena, HeapOptions { parking, ..HeapOptions::default() }).unwrap();
        format!("{:?}", heap.waiting().parking)
    }

    /// Unless the options say otherwise, also if the arena is borrowed.
    #[test]
    fn threads_wait_as_the_arena_has_them_wait() {
        let mut memory = Box::new_uninit_slice(64 << 10);
        let client = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let options =
            ArenaVmOptions { reserve: 4 << 20, reserve_floor: 4 << 20, ..ArenaVmOptions::default() };
        let vm = ArenaVm::create(options).unwrap();
        let in_kernel = if cfg!(target_os = "linux") { "Futex" } else { "Spinning" };
        assert_eq!(parking_of(&client, None), "Spinning");
        assert_eq!(parking_of(&vm, None), in_kernel);
        assert_eq!(parking_of(&vm, Some(&Spinning)), "Spinning");
    }
}
