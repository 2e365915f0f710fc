//! One thread's free units, in front of the pool (design/packets.md `.cache`).

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr;

use tripoint_core::internal::Ordering;
use tripoint_core::{Describe, line};

use crate::reports::Called;
use crate::shared::Shared;
use crate::slots::Claim;
use crate::{PacketBox, PacketBurst};

/// One thread's free units of a [`PacketPool`](crate::PacketPool). Taking one and giving one back takes no lock.
///
/// It takes the unit given back last, which is likely to be in the processor's cache. When it has none it takes half of
/// what it can keep from the pool, and when it is full it gives the older half back, each time under one short lock. So
/// it also serves a thread that only gives back what another one took.
///
/// Units that it keeps are out of reach for other threads, until it is [flushed](PacketCache::flush), dropped, or
/// tripped ([`PacketPool::trip_caches`](crate::PacketPool::trip_caches)). A cache that is forgotten (`mem::forget`) takes
/// its units with it until the pool is dropped.
#[doc(alias("magazine", "mempool cache"))]
pub struct PacketCache<'p, const SIZE: usize> {
    pool: &'p Shared<SIZE>,
    /// The numbers in it, below its count, are those of units, which are the cache's. Dropped with the cache, in the call
    /// that is reported.
    claim: ManuallyDrop<Claim<'p>>,
    /// The requests to flush that it has seen.
    observed: usize,
}

impl<'p, const SIZE: usize> PacketCache<'p, SIZE> {
    pub(crate) fn new(pool: &'p Shared<SIZE>, claim: Claim<'p>) -> Self {
        Self { pool, claim: ManuallyDrop::new(claim), observed: pool.trips.load(Ordering::Acquire) }
    }

    /// What it shares with the pool.
    #[inline(always)]
    pub(crate) const fn pool(&self) -> &'p Shared<SIZE> {
        self.pool
    }

    /// What is reported of a call on the cache.
    pub(crate) fn called(&self, call: &'static str) -> Called {
        Called { call, cache: self.claim.place(), trips: self.observed, ..Called::default() }
    }

    /// How many units it keeps.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.claim.count()
    }

    /// Whether it keeps no unit.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a packet without data, which begin after the pool's headroom. `None` if neither the cache nor the pool has a unit:
    /// the others are with rings, in boxes, or in the caches of other threads.
    #[inline]
    pub fn take(&mut self) -> Option<PacketBox<'p, SIZE>> {
        let reported = self.pool.reports.begin();
        let number = self.pop();
        if let Some(reported) = reported {
            reported.units(number.as_slice());
            reported.end(Called { asked: 1, moved: number.into_iter().count(), ..self.called("take") });
        }
        let number = number?;
        let headroom = self.pool.region.headroom();
        // SAFETY: `pop` returns a unit of the pool that was the cache's alone; the headroom is at most `SIZE`.
        Some(unsafe { PacketBox::new(self.pool, number, headroom, 0) })
    }

    /// Keeps the unit of a packet. A packet of another pool is dropped as usual.
    #[inline]
    pub fn give(&mut self, packet: PacketBox<'p, SIZE>) {
        if ptr::eq(packet.pool(), self.pool) {
            let reported = self.pool.reports.begin();
            let number = packet.into_number();
            // SAFETY: the box owned the unit, and gave it up.
            unsafe { self.push(number) };
            if let Some(reported) = reported {
                reported.units(&[number]);
                reported.end(Called { asked: 1, moved: 1, ..self.called("give") });
            }
        }
    }

    /// Fills a burst: takes as many units at once as it has room for. Returns `false`, and takes none, if the cache and the
    /// pool together have fewer, or the burst is of another pool.
    #[inline]
    pub fn take_burst<const N: usize>(&mut self, burst: &mut PacketBurst<'p, SIZE, N>) -> bool {
        let (reported, had) = (self.pool.reports.begin(), burst.len());
        let is_full = self.fill_burst(burst);
        if let Some(reported) = reported {
            let taken = &burst.numbers()[had..];
            reported.units(taken);
            let error = match is_full {
                true => "",
                false if ptr::eq(burst.pool(), self.pool) => "Limit",
                false => "Foreign",
            };
            let called = self.called("take burst");
            reported.end(Called { asked: N as u64, length: had as u32, moved: taken.len(), error, ..called });
        }
        is_full
    }

    /// Fills a burst, or returns `false`.
    #[inline(always)]
    fn fill_burst<const N: usize>(&mut self, burst: &mut PacketBurst<'p, SIZE, N>) -> bool {
        self.observe_trips();
        let mut count = self.claim.count();
        if count < N {
            count = self.refill(N);
        }
        if let Some(rest) = count.checked_sub(N)
            && let Some(numbers) = self.claim.numbers().get(rest..).and_then(<[u32]>::first_chunk::<N>)
            // SAFETY: these are the units of the cache that were given back last. It gives them up, by counting them no
            // more, if the burst takes them.
            && unsafe { burst.take_all(self.pool, numbers) }
        {
            self.claim.set_count(rest);
            return true;
        }
        self.top_up(burst)
    }

    /// Keeps all units of a burst, which is empty then. Those of another pool go there.
    #[inline]
    pub fn give_burst<const N: usize>(&mut self, burst: &mut PacketBurst<'p, SIZE, N>) {
        let reported = self.pool.reports.begin().filter(|_| ptr::eq(burst.pool(), self.pool));
        let had = burst.len();
        if let Some(reported) = &reported {
            reported.units(burst.numbers());
        }
        self.empty_burst(burst);
        if let Some(reported) = reported {
            reported.end(Called { asked: N as u64, moved: had, ..self.called("give burst") });
        }
    }

    /// Keeps all units of a burst.
    #[inline(always)]
    fn empty_burst<const N: usize>(&mut self, burst: &mut PacketBurst<'p, SIZE, N>) {
        self.observe_trips();
        let mut count = self.claim.count();
        if self.claim.numbers().len() - count < N {
            count = self.flush_half();
        }
        let room = self.claim.numbers().get_mut(count..).and_then(<[u32]>::first_chunk_mut::<N>);
        let Some(given) = room.and_then(|room| burst.give_all(self.pool, room)) else {
            return burst.clear();
        };
        // SAFETY: the burst owned these units, and gave them up.
        unsafe { self.pool.poison(&self.claim.numbers()[count..][..given]) };
        self.claim.set_count(count + given);
    }

    /// Gives all units that it keeps back to the pool, under one lock.
    pub fn flush(&mut self) {
        let reported = self.pool.reports.begin();
        self.flush_all();
        if let Some(reported) = reported {
            reported.end(self.called("flush"));
        }
    }

    fn flush_all(&mut self) {
        let count = self.claim.count();
        self.claim.set_count(0);
        self.pool.depot.lock().give(&self.claim.numbers()[..count]);
    }

    /// Takes the number of the unit given back last. It is then the caller's.
    #[inline(always)]
    fn pop(&mut self) -> Option<u32> {
        self.observe_trips();
        let mut count = self.claim.count();
        if count == 0 {
            count = self.refill(1);
        }
        let rest = count.checked_sub(1)?;
        self.claim.set_count(rest);
        Some(self.claim.numbers()[rest])
    }

    /// Keeps a unit.
    ///
    /// # Safety
    /// - `number` is that of a unit of the pool, which the caller gives up.
    #[inline(always)]
    unsafe fn push(&mut self, number: u32) {
        // SAFETY: the caller gives the unit up.
        unsafe { self.pool.poison(&[number]) };
        self.observe_trips();
        let mut count = self.claim.count();
        if count == self.claim.numbers().len() {
            count = self.flush_half();
        }
        self.claim.numbers()[count] = number;
        self.claim.set_count(count + 1);
    }

    /// Takes the numbers of up to `most` units, those given back last first: none only if the pool has none, too. Each is the
    /// caller's when the iterator returns it, and those that it does not return stay.
    #[inline(always)]
    pub(crate) fn pop_some(&mut self, most: usize) -> impl Iterator<Item = u32> {
        self.observe_trips();
        let mut count = self.claim.count();
        if count == 0 {
            count = self.refill(1);
        }
        self.claim.pop(count, count.saturating_sub(most))
    }

    /// Keeps units, one for each call, and counts each. The count is only stored: no call waits for what the one before stored.
    ///
    /// # Safety
    /// - The numbers are those of units of the pool, which the caller of the function gives up.
    #[inline(always)]
    pub(crate) unsafe fn push_some(&mut self) -> impl FnMut(u32) {
        self.observe_trips();
        let mut count = self.claim.count();
        move |number| {
            // SAFETY: the caller gives the unit up.
            unsafe { self.pool.poison(&[number]) };
            if count == self.claim.numbers().len() {
                count = self.flush_half();
            }
            self.claim.numbers()[count] = number;
            count += 1;
            self.claim.set_count(count);
        }
    }

    /// Flushes, if that was requested since.
    #[inline(always)]
    fn observe_trips(&mut self) {
        let requests = self.pool.trips.load(Ordering::Acquire);
        if requests != self.observed {
            self.handle_trips(requests);
        }
    }

    #[cold]
    #[inline(never)]
    fn handle_trips(&mut self, requests: usize) {
        self.observed = requests;
        self.flush_all();
    }

    /// Takes units from the pool, so that it keeps half of what it can, or `wanted` if that is more and it can. Returns how
    /// many it keeps.
    #[cold]
    #[inline(never)]
    fn refill(&mut self, wanted: usize) -> usize {
        let count = self.claim.count();
        let numbers = self.claim.numbers();
        let target = wanted.max(numbers.len() / 2).min(numbers.len());
        let Some(room) = numbers.get_mut(count..target) else { return count };
        let kept = count + self.pool.depot.lock().take(room);
        self.claim.set_count(kept);
        kept
    }

    /// Gives the older half of its units back, or all if it has one. Returns how many it keeps.
    #[cold]
    #[inline(never)]
    fn flush_half(&mut self) -> usize {
        let count = self.claim.count();
        let older = count.div_ceil(2);
        let numbers = self.claim.numbers();
        self.pool.depot.lock().give(&numbers[..older]);
        numbers.copy_within(older..count, 0);
        self.claim.set_count(count - older);
        count - older
    }

    /// Fills a burst that is not empty, or larger than what the cache has: from the cache first, then from the pool.
    #[cold]
    #[inline(never)]
    fn top_up<const N: usize>(&mut self, burst: &mut PacketBurst<'p, SIZE, N>) -> bool {
        if !ptr::eq(burst.pool(), self.pool) {
            return false;
        }
        let own = self.claim.count().min(N - burst.len());
        let mut others = [0; N];
        let others = &mut others[..N - burst.len() - own];
        {
            let mut depot = self.pool.depot.lock();
            if depot.free() < others.len() {
                return false;
            }
            depot.take(others);
        }
        let rest = self.claim.count() - own;
        self.claim.set_count(rest);
        // SAFETY: these are units just taken from the depot, and units that the cache counts no more.
        unsafe {
            burst.take(others);
            burst.take(&self.claim.numbers()[rest..][..own]);
        }
        true
    }
}

impl<const SIZE: usize> Drop for PacketCache<'_, SIZE> {
    fn drop(&mut self) {
        let reported = self.pool.reports.begin();
        self.flush_all();
        let called = reported.as_ref().map(|_| self.called("drop cache"));
        // SAFETY: the cache is being dropped, so that its claim is not used any more, and is dropped once.
        unsafe { ManuallyDrop::drop(&mut self.claim) };
        if let Some((reported, called)) = reported.zip(called) {
            reported.end(called);
        }
    }
}

impl<const SIZE: usize> Describe for PacketCache<'_, SIZE> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        line(out, depth, "cache", format_args!("of packets"))?;
        line(out, depth + 1, "cached", format_args!("{} units of {SIZE} bytes", self.len()))
    }
}

impl<const SIZE: usize> fmt::Debug for PacketCache<'_, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketCache").field("len", &self.len()).finish_non_exhaustive()
    }
}
