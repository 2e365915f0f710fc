//! What the coordinator asks of all hot threads.

use tripoint_core::internal::Ordering;

use crate::phases::contract::Contract;
use crate::phases::ledger::AmnestyReason;
use crate::thread::standing::Mode;

impl<R: AmnestyReason, const THREADS: usize> Contract<R, THREADS> {
    /// Asks every hot thread to poll its detectors at its next check. Returns the number of the
    /// request, for [`Contract::have_polled`].
    pub fn request_poll(&self) -> usize {
        let wanted = self.session.polls.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        self.ask_for_poll(wanted);
        wanted
    }

    /// Asks the threads that were not yet asked for that poll or a later one.
    pub(crate) fn ask_for_poll(&self, wanted: usize) {
        for slot in self.hot_threads() {
            if slot.errands.ask_for_poll(wanted) {
                slot.attendance.call();
            }
        }
    }

    /// Whether every hot thread that is present has polled since that request.
    #[must_use]
    pub fn have_polled(&self, request: usize) -> bool {
        self.hot_threads().all(|slot| slot.has_polled(request))
    }

    /// Asks every hot thread to record its events, or only to count them, while the phase is Init
    /// or Warmup.
    pub(crate) fn request_rehearsal(&self, rehearse: bool) {
        let mode = if rehearse { Mode::Rehearsal } else { Mode::Counting };
        for slot in self.hot_threads() {
            if slot.errands.ask_for_mode(mode) {
                slot.attendance.call();
            }
        }
    }

    /// Asks every hot thread to rehearse a turn, from one check to the next, unless it was asked
    /// for that turn already.
    pub(crate) fn request_turn(&self, turn: usize) {
        for slot in self.hot_threads() {
            if slot.errands.ask_for_turn(turn) {
                slot.attendance.call();
            }
        }
    }
}
