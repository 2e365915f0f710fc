//! The reservation: ranges of it are opened and closed, and it is released when dropped.

mod extent;
mod fitting;

use core::ops::Range;
use core::ptr::NonNull;

use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};
use tripoint_core::{AddrRange, Align, Error, Lock, Result, Written, aver};

use crate::chosen_memory::{HugePages, Placement};
use crate::options::ArenaVmOptions;
use crate::placement_check;
use crate::platform::{Platform, PlatformError, Watch};
use crate::regions::Regions;
use extent::Extent;
use fitting::{Granted, Request, STEP};

/// The size of a huge page, at a multiple of which a processor can map one.
pub(crate) const HUGE_PAGE: Align = Align::new(2 << 20).unwrap();

/// How much more is reserved at a time if that is memory at once: a quarter of what there is, within these bounds, in
/// bytes ([design/arena-vm.md `.gaps`](crate::design::arena_vm)).
const RESERVE_STEP_MIN: usize = 1 << 20;
const RESERVE_STEP_MAX: usize = 16 << 20;

/// What became of a request for more addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    Refused,
    /// They follow what was reserved before.
    Follows,
    /// They are apart, behind a gap that ends at this offset.
    Apart(usize),
}

/// One reservation of a platform, with what the options say about its memory.
///
/// A range is an offset and a size, in bytes.
#[derive(Debug)]
pub(crate) struct Reservation<P: Platform> {
    platform: P,
    base: NonNull<u8>,
    /// What it can grow to.
    size: usize,
    /// How much of that is reserved: whole pages.
    extent: Lock<Extent>,
    align: Align,
    options: ArenaVmOptions,
    /// Whether children get a copy. At first this is as the options say.
    inherited: AtomicBool,
    /// Where that begins which was never opened, so that what was advised for the whole reservation holds there.
    fresh_from: AtomicUsize,
    /// The mappings that the platform counts for the reservation.
    mappings: AtomicUsize,
    watch: Watch,
    refusal: Lock<Option<PlatformError>>,
}

// SAFETY: the value alone owns the reservation, in whichever thread it is, and the platform and
// the other fields may be sent.
unsafe impl<P: Platform> Send for Reservation<P> {}
// SAFETY: a shared `Reservation` passes its addresses only to the platform, which any thread may
// call, and to callers of unsafe methods, who answer for their use.
unsafe impl<P: Platform> Sync for Reservation<P> {}

impl<P: Platform> Reservation<P> {
    /// Reserves what the options ask for, or most of what the platform grants of it ([design/arena-vm.md
    /// `.reserve`](crate::design::arena_vm)).
    pub(crate) fn reserve(platform: P, options: &ArenaVmOptions, grain: Align) -> Result<Self> {
        let align = if options.huge_pages { grain.max(HUGE_PAGE) } else { grain };
        let whole_grains = |size: usize| {
            grain
                .round_up(size)
                .filter(|&size| isize::try_from(size).is_ok())
                .ok_or(Error::Parameter("the reservation must be at most isize::MAX bytes"))
        };
        let wanted = whole_grains(options.reserve)?;
        let floor =
            whole_grains(options.reserve_floor.max(1))?.max(Self::least(&platform, wanted, grain, align));
        // Huge pages are mapped once, for all grains.
        let may_grow = options.explicit_huge_pages.is_none();
        let Granted { base, size, reserved } =
            Request { wanted, floor, grain, align, may_grow }.reserve(&platform).map_err(lacking)?;
        let extent = Lock::new(Extent::new(reserved));
        let inherited = AtomicBool::new(options.inherit_on_fork);
        let (fresh_from, mappings) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (options, watch, refusal) = (*options, Watch::new(), Lock::new(None));
        Ok(Self {
            platform,
            base,
            size,
            extent,
            align,
            options,
            inherited,
            fresh_from,
            mappings,
            watch,
            refusal,
        })
    }

    /// What has to be reserved at first: if that is memory at once, no more than the tables and one grain.
    fn least(platform: &P, wanted: usize, grain: Align, align: Align) -> usize {
        let page = Align::new(platform.page_size()).filter(|_| platform.reserves_memory());
        let regions = page.and_then(|page| Regions::new(wanted, grain, align, page, true));
        regions.map_or(0, |regions| regions.grain_offset(1).min(wanted))
    }

    /// Reserves the first `end` bytes, unless they are, and then a step more if the platform grants that, within `room`
    /// bytes. What is apart is known to the arena only when its table has skipped the gap (`ArenaVm::enter_reserved`).
    ///
    /// The lock is held meanwhile, so that of two threads that need more the second finds it
    /// ([design/arena-vm.md `.reserve.grow`](crate::design::arena_vm)).
    #[cold]
    pub(crate) fn grow_to(&self, end: usize, room: usize) -> Growth {
        let mut extent = self.extent.lock();
        if let Some(apart) = extent.apart() {
            return Growth::Apart(apart.start);
        }
        let old = extent.end();
        if end <= old {
            return Growth::Follows;
        }
        if end > room {
            return Growth::Refused;
        }
        let ends = [end.max(old + self.step(extent.size())).min(room), end];
        let Some(more) = ends.into_iter().find_map(|new| self.extend(old, new - old, room)) else {
            return Growth::Refused;
        };
        // What was advised for all of it does not hold for what comes now.
        self.fresh_from.store(self.size, Ordering::Relaxed);
        extent.add(more.clone());
        drop(extent);
        if self.is_watched() {
            // If this is refused, `take_written` finds that out.
            //
            // SAFETY: the pages were reserved just now, for the reservation whose watch this is.
            let _ = unsafe { self.platform.watch(&self.watch, self.at(more.start), more.len()) };
        }
        if more.start == old { Growth::Follows } else { Growth::Apart(more.start) }
    }

    /// How much is reserved at a time if `reserved` bytes are.
    fn step(&self, reserved: usize) -> usize {
        let step = match self.platform.reserves_memory() {
            true => (reserved / 4).clamp(RESERVE_STEP_MIN, RESERVE_STEP_MAX),
            false => self.size / STEP,
        };
        step.next_multiple_of(self.options.grain)
    }

    /// Reserves `more` bytes behind what ends at `end`, in whole grains, and returns where.
    fn extend(&self, end: usize, more: usize, room: usize) -> Option<Range<usize>> {
        let grain = self.options.grain;
        // SAFETY: what is reserved ends there, and the room is at most the size, which is more than was reserved, so the
        // reservation was made with that room. The grain is a power of two, at least a page, and at most the alignment;
        // what is reserved is whole grains. The caller has the lock, so no other thread extends it.
        let extended = unsafe { self.platform.extend(self.base, end, more, room, grain) };
        let base = extended.map_err(self.refused(Error::Limit)).ok()?;
        let is_ours = base >= end && base.is_multiple_of(grain) && base <= room && more <= room - base;
        aver!(is_ours, "{more} bytes at {base} extend {end} of {room} bytes").then(|| base..base + more)
    }

    /// How much is reserved, and where. With the lock the platform is asked for nothing but [`Platform::extend`].
    pub(crate) const fn extent(&self) -> &Lock<Extent> {
        &self.extent
    }

    pub(crate) fn platform(&self) -> &P {
        &self.platform
    }

    pub(crate) const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// What the reservation can grow to, in bytes.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// How much of it is reserved, in bytes, without gaps.
    pub(crate) fn reserved(&self) -> usize {
        self.extent.lock().size()
    }

    /// The alignment of the base.
    pub(crate) const fn align(&self) -> Align {
        self.align
    }

    /// Whether the reservation may be divided into `count` mappings. They are counted in
    /// either case, until the next call.
    pub(crate) fn may_have_mappings(&self, count: usize) -> bool {
        let before = self.mappings.swap(count, Ordering::Relaxed);
        count <= self.platform.account_mappings(before, count)
    }

    /// What the platform refused last.
    pub(crate) fn last_refusal(&self) -> Option<PlatformError> {
        *self.refusal.lock()
    }

    /// Keeps the platform's refusal for people to read, and returns `error` for the program.
    pub(crate) fn refused(&self, error: Error) -> impl FnOnce(PlatformError) -> Error {
        move |refusal| {
            *self.refusal.lock() = Some(refusal);
            error
        }
    }

    /// As [`Reservation::refused`], for resources other than memory.
    fn refused_resource(&self, refusal: PlatformError) -> Error {
        self.refused(lacking(refusal))(refusal)
    }

    /// The address at an offset.
    ///
    /// # Safety
    /// - `offset` is at most the size of the reservation.
    pub(crate) unsafe fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: the reservation is one range with one provenance, of at most `isize::MAX` bytes, to which what it grows
        // by is added, gaps or not. The caller's offset is inside it or at its end.
        unsafe { self.base.add(offset) }
    }

    /// Moves as much of a range to huge pages as whole ones fit in, and returns the size of that.
    ///
    /// # Errors
    /// [`Error::Resource`] if the platform cannot.
    ///
    /// # Safety
    /// - The range is whole pages of the reservation.
    pub(crate) unsafe fn collapse(&self, offset: usize, size: usize) -> Result<usize> {
        let address = self.base.addr().get() + offset;
        let start = address.next_multiple_of(HUGE_PAGE.get()) - address;
        let whole = size.saturating_sub(start) / HUGE_PAGE.get() * HUGE_PAGE.get();
        if whole > 0 {
            // SAFETY: one or more huge pages, and so whole pages, within the caller's range.
            unsafe { self.platform.collapse(self.at(offset + start), whole) }
                .map_err(self.refused(Error::Resource))?;
        }
        Ok(whole)
    }

    /// Asks for huge pages behind a range from here on.
    ///
    /// # Safety
    /// - The range is one or more whole pages of the reservation.
    pub(crate) unsafe fn advise_huge_pages(&self, offset: usize, size: usize) -> Result<()> {
        // SAFETY: the range is one or more whole pages of the reservation.
        unsafe { self.platform.advise_huge_pages(self.at(offset), size) }
            .map_err(|refusal| self.refused_resource(refusal))
    }

    /// Puts all grains on explicit huge pages, if the options ask for them.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the platform has none of this size, or the mount is no place for them.
    ///
    /// # Safety
    /// - The range is all grains of the reservation, and nothing has used it.
    pub(crate) unsafe fn map_huge_pages(&self, offset: usize, size: usize) -> Result<()> {
        let Some(pages) = self.options.explicit_huge_pages else { return Ok(()) };
        let error = Error::Parameter(match pages.mount {
            None => {
                "the system has no huge pages of this size: see /sys/kernel/mm/hugepages for those that it has"
            }
            Some(_) => {
                "the mount is no hugetlbfs of this page size to which the process may write: \
                 mount -t hugetlbfs -o pagesize=2M none DIRECTORY"
            }
        });
        // SAFETY: grains of one or more huge pages each, which nothing uses.
        unsafe { self.platform.map_huge_pages(self.at(offset), size, pages) }.map_err(self.refused(error))
    }

    /// Sets on which nodes the reservation will lie, which has not grown yet.
    pub(crate) fn place_all(&self) -> Result<()> {
        // SAFETY: the whole reservation is one or more whole pages.
        unsafe { self.place(self.base, self.reserved()) }
    }

    /// # Safety
    /// - The range is one or more whole pages of the reservation.
    unsafe fn place(&self, base: NonNull<u8>, size: usize) -> Result<()> {
        if self.options.placement == Placement::Any {
            return Ok(());
        }
        // SAFETY: the range is one or more whole pages of the reservation.
        unsafe { self.platform.place(base, size, self.options.placement) }
            .map_err(|refusal| self.refused_resource(refusal))
    }

    /// Keeps the whole reservation out of child processes, permanently.
    ///
    /// # Safety
    /// - `stretches` returns all of the reservation, in whole pages, without its gaps.
    pub(crate) unsafe fn no_inherit<S: Iterator<Item = Range<usize>>>(
        &self,
        stretches: impl FnOnce() -> S,
    ) -> Result<()> {
        // Stored before it is asked what is reserved, so that a thread that opens a range meanwhile advises that range.
        let before = self.inherited.swap(false, Ordering::SeqCst);
        // SAFETY: each stretch is one or more whole pages of the reservation.
        let kept = stretches().try_for_each(|stretch| unsafe {
            self.platform.no_inherit(self.at(stretch.start), stretch.len())
        });
        if kept.is_err() {
            self.inherited.store(before, Ordering::SeqCst);
        }
        kept.map_err(|refusal| self.refused_resource(refusal))
    }

    /// Commits a range of grains; advises, locks and populates it as the options say.
    ///
    /// # Errors
    /// [`Error::Memory`]; or [`Error::ResourceLimit`] or [`Error::Resource`] if the range
    /// cannot be locked or advised. The range is then closed again.
    ///
    /// # Safety
    /// - The range is one or more whole pages of the reservation, and the caller's alone.
    pub(crate) unsafe fn open(&self, offset: usize, size: usize) -> Result<()> {
        let is_fresh = self.fresh_from.fetch_max(offset + size, Ordering::Relaxed) <= offset;
        // SAFETY: the range is one or more whole pages of the reservation, which only the caller
        // uses.
        let opened = unsafe {
            let base = self.at(offset);
            let opened = match self.options.explicit_huge_pages {
                Some(pages) => self.fill(base, size, pages),
                None => self.open_small_pages(base, size, is_fresh),
            };
            opened.and_then(|()| self.check_place(base, size))
        };
        if opened.is_err() {
            // If closing fails too, the platform keeps memory that the next `open` of these pages
            // finds.
            //
            // SAFETY: the range is one or more whole pages of the reservation. Only the caller may
            // use them, and it does not while this runs.
            let _ = unsafe { self.try_close(offset, size) };
        }
        opened
    }

    /// # Safety
    /// - The range is one or more whole pages of the reservation, and the caller's alone.
    unsafe fn open_small_pages(&self, base: NonNull<u8>, size: usize, is_fresh: bool) -> Result<()> {
        // Placed first: a process that locks what it maps gets the memory with the commit.
        //
        // SAFETY: the range is one or more whole pages of the reservation, which only the caller
        // uses. They are committed before they are populated.
        unsafe {
            self.place(base, size)?;
            self.commit_and_lock(base, size)?;
            if !is_fresh {
                self.advise_again(base, size)?;
            }
            self.populate(base, size)
        }
    }

    /// # Safety
    /// - The range is one or more whole grains of the reservation, and the caller's alone.
    unsafe fn fill(&self, base: NonNull<u8>, size: usize, pages: HugePages) -> Result<()> {
        // SAFETY: grains are huge pages that were mapped as such at creation, which only the caller uses.
        unsafe { self.platform.fill_huge_pages(base, size, pages, self.options.placement) }
            .map_err(|refusal| self.refused_resource(refusal))
    }

    /// Checks that grains lie where the options say, if they have memory.
    ///
    /// # Safety
    /// - The range is one or more whole grains of the reservation.
    unsafe fn check_place(&self, base: NonNull<u8>, size: usize) -> Result<()> {
        if !self.options.grains_are_populated() {
            return Ok(());
        }
        let huge = self.options.explicit_huge_pages.map(|pages| pages.size.bytes());
        let page_size = huge.unwrap_or(self.platform.page_size());
        // SAFETY: grains are whole pages of the reservation, on huge pages if the options ask for them.
        let found = unsafe {
            placement_check::check(&self.platform, (base, size), page_size, self.options.placement)
        };
        match found.map_err(|refusal| self.refused_resource(refusal))? {
            None => Ok(()),
            Some(misplaced) => Err(self.refused(misplaced.error)(misplaced.refusal)),
        }
    }

    /// As [`Reservation::open`], for pages that several threads may open at once and no thread
    /// closes. A failure leaves them in the state that they have reached.
    ///
    /// # Safety
    /// - The range is one or more whole pages of the reservation, and is never closed.
    pub(crate) unsafe fn open_shared(&self, offset: usize, size: usize) -> Result<()> {
        // SAFETY: the range is one or more whole pages of the reservation.
        unsafe {
            let base = self.at(offset);
            self.commit_and_lock(base, size)?;
            if self.options.populates() && !self.options.lock {
                // If the platform cannot do this, the first access to each page faults.
                let _ = self.platform.populate_in_use(base, size);
            }
        }
        Ok(())
    }

    /// # Safety
    /// - The range is one or more whole pages of the reservation.
    unsafe fn commit_and_lock(&self, base: NonNull<u8>, size: usize) -> Result<()> {
        // SAFETY: the range is one or more whole pages of the reservation.
        unsafe { self.platform.commit(base, size) }.map_err(self.refused(Error::Memory))?;
        if self.options.lock {
            // SAFETY: the pages of the caller's range are committed now.
            unsafe { self.platform.lock(base, size) }.map_err(|refusal| self.refused_resource(refusal))?;
        }
        Ok(())
    }

    /// Repeats the advice for the whole reservation, for a range: the platform forgets it when
    /// the range is closed.
    ///
    /// # Safety
    /// - The range is one or more whole pages of the reservation, in its grains.
    unsafe fn advise_again(&self, base: NonNull<u8>, size: usize) -> Result<()> {
        if !self.inherited.load(Ordering::SeqCst) {
            // SAFETY: the range is one or more whole pages of the reservation.
            unsafe { self.platform.no_inherit(base, size) }
                .map_err(|refusal| self.refused_resource(refusal))?;
        }
        if self.options.huge_pages {
            // SAFETY: the range is one or more whole pages of the reservation.
            unsafe { self.platform.advise_huge_pages(base, size) }
                .map_err(|refusal| self.refused_resource(refusal))?;
        }
        Ok(())
    }

    /// # Safety
    /// - The range is one or more committed pages, which nothing else uses.
    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<()> {
        // Locking has populated the pages already.
        if !self.options.populates() || self.options.lock {
            return Ok(());
        }
        // SAFETY: the range is one or more committed pages, which nothing else uses.
        unsafe { self.platform.populate(base, size) }.map_err(self.refused(Error::Memory))
    }

    /// Populates a range that may be in use.
    ///
    /// # Safety
    /// - The range is one or more whole pages of the reservation.
    pub(crate) unsafe fn populate_in_use(&self, offset: usize, size: usize) -> Result<()> {
        // SAFETY: the range is one or more whole pages of the reservation.
        unsafe { self.platform.populate_in_use(self.at(offset), size) }.map_err(self.refused(Error::Memory))
    }

    /// Makes an open range zero, in the way that is cheapest. Returns false if the platform refused: some of the
    /// bytes are zero then.
    ///
    /// # Safety
    /// - The range is one or more whole pages of the reservation, which are open and which nothing else uses.
    pub(crate) unsafe fn zero(&self, offset: usize, size: usize) -> bool {
        // SAFETY: the range is one or more committed pages, which nothing else uses.
        unsafe { self.platform.zero(self.at(offset), size) }.map_err(self.refused(Error::Resource)).is_ok()
    }

    /// Returns the memory of an open range to the system; the range stays open, and reads as zero. Returns false if the
    /// platform refused: its contents may be lost then.
    ///
    /// # Safety
    /// - As [`Reservation::zero`], and the contents are not needed.
    pub(crate) unsafe fn discard(&self, offset: usize, size: usize) -> bool {
        // SAFETY: the range is one or more committed pages, which nothing else uses, and whose contents are not needed.
        unsafe { self.platform.discard(self.at(offset), size) }.map_err(self.refused(Error::Resource)).is_ok()
    }

    /// Unlocks and decommits a range.
    ///
    /// # Errors
    /// [`Error::Memory`]; the range is then still open, but its contents may be lost.
    ///
    /// # Safety
    /// - The range was opened by [`Reservation::open`], and nothing uses it any more.
    pub(crate) unsafe fn close(&self, offset: usize, size: usize) -> Result<()> {
        // SAFETY: what was opened is one or more whole pages of the reservation, which nothing uses.
        let closed = unsafe { self.try_close(offset, size) };
        if closed.is_err() && self.options.locks_grains() {
            // SAFETY: the pages were opened, and are still committed because closing failed.
            let _ = unsafe { self.platform.lock(self.at(offset), size) };
        }
        closed.map_err(self.refused(Error::Memory))
    }

    /// # Safety
    /// - The range is one or more whole pages of the reservation, which nothing uses.
    unsafe fn try_close(&self, offset: usize, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the range is inside the reservation, and so is its offset.
        let base = unsafe { self.at(offset) };
        if self.options.locks_grains() {
            // SAFETY: the range is one or more whole pages of the reservation.
            unsafe { self.platform.unlock(base, size) }?;
        }
        // SAFETY: the range is one or more whole pages of the reservation, which nothing uses. If they
        // were locked, they were unlocked above. With explicit huge pages it is grains that were mapped as such.
        unsafe {
            match self.options.explicit_huge_pages {
                Some(_) => self.platform.empty_huge_pages(base, size),
                None => self.platform.decommit(base, size),
            }
        }?;
        if self.is_watched() {
            // Decommitting may have ended the watch. If this is refused, `take_written` finds that out.
            //
            // SAFETY: the range is one or more whole pages of the reservation, whose watch this is.
            let _ = unsafe { self.platform.watch(&self.watch, base, size) };
        }
        Ok(())
    }

    /// Whether writes are watched in this process.
    pub(crate) fn is_watched(&self) -> bool {
        self.platform.is_watch_open(&self.watch)
    }

    /// Watches writes to ranges from here on, unless writes are watched.
    ///
    /// # Errors
    /// [`Error::Resource`] if the platform refuses.
    ///
    /// # Safety
    /// - Each range is one or more whole pages of the reservation, without its gaps.
    pub(crate) unsafe fn watch_writes(&self, mut ranges: impl Iterator<Item = Range<usize>>) -> Result<()> {
        if self.is_watched() {
            return Ok(());
        }
        self.platform.open_watch(&self.watch).map_err(self.refused(Error::Resource))?;
        // SAFETY: each is one or more whole pages of the reservation (the caller's promise), whose watch this is.
        let watched = ranges.try_for_each(|range| unsafe {
            self.platform.watch(&self.watch, self.at(range.start), range.len())
        });
        watched.map_err(self.refused(Error::Resource))
    }

    /// Passes the pages of a range that were written since the last call for them.
    ///
    /// # Safety
    /// - The range is one or more whole pages of the reservation.
    pub(crate) unsafe fn take_written(
        &self,
        offset: usize,
        size: usize,
        visit: &mut dyn FnMut(AddrRange),
    ) -> Written {
        let mut done = 0;
        while done < size {
            // SAFETY: what is left of the range is one or more whole pages of the reservation, whose watch this is.
            let taken = unsafe {
                self.platform.take_written(&self.watch, self.at(offset + done), size - done, visit)
            };
            match taken {
                Ok(more) if aver!((1..=size - done).contains(&more), "{more} of {} bytes", size - done) => {
                    done += more;
                }
                Ok(_) => return Written::Unknown,
                Err(refusal) => {
                    let _ = self.refused(Error::Resource)(refusal);
                    // The watch of a part may have ended. The next call finds all of that part written.
                    //
                    // SAFETY: the range is one or more whole pages of the reservation, whose watch this is.
                    let _ = unsafe { self.platform.watch(&self.watch, self.at(offset), size) };
                    return Written::Unknown;
                }
            }
        }
        Written::Known
    }
}

impl<P: Platform> Reservation<P> {
    /// Releases a stretch behind the first gap.
    ///
    /// # Safety
    /// - The stretch lies between two gaps of the reservation, or behind the last. Nothing uses it any more, and it is
    ///   released once.
    pub(crate) unsafe fn release_stretch(&self, stretch: Range<usize>) {
        // If the platform refuses, addresses are lost, and no caller is left that could act on it.
        //
        // SAFETY: `extend` placed the stretch at a multiple of the grain, and the caller says that all of it is passed, that
        // it is unused, and that it was not released before.
        let _ = unsafe { self.platform.release(self.at(stretch.start), stretch.len(), self.options.grain) };
    }

    /// Leaves the first stretch, which ends at `end`, to be released when the reservation is dropped.
    pub(crate) fn cut(&self, end: usize) {
        self.extent.lock().cut(end);
    }
}

/// The error for a resource that was refused, with its limit if the platform knows that.
fn lacking(refusal: PlatformError) -> Error {
    match refusal.limit {
        Some((resource, limit)) => Error::ResourceLimit { resource, size: refusal.size, limit },
        None => Error::Resource,
    }
}

impl<P: Platform> Drop for Reservation<P> {
    fn drop(&mut self) {
        self.may_have_mappings(0);
        // SAFETY: the only owner of the reservation is being dropped, so no thread uses its watch.
        unsafe { self.platform.close_watch(&self.watch) };
        let (end, apart, has_gaps) = {
            let extent = self.extent.lock();
            (extent.end(), extent.apart().cloned(), extent.has_gaps())
        };
        if let Some(apart) = apart {
            // SAFETY: it lies behind the last gap, and the arena never had it.
            unsafe { self.release_stretch(apart) };
        }
        // What lies in the gaps is others': if a panic kept the arena from releasing what is behind them, all is lost.
        if has_gaps {
            return;
        }
        // If the platform refuses, addresses are lost, and no caller is left that could act on it.
        //
        // SAFETY: base, size and alignment are those of the reservation, whose other stretches the arena has released. Its
        // only owner is being dropped, so nothing uses it any more.
        let _ = unsafe { self.platform.release(self.base, end, self.align.get()) };
    }
}
