//! What one class of events needs for a correct alarm, whatever happens to its records
//! (design/contract.md `.alarm`).

use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};

use crate::thread::alarm::AlarmCell;
use crate::thread::ring::RING_RECORDS;
use crate::thread::tally::increase;
use crate::words::atomics::const_fn;
use crate::words::record::{Record, RecordCell, RecordKind};

/// How many records one turn makes of one class. Further events are counted, and their
/// records as lost. So only the first events of a burst cost a walk of the stack, and
/// other classes have room.
pub const RECORDS_PER_TURN: usize = if cfg!(tripoint_loom) { 1 } else { RING_RECORDS / 4 };

/// The records of one class in the present turn, and its alarm.
#[derive(Debug)]
pub(crate) struct Account {
    /// Records made in this turn.
    recorded: AtomicUsize,
    /// Whether `first` is of this turn.
    begun: AtomicBool,
    /// The turn's first violation.
    first: RecordCell,
    pub(crate) alarm: AlarmCell,
}

impl Account {
    /// Where the alarm's version and words are, for debuggers.
    #[cfg(not(tripoint_loom))]
    pub(crate) const OFFSETS: [usize; 2] = {
        let alarm = core::mem::offset_of!(Self, alarm);
        let [version, words] = AlarmCell::OFFSETS;
        [alarm + version, alarm + words]
    };

    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                recorded: AtomicUsize::new(0),
                begun: AtomicBool::new(false),
                first: RecordCell::new(),
                alarm: AlarmCell::new(),
            }
        }
    }

    /// Forgets everything, and writes every page. Called before anything uses it.
    pub(crate) fn reset(&self) {
        self.recorded.store(0, Ordering::Relaxed);
        self.begun.store(false, Ordering::Relaxed);
        self.first.prefault();
        self.alarm.reset();
    }

    /// Begins a turn: the class may make its records again.
    pub(crate) fn begin_turn(&self) {
        self.recorded.store(0, Ordering::Relaxed);
    }

    /// Whether a record of this kind would be the turn's first violation.
    pub(crate) fn is_first(&self, kind: RecordKind) -> bool {
        kind == RecordKind::Violation && !self.begun.load(Ordering::Relaxed)
    }

    /// Keeps the turn's first violation for its alarm.
    pub(crate) fn begin(&self, first: &Record) {
        self.first.set(first);
        self.begun.store(true, Ordering::Relaxed);
    }

    /// The turn's first violation, which the next one replaces.
    pub(crate) fn end(&self) -> Record {
        let first = self.first.get();
        self.begun.store(false, Ordering::Relaxed);
        first
    }

    /// Whether the turn may make another record.
    pub(crate) fn has_room(&self) -> bool {
        self.recorded.load(Ordering::Relaxed) < RECORDS_PER_TURN
    }

    /// Counts a record of this turn.
    pub(crate) fn count(&self) {
        increase(&self.recorded, 1);
    }
}
