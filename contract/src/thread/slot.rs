//! What is known of one registered thread: written on it, read from anywhere.
//!
//! | words | written by |
//! |---|---|
//! | attention | any thread that wants the guard's attention |
//! | mode, amnesty, alarms, own ring, most of the tally | the thread, its signal handlers |
//! | system calls of the tally, supervised ring | the thread's supervisor |
//! | wanted mode, polls and turns | the coordinator |

mod charging;

use tripoint_core::aver;
use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};
use tripoint_stack::Site;

use crate::thread::attendance::Attendance;
use crate::thread::call_site::CallSite;
use crate::thread::described::Described;
use crate::thread::errands::Errands;
use crate::thread::everywhere;
use crate::thread::heap_tally::{HeapTallies, HeapTally};
use crate::thread::observer::Observer;
use crate::thread::records::Records;
use crate::thread::standing::{Budget, Mode, ThreadKind};
use crate::thread::tally::{PlacedThread, Tallies, Tally};
use crate::words::atomics::{const_fn, zeros};
use crate::words::class::{ViolationClass, ViolationSet};
use crate::words::detector_set::DetectorSet;
use crate::words::name::{Name, NameCell};
use crate::words::record::Record;

/// One registered thread.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Slot {
    pub(crate) attendance: Attendance,
    mode: AtomicUsize,
    amnesty_depth: AtomicUsize,
    amnesty_reason: AtomicUsize,
    /// Set while an event is written down: a signal handler finds it set.
    busy: AtomicBool,
    overlapped: [AtomicUsize; ViolationClass::COUNT],
    /// The [`ViolationSet`] that the thread is held to.
    held: AtomicUsize,
    /// The [`ViolationSet`] of what is only counted, because it has raised its alarm.
    muted: AtomicUsize,
    alarms: AtomicUsize,
    pub(crate) amnesties: AtomicUsize,
    /// Set at the first arming of the thread that has the slot, or had it last.
    was_armed: AtomicBool,
    /// Set if a thread that had the slot before that one was armed.
    formerly_armed: AtomicBool,
    /// Everything since the thread registered.
    tallies: Tallies,
    /// The part of it that happened while the thread was armed.
    armed_tallies: Tallies,
    records: Records,
    heap_tallies: HeapTallies,
    pub(crate) call_site: CallSite,
    pub(crate) errands: Errands,
    wanted: AtomicUsize,
    /// What readers of the tallies have to know besides; the live detectors are kept only here.
    described: Described,
    index: AtomicUsize,
    cold: AtomicBool,
    budget: [AtomicUsize; Budget::WORDS],
    name: NameCell,
    /// What the contract of the slot reports to.
    pub(crate) observer: Observer,
    /// The slot listed before this one, for debuggers.
    before: AtomicUsize,
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

impl Slot {
    /// Where a debugger finds the slot before this one, the state, the number of alarms, text and
    /// size of the name, and the records.
    #[cfg(not(tripoint_loom))]
    pub(crate) const OFFSETS: [usize; 6] = {
        let name = core::mem::offset_of!(Self, name);
        let [text, size] = NameCell::OFFSETS;
        [
            core::mem::offset_of!(Self, before),
            core::mem::offset_of!(Self, attendance) + Attendance::STATE_OFFSET,
            core::mem::offset_of!(Self, alarms),
            name + text,
            name + size,
            core::mem::offset_of!(Self, records),
        ]
    };

    const_fn! {
        /// A slot that no thread has.
        #[must_use]
        pub fn new() -> Self {
            Self {
                attendance: Attendance::new(),
                mode: AtomicUsize::new(Mode::Counting as usize),
                amnesty_depth: AtomicUsize::new(0),
                amnesty_reason: AtomicUsize::new(0),
                busy: AtomicBool::new(false),
                overlapped: zeros(),
                held: AtomicUsize::new(0),
                muted: AtomicUsize::new(0),
                alarms: AtomicUsize::new(0),
                amnesties: AtomicUsize::new(0),
                was_armed: AtomicBool::new(false),
                formerly_armed: AtomicBool::new(false),
                tallies: Tallies::new(),
                armed_tallies: Tallies::new(),
                records: Records::new(),
                heap_tallies: HeapTallies::new(),
                call_site: CallSite::new(),
                errands: Errands::new(),
                wanted: AtomicUsize::new(0),
                described: Described::new(),
                index: AtomicUsize::new(0),
                cold: AtomicBool::new(false),
                budget: zeros(),
                name: NameCell::new(),
                observer: Observer::new(),
                before: AtomicUsize::new(0),
            }
        }
    }

    /// Reports to the same hook as `observer`, and keeps what readers see in these words, if there are any. Called
    /// before the thread joins.
    pub(crate) fn connect(&self, observer: &Observer, placed: Option<PlacedThread>) {
        self.observer.follow(observer);
        match placed {
            Some((described, [all, armed])) => {
                self.described.place(described);
                self.tallies.place(all);
                self.armed_tallies.place(armed);
            }
            None => self.take_words_back(),
        }
    }

    /// Keeps here again what is in words of a hook, as it is now.
    pub(crate) fn take_words_back(&self) {
        self.described.take_back();
        self.tallies.take_back();
        self.armed_tallies.take_back();
    }

    /// Describes the thread before it joins.
    pub(crate) fn describe_thread(&self, index: usize, kind: ThreadKind, name: &str) {
        self.index.store(index, Ordering::Relaxed);
        self.cold.store(kind == ThreadKind::Cold, Ordering::Relaxed);
        self.name.set(name);
        self.forget();
        self.described.begin(name);
        // These are most of a slot; the other words are written in its normal use.
        self.records.prefault();
        self.call_site.reset();
    }

    /// Forgets the thread that had the slot before, except that it was armed.
    fn forget(&self) {
        if self.was_armed.swap(false, Ordering::Relaxed) {
            self.formerly_armed.store(true, Ordering::Relaxed);
        }
        self.mode.store(Mode::Counting as usize, Ordering::Relaxed);
        // Before the tallies, which are the former thread's as long as its name is there.
        self.described.reset();
        self.tallies.reset();
        self.armed_tallies.reset();
        self.heap_tallies.reset();
        self.errands.forget();
        let words = [&self.amnesty_depth, &self.muted, &self.alarms, &self.amnesties];
        words.into_iter().chain(&self.overlapped).for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Whether the thread left nothing that the report must show: no alarm, and no record that
    /// waits or was lost.
    pub(crate) fn has_nothing_to_tell(&self) -> bool {
        self.alarms() == 0 && self.records_lost() == 0 && self.records.is_empty()
    }

    /// Completes the description: from here on readers find the thread.
    pub(crate) fn hold_to(&self, classes: ViolationSet, wanted: DetectorSet) {
        self.held.store(classes.bits(), Ordering::Relaxed);
        self.wanted.store(wanted.bits(), Ordering::Relaxed);
        self.described.hold_to(self.kind(), classes, wanted);
    }

    pub(crate) fn set_budget(&self, budget: Budget) {
        for (to, word) in self.budget.iter().zip(budget.to_words()) {
            to.store(word, Ordering::Relaxed);
        }
    }

    /// The index of the thread's slot in the contract.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index.load(Ordering::Relaxed)
    }

    /// The thread's name.
    #[must_use]
    pub fn name(&self) -> Name {
        self.name.get()
    }

    /// What the thread is registered as.
    #[must_use]
    pub fn kind(&self) -> ThreadKind {
        if self.cold.load(Ordering::Relaxed) { ThreadKind::Cold } else { ThreadKind::Hot }
    }

    /// Whether the thread is present: registered, and its guard not dropped.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.attendance.is_present()
    }

    /// Notes that the thread leaves, and whether it should have been armed by now.
    pub(crate) fn leave(&self, is_bound: bool) {
        // A thread that was refused was never present.
        self.described.end(is_bound && self.is_present() && !self.was_armed());
        self.attendance.leave();
    }

    /// Whether the thread left in the steady state or later without ever having been armed: no check of its guard
    /// came after the steady state began.
    pub(crate) fn left_unarmed(&self) -> bool {
        self.described.left_unarmed()
    }

    /// Whether the thread is present and bound by the contract.
    #[must_use]
    pub fn is_present_hot(&self) -> bool {
        self.is_present() && self.kind() == ThreadKind::Hot
    }

    /// The classes the thread is held to.
    #[must_use]
    pub fn held(&self) -> ViolationSet {
        ViolationSet::from_bits_truncate(self.held.load(Ordering::Relaxed))
    }

    /// The detectors that are live for the thread.
    #[must_use]
    pub fn live(&self) -> DetectorSet {
        self.described.live() | everywhere::live()
    }

    /// The detectors that were asked for.
    #[must_use]
    pub fn wanted_detectors(&self) -> DetectorSet {
        DetectorSet::from_bits_truncate(self.wanted.load(Ordering::Relaxed))
    }

    pub(crate) fn add_live(&self, detectors: DetectorSet) {
        self.described.add_live(detectors);
    }

    /// Notes that detectors no longer see their events.
    #[cfg(tripoint_kernel)]
    pub(crate) fn remove_live(&self, detectors: DetectorSet) {
        self.described.remove_live(detectors);
    }

    /// What a cold thread is held to.
    #[must_use]
    pub fn budget(&self) -> Budget {
        Budget::from_words(self.budget.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    /// How much the thread's events matter at this moment.
    #[inline]
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Relaxed) {
            0 => Mode::Counting,
            1 => Mode::Rehearsal,
            _ => Mode::Armed,
        }
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        if mode == Mode::Armed {
            self.was_armed.store(true, Ordering::Relaxed);
            self.described.arm();
            // Readers do not see what is live everywhere.
            self.add_live(everywhere::live());
        }
        self.mode.store(mode as usize, Ordering::Relaxed);
    }

    /// Whether the thread was ever armed, by the lifecycle or by hand; also after it has left.
    #[must_use]
    pub fn was_armed(&self) -> bool {
        self.was_armed.load(Ordering::Relaxed)
    }

    /// Whether another thread that had the slot before was armed.
    pub(crate) fn was_formerly_armed(&self) -> bool {
        self.formerly_armed.load(Ordering::Relaxed)
    }

    /// The numbers of a class since the thread registered.
    #[must_use]
    pub fn tally(&self, class: ViolationClass) -> Tally {
        self.tallies.get(class)
    }

    /// The numbers of a class while the thread was armed: those of [`Slot::tally`] without
    /// warm-up and Teardown.
    #[must_use]
    pub fn armed_tally(&self, class: ViolationClass) -> Tally {
        self.armed_tallies.get(class)
    }

    /// What the thread had to do with heaps since it registered, as far as an event hook of the contract observes
    /// their arenas.
    #[must_use]
    pub fn heap_tally(&self) -> HeapTally {
        self.heap_tallies.all()
    }

    /// The part of [`Slot::heap_tally`] that ended while the thread was armed.
    #[must_use]
    pub fn armed_heap_tally(&self) -> HeapTally {
        self.heap_tallies.armed()
    }

    /// Number of events of the classes the thread is held to, excused or not.
    #[must_use]
    pub fn events(&self) -> usize {
        self.held().classes().fold(0, |sum, class| sum.wrapping_add(self.tally(class).count))
    }

    /// Whether the thread has polled since that request.
    pub(crate) fn has_polled(&self, request: usize) -> bool {
        self.errands.has_polled(request)
    }

    /// Number of alarms raised.
    #[must_use]
    pub fn alarms(&self) -> usize {
        self.alarms.load(Ordering::Relaxed)
    }

    /// Number of amnesties entered while armed.
    #[must_use]
    pub fn amnesties(&self) -> usize {
        self.amnesties.load(Ordering::Relaxed)
    }

    /// Number of violations and excused events that were not recorded, because the ring was
    /// full or the turn had [`RECORDS_PER_TURN`](crate::RECORDS_PER_TURN) of the class. The events are counted, and
    /// raise their alarm.
    #[must_use]
    pub fn records_lost(&self) -> usize {
        self.records.lost()
    }

    /// Number of events that happened while another was being written down: in a
    /// signal handler, or taken by the writing itself. They are in no tally.
    #[must_use]
    pub fn overlapped(&self) -> usize {
        let counts = self.overlapped.iter().map(|count| count.load(Ordering::Relaxed));
        counts.fold(0, usize::wrapping_add)
    }

    /// The number of these that were of a class.
    #[cfg(tripoint_kernel)]
    pub(crate) fn overlapped_of(&self, class: ViolationClass) -> usize {
        self.overlapped[class.index()].load(Ordering::Relaxed)
    }

    /// Takes the oldest record or alarm. Only one thread at a time may call this.
    pub(crate) fn pop(&self) -> Option<Record> {
        self.records.pop()
    }

    /// Begins a turn: each class may make its records again. Called only on the slot's
    /// thread, while no supervisor is at a call of it.
    pub(crate) fn begin_turn(&self) {
        self.records.begin_turn();
    }

    fn is_muted(&self, class: ViolationClass) -> bool {
        ViolationSet::from_bits_truncate(self.muted.load(Ordering::Relaxed)).contains(ViolationSet::of(class))
    }

    pub(crate) fn mute(&self, class: ViolationClass) {
        self.muted.fetch_or(ViolationSet::of(class).bits(), Ordering::Relaxed);
    }

    pub(crate) fn unmute(&self) {
        self.muted.store(0, Ordering::Relaxed);
    }

    /// Whether the thread is inside an amnesty.
    #[inline]
    #[must_use]
    pub fn is_excused(&self) -> bool {
        self.amnesty_depth.load(Ordering::Relaxed) != 0
    }

    /// Enters an amnesty, which may make a turn's records of its own. Returns the reason of
    /// the amnesty around it.
    pub(crate) fn enter_amnesty(&self, reason: usize) -> usize {
        self.begin_turn();
        let outer = self.amnesty_reason.load(Ordering::Relaxed);
        self.amnesty_reason.store(reason, Ordering::Relaxed);
        self.amnesty_depth.fetch_add(1, Ordering::Relaxed);
        outer
    }

    pub(crate) fn leave_amnesty(&self, outer: usize) {
        self.begin_turn();
        let depth = self.amnesty_depth.fetch_sub(1, Ordering::Relaxed);
        aver!(depth > 0, "an amnesty ends that did not begin, on {:?}", self.name());
        self.amnesty_reason.store(outer, Ordering::Relaxed);
    }

    /// Lists the slot after `before`, for debuggers.
    #[cfg(not(tripoint_loom))]
    pub(crate) fn list_after(&self, before: usize) {
        self.before.store(before, Ordering::Relaxed);
    }
}

/// How many call sites a thread's slot kept, and the last of them: for tests.
#[must_use]
pub fn last_call_site(slot: &Slot) -> (usize, Site) {
    slot.call_site.last()
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::thread::observation::{Evidence, Observation};
    use crate::thread::{described, tally};

    /// The words are one static each, so this is the only test that has them.
    fn placed() -> PlacedThread {
        static DESCRIBED: [AtomicUsize; described::WORDS] = zeros();
        static TALLIES: [[AtomicUsize; tally::WORDS]; 2] = [zeros(), zeros()];
        (&DESCRIBED, [&TALLIES[0], &TALLIES[1]])
    }

    /// A reader of the words finds a new name only with numbers of its own.
    #[test]
    fn readers_find_a_thread_when_its_description_is_complete() {
        let (slot, placed) = (Slot::new(), placed());
        slot.connect(&Observer::new(), Some(placed));
        let (described, [all, armed]) = placed;
        let state = || described[0].load(Ordering::Relaxed);
        let counted = || all.iter().chain(armed).any(|word| word.load(Ordering::Relaxed) != 0);
        for (name, kind, state_after) in [("first", ThreadKind::Hot, 0b11), ("second", ThreadKind::Cold, 0b1)]
        {
            slot.describe_thread(0, kind, name);
            assert_eq!((state(), counted()), (0, false), "{name} is not there yet");
            slot.hold_to(ViolationSet::ALLOC, DetectorSet::ALLOCATOR);
            assert_eq!(state(), state_after, "{name}");
            let [held, wanted] = [1, 2].map(|word: usize| described[word].load(Ordering::Relaxed));
            assert_eq!((held, wanted), (ViolationSet::ALLOC.bits(), DetectorSet::ALLOCATOR.bits()));
            slot.set_mode(Mode::Armed);
            slot.observe(Observation::new(ViolationClass::Alloc, 8), || Evidence::NONE);
            assert!(counted() && state() != state_after);
            slot.leave(false);
        }
    }
}
