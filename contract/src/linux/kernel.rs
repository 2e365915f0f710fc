//! What the detectors ask of the kernel. Tests refuse calls here.

use core::fmt;
use core::ops::Range;
use std::boxed::Box;
use std::os::fd::OwnedFd;
use std::string::String;
use std::thread::Thread;
use std::vec::Vec;

/// Why a call of the kernel failed: its error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// Page faults since a thread or process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Served without a device.
    pub minor: u64,
    /// Served from a device.
    pub major: u64,
}

/// Which page faults an event is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Served without a device.
    Minor,
    /// Served from a device.
    Major,
}

/// One instruction of a system-call filter, as the kernel wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// How many instructions to skip if a comparison holds.
    pub if_true: u8,
    /// How many to skip if it does not.
    pub if_false: u8,
    /// What the instruction loads, compares with or returns, according to its code.
    pub operand: u32,
}

/// A filtered call that waits for its supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The number with which the supervisor answers.
    pub id: u64,
    /// The thread that made the call.
    pub thread: usize,
    /// The number of the call.
    pub call: usize,
    /// The instruction after the call.
    pub instruction: usize,
    /// The first two arguments: for most calls an address and a size. A call that takes fewer
    /// leaves here what was in the register.
    pub arguments: [usize; 2],
}

/// The outcome of waiting for a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A call waits.
    Notified(Notification),
    /// No call came in time.
    TimedOut,
    /// No thread is under the filter any more.
    Ended,
}

/// How memory is kept resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residence {
    /// Brought in now, and never swapped out.
    Locked,
    /// Never swapped out once it is touched.
    LockedOnceTouched,
    /// Brought in now; it may be swapped out again.
    BroughtIn,
}

/// The calls of the kernel that the detectors make.
pub trait Kernel: Copy + Send + Sync + fmt::Debug + 'static {
    /// Binds the calling thread to a core.
    ///
    /// # Errors
    /// The error number of the kernel. The same holds for the other calls.
    fn pin(&self, core: usize) -> Result<(), Errno>;

    /// The kernel's number of the calling thread.
    fn thread_id(&self) -> usize;

    /// How many bytes of its stack the calling thread has not used; `None` if it runs on
    /// another stack than the system gave it.
    fn stack_room(&self) -> Option<usize>;

    /// The faults of the calling thread.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn thread_faults(&self) -> Result<Faults, Errno>;

    /// The faults of the process.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn process_faults(&self) -> Result<Faults, Errno>;

    /// Handles the trap signal, and lets it through to the calling thread, which is charged by it
    /// from here on.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn handle_traps(&self) -> Result<(), Errno>;

    /// Whether traps still reach our handler: another may have been installed since.
    fn has_traps(&self) -> bool;

    /// Makes every child that is forked from now on close its copies of the listeners, and count in memory of
    /// its own.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn prepare_children(&self) -> Result<(), Errno>;

    /// Lets every page fault of the calling thread send it a trap, until the descriptor is
    /// closed.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn open_fault_event(&self, kind: FaultKind) -> Result<OwnedFd, Errno>;

    /// Whether the kernel would open such an event. This causes no trap.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn try_fault_event(&self) -> Result<(), Errno>;

    /// Sends a trap to a thread of this process, whose handler then keeps the call site.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn send_trap(&self, thread: usize) -> Result<(), Errno>;

    /// Puts the calling thread under a filter for good; returns its listener.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn install_filter(&self, program: &[Instruction]) -> Result<OwnedFd, Errno>;

    /// Starts a thread of this process, which ends with its work. It takes none of
    /// the program's signals.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn start_thread(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Thread, Errno>;

    /// Waits for a call that the filter stopped.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn wait(&self, listener: &OwnedFd, patience: Option<u32>) -> Result<Wait, Errno>;

    /// Lets a call go on.
    ///
    /// # Errors
    /// See [`Kernel::pin`]. A call that was interrupted meanwhile is gone.
    fn resume(&self, listener: &OwnedFd, id: u64) -> Result<(), Errno>;

    /// Maps a page, writes to it, and unmaps it: a fault and two memory calls, or four if the
    /// process locks all that it maps.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn touch_fresh_page(&self) -> Result<(), Errno>;

    /// Asks to wait for what has happened already, and so returns at once: one call that waits.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn try_to_wait(&self) -> Result<(), Errno>;

    /// Calls C's `malloc` and `free` once.
    fn call_malloc(&self);

    /// Bytes that C's allocator has in use, if it reports them.
    fn heap_in_use(&self) -> Option<usize>;

    /// Keeps a range of whole pages of this process in memory.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn keep_resident(&self, range: Range<usize>, how: Residence) -> Result<(), Errno>;

    /// Raises the limit of locked memory as far as the process may.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn raise_lock_limit(&self) -> Result<(), Errno>;

    /// Makes C's allocator return its free memory. Returns false if it cannot.
    fn trim_heap(&self) -> bool;

    /// The size of a page, in bytes.
    fn page_size(&self) -> usize;

    /// The contents of a file.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn read(&self, path: &str) -> Result<Vec<u8>, Errno>;

    /// Reads the beginning of a file into `buffer`, and returns how many bytes that are.
    /// Allocates nothing.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn read_into(&self, path: &str, buffer: &mut [u8]) -> Result<usize, Errno>;

    /// Whether all functions of the program are bound when it starts.
    fn binds_now(&self) -> bool;

    /// Writes to standard error, without any buffer or lock. Allocates nothing.
    ///
    /// # Errors
    /// See [`Kernel::pin`].
    fn tell(&self, text: &[u8]) -> Result<(), Errno>;

    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
}
