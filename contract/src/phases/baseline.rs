//! What happened on a thread before, and is not held against it again.

use core::cell::Cell;

use crate::thread::slot::Slot;
use crate::thread::tally::Tally;
use crate::words::class::{ViolationClass, ViolationSet};

/// Events of one class that no amnesty excused, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Amount {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

/// The amounts of all classes from which a thread's new events are measured.
pub(crate) struct Baselines([Cell<Amount>; ViolationClass::COUNT]);

impl Baselines {
    pub(crate) const fn new() -> Self {
        Self([const { Cell::new(Amount { events: 0, bytes: 0 }) }; ViolationClass::COUNT])
    }

    /// The classes that the thread is held to and of which something happened since.
    pub(crate) fn happened(&self, slot: &Slot) -> ViolationSet {
        let happened = |class: &ViolationClass| self.since(slot, *class).events != 0;
        slot.held().classes().filter(happened).map(ViolationSet::of).collect()
    }

    /// Forgives all that happened so far.
    pub(crate) fn move_to_now(&self, slot: &Slot) {
        for class in ViolationClass::ALL {
            self.0[class.index()].set(now(slot, class));
        }
    }

    /// What happened of a class since. It is returned only once.
    pub(crate) fn take(&self, slot: &Slot, class: ViolationClass) -> Amount {
        let since = self.since(slot, class);
        let baseline = &self.0[class.index()];
        baseline.set(Amount {
            events: baseline.get().events.wrapping_add(since.events),
            bytes: baseline.get().bytes.wrapping_add(since.bytes),
        });
        since
    }

    fn since(&self, slot: &Slot, class: ViolationClass) -> Amount {
        let (now, baseline) = (now(slot, class), self.0[class.index()].get());
        Amount {
            events: now.events.wrapping_sub(baseline.events),
            bytes: now.bytes.wrapping_sub(baseline.bytes),
        }
    }
}

fn now(slot: &Slot, class: ViolationClass) -> Amount {
    let tally = settled(|| slot.tally(class));
    Amount { events: tally.unexcused(), bytes: tally.unexcused_bytes() }
}

/// Reads until two readings agree. A signal handler on this thread may count an event between
/// the loads of one reading, which is then of no moment: excused events without the count that
/// they are part of, or events without their bytes.
fn settled(read: impl Fn() -> Tally) -> Tally {
    let mut last = read();
    loop {
        let next = read();
        if next == last {
            return last;
        }
        last = next;
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// An excused event that a signal handler counts between two loads does not pass for
    /// events without end.
    #[test]
    fn a_reading_that_an_event_interrupted_is_read_again() {
        let before = Tally { count: 5, bytes: 50, excused: 1, excused_bytes: 10 };
        let after = Tally { count: 6, bytes: 60, excused: 2, excused_bytes: 20 };
        let interrupted = Tally { excused: 2, excused_bytes: 20, ..before };
        assert_eq!(interrupted.unexcused(), before.unexcused() - 1, "events that are taken back");
        let script = [interrupted, after, after];
        let readings = Cell::new(script.as_slice());
        let read = || {
            let (first, rest) = readings.get().split_first().unwrap();
            readings.set(rest);
            *first
        };
        assert_eq!(settled(read), after);
        assert!(readings.get().is_empty());
    }
}
