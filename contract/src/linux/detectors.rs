//! The detectors of one thread: started, proved, polled and ended on it.

use core::fmt;
use core::hint::black_box;
use std::os::fd::OwnedFd;

use tripoint_core::{Error, Result};

use super::filter;
use super::native::Native;
use super::supervisor::Waiting;
use super::tables;
use crate::class::ViolationClass;
use crate::current;
use crate::detector::{DetectorSet, Detectors};
use crate::kernel::{Errno, FaultKind, Faults, Kernel};
use crate::slot::{Observation, Slot};

/// Stack that is touched before it is needed, in bytes: for signal handlers and
/// stack walks.
const STACK_TOUCHED: usize = 64 << 10;

/// The detectors of the thread that made them.
pub struct ThreadDetectors<K: Kernel = Native> {
    kernel: K,
    wanted: DetectorSet,
    /// To the supervisor that waits for this thread's filter.
    supervisor: Option<Waiting>,
    /// Traps go on while these are open.
    fault_events: Option<[OwnedFd; 2]>,
    /// What the kernel and the tally said at the last poll.
    polled: Option<Polled>,
}

#[derive(Clone, Copy)]
struct Polled {
    kernel: Faults,
    minor: usize,
    major: usize,
    overlapped: usize,
}

impl<K: Kernel> ThreadDetectors<K> {
    /// Prepares the detectors wanted of the calling thread; starts none.
    ///
    /// The supervisor is started here, before the thread is bound to a core or
    /// under a filter, both of which it would inherit.
    pub fn new(kernel: K, wanted: DetectorSet) -> Self {
        touch_stack();
        tables::bring_in();
        let traps = DetectorSet::FAULT_TRAP | DetectorSet::MEMORY_CALLS;
        let traps_handled = !wanted.intersects(traps) || kernel.handle_traps().is_ok();
        let supervised = wanted.contains(DetectorSet::MEMORY_CALLS);
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

    fn start_memory_calls(&mut self, slot: &'static Slot) -> bool {
        let Some(supervisor) = &self.supervisor else { return false };
        supervisor.expect(slot, self.kernel.thread_id());
        let program = filter::program();
        match self.kernel.install_filter(&program) {
            // From here to the hand-over nothing may make a memory call.
            Ok(listener) => supervisor.hand_over(listener),
            Err(_) => return false,
        }
        self.moves(slot, ViolationClass::MemoryCall)
    }

    /// Whether a deliberate fault and memory call moves the tally of a class.
    fn moves(&self, slot: &Slot, class: ViolationClass) -> bool {
        let before = slot.tally(class).count;
        self.kernel.touch_fresh_page().is_ok() && slot.tally(class).count != before
    }

    fn foreign_malloc_is_live(&self) -> bool {
        let before = current::count(ViolationClass::ForeignMalloc).0;
        self.kernel.call_malloc();
        current::count(ViolationClass::ForeignMalloc).0 != before
    }

    fn reading(&self, slot: &Slot) -> Option<Polled> {
        Some(Polled {
            kernel: self.kernel.thread_faults().ok()?,
            minor: slot.tally(ViolationClass::MinorFault).count,
            major: slot.tally(ViolationClass::MajorFault).count,
            overlapped: slot.overlapped(),
        })
    }
}

impl<K: Kernel> Detectors for ThreadDetectors<K> {
    fn pin(&mut self, core: usize) -> Result<()> {
        self.kernel.pin(core).map_err(|_| Error::Resource)
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
        live.set(
            DetectorSet::MEMORY_CALLS,
            wanted.contains(DetectorSet::MEMORY_CALLS) && self.start_memory_calls(slot),
        );
        live.set(
            DetectorSet::FAULT_POLL,
            wanted.contains(DetectorSet::FAULT_POLL) && self.start_fault_poll(slot),
        );
        live
    }

    /// Charges the faults that the kernel counted and nothing trapped: all of
    /// them where traps are not live, else those in the kernel, as when it copies
    /// to a fresh page.
    fn poll(&mut self, slot: &'static Slot) {
        let Some(before) = self.polled else { return };
        let Some(now) = self.reading(slot) else { return };
        // Events that overlapped may have been faults, and are told apart as such.
        let overlapped = now.overlapped.wrapping_sub(before.overlapped);
        let untrapped = |kernel: u64, tally: usize| {
            usize::try_from(kernel).unwrap_or(usize::MAX).saturating_sub(tally).saturating_sub(overlapped)
        };
        let minor = untrapped(now.kernel.minor - before.kernel.minor, now.minor.wrapping_sub(before.minor));
        let major = untrapped(now.kernel.major - before.kernel.major, now.major.wrapping_sub(before.major));
        for (class, count) in [(ViolationClass::MinorFault, minor), (ViolationClass::MajorFault, major)] {
            if count > 0 {
                current::observe(Observation { count, ..Observation::new(class, 0) });
            }
        }
        self.polled = Some(Polled {
            minor: now.minor.wrapping_add(minor),
            major: now.major.wrapping_add(major),
            ..now
        });
    }
}

impl<K: Kernel> fmt::Debug for ThreadDetectors<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadDetectors").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

/// Brings memory behind the stack below the caller.
#[inline(never)]
pub(crate) fn touch_stack() {
    black_box(&mut [0_u8; STACK_TOUCHED]).fill(1);
}
