//! The way of units to a device and back (design/packets.md `.ring`).

use core::fmt;
use core::mem;
use core::ptr;

use crate::held::Held;
use crate::holders::RingId;
use crate::reports::Called;
use crate::shared::Shared;
use crate::{PacketBatch, PacketBox, PacketCache, PacketError};

/// How many units `reclaim` gives back under one lock.
const BATCH: usize = 64;

/// What to write into a device's ring: which memory the device may use from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The number of the unit.
    pub number: u32,
    /// The first byte that the device may use, from the beginning of the region. It lies in the unit, also if the device may
    /// use no byte of it.
    pub offset: u64,
    /// How many bytes the device may use: the data of a packet, or the room of an empty unit.
    pub length: u32,
}

/// What a ring has counted, in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketRingCounts {
    /// Empty units that were submitted, from a cache.
    pub filled: u64,
    /// Packets that were submitted.
    pub submitted: u64,
    /// Units that the device completed.
    pub completed: u64,
    /// Units that were taken back without completion.
    pub reclaimed: u64,
    /// Completions that were refused, because they named memory that was not with the ring.
    pub refused: u64,
}

impl PacketRingCounts {
    /// How many units are with the ring.
    #[must_use]
    pub const fn outstanding(&self) -> u64 {
        self.filled + self.submitted - self.completed - self.reclaimed
    }

    #[inline(always)]
    const fn refuse(&mut self, error: PacketError) -> PacketError {
        self.refused += 1;
        error
    }
}

/// A way of units to a device and back: for AF_XDP a fill ring and its receive ring, or a transmit ring and its
/// completion ring; a group of provided buffers of io_uring; a ring of DMA descriptors.
///
/// A unit that is submitted is with this ring, and nothing in the program can reach its memory, until the device completes it.
/// Completion is checked: a unit that was never submitted to this ring, or was completed before, is refused and counted.
///
/// It does not write to the device's ring itself. It returns what to write there, and takes what was read.
/// Reserve places in the device's ring first: what was submitted can be taken back only by completion, or by
/// [`PacketRing::reclaim`].
///
/// A ring that is dropped leaves the units that are with it to the device, which may still write to them. They are lost
/// until the pool is dropped.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_packets::{PacketPool, PacketPoolOptions};
///
/// let pool = PacketPool::<_, 2048>::create(&arena, PacketPoolOptions { count: 64, ..Default::default() })?;
/// let (mut cache, mut receive) = (pool.cache()?, pool.ring()?);
/// let mut fill_ring = Vec::new(); // the device's
/// assert_eq!(receive.fill(&mut cache, 32, |unit| fill_ring.push(unit.offset)), 32);
///
/// // The device writes 60 bytes into the first of them, and says so in its receive ring.
/// let packet = receive.complete(fill_ring[0], 60).expect("a unit that is with the ring");
/// assert_eq!(packet.len(), 60);
/// assert!(receive.complete(fill_ring[0], 60).is_err(), "it is with the program now");
/// cache.give(packet);
/// assert_eq!((receive.counts().outstanding(), receive.counts().refused), (31, 1));
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[must_use = "units that are with a ring come back only through it"]
pub struct PacketRing<'p, const SIZE: usize> {
    pool: &'p Shared<SIZE>,
    id: RingId,
    counts: PacketRingCounts,
}

impl RingId {
    fn called(self, call: &'static str) -> Called {
        Called { call, ring: self.0, ..Called::default() }
    }
}

impl<'p, const SIZE: usize> PacketRing<'p, SIZE> {
    pub(crate) fn new(pool: &'p Shared<SIZE>, id: RingId) -> Self {
        Self { pool, id, counts: PacketRingCounts::default() }
    }

    /// What is reported of a call on the ring.
    pub(crate) fn called(&self, call: &'static str) -> Called {
        self.id.called(call)
    }

    /// What the ring has counted.
    #[must_use]
    pub const fn counts(&self) -> PacketRingCounts {
        self.counts
    }

    /// Submits up to `count` empty units of the cache, and calls `write` for each. Returns how many: fewer if neither
    /// the cache nor the pool has more; none if the cache is of another pool.
    ///
    /// The device may use a unit from after the headroom to its end. If `write` unwinds, its unit is with the ring.
    #[inline(always)]
    pub fn fill(
        &mut self,
        cache: &mut PacketCache<'p, SIZE>,
        count: usize,
        mut write: impl FnMut(Submission),
    ) -> usize {
        if !ptr::eq(cache.pool(), self.pool) {
            return 0;
        }
        let reported = self.pool.reports.begin();
        let (holders, id, headroom) = (self.pool.holders(), self.id, self.pool.region.headroom());
        let before = self.counts.filled;
        let (mut filled, wanted) = (before, before.saturating_add(count as u64));
        while filled < wanted {
            let last = filled;
            for number in cache.pop_some((wanted - filled) as usize) {
                holders.submit(number, id);
                filled += 1;
                self.counts.filled = filled;
                if let Some(reported) = &reported {
                    reported.units(&[number]);
                }
                // `SIZE` is a `u32`, and the headroom at most that.
                write(Self::submission(number, headroom, SIZE as u32 - headroom));
            }
            if filled == last {
                break;
            }
        }
        let filled = (filled - before) as usize;
        if let Some(reported) = reported {
            let (of_cache, asked) = (cache.called("fill"), count as u64);
            reported.end(Called { ring: id.0, asked, moved: filled, ..of_cache });
        }
        filled
    }

    /// Submits a packet: the device may use its data.
    ///
    /// # Errors
    /// The packet, if it is of another pool.
    #[inline]
    pub fn submit(&mut self, packet: PacketBox<'p, SIZE>) -> Result<Submission, PacketBox<'p, SIZE>> {
        if !ptr::eq(packet.pool(), self.pool) {
            return Err(packet);
        }
        Ok(self.submitting()(packet.into_held()))
    }

    /// Submits up to `count` packets of a batch, the first ones first, and calls `write` for each. Returns how many: fewer if
    /// the batch has fewer; none if it is of another pool. The others stay in the batch.
    ///
    /// The device may use their data. If `write` unwinds, its packet is with the ring.
    #[inline]
    pub fn submit_batch<const N: usize>(
        &mut self,
        batch: &mut PacketBatch<'p, SIZE, N>,
        count: usize,
        mut write: impl FnMut(Submission),
    ) -> usize {
        if !ptr::eq(batch.pool(), self.pool) {
            return 0;
        }
        let mut submitted = 0;
        let mut submit = self.submitting();
        for held in batch.drain(count) {
            write(submit(held));
            submitted += 1;
        }
        submitted
    }

    /// Submits units, one at each call. What they all need is looked up once, and their count is only written: nothing of one
    /// call waits for the one before.
    #[inline(always)]
    fn submitting(&mut self) -> impl FnMut(Held) -> Submission {
        let Self { pool, id, counts } = self;
        let (reports, holders, id, mut submitted) = (pool.reports, pool.holders(), *id, counts.submitted);
        move |held| {
            let reported = reports.begin();
            let Held { number, start, length } = held;
            holders.submit(number, id);
            submitted += 1;
            counts.submitted = submitted;
            let submission = Self::submission(number, start, length);
            if let Some(reported) = reported {
                reported.unit(held);
                reported.end(Called { asked: submission.offset, moved: 1, ..id.called("submit") });
            }
            submission
        }
    }

    /// Takes back the unit in which the device says that there are `length` bytes of data from `offset` on, counted from the
    /// beginning of the region.
    ///
    /// # Errors
    /// [`PacketError::Outside`], [`PacketError::Overrun`], [`PacketError::NotSubmitted`]; each is counted. A unit that
    /// is with the ring stays there.
    #[inline]
    pub fn complete(&mut self, offset: u64, length: u32) -> Result<PacketBox<'p, SIZE>, PacketError> {
        let Held { number, start, length } = self.completing()((offset, length))?;
        // SAFETY: the unit was with this ring, so nothing else in the program uses it, and the device has completed it
        // (`PacketRegion`); the data lie in the unit (`locate`).
        Ok(unsafe { PacketBox::new(self.pool, number, start, length) })
    }

    /// Completes units as [`complete`](Self::complete) does, each by its offset and the bytes of its data, and adds them to the
    /// batch. Returns how many. A unit that is refused is counted, and not added. No more completions are looked at than the
    /// batch has room for, and none if the batch is of another pool.
    #[inline]
    pub fn complete_batch<const N: usize>(
        &mut self,
        batch: &mut PacketBatch<'p, SIZE, N>,
        completions: impl IntoIterator<Item = (u64, u32)>,
    ) -> usize {
        if !ptr::eq(batch.pool(), self.pool) {
            return 0;
        }
        let (before, room) = (batch.len(), batch.room());
        let mut complete = self.completing();
        {
            // SAFETY: no more are taken than there is room for. The units of this pool were with this ring, so nothing else in
            // the program uses them, and the device has completed them (`PacketRegion`); the data lie in them (`locate`).
            let mut push = unsafe { batch.push_held(room) };
            for completion in completions.into_iter().take(room) {
                if let Ok(held) = complete(completion) {
                    push(held);
                }
            }
        }
        batch.len() - before
    }

    /// Takes back a unit by its number, with `length` bytes of data from its byte `start` on.
    ///
    /// # Errors
    /// As [`PacketRing::complete`].
    #[inline]
    pub fn complete_number(
        &mut self,
        number: u32,
        start: u32,
        length: u32,
    ) -> Result<PacketBox<'p, SIZE>, PacketError> {
        let offset = (number as u64 * SIZE as u64).saturating_add(start as u64);
        if start as usize >= SIZE {
            let reported = self.pool.reports.begin();
            let error = self.counts.refuse(PacketError::Overrun { offset, length, room: 0 });
            if let Some(reported) = reported {
                reported.unit(Held { number, start, length });
                reported.end(Called { error: error.name(), ..self.called("complete number") });
            }
            return Err(error);
        }
        self.complete(offset, length)
    }

    /// Takes back the unit in which the byte at `offset` lies, and gives it to the cache: for packets that the device
    /// has sent. If the cache is of another pool, the unit goes to its own pool.
    ///
    /// # Errors
    /// As [`PacketRing::complete`].
    #[inline]
    pub fn complete_into(
        &mut self,
        cache: &mut PacketCache<'p, SIZE>,
        offset: u64,
    ) -> Result<(), PacketError> {
        cache.give(self.complete(offset, 0)?);
        Ok(())
    }

    /// Takes back the units in which the bytes at these offsets lie, and gives them to the cache, as
    /// [`complete_into`](Self::complete_into) does with one. Returns how many; those that are refused are counted.
    #[inline]
    pub fn complete_all_into(
        &mut self,
        cache: &mut PacketCache<'p, SIZE>,
        offsets: impl IntoIterator<Item = u64>,
    ) -> usize {
        // Those of another pool go there. What is reported are calls for one unit.
        if !ptr::eq(cache.pool(), self.pool) || self.pool.reports.are_wanted() {
            return offsets.into_iter().filter(|&offset| self.complete_into(cache, offset).is_ok()).count();
        }
        let mut taken = 0;
        let mut complete = self.completing();
        // SAFETY: the units of this pool were with this ring, so nothing else in the program uses them, and the device has
        // completed them (`PacketRegion`).
        let mut push = unsafe { cache.push_some() };
        for offset in offsets {
            if let Ok(held) = complete((offset, 0)) {
                push(held.number);
                taken += 1;
            }
        }
        taken
    }

    /// Takes back every unit that is with the ring, and gives it to the pool; returns how many. Looks at every unit of the
    /// pool.
    ///
    /// # Safety
    /// - The device has stopped: it neither reads nor writes any unit that is with the ring. A descriptor that is closed does
    ///   not say so: a kernel may stop its device some time later.
    pub unsafe fn reclaim(&mut self) -> usize {
        let reported = self.pool.reports.begin();
        let mut batch = [0; BATCH];
        let (holders, mut count, mut reclaimed) = (self.pool.holders(), 0, 0);
        for number in 0..self.pool.region.count() {
            if !holders.complete(number, self.id) {
                continue;
            }
            batch[count] = number;
            count += 1;
            if count == BATCH {
                // SAFETY: these units were with the ring, whose device has stopped, as the caller says, and are not any more.
                unsafe { self.pool.take_home(&batch) };
                reclaimed += mem::take(&mut count);
            }
        }
        // SAFETY: these units, too, were with the ring, whose device has stopped, as the caller says, and are not any more.
        unsafe { self.pool.take_home(&batch[..count]) };
        reclaimed += count;
        self.counts.reclaimed += reclaimed as u64;
        if let Some(reported) = reported {
            reported.end(Called { moved: reclaimed, ..self.called("reclaim") });
        }
        reclaimed
    }

    /// Takes units back, one at each call: it returns the unit, and where in it the data are, if the unit was with the ring. It
    /// is not any more. As for [`submitting`](Self::submitting), nothing of one call waits for the one before.
    #[inline(always)]
    fn completing(&mut self) -> impl FnMut((u64, u32)) -> Result<Held, PacketError> {
        let Self { pool, id, counts } = self;
        let (reports, region, holders, id) = (pool.reports, pool.region, pool.holders(), *id);
        let mut completed = counts.completed;
        let mut complete = move |offset, length| {
            let (number, start) = match region.locate(offset, length) {
                Ok(place) => place,
                Err(error) => return Err(counts.refuse(error)),
            };
            if !holders.complete(number, id) {
                return Err(counts.refuse(PacketError::NotSubmitted { number }));
            }
            completed += 1;
            counts.completed = completed;
            Ok(Held { number, start, length })
        };
        move |(offset, length)| {
            let reported = reports.begin();
            let taken = complete(offset, length);
            if let Some(reported) = reported {
                let called = Called { asked: offset, length, ..id.called("complete") };
                match taken {
                    Ok(held) => {
                        reported.unit(held);
                        reported.end(Called { moved: 1, ..called });
                    }
                    Err(error) => reported.end(Called { error: error.name(), ..called }),
                }
            }
            taken
        }
    }

    /// What to tell the device. A packet without data may begin at the end of its unit, where the next unit lies: then the
    /// offset is that of its unit's last byte, so that completion finds the unit that was submitted.
    #[inline(always)]
    const fn submission(number: u32, start: u32, length: u32) -> Submission {
        let last = SIZE as u32 - 1;
        let start = if start < last { start } else { last };
        Submission { number, offset: number as u64 * SIZE as u64 + start as u64, length }
    }
}

impl<const SIZE: usize> fmt::Debug for PacketRing<'_, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketRing").field("id", &self.id.0).field("counts", &self.counts).finish()
    }
}
