//! A platform that holds the arena to its duties, and small helpers.

use core::ptr::NonNull;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tripoint_arena_vm::mock::Failing;
use tripoint_arena_vm::{
    ArenaVm, ArenaVmOptions, HugePages, Native, PageSizes, Placement, Platform, PlatformError, Portable,
    Watch,
};
use tripoint_core::{AddrRange, Arena, ArenaSizes, Block, Check, CheckLevel, Event, EventHook, NodeSet};
use tripoint_oracle::{all_are, forever};

pub(crate) const GRAIN: usize = 64 << 10;

/// Small enough that all of it can be used up, on any platform.
pub(crate) fn small() -> ArenaVmOptions {
    ArenaVmOptions { reserve: 4 << 20, reserve_floor: 4 << 20, grain: GRAIN, ..Default::default() }
}

/// The same for a test that uses all of an arena, which is a quarter under Miri.
pub(crate) fn smaller() -> ArenaVmOptions {
    let reserve = if cfg!(miri) { 1 << 20 } else { 4 << 20 };
    ArenaVmOptions { reserve, reserve_floor: reserve, ..small() }
}

/// Runs a test on the native and on the portable platform.
pub(crate) fn on_each(test: impl Fn(&Audited<&dyn Platform>)) {
    let platforms = [&Native::new() as &dyn Platform, &Portable::new()];
    // Under Miri both are the portable platform.
    for platform in platforms.into_iter().take(if cfg!(miri) { 1 } else { 2 }) {
        let audited = Audited::new(platform);
        test(&audited);
        assert_eq!(audited.reservations(), 0, "every reservation is released");
    }
}

/// Runs a test on both, with failures on demand.
pub(crate) fn on_each_failing(test: impl Fn(&Failing<&Audited<&dyn Platform>>, &Audited<&dyn Platform>)) {
    on_each(|audited| test(&Failing::new(audited), audited));
}

/// Methods of a platform that have nothing to do with memory that is always there.
macro_rules! do_nothing {
    ($($method:ident)*) => { $(
        unsafe fn $method(&self, _base: NonNull<u8>, _size: usize) -> Result<(), PlatformError> {
            Ok(())
        }
    )* };
}
pub(crate) use do_nothing;

/// A platform that checks that every call obeys the rules of [`Platform`], and
/// knows which pages are committed.
#[derive(Debug)]
pub(crate) struct Audited<P> {
    inner: P,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    reservations: HashMap<usize, (usize, usize)>,
    committed: BTreeSet<usize>,
    locked: BTreeSet<usize>,
    /// Where huge pages were mapped, and how many bytes of them.
    huge: HashMap<usize, usize>,
}

impl<P: Platform> Audited<P> {
    pub(crate) fn new(inner: P) -> Self {
        Self { inner, books: Mutex::default() }
    }

    /// The bytes committed now.
    pub(crate) fn committed(&self) -> usize {
        self.books().committed.len() * self.page_size()
    }

    /// The bytes locked now.
    pub(crate) fn locked(&self) -> usize {
        self.books().locked.len() * self.page_size()
    }

    /// The number of reservations not released.
    pub(crate) fn reservations(&self) -> usize {
        self.books().reservations.len()
    }

    /// Releases what the arena could not.
    pub(crate) fn release_leaked(&self, base: NonNull<u8>) {
        let (size, align) = self.books().reservations[&base.addr().get()];
        // SAFETY: a reservation of this platform, whose arena is gone.
        unsafe { self.release(base, size, align) }.unwrap();
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the duties of the trait, and returns the pages of the range.
    fn pages(&self, base: NonNull<u8>, size: usize) -> impl Iterator<Item = usize> + Clone + use<P> {
        let (base, page) = (base.addr().get(), self.page_size());
        assert!(
            size > 0 && size.is_multiple_of(page) && base.is_multiple_of(page),
            "one or more whole pages"
        );
        let inside = |(&start, &(length, _)): (&usize, &(usize, usize))| {
            start <= base && base + size <= start + length
        };
        assert!(self.books().reservations.iter().any(inside), "a range lies in one reservation");
        (base..base + size).step_by(page)
    }

    /// Whether the range lies in one that huge pages were mapped to.
    fn is_huge(&self, base: NonNull<u8>, size: usize) -> bool {
        let base = base.addr().get();
        let inside = |(&start, &length): (&usize, &usize)| start <= base && base + size <= start + length;
        self.books().huge.iter().any(inside)
    }

    fn assert_huge(&self, base: NonNull<u8>, size: usize) {
        let _ = self.pages(base, size);
        assert!(self.is_huge(base, size), "huge pages were mapped here");
    }

    fn assert_committed(&self, base: NonNull<u8>, size: usize) {
        let mut pages = self.pages(base, size);
        let books = self.books();
        assert!(pages.all(|page| books.committed.contains(&page)), "the pages are committed");
    }
}

// SAFETY: every promise is the inner platform's.
unsafe impl<P: Platform> Platform for Audited<P> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        let base = self.inner.reserve(size, align)?;
        assert!(base.addr().get().is_multiple_of(align));
        self.books().reservations.insert(base.addr().get(), (size, align));
        Ok(base)
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize, align: usize) -> Result<(), PlatformError> {
        let start = base.addr().get();
        let mut books = self.books();
        assert_eq!(books.reservations.remove(&start), Some((size, align)), "a whole reservation");
        books.committed.retain(|page| !(start..start + size).contains(page));
        books.locked.retain(|page| !(start..start + size).contains(page));
        books.huge.retain(|page, _| !(start..start + size).contains(page));
        drop(books);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.release(base, size, align) }
    }

    unsafe fn commit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        let pages = self.pages(base, size);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.commit(base, size) }?;
        self.books().committed.extend(pages);
        Ok(())
    }

    unsafe fn decommit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        assert!(!self.is_huge(base, size), "huge pages are given back otherwise");
        let pages = self.pages(base, size);
        let locked = pages.clone().any(|page| self.books().locked.contains(&page));
        assert!(!locked, "locked pages are not decommitted");
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.decommit(base, size) }?;
        let mut books = self.books();
        pages.for_each(|page| _ = books.committed.remove(&page));
        Ok(())
    }

    unsafe fn zero(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.assert_committed(base, size);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.zero(base, size) }
    }

    unsafe fn discard(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.assert_committed(base, size);
        let locked = self.pages(base, size).any(|page| self.books().locked.contains(&page));
        assert!(!locked && !self.is_huge(base, size), "pages that are paid for keep their memory");
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.discard(base, size) }
    }

    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.assert_committed(base, size);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.populate(base, size) }
    }

    unsafe fn populate_in_use(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.assert_committed(base, size);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.populate_in_use(base, size) }
    }

    unsafe fn advise_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        let _ = self.pages(base, size);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.advise_huge_pages(base, size) }
    }

    unsafe fn collapse(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.collapse(base, size) }
    }

    unsafe fn map_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        pages: HugePages,
    ) -> Result<(), PlatformError> {
        let mut small = self.pages(base, size);
        assert!(
            base.addr().get().is_multiple_of(pages.size.bytes()) && size.is_multiple_of(pages.size.bytes())
        );
        assert!(small.all(|page| !self.books().committed.contains(&page)), "nothing is committed");
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.map_huge_pages(base, size, pages) }?;
        self.books().huge.insert(base.addr().get(), size);
        Ok(())
    }

    unsafe fn fill_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        pages: HugePages,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        self.assert_huge(base, size);
        assert!(
            base.addr().get().is_multiple_of(pages.size.bytes()) && size.is_multiple_of(pages.size.bytes())
        );
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.fill_huge_pages(base, size, pages, placement) }?;
        let small = self.pages(base, size);
        self.books().committed.extend(small);
        Ok(())
    }

    unsafe fn empty_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.assert_huge(base, size);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.empty_huge_pages(base, size) }?;
        let small = self.pages(base, size);
        let mut books = self.books();
        small.for_each(|page| _ = books.committed.remove(&page));
        Ok(())
    }

    fn memory_nodes(&self) -> Result<NodeSet, PlatformError> {
        self.inner.memory_nodes()
    }

    unsafe fn place(
        &self,
        base: NonNull<u8>,
        size: usize,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        let mut pages = self.pages(base, size);
        assert!(pages.all(|page| !self.books().committed.contains(&page)), "placed before it has memory");
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.place(base, size, placement) }
    }

    unsafe fn locate(
        &self,
        base: NonNull<u8>,
        size: usize,
        page_size: usize,
        visit: &mut dyn FnMut(usize, Option<usize>),
    ) -> Result<(), PlatformError> {
        let _ = self.pages(base, size);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.locate(base, size, page_size, visit) }
    }

    fn page_sizes(&self, range: AddrRange, visit: &mut dyn FnMut(PageSizes)) -> Result<(), PlatformError> {
        self.inner.page_sizes(range, visit)
    }

    unsafe fn lock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.assert_committed(base, size);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.lock(base, size) }?;
        let pages = self.pages(base, size);
        self.books().locked.extend(pages);
        Ok(())
    }

    unsafe fn unlock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        let pages = self.pages(base, size);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.unlock(base, size) }?;
        let mut books = self.books();
        pages.for_each(|page| _ = books.locked.remove(&page));
        Ok(())
    }

    unsafe fn no_inherit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        let _ = self.pages(base, size);
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        unsafe { self.inner.no_inherit(base, size) }
    }

    fn open_watch(&self, watch: &Watch) -> Result<(), PlatformError> {
        self.inner.open_watch(watch)
    }

    fn is_watch_open(&self, watch: &Watch) -> bool {
        self.inner.is_watch_open(watch)
    }

    unsafe fn watch(&self, watch: &Watch, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        let _ = self.pages(base, size);
        // SAFETY: the range is a reservation of the inner platform, whose watch this is.
        unsafe { self.inner.watch(watch, base, size) }
    }

    unsafe fn take_written(
        &self,
        watch: &Watch,
        base: NonNull<u8>,
        size: usize,
        visit: &mut dyn FnMut(AddrRange),
    ) -> Result<usize, PlatformError> {
        let _ = self.pages(base, size);
        // SAFETY: the range is a reservation of the inner platform, whose watch this is.
        unsafe { self.inner.take_written(watch, base, size, visit) }
    }

    unsafe fn close_watch(&self, watch: &Watch) {
        // SAFETY: the caller says that no thread uses the watch any more.
        unsafe { self.inner.close_watch(watch) };
    }

    fn account_mappings(&self, before: usize, now: usize) -> usize {
        self.inner.account_mappings(before, now)
    }

    fn reserve_with_room(
        &self,
        size: usize,
        room: usize,
        align: usize,
    ) -> Result<NonNull<u8>, PlatformError> {
        let page = self.page_size();
        assert!(size > 0 && size < room && size.is_multiple_of(page) && room.is_multiple_of(page));
        let base = self.inner.reserve_with_room(size, room, align)?;
        assert!(base.addr().get().is_multiple_of(align));
        self.books().reservations.insert(base.addr().get(), (size, align));
        Ok(base)
    }

    unsafe fn extend(
        &self,
        base: NonNull<u8>,
        size: usize,
        more: usize,
        room: usize,
        align: usize,
    ) -> Result<usize, PlatformError> {
        assert!(more > 0 && more.is_multiple_of(self.page_size()), "one or more whole pages");
        assert!(size.is_multiple_of(align) && size + more <= room, "in the room");
        // SAFETY: the range is a reservation of the inner platform, and the caller promises it the same states.
        let offset = unsafe { self.inner.extend(base, size, more, room, align) }?;
        let start = base.addr().get() + offset;
        let mut books = self.books();
        if offset == size {
            let mut stretches = books.reservations.iter_mut();
            let (_, (length, _)) = stretches.find(|(base, (length, _))| **base + length == start).unwrap();
            *length += more;
        } else {
            assert!(offset > size && offset.is_multiple_of(align) && offset + more <= room);
            assert_eq!(books.reservations.insert(start, (more, align)), None, "apart, in the room");
        }
        Ok(offset)
    }

    fn reserves_memory(&self) -> bool {
        self.inner.reserves_memory()
    }

    fn memory_limit(&self) -> Option<usize> {
        self.inner.memory_limit()
    }
}

/// Keeps all events.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<Event>>);

impl Recorder {
    /// A recorder for the options of an arena, which want a hook for good.
    pub(crate) fn leaked() -> &'static Self {
        forever(Self::default())
    }

    /// The events since the last call.
    pub(crate) fn take(&self) -> Vec<Event> {
        core::mem::take(&mut self.0.lock().unwrap())
    }
}

impl EventHook for Recorder {
    fn event(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// Writes a byte all over a block.
pub(crate) fn write(block: Block, byte: u8) {
    // SAFETY: tests write only blocks that they hold.
    unsafe { block.base().write_bytes(byte, block.size()) };
}

/// Whether a block has this byte all over.
pub(crate) fn holds(block: Block, byte: u8) -> bool {
    // SAFETY: tests read only blocks that they hold and have written.
    let bytes = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), block.size()) };
    all_are(bytes, byte)
}

/// Checks the books of an arena at rest, of whose tracts `in_use` bytes are out.
pub(crate) fn assert_books<P: Platform>(arena: &ArenaVm<P>, in_use: usize) {
    let sizes = arena.sizes();
    assert_eq!(sizes.committed, sizes.own + sizes.spare + in_use);
    assert!(sizes.committed <= sizes.committed_high_water && sizes.committed <= sizes.reserved);
    assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
    // No promise of memory is left over: what is committed is all that counts.
    assert_eq!(arena.set_commit_limit(sizes.committed), Ok(()));
    assert_eq!(arena.sizes(), ArenaSizes { commit_limit: sizes.committed, ..sizes });
    assert_eq!(arena.set_commit_limit(sizes.commit_limit), Ok(()));
}
