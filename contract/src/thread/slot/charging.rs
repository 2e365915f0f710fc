//! How events are charged to a thread: counted, and if it is held to their class, recorded.

use tripoint_core::internal::{Ordering, compiler_fence};
use tripoint_core::{Event, EventHook};

use super::Slot;
use crate::thread::observation::{Evidence, Observation};
use crate::thread::records::Writer;
use crate::thread::standing::Mode;
use crate::words::class::{ViolationClass, ViolationSet};
use crate::words::detector_set::DetectorSet;
use crate::words::record::{Record, RecordKind};

impl Slot {
    /// Charges an event. On the slot's thread only, or in its signal handlers.
    ///
    /// Allocates nothing and takes no lock. Calls `evidence` only if the event is recorded.
    pub fn observe(&self, observation: Observation, evidence: impl FnOnce() -> Evidence) {
        if self.is_busy() {
            self.overlap(observation.class);
            return;
        }
        self.while_busy(|| self.charge(observation, Writer::Thread, evidence));
    }

    /// Counts an event of a heap. On the slot's thread only. `time` returns nanoseconds of a clock that never goes back, or
    /// zero.
    pub(crate) fn count_heap_event(&self, event: &Event, time: impl FnOnce() -> u64) {
        self.heap_tallies.count(event, self.mode() == Mode::Armed, time);
    }

    /// Counts an event that a detector caused itself, or that came within another's record.
    pub(crate) fn overlap(&self, class: ViolationClass) {
        self.overlapped[class.index()].fetch_add(1, Ordering::Relaxed);
        self.described.count_overlapped();
    }

    /// As [`Slot::observe`], for an event that need only be counted. Returns false, and does nothing,
    /// for any other.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn count_only(&self, seen: &Observation) -> bool {
        let plain = self.mode() == Mode::Counting && !self.is_excused() && !self.is_busy();
        if plain {
            self.while_busy(|| self.tallies.add(seen.class, seen.count, seen.bytes, false));
        }
        plain
    }

    /// Charges a system call. Called by the thread's supervisor, while the thread waits for it.
    #[cfg(tripoint_kernel)]
    pub(crate) fn observe_supervised(&self, observation: Observation, evidence: impl FnOnce() -> Evidence) {
        self.charge(observation, Writer::Supervisor, evidence);
    }

    fn charge(&self, seen: Observation, writer: Writer, evidence: impl FnOnce() -> Evidence) {
        let excused = self.is_excused() && seen.class != ViolationClass::AmnestyOverrun;
        self.tallies.add(seen.class, seen.count, seen.bytes, excused);
        let mode = self.mode();
        if mode == Mode::Armed {
            self.armed_tallies.add(seen.class, seen.count, seen.bytes, excused);
        }
        if mode == Mode::Counting || !self.held().contains(ViolationSet::of(seen.class)) {
            return;
        }
        self.write_down(seen, mode, excused, writer, evidence);
    }

    /// Records an event, and asks for the guard's attention.
    #[cold]
    #[inline(never)]
    fn write_down(
        &self,
        seen: Observation,
        mode: Mode,
        excused: bool,
        writer: Writer,
        evidence: impl FnOnce() -> Evidence,
    ) {
        if excused || !self.is_muted(seen.class) {
            let kind = match (excused, mode) {
                (true, _) => RecordKind::Excused,
                (false, Mode::Armed) => RecordKind::Violation,
                (false, _) => RecordKind::Rehearsed,
            };
            let made = self.records.keep(kind, seen.class, writer, || self.record(kind, seen, evidence()));
            self.described.note_lost(self.records_lost());
            if let Some(record) = made {
                self.observer.report_record(&record);
            }
        }
        self.attendance.call();
    }

    /// Whether the site of a system call of this class would be kept, if it were made now.
    #[cfg(tripoint_kernel)]
    pub(crate) fn wants_call_site(&self, class: ViolationClass) -> bool {
        let excused = self.is_excused();
        let kind = if excused { RecordKind::Excused } else { RecordKind::Violation };
        self.mode() != Mode::Counting
            && self.held().contains(ViolationSet::of(class))
            && (excused || !self.is_muted(class))
            && self.records.would_keep(kind, class, Writer::Supervisor)
    }

    fn record(&self, kind: RecordKind, seen: Observation, evidence: Evidence) -> Record {
        Record {
            kind,
            class: seen.class,
            thread: self.index(),
            serial: self.records.next_serial(),
            count: seen.count,
            bytes: seen.bytes,
            address: seen.address,
            call: seen.call,
            step: seen.step,
            time: evidence.time,
            reason: self.amnesty_reason.load(Ordering::Relaxed),
            site: evidence.site,
        }
    }

    /// Raises the alarm of a class: its events and bytes, with the details of the first of
    /// them. Called only on the slot's thread.
    pub(crate) fn raise(&self, class: ViolationClass, count: usize, bytes: usize, time: u64) -> Record {
        let Record { address, call, step, reason, site, .. } = self.records.end_turn_of(class);
        let seen = Observation { count, address, call, step, ..Observation::new(class, bytes) };
        let record = Record { reason, ..self.record(RecordKind::Alarm, seen, Evidence { site, time }) };
        self.alarms.fetch_add(1, Ordering::Relaxed);
        self.while_busy(|| {
            self.records.raise(&record);
            self.observer.report_record(&record);
        });
        record
    }

    /// Reports an event that the thread brings about itself. What the hook does is charged to no thread.
    pub(crate) fn report(&self, event: Event) {
        // In a signal handler that interrupted a record, the slot stays busy.
        if self.is_busy() {
            self.observer.report(event);
        } else {
            self.while_busy(|| self.observer.report(event));
        }
    }

    /// Whether an event that happens now is judged: the thread is armed, no amnesty excuses it, and it is none of a
    /// detector's own.
    #[cfg(feature = "std")]
    pub(crate) fn is_judged(&self) -> bool {
        self.mode() == Mode::Armed && !self.is_excused() && !self.is_busy()
    }

    /// Whether an event is being written down.
    #[inline]
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Runs `write`, during which the thread's signal handlers record nothing.
    #[inline(always)]
    fn while_busy(&self, write: impl FnOnce()) {
        self.busy.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        write();
        compiler_fence(Ordering::SeqCst);
        self.busy.store(false, Ordering::Relaxed);
    }
}

/// Charges a thread with what its own arena does, without sites, on targets without thread-locals.
/// Use `PoolEvents` on all others.
impl EventHook for Slot {
    fn event(&self, event: Event) {
        self.count_heap_event(&event, || 0);
        if let Some(observation) = Observation::of_event(event) {
            self.add_live(DetectorSet::POOL_EVENTS);
            self.observe(observation, || Evidence::NONE);
        }
    }
}
