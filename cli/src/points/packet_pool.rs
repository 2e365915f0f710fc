//! A pool of packets in the replay, with its caches and rings. The replay has the boxes that the program had, and no device
//! ([design/point-log.md `.packets`](tripoint_telemetry::design::point_log)).

use core::cell::{Cell, RefCell};
use core::mem;
use std::collections::BTreeMap;

use tripoint::packets::{
    PacketBox, PacketCache, PacketCounts, PacketPool, PacketPoolOptions, PacketRing, PacketRingCounts,
};
use tripoint::points::Snapshot;
use tripoint::{Arena, PoolSizes, Result};

use super::borrowed::Borrowed;
use super::hook::Hook;
use super::objects::Impossible;
use super::packet_call::{PacketCall, Unit};
use super::pool::{Call, NO_POINT, Points, Pool};

/// The name of the class.
pub(super) const CLASS: &str = "Packets";

/// The most requests to flush that the replay makes.
const TRIPS_MAX: usize = 1 << 20;

/// The most units that are dropped at once.
const DROPPED_MAX: usize = 1024;

const NOT_OF_PACKETS: Impossible = Impossible("a pool of packets has no such call");
const NO_UNIT: Impossible = Impossible("the program has no such unit");
const NO_CACHE: Impossible = Impossible("the pool has no such cache");
const NO_RING: Impossible = Impossible("the pool has no such ring");
const OTHER_UNITS: Impossible = Impossible("it is a call on one unit, and has none or several");
const OUTSIDE: Impossible = Impossible("the data of its packet lie outside of the unit");
const OTHER_SIZE: Impossible =
    Impossible("units of this size are not replayed: those of 64, 128, and so on to 8192 bytes are");
const OTHER_BURST: Impossible = Impossible(
    "a burst or a batch with room for this many is not replayed: those for 1, 2, 4, and so on to 256 are",
);
const FOREIGN: Impossible = Impossible("a burst of another pool was to be filled: this is not replayed");

struct Packets<'a, A: Arena, const SIZE: usize> {
    /// The units that the program has, by their numbers, which are those of the log.
    held: BTreeMap<u32, PacketBox<'a, SIZE>>,
    /// By their names in the log.
    caches: BTreeMap<u64, PacketCache<'a, SIZE>>,
    rings: BTreeMap<u64, PacketRing<'a, SIZE>>,
    /// The units of the next call.
    units: RefCell<Vec<Unit>>,
    /// How many requests to flush the replay has made.
    trips: Cell<usize>,
    pool: Borrowed<'a, PacketPool<&'a A, SIZE>>,
}

/// Makes a call with a burst or batch that has room for as many as the log says.
macro_rules! with_room {
    ($room:expr, $self:ident.$call:ident($($argument:expr),*)) => {
        match $room {
            1 => $self.$call::<1>($($argument),*),
            2 => $self.$call::<2>($($argument),*),
            4 => $self.$call::<4>($($argument),*),
            8 => $self.$call::<8>($($argument),*),
            16 => $self.$call::<16>($($argument),*),
            32 => $self.$call::<32>($($argument),*),
            64 => $self.$call::<64>($($argument),*),
            128 => $self.$call::<128>($($argument),*),
            256 => $self.$call::<256>($($argument),*),
            _ => Err(OTHER_BURST),
        }
    };
}

impl<'a, A: Arena, const SIZE: usize> Packets<'a, A, SIZE> {
    fn new(pool: PacketPool<&'a A, SIZE>) -> Self {
        Self {
            held: BTreeMap::new(),
            caches: BTreeMap::new(),
            rings: BTreeMap::new(),
            units: RefCell::default(),
            trips: Cell::new(0),
            pool: Borrowed::new(pool),
        }
    }

    fn pool(&self) -> &'a PacketPool<&'a A, SIZE> {
        // SAFETY: boxes, caches and rings, which alone keep the reference, are dropped or forgotten before the pool.
        unsafe { self.pool.get() }
    }

    /// Takes a box of the program's, with data that lie there.
    fn take_held(&mut self, Unit { number, start, length }: Unit) -> Result<PacketBox<'a, SIZE>, Impossible> {
        let mut packet = self.held.remove(&number).ok_or(NO_UNIT)?;
        packet.clear();
        let (start, length) = (start as usize, length as usize);
        match packet.headroom().checked_sub(start) {
            Some(before) => _ = packet.prepend(before).map_err(|_| OUTSIDE)?,
            None => {
                let beyond = start - packet.headroom();
                packet.append(beyond).map_err(|_| OUTSIDE)?;
                packet.trim_front(beyond);
            }
        }
        packet.truncate(length);
        packet.append(length - packet.len()).map_err(|_| OUTSIDE)?;
        Ok(packet)
    }

    fn hold(&mut self, packet: PacketBox<'a, SIZE>) {
        self.held.insert(packet.number(), packet);
    }

    /// Requests flushes, up to as many as the log's cache had observed.
    fn trip(&self, requests: u64) -> Result<(), Impossible> {
        let requests = usize::try_from(requests).ok().filter(|&requests| requests <= TRIPS_MAX);
        let requests = requests.ok_or(Impossible("more flushes were requested than are replayed"))?;
        while self.trips.get() < requests {
            self.pool().trip_caches();
            self.trips.set(self.trips.get() + 1);
        }
        Ok(())
    }

    fn cache(&mut self, cache: u64) -> Result<&mut PacketCache<'a, SIZE>, Impossible> {
        self.caches.get_mut(&cache).ok_or(NO_CACHE)
    }

    fn ring(&mut self, ring: u64) -> Result<&mut PacketRing<'a, SIZE>, Impossible> {
        self.rings.get_mut(&ring).ok_or(NO_RING)
    }

    fn make(&mut self, cache: u64, call: PacketCall, units: &[Unit]) -> Result<(), Impossible> {
        let PacketCall { name, ring, asked, length, trips, error } = call;
        self.trip(trips)?;
        let one = |units: &[Unit]| if let [unit] = *units { Ok(unit) } else { Err(OTHER_UNITS) };
        let word = |word: u64| u32::try_from(word).map_err(|_| OUTSIDE);
        match name.as_str().unwrap_or_default() {
            // What is refused in the replay is noticed, because an event of the log says something else.
            "create cache" => _ = self.pool().cache().map(|made| self.caches.insert(cache, made)),
            "drop cache" => drop(self.caches.remove(&cache).ok_or(NO_CACHE)?),
            "create ring" => _ = self.pool().ring().map(|made| self.rings.insert(ring, made)),
            "take" if cache == 0 => self.pool().take().into_iter().for_each(|packet| self.hold(packet)),
            "take" => self.cache(cache)?.take().into_iter().for_each(|packet| self.hold(packet)),
            "give" => {
                let packet = self.take_held(one(units)?)?;
                self.cache(cache)?.give(packet);
            }
            "drop packets" => self.drop_packets(units)?,
            "take burst" if error.as_str() == Some("Foreign") => return Err(FOREIGN),
            "take burst" => with_room!(asked, self.take_burst(cache, length))?,
            "give burst" => with_room!(asked, self.give_burst(cache, units))?,
            "give batch" => with_room!(asked, self.give_batch(cache, units))?,
            "flush" => self.cache(cache)?.flush(),
            "fill" => {
                let cache = self.caches.get_mut(&cache).ok_or(NO_CACHE)?;
                let ring = self.rings.get_mut(&ring).ok_or(NO_RING)?;
                ring.fill(cache, asked as usize, |_| ());
            }
            "submit" => {
                let packet = self.take_held(one(units)?)?;
                // It is of this pool.
                _ = self.ring(ring)?.submit(packet);
            }
            "complete" => {
                let completed = self.ring(ring)?.complete(asked, word(length)?);
                completed.into_iter().for_each(|packet| self.hold(packet));
            }
            "complete number" => {
                let Unit { number, start, length } = one(units)?;
                let completed = self.ring(ring)?.complete_number(number, start, length);
                completed.into_iter().for_each(|packet| self.hold(packet));
            }
            "reclaim" => {
                let ring = self.ring(ring)?;
                // SAFETY: the replay has no device.
                unsafe { ring.reclaim() };
            }
            _ => return Err(NOT_OF_PACKETS),
        }
        Ok(())
    }

    fn drop_packets(&mut self, units: &[Unit]) -> Result<(), Impossible> {
        if let [unit] = *units {
            self.take_held(unit).map(drop)
        } else {
            let mut burst = self.pool().burst::<DROPPED_MAX>();
            for &unit in units {
                let packet = self.take_held(unit)?;
                burst.push(packet).map_err(|_| OTHER_BURST)?;
            }
            Ok(())
        }
    }

    /// Fills a burst that had some units before: any will do, because what they are has no effect.
    fn take_burst<const N: usize>(&mut self, cache: u64, had: u64) -> Result<(), Impossible> {
        let mut burst = self.pool().burst::<N>();
        for _ in 0..had.min(N as u64) {
            let (_, packet) = self.held.pop_first().ok_or(NO_UNIT)?;
            burst.push(packet).map_err(|_| OTHER_BURST)?;
        }
        self.cache(cache)?.take_burst(&mut burst);
        while let Some(packet) = burst.pop() {
            self.hold(packet);
        }
        Ok(())
    }

    fn give_burst<const N: usize>(&mut self, cache: u64, units: &[Unit]) -> Result<(), Impossible> {
        let mut burst = self.pool().burst::<N>();
        for &unit in units {
            burst.push(self.take_held(unit)?).map_err(|_| OTHER_BURST)?;
        }
        self.cache(cache)?.give_burst(&mut burst);
        Ok(())
    }

    fn give_batch<const N: usize>(&mut self, cache: u64, units: &[Unit]) -> Result<(), Impossible> {
        let mut batch = self.pool().batch::<N>();
        for &unit in units {
            batch.push(self.take_held(unit)?).map_err(|_| OTHER_BURST)?;
        }
        self.cache(cache)?.give_batch(&mut batch);
        Ok(())
    }
}

impl<'a, A: Arena, const SIZE: usize> Pool for Packets<'a, A, SIZE> {
    fn call(&mut self, cache: u64, call: Call) -> Result<(), Impossible> {
        let Call::Packet(call) = call else { return Err(NOT_OF_PACKETS) };
        let units = self.units.take();
        self.make(cache, call, &units)
    }

    fn whole(&self) -> &dyn Points {
        self
    }

    fn pass_unit(&self, unit: Unit) -> Result<(), Impossible> {
        self.units.borrow_mut().push(unit);
        Ok(())
    }
}

impl<A: Arena, const SIZE: usize> Points for Packets<'_, A, SIZE> {
    fn trip(&self, _buffer: u64, _requests: u64) -> Result<(), Impossible> {
        Err(NO_POINT)
    }

    fn sizes_now(&self) -> PoolSizes {
        self.pool().sizes()
    }

    fn class(&self) -> &'static str {
        CLASS
    }

    fn look(&self, _visit: &mut dyn FnMut(u64, Option<Snapshot>, u64, u64)) {}

    fn packets(&self) -> Option<PacketCounts> {
        Some(self.pool().counts())
    }

    fn look_at_rings(&self, visit: &mut dyn FnMut(u64, PacketRingCounts)) {
        self.rings.iter().for_each(|(&ring, packets)| visit(ring, packets.counts()));
    }
}

/// What the program still had, it forgot, or the replay ends before: neither is a call.
impl<A: Arena, const SIZE: usize> Drop for Packets<'_, A, SIZE> {
    fn drop(&mut self) {
        mem::take(&mut self.held).into_values().for_each(mem::forget);
        mem::take(&mut self.caches).into_values().for_each(mem::forget);
    }
}

/// Makes a pool of packets, with the options that the log has.
pub(super) fn make<'a, A: Arena>(
    arena: &'a A,
    hook: &'static Hook,
    [count, headroom, caches, cache_size, size]: [usize; 5],
) -> Result<Result<Box<dyn Pool + 'a>>, Impossible> {
    let word =
        |option| u32::try_from(option).map_err(|_| Impossible("its options are larger than any can be"));
    let [count, headroom] = [word(count)?, word(headroom)?];
    let [caches, cache_size] = [word(caches)?, word(cache_size)?];
    let options = PacketPoolOptions { count, headroom, caches, cache_size };
    match size {
        64 => Ok(make_of::<A, 64>(arena, hook, options)),
        128 => Ok(make_of::<A, 128>(arena, hook, options)),
        256 => Ok(make_of::<A, 256>(arena, hook, options)),
        512 => Ok(make_of::<A, 512>(arena, hook, options)),
        1024 => Ok(make_of::<A, 1024>(arena, hook, options)),
        2048 => Ok(make_of::<A, 2048>(arena, hook, options)),
        4096 => Ok(make_of::<A, 4096>(arena, hook, options)),
        8192 => Ok(make_of::<A, 8192>(arena, hook, options)),
        _ => Err(OTHER_SIZE),
    }
}

fn make_of<'a, A: Arena, const SIZE: usize>(
    arena: &'a A,
    hook: &'static Hook,
    options: PacketPoolOptions,
) -> Result<Box<dyn Pool + 'a>> {
    let pool = PacketPool::<_, SIZE>::create(arena, options)?.logged(hook);
    Ok(Box::new(Packets::new(pool)))
}
