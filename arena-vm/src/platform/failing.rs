//! A platform that fails on demand, so that tests can drive every error path.

use core::ptr::NonNull;

use tripoint_core::internal::{AtomicBool, AtomicU32, AtomicUsize, Ordering, Update};
use tripoint_core::{AddrRange, NodeSet};

use super::{Platform, PlatformError, Watch};
use crate::chosen_memory::{HugePages, PageSizes, Placement};

/// The calls of [`Platform`] that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Platform::reserve`]
    Reserve,
    /// [`Platform::release`]
    Release,
    /// [`Platform::commit`]
    Commit,
    /// [`Platform::decommit`]
    Decommit,
    /// [`Platform::zero`]
    Zero,
    /// [`Platform::discard`]
    Discard,
    /// [`Platform::populate`]
    Populate,
    /// [`Platform::populate_in_use`]
    PopulateInUse,
    /// [`Platform::advise_huge_pages`]
    AdviseHugePages,
    /// [`Platform::collapse`]
    Collapse,
    /// [`Platform::map_huge_pages`]
    MapHugePages,
    /// [`Platform::fill_huge_pages`]
    FillHugePages,
    /// [`Platform::empty_huge_pages`]
    EmptyHugePages,
    /// [`Platform::memory_nodes`]
    MemoryNodes,
    /// [`Platform::place`]
    Place,
    /// [`Platform::locate`]
    Locate,
    /// [`Platform::page_sizes`]
    PageSizes,
    /// [`Platform::map_file`]
    MapFile,
    /// [`Platform::unmap_file`]
    UnmapFile,
    /// [`Platform::lock`]
    Lock,
    /// [`Platform::unlock`]
    Unlock,
    /// [`Platform::no_inherit`]
    NoInherit,
    /// [`Platform::open_watch`]
    OpenWatch,
    /// [`Platform::watch`]
    Watch,
    /// [`Platform::take_written`]
    TakeWritten,
    /// [`Platform::reserve_with_room`]
    ReserveWithRoom,
    /// [`Platform::extend`]
    Extend,
}

impl Call {
    /// All calls that can fail.
    pub const ALL: [Self; 27] = [
        Self::Reserve,
        Self::Release,
        Self::Commit,
        Self::Decommit,
        Self::Zero,
        Self::Discard,
        Self::Populate,
        Self::PopulateInUse,
        Self::AdviseHugePages,
        Self::Collapse,
        Self::MapHugePages,
        Self::FillHugePages,
        Self::EmptyHugePages,
        Self::MemoryNodes,
        Self::Place,
        Self::Locate,
        Self::PageSizes,
        Self::MapFile,
        Self::UnmapFile,
        Self::Lock,
        Self::Unlock,
        Self::NoInherit,
        Self::OpenWatch,
        Self::Watch,
        Self::TakeWritten,
        Self::ReserveWithRoom,
        Self::Extend,
    ];

    /// The name of the call, as [`PlatformError::call`] has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Release => "release",
            Self::Commit => "commit",
            Self::Decommit => "decommit",
            Self::Zero => "zero",
            Self::Discard => "discard",
            Self::Populate => "populate",
            Self::PopulateInUse => "populate_in_use",
            Self::AdviseHugePages => "advise_huge_pages",
            Self::Collapse => "collapse",
            Self::MapHugePages => "map_huge_pages",
            Self::FillHugePages => "fill_huge_pages",
            Self::EmptyHugePages => "empty_huge_pages",
            Self::MemoryNodes => "memory_nodes",
            Self::Place => "place",
            Self::Locate => "locate",
            Self::PageSizes => "page_sizes",
            Self::MapFile => "map_file",
            Self::UnmapFile => "unmap_file",
            Self::Lock => "lock",
            Self::Unlock => "unlock",
            Self::NoInherit => "no_inherit",
            Self::OpenWatch => "open_watch",
            Self::Watch => "watch",
            Self::TakeWritten => "take_written",
            Self::ReserveWithRoom => "reserve_with_room",
            Self::Extend => "extend",
        }
    }
}

/// What was counted and what is planned for one kind of call.
#[derive(Debug, Default)]
struct Plan {
    seen: AtomicU32,
    fail_in: AtomicU32,
    fail_always: AtomicBool,
    /// Whether the failure that is counted down to lasts.
    lasts: AtomicBool,
}

impl Plan {
    fn set(&self, nth: u32, lasts: bool) {
        self.lasts.store(lasts, Ordering::SeqCst);
        self.fail_in.store(nth, Ordering::SeqCst);
    }

    fn clear(&self) {
        self.set(0, false);
        self.fail_always.store(false, Ordering::SeqCst);
    }

    /// Counts a call, and returns whether it should fail.
    fn fails(&self) -> bool {
        self.seen.fetch_add(1, Ordering::SeqCst);
        let count_down = |left: u32| left.checked_sub(1);
        let due = self.fail_in.update_by(count_down) == Ok(1);
        if due && self.lasts.load(Ordering::SeqCst) {
            self.fail_always.store(true, Ordering::SeqCst);
        }
        due || self.fail_always.load(Ordering::SeqCst)
    }
}

/// Another platform, with failures on demand. A call that fails does nothing.
#[derive(Debug)]
pub struct Failing<P> {
    inner: P,
    plans: [Plan; Call::ALL.len()],
    /// The plan for calls of every kind together.
    every: Plan,
    reserve_limit: AtomicUsize,
    mapping_limit: AtomicUsize,
    memory_limit: AtomicUsize,
}

impl<P: Platform> Failing<P> {
    /// Wraps `inner`, with no failures planned.
    pub fn new(inner: P) -> Self {
        let plans = core::array::from_fn(|_| Plan::default());
        let no_limit = || AtomicUsize::new(usize::MAX);
        Self {
            inner,
            plans,
            every: Plan::default(),
            reserve_limit: no_limit(),
            mapping_limit: no_limit(),
            memory_limit: no_limit(),
        }
    }

    /// Makes the `nth` call of this kind from here on fail, once; the first is 1.
    pub fn fail(&self, call: Call, nth: u32) {
        self.plan(call).set(nth, false);
    }

    /// Makes the `nth` call of any kind from here on fail, once; the first is 1.
    pub fn fail_any(&self, nth: u32) {
        self.every.set(nth, false);
    }

    /// Makes the `nth` call of any kind from here on fail, and all after it, until
    /// [`Failing::heal`]; the first is 1.
    pub fn fail_from(&self, nth: u32) {
        self.every.set(nth, true);
    }

    /// Makes every call of this kind fail, until [`Failing::heal`].
    pub fn fail_always(&self, call: Call) {
        self.plan(call).fail_always.store(true, Ordering::SeqCst);
    }

    /// Makes reservations of more than `size` bytes fail, and their growth beyond that, until [`Failing::heal`].
    pub fn limit_reserve(&self, size: usize) {
        self.reserve_limit.store(size, Ordering::SeqCst);
    }

    /// Allows a reservation to be divided into `count` ranges, until [`Failing::heal`].
    pub fn limit_mappings(&self, count: usize) {
        self.mapping_limit.store(count, Ordering::SeqCst);
    }

    /// Says that the system allows the process `size` bytes of memory, until [`Failing::heal`]. Nothing fails for it.
    pub fn limit_memory(&self, size: usize) {
        self.memory_limit.store(size, Ordering::SeqCst);
    }

    /// Forgets all failures that were planned.
    pub fn heal(&self) {
        self.limit_memory(usize::MAX);
        self.limit_reserve(usize::MAX);
        self.limit_mappings(usize::MAX);
        self.plans.iter().chain([&self.every]).for_each(Plan::clear);
    }

    /// The number of calls of this kind so far, failed ones included.
    pub fn seen(&self, call: Call) -> u32 {
        self.plan(call).seen.load(Ordering::SeqCst)
    }

    /// The number of calls of any kind so far, failed ones included.
    pub fn seen_any(&self) -> u32 {
        self.every.seen.load(Ordering::SeqCst)
    }

    fn plan(&self, call: Call) -> &Plan {
        &self.plans[call as usize]
    }

    /// Counts a call, and fails it if that was planned.
    fn admit(&self, call: Call, addr: usize, size: usize) -> Result<(), PlatformError> {
        // Both plans count the call, whichever fails it.
        let (this_kind, any_kind) = (self.plan(call).fails(), self.every.fails());
        if this_kind || any_kind {
            return Err(PlatformError { call: call.name(), code: 0, addr, size, limit: None });
        }
        Ok(())
    }
}

// SAFETY: each call either fails before it has done anything, or is passed on to the inner
// platform, which keeps these promises.
unsafe impl<P: Platform> Platform for Failing<P> {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        self.admit(Call::Reserve, 0, size)?;
        if size > self.reserve_limit.load(Ordering::SeqCst) {
            return Err(PlatformError { call: Call::Reserve.name(), code: 0, addr: 0, size, limit: None });
        }
        self.inner.reserve(size, align)
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize, align: usize) -> Result<(), PlatformError> {
        self.admit(Call::Release, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.release(base, size, align) }
    }

    unsafe fn commit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::Commit, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.commit(base, size) }
    }

    unsafe fn decommit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::Decommit, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.decommit(base, size) }
    }

    unsafe fn zero(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::Zero, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.zero(base, size) }
    }

    unsafe fn discard(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::Discard, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.discard(base, size) }
    }

    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::Populate, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.populate(base, size) }
    }

    unsafe fn populate_in_use(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::PopulateInUse, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.populate_in_use(base, size) }
    }

    unsafe fn advise_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::AdviseHugePages, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.advise_huge_pages(base, size) }
    }

    unsafe fn collapse(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::Collapse, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.collapse(base, size) }
    }

    unsafe fn map_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        pages: HugePages,
    ) -> Result<(), PlatformError> {
        self.admit(Call::MapHugePages, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.map_huge_pages(base, size, pages) }
    }

    unsafe fn fill_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        pages: HugePages,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        self.admit(Call::FillHugePages, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.fill_huge_pages(base, size, pages, placement) }
    }

    unsafe fn empty_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::EmptyHugePages, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.empty_huge_pages(base, size) }
    }

    fn memory_nodes(&self) -> Result<NodeSet, PlatformError> {
        self.admit(Call::MemoryNodes, 0, 0)?;
        self.inner.memory_nodes()
    }

    unsafe fn place(
        &self,
        base: NonNull<u8>,
        size: usize,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        self.admit(Call::Place, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.place(base, size, placement) }
    }

    unsafe fn locate(
        &self,
        base: NonNull<u8>,
        size: usize,
        page_size: usize,
        visit: &mut dyn FnMut(usize, Option<usize>),
    ) -> Result<(), PlatformError> {
        self.admit(Call::Locate, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.locate(base, size, page_size, visit) }
    }

    fn page_sizes(&self, range: AddrRange, visit: &mut dyn FnMut(PageSizes)) -> Result<(), PlatformError> {
        self.admit(Call::PageSizes, range.base().get(), range.size())?;
        self.inner.page_sizes(range, visit)
    }

    fn map_file(&self, file: i32, size: usize) -> Result<NonNull<u8>, PlatformError> {
        self.admit(Call::MapFile, 0, size)?;
        self.inner.map_file(file, size)
    }

    unsafe fn unmap_file(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::UnmapFile, base.addr().get(), size)?;
        // SAFETY: the caller's range is a mapping of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.unmap_file(base, size) }
    }

    unsafe fn lock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::Lock, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.lock(base, size) }
    }

    unsafe fn unlock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::Unlock, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.unlock(base, size) }
    }

    unsafe fn no_inherit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::NoInherit, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, and the caller
        // keeps to the duties of this method.
        unsafe { self.inner.no_inherit(base, size) }
    }

    fn open_watch(&self, watch: &Watch) -> Result<(), PlatformError> {
        self.admit(Call::OpenWatch, 0, 0)?;
        self.inner.open_watch(watch)
    }

    fn is_watch_open(&self, watch: &Watch) -> bool {
        self.inner.is_watch_open(watch)
    }

    unsafe fn watch(&self, watch: &Watch, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.admit(Call::Watch, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, whose watch this is.
        unsafe { self.inner.watch(watch, base, size) }
    }

    unsafe fn take_written(
        &self,
        watch: &Watch,
        base: NonNull<u8>,
        size: usize,
        visit: &mut dyn FnMut(AddrRange),
    ) -> Result<usize, PlatformError> {
        self.admit(Call::TakeWritten, base.addr().get(), size)?;
        // SAFETY: the caller's range is in a reservation of the inner platform, whose watch this is.
        unsafe { self.inner.take_written(watch, base, size, visit) }
    }

    unsafe fn close_watch(&self, watch: &Watch) {
        // SAFETY: the caller says that no thread uses the watch any more.
        unsafe { self.inner.close_watch(watch) };
    }

    fn account_mappings(&self, before: usize, now: usize) -> usize {
        self.inner.account_mappings(before, now).min(self.mapping_limit.load(Ordering::SeqCst))
    }

    fn reserve_with_room(
        &self,
        size: usize,
        room: usize,
        align: usize,
    ) -> Result<NonNull<u8>, PlatformError> {
        self.admit(Call::ReserveWithRoom, 0, size)?;
        if room > self.reserve_limit.load(Ordering::SeqCst) {
            let call = Call::ReserveWithRoom.name();
            return Err(PlatformError { call, code: 0, addr: 0, size, limit: None });
        }
        self.inner.reserve_with_room(size, room, align)
    }

    unsafe fn extend(
        &self,
        base: NonNull<u8>,
        size: usize,
        more: usize,
        room: usize,
        align: usize,
    ) -> Result<usize, PlatformError> {
        self.admit(Call::Extend, base.addr().get(), more)?;
        if size.saturating_add(more) > self.reserve_limit.load(Ordering::SeqCst) {
            let addr = base.addr().get();
            return Err(PlatformError { call: Call::Extend.name(), code: 0, addr, size: more, limit: None });
        }
        // SAFETY: the caller's range is a reservation of the inner platform, and the caller keeps to the duties of this
        // method.
        unsafe { self.inner.extend(base, size, more, room, align) }
    }

    fn reserves_memory(&self) -> bool {
        self.inner.reserves_memory()
    }

    fn memory_limit(&self) -> Option<usize> {
        let pretended = Some(self.memory_limit.load(Ordering::SeqCst)).filter(|&limit| limit < usize::MAX);
        pretended.or_else(|| self.inner.memory_limit())
    }
}
