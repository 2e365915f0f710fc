//! The ways of packets, and a naive model of who has each unit (design/packets.md `.req.ways`).

use std::collections::BTreeMap;

use tripoint_core::{Arena, Check, CheckLevel};
use tripoint_packets::{
    PacketBox, PacketBurst, PacketCache, PacketCounts, PacketError, PacketPool, PacketRing, Submission,
};

use crate::Choices;

/// Who has a unit that is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Program,
    Ring(usize),
}

/// Does what the bytes say with two caches and two rings of a pool in which nothing is in use, and with a device that writes to
/// what it is given, and lies. After each operation the counts of the pool are those of the model. At the end nothing is lost.
///
/// # Panics
/// If the pool does something wrong.
pub fn walk_packets<A: Arena, const SIZE: usize>(pool: &PacketPool<A, SIZE>, choices: &mut Choices<'_>) {
    let mut walk = Walk {
        pool,
        caches: [pool.cache().unwrap(), pool.cache().unwrap()],
        rings: [pool.ring().unwrap(), pool.ring().unwrap()],
        held: BTreeMap::new(),
        packets: Vec::new(),
        burst: pool.burst(),
        submitted: [Vec::new(), Vec::new()],
        refused: [0; 2],
        content: 0,
    };
    while walk.step(choices).is_some() {
        walk.agree();
    }
    walk.finish();
}

struct Walk<'p, A: Arena, const SIZE: usize> {
    pool: &'p PacketPool<A, SIZE>,
    caches: [PacketCache<'p, SIZE>; 2],
    rings: [PacketRing<'p, SIZE>; 2],
    /// All units that are not free.
    held: BTreeMap<u32, Holder>,
    /// The packets, and what is in them.
    packets: Vec<(PacketBox<'p, SIZE>, Vec<u8>)>,
    burst: PacketBurst<'p, SIZE, 4>,
    /// What each device was given, and the data that it may read.
    submitted: [Vec<(Submission, Option<Vec<u8>>)>; 2],
    refused: [u64; 2],
    content: u8,
}

impl<'p, A: Arena, const SIZE: usize> Walk<'p, A, SIZE> {
    /// Does one operation; `None` at the end of the choices.
    fn step(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let operation = choices.below(16)?;
        let which = choices.which()?;
        match operation {
            0 | 1 => self.take(which),
            2 => self.give(which),
            3 => drop(self.remove_packet(which)),
            4 | 5 => self.fill(which),
            6 => self.submit(which),
            7 | 8 => self.complete(which, choices.which()?),
            9 => self.complete_into(which),
            10 => self.lie(which, choices)?,
            11 => self.move_burst(which),
            12 => self.move_in_burst(which),
            13 => self.caches[which % 2].flush(),
            14 => self.pool.trip_caches(),
            _ => self.reclaim(which),
        }
        Some(())
    }

    /// A unit that was free has a holder.
    fn hold(&mut self, number: u32, holder: Holder) {
        assert_eq!(self.held.insert(number, holder), None, "unit {number} was given out twice");
    }

    fn take(&mut self, which: usize) {
        let packet = match self.caches.get_mut(which % 3) {
            Some(cache) => cache.take(),
            None => self.pool.take(),
        };
        let Some(packet) = packet else {
            let counts = self.pool.counts();
            assert_eq!(counts.depot, 0, "a packet was refused");
            return;
        };
        assert_eq!((packet.len(), packet.headroom()), (0, self.pool.region().headroom() as usize));
        self.hold(packet.number(), Holder::Program);
        self.keep(packet);
    }

    /// Writes to a packet, and keeps it.
    fn keep(&mut self, mut packet: PacketBox<'p, SIZE>) {
        self.content = self.content.wrapping_add(1);
        let room = packet.tailroom().min(usize::from(self.content) + 1);
        packet.append(room).unwrap().fill(self.content);
        let data = packet.to_vec();
        self.packets.push((packet, data));
    }

    /// Takes one of the packets, which the program gives up now. Its data are what was written.
    fn remove_packet(&mut self, which: usize) -> Option<PacketBox<'p, SIZE>> {
        let place = which.checked_rem(self.packets.len())?;
        let (packet, data) = self.packets.swap_remove(place);
        assert_eq!(packet[..], data, "unit {} was changed", packet.number());
        assert_eq!(self.held.remove(&packet.number()), Some(Holder::Program));
        Some(packet)
    }

    fn give(&mut self, which: usize) {
        if let Some(packet) = self.remove_packet(which / 2) {
            self.caches[which % 2].give(packet);
        }
    }

    fn fill(&mut self, which: usize) {
        let (ring, cache, count) = (which % 2, which / 2 % 2, which / 4 % 8);
        let mut given = Vec::new();
        let filled = self.rings[ring].fill(&mut self.caches[cache], count, |unit| given.push(unit));
        assert_eq!(filled, given.len());
        if filled < count {
            assert_eq!((self.caches[cache].len(), self.pool.counts().depot), (0, 0), "units were refused");
        }
        for unit in given {
            self.hold(unit.number, Holder::Ring(ring));
            self.submitted[ring].push((unit, None));
        }
    }

    fn submit(&mut self, which: usize) {
        let Some(packet) = self.remove_packet(which / 2) else { return };
        let (ring, data) = (which % 2, packet.to_vec());
        let unit = if (which / 128).is_multiple_of(2) {
            self.rings[ring].submit(packet).unwrap()
        } else {
            let (mut batch, mut submitted) = (self.pool.batch::<2>(), None);
            batch.push(packet).unwrap();
            assert_eq!(self.rings[ring].submit_batch(&mut batch, 2, |unit| submitted = Some(unit)), 1);
            submitted.unwrap()
        };
        assert_eq!(unit.length as usize, data.len());
        self.hold(unit.number, Holder::Ring(ring));
        self.submitted[ring].push((unit, Some(data)));
    }

    /// A device writes to a unit that it was given, or has read it, and completes it.
    fn complete(&mut self, which: usize, start: usize) {
        let ring = which % 2;
        let Some(place) = (which / 2).checked_rem(self.submitted[ring].len()) else { return };
        let (unit, data) = self.submitted[ring].swap_remove(place);
        let (offset, data) = match data {
            Some(data) => (unit.offset, data),
            None => self.write(unit, start),
        };
        let packet = if (which / 128).is_multiple_of(2) {
            self.rings[ring].complete(offset, data.len() as u32).unwrap()
        } else {
            let mut batch = self.pool.batch::<2>();
            assert_eq!(self.rings[ring].complete_batch(&mut batch, [(offset, data.len() as u32)]), 1);
            batch.pop().unwrap()
        };
        assert_eq!((packet.number(), &packet[..]), (unit.number, &data[..]));
        assert_eq!(self.held.remove(&unit.number), Some(Holder::Ring(ring)));
        self.hold(unit.number, Holder::Program);
        self.keep(packet);
    }

    /// What a device writes to an empty unit, and where.
    fn write(&mut self, unit: Submission, start: usize) -> (u64, Vec<u8>) {
        self.content = self.content.wrapping_add(1);
        let start = start.min(unit.length as usize);
        let data = vec![self.content; (unit.length as usize - start).min(start)];
        let offset = unit.offset + start as u64;
        // SAFETY: the offset and the data lie in the unit, which is with the device.
        unsafe {
            let place = self.pool.region().base().add(offset as usize);
            place.copy_from_nonoverlapping(core::ptr::NonNull::from(&data[..]).cast(), data.len());
        }
        // Data of no bytes at the end of a unit would begin in the next.
        if data.is_empty() { (unit.offset, data) } else { (offset, data) }
    }

    fn complete_into(&mut self, which: usize) {
        let (ring, cache) = (which % 2, which / 2 % 2);
        let Some(place) = (which / 4).checked_rem(self.submitted[ring].len()) else { return };
        let (unit, _) = self.submitted[ring].swap_remove(place);
        self.rings[ring].complete_into(&mut self.caches[cache], unit.offset).unwrap();
        assert_eq!(self.held.remove(&unit.number), Some(Holder::Ring(ring)));
    }

    /// A device names any memory: it gets what the model says.
    fn lie(&mut self, which: usize, choices: &mut Choices<'_>) -> Option<()> {
        let (ring, unit) = (which % 2, SIZE as u64);
        let size = self.pool.region().size() as u64;
        let offset = match which / 2 % 3 {
            0 => choices.word()? as u64,
            _ => choices.below(1 << 16)? as u64 % (size + unit),
        };
        let length = choices.below(2 * SIZE)? as u32;
        let (number, room) = (offset / unit, (unit - offset % unit) as u32);
        let expected = if offset >= size {
            Some(PacketError::Outside { offset, size })
        } else if length > room {
            Some(PacketError::Overrun { offset, length, room })
        } else if self.held.get(&(number as u32)) != Some(&Holder::Ring(ring)) {
            Some(PacketError::NotSubmitted { number: number as u32 })
        } else {
            None
        };
        match (self.rings[ring].complete(offset, length), expected) {
            (Err(found), Some(expected)) => {
                assert_eq!(found, expected);
                self.refused[ring] += 1;
            }
            // It named, by chance, what it has.
            (Ok(packet), None) => {
                self.submitted[ring].retain(|(unit, _)| unit.number != packet.number());
                assert_eq!(self.held.remove(&packet.number()), Some(Holder::Ring(ring)));
                drop(packet);
            }
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
        Some(())
    }

    /// Gives the burst to a cache, or fills it, unless there are too few units.
    fn move_burst(&mut self, which: usize) {
        let (cache, burst) = (&mut self.caches[which % 2], &mut self.burst);
        let before = numbers_of(burst);
        if (which / 2).is_multiple_of(4) {
            cache.give_burst(burst);
            for number in before {
                assert_eq!(self.held.remove(&number), Some(Holder::Program));
            }
            return;
        }
        if !cache.take_burst(burst) {
            assert_eq!(numbers_of(burst), before, "a refused burst was changed");
            assert!(cache.len() + self.pool.counts().depot + before.len() < 4, "a burst was refused");
            return;
        }
        assert_eq!(burst.units_mut().count(), 4);
        for number in numbers_of(burst).into_iter().filter(|number| !before.contains(number)) {
            self.hold(number, Holder::Program);
        }
    }

    /// Moves a packet into the burst, or out of it.
    fn move_in_burst(&mut self, which: usize) {
        if which.is_multiple_of(2) {
            if let Some(packet) = self.burst.pop() {
                self.keep(packet);
            }
        } else if let Some(packet) = self.remove_packet(which / 2) {
            let number = packet.number();
            let is_full = self.burst.len() == 4;
            match self.burst.push(packet) {
                Ok(()) => assert!(!is_full),
                Err(packet) => {
                    assert!(is_full);
                    self.keep(packet);
                }
            }
            self.hold(number, Holder::Program);
        }
    }

    /// A device is stopped.
    fn reclaim(&mut self, which: usize) {
        let ring = which % 2;
        let given = core::mem::take(&mut self.submitted[ring]);
        // SAFETY: the device is this walk, which writes only to what is in `submitted`.
        assert_eq!(unsafe { self.rings[ring].reclaim() }, given.len());
        for (unit, _) in given {
            assert_eq!(self.held.remove(&unit.number), Some(Holder::Ring(ring)));
        }
    }

    /// The counts are those of the model (design/packets.md `.req.count`).
    fn agree(&self) {
        let counts = self.pool.counts();
        let PacketCounts { units, depot, caches, rings, taken, given } = counts;
        let with_rings = self.held.values().filter(|&&holder| holder != Holder::Program).count();
        assert_eq!(units, depot + caches + self.held.len(), "{counts:?}");
        assert_eq!((rings, counts.boxed()), (with_rings, self.held.len() - with_rings), "{counts:?}");
        assert_eq!(taken - given, (units - depot) as u64, "{counts:?}");
        assert_eq!(caches, self.caches.iter().map(PacketCache::len).sum::<usize>());
        for (index, ring) in self.rings.iter().enumerate() {
            assert_eq!(ring.counts().outstanding(), self.submitted[index].len() as u64, "{ring:?}");
            assert_eq!(ring.counts().refused, self.refused[index], "{ring:?}");
        }
        assert_eq!(self.pool.check(CheckLevel::Deep), Ok(()));
    }

    fn finish(mut self) {
        self.reclaim(0);
        self.reclaim(1);
        while let Some(packet) = self.remove_packet(0) {
            drop(packet);
        }
        let Self { pool, caches, burst, .. } = self;
        drop((burst, caches));
        let counts = pool.counts();
        assert_eq!((counts.depot, counts.boxed()), (counts.units, 0), "{counts:?}");
    }
}

/// The numbers of the units of a burst, which stays as it is.
fn numbers_of<const SIZE: usize>(burst: &mut PacketBurst<'_, SIZE, 4>) -> Vec<u32> {
    let mut packets: Vec<_> = core::iter::from_fn(|| burst.pop()).collect();
    packets.reverse();
    let numbers = packets.iter().map(PacketBox::number).collect();
    for packet in packets {
        burst.push(packet).unwrap();
    }
    numbers
}
