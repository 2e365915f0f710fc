//! The detectors of one thread: started, proved, polled and ended on it.

use core::fmt;
use core::hint::black_box;
use std::os::fd::OwnedFd;

use tripoint_core::{Error, Result};

use crate::linux::filter::{self, FILTERED};
use crate::linux::kernel::{Errno, FaultKind, Faults, Kernel};
use crate::linux::supervisor::Waiting;
use crate::linux::system_calls::LinuxKernel;
use crate::linux::tables;
use crate::thread::current;
use crate::thread::detectors::Detectors;
use crate::thread::observation::Observation;
use crate::thread::slot::Slot;
use crate::words::class::ViolationClass;
use crate::words::detector_set::DetectorSet;

/// Stack that is touched before it is needed, in bytes: for signal handlers and
/// stack walks.
const STACK_TOUCHED: usize = 64 << 10;

/// Bytes of stack that are left alone at its end, for the code that does the touching.
const STACK_LEFT: usize = 16 << 10;

/// The detectors of the thread that made them.
pub struct ThreadDetectors<K: Kernel = LinuxKernel> {
    kernel: K,
    wanted: DetectorSet,
    /// To the supervisor that waits for this thread's filter.
    supervisor: Option<Waiting>,
    /// Traps go on while these are open.
    fault_events: Option<[OwnedFd; 2]>,
    /// The faults of each of [`FAULTS`] at the last poll.
    polled: Option<[Faulted; 2]>,
}

/// The error for a core that the system refuses.
const NOT_BOUND: Error = Error::Parameter(
    "the system did not bind the thread to HotThread::core; name a core that the process may run on",
);

/// The kinds of faults.
const FAULTS: [ViolationClass; 2] = [ViolationClass::MinorFault, ViolationClass::MajorFault];

/// Faults of one kind so far.
#[derive(Clone, Copy)]
struct Faulted {
    /// All that the kernel counted.
    counted: u64,
    /// Those that were charged to the thread, or are the detectors' own.
    known: usize,
}

impl Faulted {
    /// Faults since `before` that were neither charged nor are the detectors' own.
    fn unknown_since(self, before: Self) -> usize {
        let counted = usize::try_from(self.counted.wrapping_sub(before.counted)).unwrap_or(usize::MAX);
        counted.saturating_sub(self.known.wrapping_sub(before.known))
    }
}

impl<K: Kernel> ThreadDetectors<K> {
    /// Prepares the detectors wanted of the calling thread; starts none.
    ///
    /// The supervisor is started here, before the thread is bound to a core or
    /// under a filter, both of which it would inherit.
    pub fn new(kernel: K, wanted: DetectorSet) -> Self {
        let room = kernel.stack_room().unwrap_or(0);
        touch_stack(STACK_TOUCHED.min(room.saturating_sub(STACK_LEFT)));
        tables::bring_in();
        let traps = DetectorSet::FAULT_TRAP | FILTERED;
        let traps_handled = !wanted.intersects(traps) || kernel.handle_traps().is_ok();
        let supervised = wanted.intersects(FILTERED) && filter::program(wanted).is_some();
        let supervisor = if supervised { Waiting::start(kernel, traps_handled).ok() } else { None };
        let wanted = if traps_handled { wanted } else { wanted.difference(DetectorSet::FAULT_TRAP) };
        Self { kernel, wanted, supervisor, fault_events: None, polled: None }
    }

    fn start_fault_poll(&mut self, slot: &Slot) -> bool {
        self.polled = self.reading(slot);
        self.polled.is_some()
    }

    fn start_fault_trap(&mut self, slot: &Slot) -> bool {
        self.fault_events = self.open_fault_events().ok();
        let live = self.fault_events.is_some() && self.moves(slot, ViolationClass::MinorFault);
        if !live {
            self.fault_events = None;
        }
        live
    }

    fn open_fault_events(&self) -> Result<[OwnedFd; 2], Errno> {
        let open = |kind| self.kernel.open_fault_event(kind);
        Ok([open(FaultKind::Minor)?, open(FaultKind::Major)?])
    }

    /// Puts the thread under the filter, and returns which of its detectors see what they are for.
    fn start_filtered(&mut self, slot: &'static Slot) -> DetectorSet {
        let mut live = DetectorSet::empty();
        if self.goes_under_filter(slot) {
            let wants = |detector| self.wanted.contains(detector);
            live.set(
                DetectorSet::MEMORY_CALLS,
                wants(DetectorSet::MEMORY_CALLS) && self.moves(slot, ViolationClass::MemoryCall),
            );
            live.set(DetectorSet::WAITS, wants(DetectorSet::WAITS) && self.waits_are_live(slot));
        }
        live
    }

    fn goes_under_filter(&self, slot: &'static Slot) -> bool {
        let (Some(supervisor), Some(program)) = (&self.supervisor, filter::program(self.wanted)) else {
            return false;
        };
        supervisor.expect(slot, self.kernel.thread_id());
        match self.kernel.install_filter(program.instructions()) {
            // From here to the hand-over nothing may make a call about memory, or wait.
            Ok(listener) => supervisor.hand_over(listener),
            Err(_) => return false,
        }
        true
    }

    /// Gives up traps that no longer reach our handler: another would get them, or the process
    /// would end (design/contract.md `.trap.displaced`).
    fn end_displaced_traps(&mut self, slot: &Slot) {
        if self.fault_events.is_some() && !self.kernel.has_traps() {
            self.fault_events = None;
            slot.remove_live(DetectorSet::FAULT_TRAP);
        }
    }

    /// Gives up filtered calls if their supervisor has: it may have done so before they were noted as live.
    fn end_unsupervised(&self, slot: &Slot) {
        if self.supervisor.as_ref().is_some_and(Waiting::has_failed) {
            slot.remove_live(FILTERED);
        }
    }

    /// Whether a deliberate fault and memory call moves the tally of a class.
    fn moves(&self, slot: &Slot, class: ViolationClass) -> bool {
        let before = slot.tally(class).count;
        self.kernel.touch_fresh_page().is_ok() && slot.tally(class).count != before
    }

    fn waits_are_live(&self, slot: &Slot) -> bool {
        let before = slot.tally(ViolationClass::Wait).count;
        self.kernel.try_to_wait().is_ok() && slot.tally(ViolationClass::Wait).count != before
    }

    fn foreign_malloc_is_live(&self) -> bool {
        let before = current::count(ViolationClass::ForeignMalloc).0;
        self.kernel.call_malloc();
        current::count(ViolationClass::ForeignMalloc).0 != before
    }

    fn reading(&self, slot: &Slot) -> Option<[Faulted; 2]> {
        let Faults { minor, major } = self.kernel.thread_faults().ok()?;
        let known = FAULTS.map(|class| slot.tally(class).count.wrapping_add(slot.overlapped_of(class)));
        Some([Faulted { counted: minor, known: known[0] }, Faulted { counted: major, known: known[1] }])
    }
}

impl<K: Kernel> Detectors for ThreadDetectors<K> {
    fn pin(&mut self, core: usize) -> Result<()> {
        self.kernel.pin(core).map_err(|_| NOT_BOUND)
    }

    fn start(&mut self, slot: &'static Slot) -> DetectorSet {
        let wanted = self.wanted;
        let mut live = DetectorSet::empty();
        live.set(
            DetectorSet::FOREIGN_MALLOC,
            wanted.contains(DetectorSet::FOREIGN_MALLOC) && self.foreign_malloc_is_live(),
        );
        live.set(
            DetectorSet::FAULT_TRAP,
            wanted.contains(DetectorSet::FAULT_TRAP) && self.start_fault_trap(slot),
        );
        // The last to start: starting the others makes memory calls.
        live |= self.start_filtered(slot);
        live.set(
            DetectorSet::FAULT_POLL,
            wanted.contains(DetectorSet::FAULT_POLL) && self.start_fault_poll(slot),
        );
        live
    }

    /// Charges the faults that the kernel counted and that did not trap: all of
    /// them if traps are not live, otherwise those in the kernel, as when it copies
    /// to a fresh page (design/contract.md `.fault.own`).
    fn poll(&mut self, slot: &'static Slot) {
        self.end_displaced_traps(slot);
        self.end_unsupervised(slot);
        let Some(before) = self.polled else { return };
        let Some(mut now) = self.reading(slot) else { return };
        for ((class, now), before) in FAULTS.into_iter().zip(&mut now).zip(before) {
            let count = now.unknown_since(before);
            if count > 0 {
                current::observe(Observation { count, ..Observation::new(class, 0) });
                now.known = now.known.wrapping_add(count);
            }
        }
        self.polled = Some(now);
    }
}

impl<K: Kernel> fmt::Debug for ThreadDetectors<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadDetectors").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

/// Touches this many bytes of the stack below the caller, so that memory is behind them
/// (design/contract.md `.fault.stack`).
#[inline(never)]
fn touch_stack(size: usize) {
    const STEP: usize = 2 << 10;
    let mut step = [0_u8; STEP];
    black_box(&mut step).fill(1);
    if size > STEP {
        touch_stack(size - STEP);
    }
    // Keeps the recursion from becoming a loop.
    black_box(&mut step);
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use super::*;

    /// A poll of a thread for which the kernel counted `counted` faults more of each
    /// kind, and the detectors found `own` of them their own: what it is charged with.
    /// What the test itself faults comes on top.
    fn charged(counted: [u64; 2], own: [usize; 2]) -> [usize; 2] {
        let slot: &'static Slot = Box::leak(Box::new(Slot::new()));
        current::attach(slot, DetectorSet::empty());
        let mut detectors = ThreadDetectors::new(LinuxKernel, DetectorSet::FAULT_POLL);
        assert_eq!(detectors.start(slot), DetectorSet::FAULT_POLL);
        for (polled, counted) in detectors.polled.iter_mut().flatten().zip(counted) {
            polled.counted = polled.counted.wrapping_sub(counted);
        }
        for (class, own) in FAULTS.into_iter().zip(own) {
            (0..own).for_each(|_| slot.overlap(class));
        }
        detectors.poll(slot);
        current::detach(slot);
        FAULTS.map(|class| slot.tally(class).count)
    }

    #[test]
    fn own_faults_of_one_kind_hide_none_of_the_other() {
        const MANY: usize = 1_000_000;
        let [_, major] = charged([0, 1], [MANY, 0]);
        assert!((1..MANY).contains(&major), "{major}");
        let [minor, _] = charged([MANY as u64, 0], [0, MANY]);
        assert!(minor >= MANY, "{minor}");
    }

    #[test]
    fn own_faults_are_left_out_of_their_own_kind() {
        const MANY: usize = 1_000_000;
        let charged = charged([MANY as u64; 2], [MANY; 2]);
        assert!(charged.iter().all(|&count| count < MANY), "{charged:?}");
    }
}
