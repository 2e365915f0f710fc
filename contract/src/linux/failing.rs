//! A kernel that refuses chosen calls, so that tests can drive every fallback.

use core::ops::Range;
use std::boxed::Box;
use std::os::fd::OwnedFd;
use std::string::String;
use std::thread::Thread;
use std::vec::Vec;

use bitflags::bitflags;
use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};

use crate::linux::kernel::{Errno, FaultKind, Faults, Instruction, Kernel, Residence, Wait};

/// The error number of refused calls: EPERM.
pub const REFUSED: Errno = Errno(1);

bitflags! {
    /// The calls of [`Kernel`] that can be refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Calls: u32 {
        /// [`Kernel::pin`]
        const PIN = 1 << 0;
        /// [`Kernel::thread_faults`] and [`Kernel::process_faults`]
        const FAULTS = 1 << 1;
        /// [`Kernel::handle_traps`]
        const HANDLE_TRAPS = 1 << 2;
        /// [`Kernel::open_fault_event`] and [`Kernel::try_fault_event`]
        const OPEN_FAULT_EVENT = 1 << 3;
        /// [`Kernel::send_trap`]
        const SEND_TRAP = 1 << 4;
        /// [`Kernel::install_filter`]
        const INSTALL_FILTER = 1 << 5;
        /// [`Kernel::touch_fresh_page`]
        const TOUCH = 1 << 6;
        /// [`Kernel::read`] and [`Kernel::read_into`]
        const READ = 1 << 7;
        /// [`Kernel::start_thread`]
        const START_THREAD = 1 << 8;
        /// [`Kernel::wait`]
        const WAIT = 1 << 9;
        /// [`Kernel::resume`]
        const RESUME = 1 << 10;
        /// [`Kernel::has_traps`], which returns false
        const HAS_TRAPS = 1 << 11;
        /// [`Kernel::prepare_children`]
        const PREPARE_CHILDREN = 1 << 12;
        /// [`Kernel::keep_resident`], locked
        const LOCK = 1 << 13;
        /// [`Kernel::keep_resident`], brought in
        const BRING_IN = 1 << 14;
        /// [`Kernel::raise_lock_limit`]
        const RAISE_LOCK_LIMIT = 1 << 15;
        /// [`Kernel::trim_heap`], which returns false
        const TRIM_HEAP = 1 << 16;
        /// [`Kernel::tell`]
        const TELL = 1 << 17;
        /// [`Kernel::stack_room`], which returns `None`
        const STACK_ROOM = 1 << 18;
        /// [`Kernel::try_to_wait`]
        const TRY_TO_WAIT = 1 << 19;
    }
}

/// The refusal of one call among many: the `nth` of some kinds, once. Or of all of them, from a moment on.
#[derive(Debug)]
pub struct Refusal {
    calls: Calls,
    nth: usize,
    seen: AtomicUsize,
    all: AtomicBool,
}

impl Refusal {
    /// Refuses the `nth` call of these kinds; the first is 1, and 0 is none.
    #[must_use]
    pub fn new(calls: Calls, nth: usize) -> Self {
        Self { calls, nth, seen: AtomicUsize::new(0), all: AtomicBool::new(false) }
    }

    /// Refuses all calls of these kinds from here on.
    pub fn refuse_all(&self) {
        self.all.store(true, Ordering::SeqCst);
    }

    /// The number of calls of these kinds so far, the refused one included.
    pub fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }

    /// Whether the call was refused.
    pub fn is_over(&self) -> bool {
        self.nth != 0 && self.seen() >= self.nth
    }

    fn refuses(&self, call: Calls) -> bool {
        self.calls.contains(call)
            && (self.seen.fetch_add(1, Ordering::SeqCst) + 1 == self.nth || self.all.load(Ordering::SeqCst))
    }
}

/// Another kernel, some of whose calls are refused.
#[derive(Clone, Copy, Debug)]
pub struct Failing<K> {
    inner: K,
    refused: Calls,
    refusal: Option<&'static Refusal>,
    files: &'static [(&'static str, &'static str)],
    before: Option<(Calls, fn())>,
}

impl<K: Kernel> Failing<K> {
    /// `inner`, refusing these calls.
    pub const fn new(inner: K, refused: Calls) -> Self {
        Self { inner, refused, refusal: None, files: &[], before: None }
    }

    /// This kernel, with other contents for some files.
    #[must_use]
    pub const fn with_files(mut self, files: &'static [(&'static str, &'static str)]) -> Self {
        self.files = files;
        self
    }

    /// This kernel, refusing one call more.
    #[must_use]
    pub const fn with_refusal(mut self, refusal: &'static Refusal) -> Self {
        self.refusal = Some(refusal);
        self
    }

    /// This kernel, which does `act` before each call of these kinds.
    #[must_use]
    pub const fn with_before(mut self, calls: Calls, act: fn()) -> Self {
        self.before = Some((calls, act));
        self
    }

    fn file(&self, path: &str) -> Option<&'static [u8]> {
        self.files.iter().find(|(known, _)| *known == path).map(|(_, text)| text.as_bytes())
    }

    fn admit(&self, call: Calls) -> Result<(), Errno> {
        if let Some((calls, act)) = self.before
            && calls.contains(call)
        {
            act();
        }
        let due = self.refusal.is_some_and(|refusal| refusal.refuses(call));
        if due || self.refused.contains(call) { Err(REFUSED) } else { Ok(()) }
    }
}

impl<K: Kernel> Kernel for Failing<K> {
    fn pin(&self, core: usize) -> Result<(), Errno> {
        self.admit(Calls::PIN)?;
        self.inner.pin(core)
    }

    fn thread_id(&self) -> usize {
        self.inner.thread_id()
    }

    fn stack_room(&self) -> Option<usize> {
        self.admit(Calls::STACK_ROOM).ok()?;
        self.inner.stack_room()
    }

    fn thread_faults(&self) -> Result<Faults, Errno> {
        self.admit(Calls::FAULTS)?;
        self.inner.thread_faults()
    }

    fn process_faults(&self) -> Result<Faults, Errno> {
        self.admit(Calls::FAULTS)?;
        self.inner.process_faults()
    }

    fn handle_traps(&self) -> Result<(), Errno> {
        self.admit(Calls::HANDLE_TRAPS)?;
        self.inner.handle_traps()
    }

    fn has_traps(&self) -> bool {
        self.admit(Calls::HAS_TRAPS).is_ok() && self.inner.has_traps()
    }

    fn prepare_children(&self) -> Result<(), Errno> {
        self.admit(Calls::PREPARE_CHILDREN)?;
        self.inner.prepare_children()
    }

    fn open_fault_event(&self, kind: FaultKind) -> Result<OwnedFd, Errno> {
        self.admit(Calls::OPEN_FAULT_EVENT)?;
        self.inner.open_fault_event(kind)
    }

    fn try_fault_event(&self) -> Result<(), Errno> {
        self.admit(Calls::OPEN_FAULT_EVENT)?;
        self.inner.try_fault_event()
    }

    fn send_trap(&self, thread: usize) -> Result<(), Errno> {
        self.admit(Calls::SEND_TRAP)?;
        self.inner.send_trap(thread)
    }

    fn install_filter(&self, program: &[Instruction]) -> Result<OwnedFd, Errno> {
        self.admit(Calls::INSTALL_FILTER)?;
        self.inner.install_filter(program)
    }

    fn start_thread(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Thread, Errno> {
        self.admit(Calls::START_THREAD)?;
        self.inner.start_thread(name, work)
    }

    fn wait(&self, listener: &OwnedFd, patience: Option<u32>) -> Result<Wait, Errno> {
        self.admit(Calls::WAIT)?;
        self.inner.wait(listener, patience)
    }

    fn resume(&self, listener: &OwnedFd, id: u64) -> Result<(), Errno> {
        self.admit(Calls::RESUME)?;
        self.inner.resume(listener, id)
    }

    fn touch_fresh_page(&self) -> Result<(), Errno> {
        self.admit(Calls::TOUCH)?;
        self.inner.touch_fresh_page()
    }

    fn try_to_wait(&self) -> Result<(), Errno> {
        self.admit(Calls::TRY_TO_WAIT)?;
        self.inner.try_to_wait()
    }

    fn call_malloc(&self) {
        self.inner.call_malloc();
    }

    fn heap_in_use(&self) -> Option<usize> {
        self.inner.heap_in_use()
    }

    fn keep_resident(&self, range: Range<usize>, how: Residence) -> Result<(), Errno> {
        self.admit(if how == Residence::BroughtIn { Calls::BRING_IN } else { Calls::LOCK })?;
        self.inner.keep_resident(range, how)
    }

    fn raise_lock_limit(&self) -> Result<(), Errno> {
        self.admit(Calls::RAISE_LOCK_LIMIT)?;
        self.inner.raise_lock_limit()
    }

    fn trim_heap(&self) -> bool {
        self.admit(Calls::TRIM_HEAP).is_ok() && self.inner.trim_heap()
    }

    fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        self.admit(Calls::READ)?;
        self.file(path).map_or_else(|| self.inner.read(path), |text| Ok(text.into()))
    }

    fn read_into(&self, path: &str, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.admit(Calls::READ)?;
        let Some(text) = self.file(path) else { return self.inner.read_into(path, buffer) };
        let size = text.len().min(buffer.len());
        buffer[..size].copy_from_slice(&text[..size]);
        Ok(size)
    }

    fn tell(&self, text: &[u8]) -> Result<(), Errno> {
        self.admit(Calls::TELL)?;
        self.inner.tell(text)
    }

    fn binds_now(&self) -> bool {
        self.inner.binds_now()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.inner.variable(name)
    }
}
