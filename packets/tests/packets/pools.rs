//! Creating pools, and the region.

use tripoint_core::{Arena, ClientArena, ClientArenaOptions, Describe, Error};
use tripoint_packets::{PacketError, PacketPool, PacketPoolOptions};

use super::{OPTIONS, Pool, SIZE, reclaim, with_arena, with_pool};

/// (design/packets.md `.req.region`)
#[test]
fn the_region_is_one_range_of_zeros() {
    with_pool(|pool| {
        let region = pool.region();
        assert_eq!((region.count(), region.unit_size(), region.size()), (20, SIZE, 20 * SIZE));
        assert_eq!(region.headroom(), 64);
        assert_eq!(
            region.base().addr().get() % SIZE,
            0,
            "units are aligned to the power of two in their size"
        );
        let mut packets: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
        packets.sort_by_key(|packet| packet.offset());
        for (number, packet) in packets.iter_mut().enumerate() {
            assert_eq!((packet.number() as usize, packet.offset() as usize), (number, number * SIZE + 64));
            assert!(packet.append(SIZE - 64).unwrap().iter().all(|&byte| byte == 0), "unit {number}");
            assert_eq!(packet.as_ptr().addr(), region.base().addr().get() + number * SIZE + 64);
        }
    });
}

/// (design/packets.md `.req.checked`)
#[test]
fn numbers_and_offsets_are_converted_both_ways() {
    with_pool(|pool| {
        let region = pool.region();
        let (unit, size) = (SIZE as u64, 20 * SIZE as u64);
        for number in 0..20 {
            let offset = region.offset_of(number).unwrap();
            assert_eq!((offset, region.number_of(offset)), (u64::from(number) * unit, Ok(number)));
            assert_eq!(region.locate(offset + 100, 156), Ok((number, 100)));
            assert_eq!(
                region.locate(offset + 100, 157),
                Err(PacketError::Overrun { offset: offset + 100, length: 157, room: 156 })
            );
        }
        assert_eq!((region.offset_of(20), region.offset_of(u32::MAX)), (None, None));
        for offset in [size, size + 1, u64::MAX, 1 << 32, 1 << 63] {
            assert_eq!(region.locate(offset, 0), Err(PacketError::Outside { offset, size }));
            assert_eq!(region.number_of(offset), Err(PacketError::Outside { offset, size }));
        }
        assert_eq!(region.number_of(unit + 1), Err(PacketError::Unaligned { offset: unit + 1, unit: SIZE }));
        let last = size - 1;
        assert_eq!(region.locate(last, 1), Ok((19, 255)));
        assert_eq!(
            region.locate(last, u32::MAX),
            Err(PacketError::Overrun { offset: last, length: u32::MAX, room: 1 })
        );
    });
}

#[test]
fn wrong_options_are_refused() {
    with_arena(|arena| {
        let refused = |options| match Pool::create(arena, options) {
            Err(Error::Parameter(why)) => why,
            other => panic!("{options:?}: {other:?}"),
        };
        assert!(refused(PacketPoolOptions { count: 0, ..OPTIONS }).contains("at least one unit"));
        assert!(refused(PacketPoolOptions { cache_size: 0, ..OPTIONS }).contains("keep at least one"));
        assert!(refused(PacketPoolOptions { headroom: SIZE as u32 + 1, ..OPTIONS }).contains("headroom"));
        let committed = arena.sizes().spare;
        let caches = PacketPoolOptions { caches: u32::MAX, cache_size: u32::MAX, ..OPTIONS };
        assert!(matches!(Pool::create(arena, caches), Err(Error::Parameter(_) | Error::Limit)));
        let units = PacketPoolOptions { count: u32::MAX, ..OPTIONS };
        assert!(matches!(Pool::create(arena, units), Err(Error::Parameter(_) | Error::Limit)));
        assert_eq!(arena.sizes().spare, committed, "a refused pool keeps no tracts");
        let whole = PacketPoolOptions { headroom: SIZE as u32, ..OPTIONS };
        let packet_of =
            |pool: &Pool<'_, '_>| pool.take().map(|packet| (packet.headroom(), packet.tailroom()));
        assert_eq!(packet_of(&Pool::create(arena, whole).unwrap()), Some((SIZE, 0)));
    });
}

/// A pool takes all its memory at once (design/packets.md `.req.constant`).
#[test]
fn a_pool_takes_its_memory_once() {
    with_arena(|arena| {
        let pool = Pool::create(arena, OPTIONS).unwrap();
        arena.freeze();
        let (total, spare) = (pool.sizes().total, arena.sizes().spare);
        let mut cache = pool.cache().unwrap();
        let mut ring = pool.ring().unwrap();
        assert_eq!(ring.fill(&mut cache, 100, |_| {}), 20);
        assert!(cache.take().is_none() && pool.take().is_none());
        assert_eq!(reclaim(&mut ring), 20);
        assert_eq!((pool.sizes().total, arena.sizes().spare), (total, spare));
        assert_eq!(arena.counts().growth_refused.get(), 0, "it never asked");
    });
}

/// Units aligned above the grain.
#[test]
fn units_are_aligned_in_an_arena_of_small_grains() {
    let mut memory = Box::new_uninit_slice(64 << 10);
    let options = ClientArenaOptions { grain: Some(64), ..ClientArenaOptions::default() };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let options = PacketPoolOptions { count: 4, headroom: 0, caches: 1, cache_size: 1 };
    let pages = PacketPool::<_, 8192>::create(&arena, options).unwrap();
    assert_eq!(pages.region().base().addr().get() % 4096, 0);
    let odd = PacketPool::<_, 192>::create(&arena, options).unwrap();
    assert_eq!(odd.region().base().addr().get() % 64, 0);
    assert_eq!(odd.take().unwrap().offset() % 192, 0);
}

#[test]
fn a_pool_describes_itself() {
    with_pool(|pool| {
        let mut cache = pool.cache().unwrap();
        let mut ring = pool.ring().unwrap();
        let packet = cache.take().unwrap();
        assert_eq!(ring.fill(&mut cache, 2, |_| {}), 2);
        let mut text = String::new();
        pool.describe(&mut text, 0).unwrap();
        for part in ["Packets #", "20 of 256 bytes", "16 units, and 1 in caches", "2 with rings, 1 boxed"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        text.clear();
        cache.describe(&mut text, 0).unwrap();
        assert!(text.contains("1 units of 256 bytes"), "{text}");
        assert!(format!("{packet:?} {ring:?} {cache:?}").contains("PacketBox(unit 0, 0 bytes at 64)"));
        drop(packet);
        assert_eq!(reclaim(&mut ring), 2);
    });
}
