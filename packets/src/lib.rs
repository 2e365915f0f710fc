//! Packets of tripoint: units of one size in one region that a device knows.
//!
//! [`PacketPool`] has the units. A thread takes and gives them by its [`PacketCache`], the program uses one as a
//! [`PacketBox`] or several as a [`PacketBurst`] or a [`PacketBatch`], and a device has those that are with a [`PacketRing`].
//! A packet that a unit has no room for is a [`PacketChain`].
//!
//! ```text
//!   PacketPool
//!     region    the units, which devices write to
//!     tables    depot (free units)   holders (the ring of each unit)   slots (of caches)
//!
//!   depot  <-- batches -->  PacketCache  --take-->  PacketBox  --submit-->  PacketRing
//!                                ^  \--------------- fill ------------------>  |
//!                                 \----- give -----  PacketBox  <--complete----/
//! ```
//!
//! Nothing that the pool relies on lies in the region, so a device that writes where it must not can spoil packets, and no more.
//!
//! | feature | what it adds |
//! |---|---|
//! | (none) | the pool, its caches and rings; nothing is allocated but in the arena |
//! | `alloc` | `OwnedPacket`, which owns a share of its pool |
//! | `bytes` | such packets as `bytes::Bytes`, without a copy |
//! | `log` | pools that report every call, for a log that is replayed |
//! | `poison` | a pattern in units that are given back |
//!
//! Design: [`design/packets.md`](crate::design::packets).

// | file | |
// |---|---|
// | `design` | the pages of `design/`, for readers of the documentation |
// | `plan` | how much memory a pool takes, and which part of it is what |
// | `options` | options for a pool |
// | `error` | what can be wrong with what a device says, and with what a program asks |
// | `held` | a unit with where its data lie |
// | `units` | between numbers of units and offsets of their bytes |
// | `region` | the memory of all units, and their numbers |
// | `table` | slices in memory of a pool |
// | `depot` | the free units that no thread has |
// | `holders` | which ring each unit is with |
// | `slots` | places for caches |
// | `reports` | what a pool reports of its calls |
// | `shared` | what boxes, caches and rings share |
// | `packet_box` | a packet that the program owns |
// | `owned` | a packet that keeps its pool |
// | `burst` | several units on their way |
// | `batch` | several packets on their way |
// | `cache` | one thread's free units |
// | `ring` | the way of units to a device and back |
// | `chain` | a packet that lies in several units |

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

use core::fmt;

use tripoint_core::internal::{AtomicU32, AtomicUsize, Ordering};
use tripoint_core::{
    Arena, Block, Check, CheckError, CheckLevel, Describe, Error, PoolHeader, PoolOptions, PoolSizes, Result,
    aver, ensure, line,
};

mod batch;
mod burst;
mod cache;
mod chain;
mod depot;
pub mod design;
mod error;
mod held;
mod holders;
mod options;
#[cfg(feature = "alloc")]
mod owned;
mod packet_box;
mod plan;
mod region;
mod reports;
mod ring;
mod shared;
mod slots;
mod table;
mod units;

pub use batch::PacketBatch;
pub use burst::PacketBurst;
pub use cache::PacketCache;
pub use chain::PacketChain;
pub use error::PacketError;
pub use options::PacketPoolOptions;
#[cfg(feature = "alloc")]
#[cfg_attr(docsrs, doc(cfg(feature = "alloc")))]
pub use owned::OwnedPacket;
pub use packet_box::PacketBox;
pub use region::PacketRegion;
pub use ring::{PacketRing, PacketRingCounts, Submission};

use plan::{Plan, Tables};
use reports::{Called, Reports};
use shared::Shared;
use slots::Slot;
use table::TABLE_ALIGN;

/// Where the units of a pool are at one moment. If other threads use the pool meanwhile, the numbers are of moments near each
/// other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// All units.
    pub units: usize,
    /// Units that are free and in no cache.
    pub depot: usize,
    /// Units in caches.
    pub caches: usize,
    /// Units with rings.
    pub rings: usize,
    /// How many units were ever taken out of the depot.
    pub taken: u64,
    /// How many units were ever given back to it: `taken - given == units - depot`.
    pub given: u64,
}

impl PacketCounts {
    /// Units in boxes, bursts, batches and chains: all that are nowhere else.
    #[must_use]
    pub const fn boxed(&self) -> usize {
        self.units.saturating_sub(self.depot + self.caches + self.rings)
    }
}

/// A pool of packets: units of `SIZE` bytes in one [region](PacketPool::region), which a device can be told once and for all.
///
/// Every unit is with one of these, and the types show with which:
///
/// | a unit is | while it is with |
/// |---|---|
/// | free | the pool, or a thread's [`PacketCache`] |
/// | the program's | a [`PacketBox`], a [`PacketBurst`], a [`PacketBatch`] or a [`PacketChain`] |
/// | the device's | a [`PacketRing`] |
///
/// The pool takes all its memory when it is created, and never again. It writes zeros to all of it, so that each page is
/// there. Whether pages are locked or huge is up to the arena. No object of another type ever lies in the region: a device may
/// leave any bytes there.
///
/// `SIZE` is a multiple of 64. Devices often want more: AF_XDP wants 2048 or 4096.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_packets::{PacketPool, PacketPoolOptions};
///
/// let options = PacketPoolOptions { count: 64, headroom: 128, ..Default::default() };
/// let pool = PacketPool::<_, 2048>::create(&arena, options)?;
/// let (mut cache, mut transmit) = (pool.cache()?, pool.ring()?);
///
/// let mut packet = cache.take().expect("a free unit");
/// packet.extend_from_slice(b"data").expect("there is room");
/// packet.prepend(14).expect("there is headroom").fill(0xff); // a header
/// let submission = transmit.submit(packet).expect("a packet of this pool");
/// assert_eq!((submission.offset % 2048, submission.length), (114, 18));
///
/// // The device has sent it.
/// transmit.complete_into(&mut cache, submission.offset).expect("a unit that is with the ring");
/// drop(cache);
/// assert_eq!(pool.counts().depot, 64);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("mempool", "mbuf", "umem", "frame", "DMA"))]
#[derive(Debug)]
pub struct PacketPool<A: Arena, const SIZE: usize> {
    shared: Shared<SIZE>,
    options: PacketPoolOptions,
    header: PoolHeader<A>,
}

impl<A: Arena, const SIZE: usize> PacketPool<A, SIZE> {
    const CLASS: &'static str = "Packets";

    /// Creates a pool in the arena, and takes all its memory. Writes to every byte of it. A `SIZE` that is not a multiple
    /// of 64, or above 2^30, does not compile:
    ///
    /// ```compile_fail,E0080
    /// # use tripoint_core::{ClientArena, ClientArenaOptions};
    /// # use tripoint_packets::{PacketPool, PacketPoolOptions};
    /// # let mut memory = Box::new_uninit_slice(256 << 10);
    /// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    /// let pool = PacketPool::<_, 1500>::create(&arena, PacketPoolOptions::default());
    /// ```
    ///
    /// # Errors
    /// - [`Error::Parameter`] for no units, caches that keep none, more headroom than a unit, or more than
    ///   `isize::MAX` bytes in all
    /// - those of [`Arena::register`] and [`Arena::alloc_tracts`]
    pub fn create(arena: A, options: PacketPoolOptions) -> Result<Self> {
        let plan = Plan::of::<SIZE>(&options)?;
        let PacketPoolOptions { count, headroom, caches, cache_size } = options;
        let numbers = [count, headroom, caches, cache_size].map(|number| number as usize);
        let [count, headroom, caches, cache_size] = numbers;
        let passed = PoolOptions::new([count, headroom, caches, cache_size, SIZE]);
        let header = PoolHeader::create_with(arena, Self::CLASS, passed)?;
        let units = take(&header, plan.region, PacketRegion::<SIZE>::ALIGN)?;
        let tables = take(&header, plan.tables, TABLE_ALIGN)?;
        // SAFETY: just taken from the arena, so that nothing else uses it.
        unsafe { units.base().write_bytes(0, units.size()) };
        // SAFETY: just taken from the arena with this alignment. It is the pool's until its header is dropped, and the tables
        // are dropped before.
        let tables = unsafe { Tables::make(tables, &options) };
        aver!(tables.is_some(), "{plan:?} has no room for the tables of {options:?}");
        let Tables { depot, holders, slots } = tables.ok_or(Error::Limit)?;
        let region = PacketRegion::new(units.base(), options.count, options.headroom);
        let shared = Shared {
            region,
            depot,
            holders,
            slots,
            trips: AtomicUsize::new(0),
            rings: AtomicU32::new(0),
            reports: Reports::default(),
        };
        Ok(Self { shared, options, header })
    }

    /// Has every call on the pool reported to `hook`, and on its caches and rings, with the units that it moves
    /// ([`Event::PacketCall`](tripoint_core::Event::PacketCall)): for a log of the program, in which calls are made one after
    /// another. Without the feature `log` a pool has not one instruction for it; with it and without a hook, each call looks
    /// whether there is one.
    #[cfg(feature = "log")]
    #[cfg_attr(docsrs, doc(cfg(feature = "log")))]
    #[must_use]
    pub fn logged(mut self, hook: &'static dyn tripoint_core::EventHook) -> Self {
        self.shared.reports = Reports::to(self.header.id(), hook);
        self
    }

    /// The memory of all units: what to tell a device.
    pub const fn region(&self) -> PacketRegion<SIZE> {
        self.shared.region
    }

    /// The options that it was created with.
    pub const fn options(&self) -> PacketPoolOptions {
        self.options
    }

    /// A cache, for one thread.
    ///
    /// # Errors
    /// [`Error::Parameter`] if as many caches exist as the options say.
    pub fn cache(&self) -> Result<PacketCache<'_, SIZE>> {
        let reported = self.shared.reports.begin();
        let claim = self.shared.slots.iter().find_map(Slot::claim);
        let made = claim.map(|claim| PacketCache::new(&self.shared, claim));
        let made = made.ok_or(Error::Parameter(
            "all caches of the pool of packets are in use (PacketPoolOptions::caches)",
        ));
        if let Some(reported) = reported {
            let refused =
                |error: &Error| Called { call: "create cache", error: error.name(), ..Called::default() };
            reported.end(made.as_ref().map_or_else(refused, |cache| cache.called("create cache")));
        }
        made
    }

    /// A ring, for one way to a device and back.
    ///
    /// # Errors
    /// [`Error::Parameter`] if 2^32 - 1 were made before: rings are numbered, and no number is used again.
    pub fn ring(&self) -> Result<PacketRing<'_, SIZE>> {
        let reported = self.shared.reports.begin();
        let number = self.shared.number_ring();
        let number = number.ok_or(Error::Parameter("the pool of packets has no number left for a ring"))?;
        let ring = PacketRing::new(&self.shared, number);
        if let Some(reported) = reported {
            reported.end(ring.called("create ring"));
        }
        Ok(ring)
    }

    /// Takes a packet without data, under the pool's lock; `None` if the pool has no free unit. Caches are faster, and may
    /// have units when the pool has none ([`PacketPool::trip_caches`]).
    pub fn take(&self) -> Option<PacketBox<'_, SIZE>> {
        let reported = self.shared.reports.begin();
        let mut number = [0];
        let taken = self.shared.depot.lock().take(&mut number);
        if let Some(reported) = reported {
            reported.units(&number[..taken]);
            reported.end(Called { call: "take", asked: 1, moved: taken, ..Called::default() });
        }
        if taken == 0 {
            return None;
        }
        // SAFETY: just taken out of the depot; the headroom is at most `SIZE` (`Plan::of`).
        Some(unsafe { PacketBox::new(&self.shared, number[0], self.options.headroom, 0) })
    }

    /// A burst without units: for a cache to fill, or to collect packets in.
    pub const fn burst<const N: usize>(&self) -> PacketBurst<'_, SIZE, N> {
        PacketBurst::new(&self.shared)
    }

    /// A batch without packets: for a ring to complete into, or to collect packets in.
    pub const fn batch<const N: usize>(&self) -> PacketBatch<'_, SIZE, N> {
        PacketBatch::new(&self.shared)
    }

    /// A chain without data: a packet of several units, for a ring to complete into, or to collect parts in.
    pub const fn chain<const N: usize>(&self) -> PacketChain<'_, SIZE, N> {
        PacketChain::new(self.batch())
    }

    /// Requests that every cache give all its units back to the pool, which each does at its next call. Wait-free, from any thread,
    /// signal handler or interrupt handler.
    pub fn trip_caches(&self) {
        self.shared.trips.fetch_add(1, Ordering::Release);
    }

    /// Where the units are. Looks at every unit.
    pub fn counts(&self) -> PacketCounts {
        let (depot, taken, given) = {
            let depot = self.shared.depot.lock();
            (depot.free(), depot.taken(), depot.given())
        };
        let (caches, rings) = (self.shared.cached(), self.shared.holders().count());
        PacketCounts { units: self.options.count as usize, depot, caches, rings, taken, given }
    }

    /// The sizes of the pool in bytes. Units in caches do not count as free, as for every class.
    pub fn sizes(&self) -> PoolSizes {
        let free = self.shared.depot.lock().free() * SIZE;
        PoolSizes::of(&self.header, free, free.min(SIZE))
    }
}

/// Takes memory for good.
fn take<A: Arena>(header: &PoolHeader<A>, size: usize, align: usize) -> Result<Block> {
    let padding = align.saturating_sub(header.arena().grain());
    let needed = size.checked_add(padding).ok_or(Error::Limit)?;
    let extent = header.extend(needed)?;
    let before = extent.base().align_offset(align);
    let block = extent.split_at(before).and_then(|(_, rest)| rest.split_at(size));
    aver!(block.is_some(), "{extent:?} has no room for {size} bytes aligned to {align}");
    block.map(|(block, _)| block).ok_or(Error::Limit)
}

impl<A: Arena, const SIZE: usize> Check for PacketPool<A, SIZE> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)?;
        if level >= CheckLevel::Shallow {
            let depot = self.shared.depot.lock();
            depot.check(level >= CheckLevel::Deep)?;
            if level >= CheckLevel::Deep {
                let holders = self.shared.holders();
                let are_home = depot.numbers().iter().all(|&number| holders.is_at_home(number));
                ensure(Self::CLASS, are_home, "free units are with no ring")?;
            }
        }
        Ok(())
    }
}

impl<A: Arena, const SIZE: usize> Describe for PacketPool<A, SIZE> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)?;
        let counts = self.counts();
        line(out, depth + 1, "units", format_args!("{} of {SIZE} bytes", counts.units))?;
        line(out, depth + 1, "headroom", format_args!("{} bytes", self.options.headroom))?;
        line(
            out,
            depth + 1,
            "free",
            format_args!("{} units, and {} in caches", counts.depot, counts.caches),
        )?;
        line(out, depth + 1, "out", format_args!("{} with rings, {} boxed", counts.rings, counts.boxed()))
    }
}
