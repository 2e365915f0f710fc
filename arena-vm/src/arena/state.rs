//! What a VM arena consists of, and what all of its parts ask of it.

use core::ops::Range;

use tripoint_core::internal::{
    AtomicBool, AtomicU32, AtomicUsize, Ordering, PartMemory, Signature, Tract, TractTable,
};
use tripoint_core::{Addr, AddrRange, ArenaCounts, Block, Event, Lock};

use crate::budget::Budget;
use crate::descriptors::Descriptors;
use crate::options::ArenaVmOptions;
use crate::platform::Platform;
use crate::platform::native::Native;
use crate::regions::Regions;
use crate::reservation::Reservation;

/// An arena whose memory comes from the operating system.
///
/// Creation reserves addresses and, unless the options prefault, commits nothing;
/// memory is committed when tracts and descriptors are requested. A request that spare
/// tracts can serve makes no system call. Only growing, trimming and warming up call
/// the platform, and only reserving more addresses does so with a lock held.
///
/// The value may be moved, because its memory does not depend on its place. Dropping
/// it releases the reservation.
#[doc(alias("mmap", "reserve", "virtual memory"))]
#[derive(Debug)]
pub struct ArenaVm<P: Platform = Native> {
    pub(super) signature: Signature,
    pub(super) reservation: Reservation<P>,
    pub(super) regions: Regions,
    pub(super) range: AddrRange,
    pub(super) options: ArenaVmOptions,
    /// The part of the table that is committed, in bytes. Only grows.
    pub(super) table_size: AtomicUsize,
    pub(super) table: Lock<TractTable>,
    pub(super) descriptors: Lock<Descriptors>,
    pub(super) parts: Lock<PartMemory>,
    pub(super) budget: Budget,
    pub(super) frozen: AtomicBool,
    /// The serial number of the pool registered last.
    pub(super) last_serial: AtomicU32,
    pub(super) counts: ArenaCounts,
}

impl<P: Platform> ArenaVm<P> {
    /// The entries of the part of the table that is committed.
    pub(super) fn entries(&self) -> &[Tract] {
        let count = self.table_size.load(Ordering::Acquire) / size_of::<Tract>();
        // The table begins at the base, which is aligned to a page, and contains entries only.
        // Fresh pages read as zero, which is an unused entry.
        // SAFETY: that many entries were committed before the size was stored, and are never
        // decommitted. They are atomic, so what a shared slice refers to may change.
        unsafe { core::slice::from_raw_parts(self.reservation.base().cast().as_ptr(), count) }
    }

    /// The entries of the grains below the top; every grain that has an owner is among them.
    pub(super) fn entries_in_use(&self) -> &[Tract] {
        let top = self.table.lock().top() as usize;
        let entries = self.entries();
        &entries[..top.min(entries.len())]
    }

    /// The memory of `count` grains from `index`.
    ///
    /// # Safety
    /// - The grains are committed, and the table has assigned them to the owner of the block.
    pub(super) unsafe fn block(&self, index: u32, count: u32) -> Block {
        // SAFETY: the table has only grains that lie in the reservation.
        let base = unsafe { self.reservation.at(self.regions.grain_offset(index)) };
        // SAFETY: the caller says that the grains are committed. They stay so until their owner
        // frees them, so they are valid for reads and writes until then.
        unsafe { Block::new(base, self.regions.bytes(count)) }
    }

    /// The grain that `addr` lies in; `None` outside of all grains.
    #[inline]
    pub(super) fn grain_of(&self, addr: Addr) -> Option<u32> {
        if !self.range.contains(addr) {
            return None;
        }
        self.regions.grain_at(addr.get() - self.range.base().get())
    }

    /// The address of grain `index`.
    #[inline]
    pub(super) fn base_of(&self, index: u32) -> Addr {
        Addr::new(self.range.base().get() + self.regions.grain_offset(index))
    }

    /// The grains that a range reaches into.
    pub(super) fn grains_in(&self, range: AddrRange) -> Range<u32> {
        let last = range.limit().get().checked_sub(1).filter(|_| !range.is_empty());
        let end = last.and_then(|last| self.grain_of(Addr::new(last))).map_or(0, |last| last + 1);
        self.grain_of(range.base()).unwrap_or(0)..end
    }

    /// The number of grains that contain `size` bytes.
    pub(super) fn grains_covering(&self, size: usize) -> u32 {
        u32::try_from(size.div_ceil(self.regions.grain.get())).unwrap_or(u32::MAX)
    }

    /// Whether no pages may be committed or decommitted.
    pub(super) fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Acquire)
    }

    /// Notifies the hook of an event, if there is one.
    pub(super) fn report(&self, event: Event) {
        if let Some(hook) = self.options.event_hook {
            hook.event(event);
        }
    }
}
