//! The reservation: opened and closed by ranges, released when dropped.

use core::ptr::NonNull;

use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};
use tripoint_core::{Align, Error, Lock, Result};

use crate::options::ArenaVmOptions;
use crate::platform::{Platform, PlatformError};

/// The alignment at which a processor can map a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// One reservation of a platform, and how its memory is to be had.
///
/// Ranges are given as offset and size in bytes.
#[derive(Debug)]
pub(crate) struct Reservation<P: Platform> {
    platform: P,
    base: NonNull<u8>,
    size: usize,
    align: Align,
    options: ArenaVmOptions,
    /// Whether children get a copy: what the options say, until they are to have none.
    inherited: AtomicBool,
    /// The mappings that the platform counts for the reservation.
    mappings: AtomicUsize,
    refusal: Lock<Option<PlatformError>>,
}

// SAFETY: the reservation is the value's own, wherever the value is, and the
// platform may be sent and shared.
unsafe impl<P: Platform> Send for Reservation<P> {}
// SAFETY: a shared `Reservation` only passes its addresses to the platform, which any
// thread may call, and to callers of unsafe methods, who answer for their use.
unsafe impl<P: Platform> Sync for Reservation<P> {}

impl<P: Platform> Reservation<P> {
    /// Reserves what the options ask for. If the platform refuses, this tries half the size,
    /// and so on. Of the first size that it grants after a refusal, only half is taken, so
    /// that the rest of the process has some (design/arena-vm.md `.reserve`). The floor is
    /// tried last, and taken whole.
    pub(crate) fn reserve(platform: P, options: &ArenaVmOptions, grain: Align) -> Result<Self> {
        let align =
            if options.huge_pages { grain.max(Align::new(HUGE_PAGE).unwrap_or(grain)) } else { grain };
        let whole_grains = |size: usize| {
            grain
                .round_up(size)
                .filter(|&size| isize::try_from(size).is_ok())
                .ok_or(Error::Parameter("the reservation must be at most isize::MAX bytes"))
        };
        let floor = whole_grains(options.reserve_floor.max(1))?;
        let mut size = whole_grains(options.reserve)?;
        let mut refused = false;
        let base = loop {
            let half = whole_grains(size / 2)?.max(floor);
            match platform.reserve(size, align.get()) {
                Ok(base) if refused && size > floor => {
                    // SAFETY: reserved just now with this size and alignment, and not yet
                    // known to anyone. If the release is refused, addresses are lost, but
                    // no memory.
                    let _ = unsafe { platform.release(base, size, align.get()) };
                    (size, refused) = (half, false);
                }
                Ok(base) => break base,
                Err(_) if size > floor => (size, refused) = (half, true),
                Err(refusal) => return Err(lacking(refusal)),
            }
        };
        let inherited = AtomicBool::new(options.inherit_on_fork);
        let (mappings, refusal) = (AtomicUsize::new(0), Lock::new(None));
        Ok(Self { platform, base, size, align, options: *options, inherited, mappings, refusal })
    }

    pub(crate) fn platform(&self) -> &P {
        &self.platform
    }

    pub(crate) const fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) const fn size(&self) -> usize {
        self.size
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

    /// Keeps the platform's refusal, for people to read, and returns `error`, for the program.
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
        // SAFETY: the reservation is one range with one provenance, of at most
        // `isize::MAX` bytes, and the caller stays inside.
        unsafe { self.base.add(offset) }
    }

    /// Moves the part of a range that huge pages fit in to huge pages. Returns its size.
    ///
    /// # Errors
    /// [`Error::Resource`] if the platform cannot.
    ///
    /// # Safety
    /// - The range is made of pages of the reservation.
    pub(crate) unsafe fn collapse(&self, offset: usize, size: usize) -> Result<usize> {
        let address = self.base.addr().get() + offset;
        let start = address.next_multiple_of(HUGE_PAGE) - address;
        let whole = size.saturating_sub(start) / HUGE_PAGE * HUGE_PAGE;
        if whole > 0 {
            // SAFETY: within the caller's range, at the beginning of a huge page.
            unsafe { self.platform.collapse(self.at(offset + start), whole) }
                .map_err(self.refused(Error::Resource))?;
        }
        Ok(whole)
    }

    /// Asks for huge pages behind a range from here on.
    ///
    /// # Safety
    /// - The range is whole pages of the reservation, not none.
    pub(crate) unsafe fn advise_huge_pages(&self, offset: usize, size: usize) -> Result<()> {
        // SAFETY: the caller gives whole pages of the reservation.
        unsafe { self.platform.advise_huge_pages(self.at(offset), size) }
            .map_err(|refusal| self.refused_resource(refusal))
    }

    /// Keeps the whole reservation out of child processes, permanently.
    pub(crate) fn no_inherit(&self) -> Result<()> {
        // Stored first, so that a thread that opens a range meanwhile advises that range.
        let before = self.inherited.swap(false, Ordering::SeqCst);
        // SAFETY: the reservation is whole pages, and not none.
        let kept = unsafe { self.platform.no_inherit(self.base, self.size) };
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
        // SAFETY: the caller gives whole pages of the reservation, its alone.
        let opened = unsafe {
            let base = self.at(offset);
            self.commit_and_lock(base, size)
                .and_then(|()| self.advise_again(base, size))
                .and_then(|()| self.populate(base, size))
        };
        if opened.is_err() {
            // SAFETY: the caller gives whole pages that nobody else uses, and does
            // not use them itself now. Where closing fails too, the platform
            // keeps memory that the next `open` of these pages finds.
            let _ = unsafe { self.try_close(offset, size) };
        }
        opened
    }

    /// As [`Reservation::open`], for pages that several threads may open at once and
    /// that no thread closes: a failure leaves them as far as they came.
    ///
    /// # Safety
    /// - The range is whole pages of the reservation, not none, and never closed.
    pub(crate) unsafe fn open_shared(&self, offset: usize, size: usize) -> Result<()> {
        // SAFETY: the caller gives whole pages of the reservation.
        unsafe {
            let base = self.at(offset);
            self.commit_and_lock(base, size)?;
            if self.options.populates() && !self.options.lock {
                // Where the platform cannot, whoever comes first takes the faults.
                let _ = self.platform.populate_in_use(base, size);
            }
        }
        Ok(())
    }

    /// # Safety
    /// - The range is whole pages of the reservation, not none.
    unsafe fn commit_and_lock(&self, base: NonNull<u8>, size: usize) -> Result<()> {
        // SAFETY: the caller gives whole pages of the reservation.
        unsafe { self.platform.commit(base, size) }.map_err(self.refused(Error::Memory))?;
        if self.options.lock {
            // SAFETY: they are committed now.
            unsafe { self.platform.lock(base, size) }.map_err(|refusal| self.refused_resource(refusal))?;
        }
        Ok(())
    }

    /// Repeats for a range the advice that was given for the whole reservation: the platform
    /// forgets it when a range is closed.
    ///
    /// # Safety
    /// - The range is one or more whole pages of grains.
    unsafe fn advise_again(&self, base: NonNull<u8>, size: usize) -> Result<()> {
        if !self.inherited.load(Ordering::SeqCst) {
            // SAFETY: the caller gives whole pages of the reservation.
            unsafe { self.platform.no_inherit(base, size) }
                .map_err(|refusal| self.refused_resource(refusal))?;
        }
        if self.options.huge_pages {
            // SAFETY: as above.
            unsafe { self.platform.advise_huge_pages(base, size) }
                .map_err(|refusal| self.refused_resource(refusal))?;
        }
        Ok(())
    }

    /// # Safety
    /// - The range is committed pages, not none, that nobody else uses.
    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<()> {
        // Locking has populated already.
        if !self.options.populates() || self.options.lock {
            return Ok(());
        }
        // SAFETY: the caller's duties are the platform's.
        unsafe { self.platform.populate(base, size) }.map_err(self.refused(Error::Memory))
    }

    /// Populates a range that others may be using.
    ///
    /// # Safety
    /// - The range is whole pages of the reservation, not none.
    pub(crate) unsafe fn populate_in_use(&self, offset: usize, size: usize) -> Result<()> {
        // SAFETY: the caller's duties are the platform's.
        unsafe { self.platform.populate_in_use(self.at(offset), size) }.map_err(self.refused(Error::Memory))
    }

    /// Unlocks and decommits a range.
    ///
    /// # Errors
    /// [`Error::Memory`]; the range is open still then, its contents lost.
    ///
    /// # Safety
    /// - The range was opened by [`Reservation::open`], and nobody uses it any more.
    pub(crate) unsafe fn close(&self, offset: usize, size: usize) -> Result<()> {
        // SAFETY: the caller's duties are those of the call.
        let closed = unsafe { self.try_close(offset, size) };
        if closed.is_err() && self.options.lock {
            // SAFETY: the pages are committed still.
            let _ = unsafe { self.platform.lock(self.at(offset), size) };
        }
        closed.map_err(self.refused(Error::Memory))
    }

    /// # Safety
    /// - The range is whole pages of the reservation, not none, that nobody uses.
    unsafe fn try_close(&self, offset: usize, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is inside the reservation.
        let base = unsafe { self.at(offset) };
        if self.options.lock {
            // SAFETY: the caller gives whole pages of the reservation.
            unsafe { self.platform.unlock(base, size) }?;
        }
        // SAFETY: whole pages of the reservation, unlocked, that nobody uses.
        unsafe { self.platform.decommit(base, size) }
    }
}

/// The error for a refused resource, with its limit if the platform knows that.
fn lacking(refusal: PlatformError) -> Error {
    match refusal.limit {
        Some((resource, limit)) => Error::ResourceLimit { resource, size: refusal.size, limit },
        None => Error::Resource,
    }
}

impl<P: Platform> Drop for Reservation<P> {
    fn drop(&mut self) {
        self.may_have_mappings(0);
        // SAFETY: base, size and alignment are those of the reservation, which
        // goes with its only owner. Where the platform refuses, addresses are
        // lost, and there is nobody left to tell.
        let _ = unsafe { self.platform.release(self.base, self.size, self.align.get()) };
    }
}
