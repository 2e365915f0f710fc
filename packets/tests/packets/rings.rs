//! Rings, and devices that lie.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use tripoint_packets::{PacketError, PacketPoolOptions, PacketRingCounts, Submission};

use super::{OPTIONS, Pool, SIZE, reclaim, with_arena, with_pool, with_pool_of};

/// (design/packets.md `.req.ways`)
#[test]
fn a_unit_goes_to_the_device_and_back() {
    with_pool(|pool| {
        let (mut cache, mut ring) = (pool.cache().unwrap(), pool.ring().unwrap());
        let mut device = Vec::new();
        assert_eq!(ring.fill(&mut cache, 10, |unit| device.push(unit)), 10);
        assert_eq!(pool.counts().rings, 10);
        for unit in &device {
            assert_eq!((unit.offset, unit.length), (u64::from(unit.number) * SIZE as u64 + 64, 192));
        }
        let packet = ring.complete(device[3].offset + 32, 100).unwrap();
        assert_eq!((packet.number(), packet.headroom(), packet.len()), (device[3].number, 96, 100));
        let packet = ring.submit(packet).unwrap();
        assert_eq!((packet.offset, packet.length), (device[3].offset + 32, 100));
        for unit in device {
            ring.complete_into(&mut cache, unit.offset).unwrap();
        }
        let counts =
            PacketRingCounts { filled: 10, submitted: 1, completed: 11, ..PacketRingCounts::default() };
        assert_eq!((ring.counts(), ring.counts().outstanding()), (counts, 0));
        assert_eq!(pool.counts().rings, 0);
    });
}

/// (design/packets.md `.req.checked`)
#[test]
fn a_device_that_lies_is_refused() {
    with_pool(|pool| {
        let (mut cache, mut ring, mut other) =
            (pool.cache().unwrap(), pool.ring().unwrap(), pool.ring().unwrap());
        let mut submitted = Vec::new();
        ring.fill(&mut cache, 2, |unit| submitted.push(unit));
        let [Submission { number, offset, .. }, second] = submitted[..] else { panic!("{submitted:?}") };
        let size = 20 * SIZE as u64;
        let mut refused = 0;
        let mut refuses = |error: PacketError, found: Result<_, PacketError>| {
            refused += 1;
            assert_eq!(found.map(|_: tripoint_packets::PacketBox<'_, SIZE>| ()), Err(error));
        };
        refuses(PacketError::Outside { offset: size, size }, ring.complete(size, 0));
        refuses(PacketError::Outside { offset: u64::MAX, size }, ring.complete(u64::MAX, u32::MAX));
        refuses(PacketError::Overrun { offset, length: 193, room: 192 }, ring.complete(offset, 193));
        refuses(
            PacketError::Overrun { offset, length: u32::MAX, room: 192 },
            ring.complete(offset, u32::MAX),
        );
        refuses(PacketError::NotSubmitted { number: 19 }, ring.complete(19 * SIZE as u64, 0));
        let (offset, length, room) = (offset - 64 + SIZE as u64, 0, 0);
        refuses(
            PacketError::Overrun { offset, length, room },
            ring.complete_number(number, SIZE as u32, length),
        );
        let outside = (u64::from(u32::MAX) * SIZE as u64, size);
        refuses(
            PacketError::Outside { offset: outside.0, size: outside.1 },
            ring.complete_number(u32::MAX, 0, 1),
        );
        let packet = ring.complete_number(number, 7, 9).unwrap();
        assert_eq!((packet.headroom(), packet.len()), (7, 9));
        refuses(PacketError::NotSubmitted { number }, ring.complete_number(number, 7, 9));
        assert_eq!((ring.counts().refused, ring.counts().outstanding()), (refused, 1));
        // With another ring.
        let packet = other.submit(packet).unwrap();
        assert_eq!(
            ring.complete_into(&mut cache, packet.offset),
            Err(PacketError::NotSubmitted { number: packet.number })
        );
        assert!(other.complete(second.offset, 0).is_err());
        assert_eq!((reclaim(&mut ring), reclaim(&mut other)), (1, 1));
    });
}

/// A packet without data may begin where the next unit lies. The device says of it what it was told.
#[test]
fn a_unit_without_room_is_completed_and_not_its_neighbour() {
    with_pool(|pool| {
        let mut ring = pool.ring().unwrap();
        let (mut empty, neighbour) = (pool.take().unwrap(), pool.take().unwrap());
        assert_eq!(neighbour.number(), empty.number() + 1);
        empty.append(SIZE - 64).unwrap();
        empty.trim_front(usize::MAX);
        assert_eq!((empty.headroom(), empty.offset()), (SIZE, u64::from(neighbour.number()) * SIZE as u64));
        let (empty, neighbour) = (ring.submit(empty).unwrap(), ring.submit(neighbour).unwrap());
        let completed = ring.complete(empty.offset, empty.length).unwrap();
        assert_eq!((completed.number(), completed.len()), (empty.number, 0));
        ring.complete(neighbour.offset, neighbour.length).unwrap();
    });
    with_pool_of(PacketPoolOptions { headroom: SIZE as u32, ..OPTIONS }, |pool| {
        let (mut cache, mut ring, mut device) = (pool.cache().unwrap(), pool.ring().unwrap(), Vec::new());
        assert_eq!(ring.fill(&mut cache, 20, |unit| device.push(unit)), 20);
        for unit in device {
            assert_eq!(ring.complete(unit.offset, unit.length).unwrap().number(), unit.number);
        }
    });
}

#[test]
fn what_is_of_another_pool_is_not_submitted() {
    with_arena(|arena| {
        let (pool, stranger) = (Pool::create(arena, OPTIONS).unwrap(), Pool::create(arena, OPTIONS).unwrap());
        let (mut ring, mut cache) = (pool.ring().unwrap(), stranger.cache().unwrap());
        assert_eq!(ring.fill(&mut cache, 4, |_| panic!("nothing is written")), 0);
        let packet = ring.submit(stranger.take().unwrap()).unwrap_err();
        assert_eq!((packet.number(), ring.counts()), (0, PacketRingCounts::default()));
        let mut own = pool.cache().unwrap();
        let mut unit = None;
        ring.fill(&mut own, 1, |submission| unit = Some(submission));
        ring.complete_into(&mut cache, unit.unwrap().offset).unwrap();
        assert_eq!((cache.len(), pool.counts().rings), (0, 0), "the unit went to its own pool");
    });
}

/// (design/packets.md `.ring.drop`)
#[test]
fn units_are_reclaimed_or_stay_with_the_device() {
    with_arena(|arena| {
        let pool = Pool::create(arena, OPTIONS).unwrap();
        let (mut cache, mut ring) = (pool.cache().unwrap(), pool.ring().unwrap());
        ring.fill(&mut cache, 5, |_| {});
        ring.submit(pool.take().unwrap()).unwrap();
        assert_eq!((reclaim(&mut ring), reclaim(&mut ring)), (6, 0));
        assert_eq!(ring.counts().outstanding(), 0);
        ring.fill(&mut cache, 3, |_| {});
        drop(ring);
        let mut next = pool.ring().unwrap();
        assert_eq!((reclaim(&mut next), pool.counts().rings), (0, 3), "the device may still write to them");
    });
}

/// More units than one batch of a reclaim.
#[test]
fn a_reclaim_takes_back_any_number() {
    with_arena(|arena| {
        let options = tripoint_packets::PacketPoolOptions { count: 150, ..OPTIONS };
        let pool = Pool::create(arena, options).unwrap();
        let (mut cache, mut ring) = (pool.cache().unwrap(), pool.ring().unwrap());
        ring.fill(&mut cache, 128, |_| {});
        assert_eq!(reclaim(&mut ring), 128);
        drop(cache);
        super::assert_whole(&pool);
    });
}

/// A fill that unwinds loses no unit.
#[test]
fn a_writer_may_unwind() {
    with_pool(|pool| {
        let (mut cache, mut ring) = (pool.cache().unwrap(), pool.ring().unwrap());
        let mut written = 0;
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            ring.fill(&mut cache, 10, |_| {
                written += 1;
                assert!(written < 4, "the device's ring is full");
            })
        }));
        assert!(unwound.is_err());
        assert_eq!((ring.counts().outstanding(), pool.counts().rings), (4, 4));
        assert_eq!(reclaim(&mut ring), 4);
    });
}
