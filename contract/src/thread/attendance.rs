//! Whether a thread is present, how often it was called, and which phase it has seen
//! (design/contract.md `.acknowledge`).

use tripoint_core::Result;
use tripoint_core::internal::{AtomicUsize, Ordering, fence};

use crate::words::atomics::const_fn;
use crate::words::lifecycle::{Lifecycle, Phase};

const FREE: usize = 0;
const CLAIMED: usize = 1;
const PRESENT: usize = 2;
const LEFT: usize = 3;

/// The attendance of one thread. The thread joins, acknowledges and leaves; any other
/// may call it, and look.
#[derive(Debug)]
#[repr(C)]
pub struct Attendance {
    /// Counts calls: if the owner last saw another number, it has something to attend to.
    attention: AtomicUsize,
    /// One more than the phase acknowledged last; zero if none was.
    acknowledged: AtomicUsize,
    state: AtomicUsize,
    /// The number of threads that have had it.
    tenancy: AtomicUsize,
    /// The last of these whose end a warm-up has noticed.
    noticed: AtomicUsize,
}

impl Default for Attendance {
    fn default() -> Self {
        Self::new()
    }
}

impl Attendance {
    /// The offset of the state, for debuggers: it is 2 while the thread is present.
    #[cfg(not(tripoint_loom))]
    pub(crate) const STATE_OFFSET: usize = core::mem::offset_of!(Self, state);

    const_fn! {
        /// The attendance of no thread.
        #[must_use]
        pub fn new() -> Self {
            Self {
                attention: AtomicUsize::new(0),
                acknowledged: AtomicUsize::new(0),
                state: AtomicUsize::new(FREE),
                tenancy: AtomicUsize::new(0),
                noticed: AtomicUsize::new(0),
            }
        }
    }

    /// Takes it for the calling thread. Returns false if a thread has it or had it.
    #[must_use]
    pub fn claim(&self) -> bool {
        self.take(FREE)
    }

    /// Takes it for the calling thread after another left. Returns false if none left, or
    /// if another thread was first.
    #[must_use]
    pub fn reclaim(&self) -> bool {
        self.take(LEFT)
    }

    fn take(&self, from: usize) -> bool {
        let taken = self.state.compare_exchange(from, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if taken {
            self.acknowledged.store(0, Ordering::Relaxed);
            self.tenancy.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// The number, from one, of the thread that has it or had it last.
    #[must_use]
    pub fn tenancy(&self) -> usize {
        self.tenancy.load(Ordering::Relaxed)
    }

    /// Becomes present, and acknowledges the phase it finds.
    ///
    /// # Errors
    /// [`tripoint_core::Error::Parameter`] unless that is Init or Warmup: later it would escape
    /// the rehearsal. Then the attendance is as it was before it was taken.
    pub fn join(&self, lifecycle: &Lifecycle) -> Result<Phase> {
        self.state.store(PRESENT, Ordering::Release);
        // Against the fence of `Lifecycle::advance`.
        fence(Ordering::SeqCst);
        let phase = lifecycle.phase_of_registration().inspect_err(|_| self.withdraw())?;
        self.acknowledge(phase);
        Ok(phase)
    }

    /// Puts it back for a thread that was refused. If no thread had it before, none was here.
    fn withdraw(&self) {
        let before = if self.tenancy() == 1 { FREE } else { LEFT };
        self.state.store(before, Ordering::Release);
    }

    /// Leaves, if the thread is present. From here on another thread may take it.
    pub fn leave(&self) {
        let _ = self.state.compare_exchange(PRESENT, LEFT, Ordering::Release, Ordering::Relaxed);
    }

    /// Whether the thread is present.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.state.load(Ordering::Acquire) == PRESENT
    }

    /// Whether the thread was present and has left, and no warm-up has noticed that yet.
    pub(crate) fn has_left_unnoticed(&self) -> bool {
        self.state.load(Ordering::Acquire) == LEFT && self.noticed.load(Ordering::Relaxed) != self.tenancy()
    }

    /// Notes that a warm-up knows that the thread has left.
    pub(crate) fn notice(&self) {
        self.noticed.store(self.tenancy(), Ordering::Relaxed);
    }

    /// Whether a thread is or was present.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.state.load(Ordering::Acquire) >= PRESENT
    }

    /// Notes that the owner has seen `phase`. What it did before, it did before the phase.
    pub fn acknowledge(&self, phase: Phase) {
        self.acknowledged.store(phase as usize + 1, Ordering::Release);
    }

    /// Whether the owner has seen `phase`.
    #[must_use]
    pub fn has_acknowledged(&self, phase: Phase) -> bool {
        self.acknowledged.load(Ordering::Acquire) > phase as usize
    }

    /// The last phase that the owner has seen, if any.
    #[must_use]
    pub fn acknowledged(&self) -> Option<Phase> {
        let phases = self.acknowledged.load(Ordering::Acquire);
        phases.checked_sub(1).and_then(|index| Phase::ALL.get(index).copied())
    }

    /// Calls the owner: its next look at [`Attendance::attention`] differs.
    pub fn call(&self) {
        self.attention.fetch_add(1, Ordering::Release);
    }

    /// The number of calls so far: one load, which orders nothing.
    #[inline(always)]
    #[must_use]
    pub fn attention(&self) -> usize {
        self.attention.load(Ordering::Relaxed)
    }

    /// The number of calls so far; the caller sees what was done before them.
    #[must_use]
    pub fn attend(&self) -> usize {
        self.attention.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    fn in_steady_state() -> Lifecycle {
        let lifecycle = Lifecycle::new();
        for phase in [Phase::Init, Phase::Warmup, Phase::SteadyState] {
            lifecycle.advance(phase).unwrap();
        }
        lifecycle
    }

    /// A thread that asks before SteadyState begins, and joins after it began, leaves no trace.
    #[test]
    fn a_thread_that_is_refused_was_never_here() {
        let attendance = Attendance::new();
        assert!(attendance.claim());
        assert!(attendance.join(&in_steady_state()).is_err());
        assert!(!attendance.is_used());
        attendance.leave();
        assert!(!attendance.is_used(), "the end of its guard changes nothing");
        assert!(attendance.claim());
    }

    /// The thread before it was there.
    #[test]
    fn a_thread_that_left_stays_if_the_next_is_refused() {
        let (attendance, lifecycle) = (Attendance::new(), Lifecycle::new());
        lifecycle.advance(Phase::Init).unwrap();
        assert!(attendance.claim());
        attendance.join(&lifecycle).unwrap();
        attendance.leave();
        assert!(attendance.reclaim());
        assert!(attendance.join(&in_steady_state()).is_err());
        assert!(attendance.is_used() && !attendance.is_present());
    }
}
