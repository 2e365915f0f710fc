//! The supervisor of a hot thread's system calls: those about memory, and those that wait, if
//! that is asked for. It sees each call, counts it, and lets it go on (design/contract.md `.call`).
//!
//! ```text
//!   hot thread          supervisor
//!   mmap ------------->  notified; armed: trap ----+
//!   <----- trap: keeps its stack, begins mmap anew +
//!   mmap ------------->  notified; has the site: records, resumes
//!   goes on <----------
//! ```
//!
//! It lives as long as a thread is under the filter, so that the end of a thread
//! and Teardown, which make such calls too, find it.

use core::fmt;
use std::boxed::Box;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

use tripoint_core::aver;
use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};
use tripoint_stack::Site;

use crate::linux::calls::{class_of_call, size_of_call};
use crate::linux::filter::FILTERED;
use crate::linux::kernel::{Errno, Kernel, Notification, Wait};
use crate::linux::listeners::{Note, Place};
use crate::thread::current;
use crate::thread::observation::{Evidence, Observation};
use crate::thread::slot::Slot;

/// For how long, in ms, the supervisor waits for the thread's call site. An answer takes µs;
/// this is for a signal that never arrives.
const PATIENCE: u32 = 200;

/// How often in a row a refusing kernel is asked. Without a supervisor the thread's filtered
/// calls fail, which is better than that they wait forever.
const PERSISTENCE: usize = 100;

/// The mailbox is still empty.
const NOTHING: usize = usize::MAX;
/// No listener will come.
const ABANDONED: usize = usize::MAX - 1;

/// Where a thread leaves its listener for its supervisor. From the moment the
/// filter is there, nothing that could make a filtered call may happen before the
/// supervisor has the listener: so handing it over is one store and a wake-up
/// (design/contract.md `.call.handover`).
struct Mailbox {
    /// A descriptor, [`NOTHING`] or [`ABANDONED`].
    listener: AtomicUsize,
    /// Set when the supervisor has given up.
    has_failed: AtomicBool,
    thread: OnceLock<(&'static Slot, usize, usize)>,
}

/// A supervisor that waits for its thread's listener.
pub(super) struct Waiting {
    mailbox: Arc<Mailbox>,
    /// Where a forked child finds the listener.
    note: Note,
    supervisor: Thread,
}

impl Waiting {
    /// Starts a supervisor. It ends when no listener will come. It asks the thread for call
    /// sites only if `may_ask` says that traps are handled: an unhandled trap ends the
    /// process.
    ///
    /// # Errors
    /// If the system starts no thread, or cannot keep a forked child from waiting forever.
    pub(super) fn start<K: Kernel>(kernel: K, may_ask: bool) -> Result<Self, Errno> {
        let mailbox = Arc::new(Mailbox {
            listener: AtomicUsize::new(NOTHING),
            has_failed: AtomicBool::new(false),
            thread: OnceLock::new(),
        });
        let shared = Arc::clone(&mailbox);
        kernel.prepare_children()?;
        let place = Place::claim();
        let note = place.note();
        let work = move || {
            if let Some(filtered) = shared.wait(place) {
                let mut supervisor = Supervisor { kernel, filtered, may_ask, asked: None, counted: None };
                if supervisor.run().is_err() {
                    // When the listener is closed, the thread's filtered calls fail, and are not seen.
                    shared.has_failed.store(true, Ordering::Release);
                    supervisor.filtered.remove_live();
                }
            }
        };
        let supervisor = kernel.start_thread("supervisor", Box::new(work))?;
        Ok(Self { mailbox, note, supervisor })
    }

    /// Notes whose listener will come.
    pub(super) fn expect(&self, slot: &'static Slot, thread: usize) {
        let first = self.mailbox.thread.set((slot, slot.attendance.tenancy(), thread)).is_ok();
        aver!(first, "a supervisor for thread {thread} waits for another thread already");
    }

    /// Whether the supervisor has given up. It may have done so before its thread noted which detectors are live, so
    /// the thread asks afterwards.
    pub(super) fn has_failed(&self) -> bool {
        self.mailbox.has_failed.load(Ordering::Acquire)
    }

    /// Hands the listener over. Makes no call about memory, and none that waits.
    pub(super) fn hand_over(&self, listener: OwnedFd) {
        self.note.write(listener.as_raw_fd());
        let listener = usize::try_from(listener.into_raw_fd()).unwrap_or(ABANDONED);
        self.mailbox.listener.store(listener, Ordering::Release);
        self.supervisor.unpark();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let (order, listener) = (Ordering::Release, &self.mailbox.listener);
        if listener.compare_exchange(NOTHING, ABANDONED, order, Ordering::Relaxed).is_ok() {
            self.supervisor.unpark();
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

impl Mailbox {
    fn wait(&self, place: Place) -> Option<Filtered> {
        loop {
            match self.listener.load(Ordering::Acquire) {
                NOTHING => thread::park(),
                ABANDONED => return None,
                listener => return self.filtered(place, RawFd::try_from(listener).ok()?),
            }
        }
    }

    fn filtered(&self, place: Place, listener: RawFd) -> Option<Filtered> {
        let &(slot, tenancy, thread) = self.thread.get()?;
        // SAFETY: the thread gave up its ownership when it handed this over, and
        // only one supervisor takes it, once.
        let listener = unsafe { OwnedFd::from_raw_fd(listener) };
        Some(Filtered { _place: place, listener, slot, tenancy, thread })
    }
}

/// A filtered thread.
struct Filtered {
    /// Dropped before the listener is closed, because its number may then be reused.
    _place: Place,
    listener: OwnedFd,
    slot: &'static Slot,
    tenancy: usize,
    thread: usize,
}

impl Filtered {
    /// Whether the slot is still this thread's. A thread may live on without its guard, and
    /// another may have taken the slot.
    fn is_present(&self) -> bool {
        self.slot.is_present() && self.has_slot()
    }

    /// Whether no other thread has taken the slot.
    fn has_slot(&self) -> bool {
        self.slot.attendance.tenancy() == self.tenancy
    }

    /// Notes that filtered calls are no longer seen; also of a thread that has left, which may have made some before.
    fn remove_live(&self) {
        if self.has_slot() {
            self.slot.remove_live(FILTERED);
        }
    }
}

struct Supervisor<K> {
    kernel: K,
    filtered: Filtered,
    /// Whether traps are handled.
    may_ask: bool,
    /// The call whose site was asked for, and how many sites there were before.
    asked: Option<(Notification, usize)>,
    /// The last call that was counted and could not be let go.
    counted: Option<Notification>,
}

impl<K: Kernel> Supervisor<K> {
    fn run(&mut self) -> Result<(), Errno> {
        loop {
            let patience = self.asked.map(|_| PATIENCE);
            match persist(|| self.kernel.wait(&self.filtered.listener, patience))? {
                Wait::Notified(call) => self.handle(call)?,
                Wait::TimedOut => {
                    if let Some((call, _)) = self.asked.take() {
                        self.pass(call, Site::new([call.instruction]))?;
                    }
                }
                Wait::Ended => return Ok(()),
            }
        }
    }

    fn handle(&mut self, call: Notification) -> Result<(), Errno> {
        if call.thread != self.filtered.thread {
            // A child of the thread: under the filter, and not under the contract.
            return self.resume(call).map(drop);
        }
        let (kept, site) = self.filtered.slot.call_site.last();
        let unanswered = Site::new([call.instruction]);
        match self.asked.take() {
            // A call is asked about once. If another handler has the trap, the call would
            // start again, and be asked about forever.
            Some((asked, before)) if same(&asked, &call) => {
                self.pass(call, if kept == before { unanswered } else { site })
            }
            _ if self.ask(call) => {
                self.asked = Some((call, kept));
                Ok(())
            }
            _ => self.pass(call, unanswered),
        }
    }

    /// Asks the thread where it is, if that will be recorded and the thread can answer.
    fn ask(&self, call: Notification) -> bool {
        self.may_ask
            && self.filtered.slot.wants_call_site(class_of_call(call.call))
            && self.filtered.is_present()
            && self.kernel.has_traps()
            && self.is_open_to_traps()
            && self.send_question(call.thread)
    }

    /// Sends the question. The slot knows before, since the question may arrive without
    /// its word, and keeps knowing when patience ends: it may be late
    /// (design/contract.md `.trap.bare`).
    fn send_question(&self, thread: usize) -> bool {
        self.filtered.slot.call_site.expect_question();
        let sent = self.kernel.send_trap(thread).is_ok();
        if !sent {
            self.filtered.slot.call_site.take_question();
        }
        sent
    }

    /// Whether a trap would reach the thread: it blocks all signals at its end.
    ///
    /// The thread may have been stopped with its allocator's lock held, so nothing
    /// here may allocate (design/contract.md `.call`).
    fn is_open_to_traps(&self) -> bool {
        let mut path = [0_u8; 64];
        let mut rest = &mut path[..];
        if write!(rest, "/proc/self/task/{}/status", self.filtered.thread).is_err() {
            return false;
        }
        let unused = rest.len();
        let Ok(path) = core::str::from_utf8(&path[..path.len() - unused]) else { return false };
        let mut status = [0_u8; 4096];
        let Ok(size) = self.kernel.read_into(path, &mut status) else { return false };
        let blocked =
            status[..size].split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"SigBlk:"));
        let blocked = blocked.and_then(|mask| core::str::from_utf8(mask).ok());
        let blocked = blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        blocked.is_some_and(|mask| mask >> (libc::SIGTRAP - 1) & 1 == 0)
    }

    fn pass(&mut self, call: Notification, site: Site) -> Result<(), Errno> {
        // A call that a signal interrupted after it was counted begins anew.
        let again = self.counted.take().is_some_and(|counted| same(&counted, &call));
        let [address, second] = call.arguments;
        let (class, size) = (class_of_call(call.call), size_of_call(call.call, second));
        let seen = Observation { address, call: call.call, ..Observation::new(class, size) };
        if !again && self.filtered.is_present() {
            self.filtered.slot.observe_supervised(seen, || Evidence { site, time: current::time() });
        }
        if !self.resume(call)? {
            self.counted = Some(call);
        }
        Ok(())
    }

    /// Lets a call go on. Returns false if it was interrupted, and will come again.
    fn resume(&self, call: Notification) -> Result<bool, Errno> {
        persist(|| match self.kernel.resume(&self.filtered.listener, call.id) {
            Err(Errno(libc::ENOENT)) => Ok(false),
            answer => answer.map(|()| true),
        })
    }
}

/// Asks the kernel repeatedly while it refuses. Returns its last refusal.
fn persist<T>(mut ask: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    (1..PERSISTENCE).find_map(|_| ask().ok()).map_or_else(ask, Ok)
}

/// Whether two notifications are of one call, begun twice.
fn same(one: &Notification, other: &Notification) -> bool {
    Notification { id: other.id, ..*one } == *other
}
