//! Chains: packets of several units (design/packets.md `.chain`).

use super::{OPTIONS, Pool, SIZE, with_arena, with_pool};

/// What a device says of the parts of a packet: where they begin, and how long they are.
type Parts = Vec<(u64, u32)>;

#[test]
fn a_chain_goes_from_ring_to_ring_whole() {
    with_pool(|pool| {
        let (mut cache, mut receive, mut transmit) =
            (pool.cache().unwrap(), pool.ring().unwrap(), pool.ring().unwrap());
        let (mut filled, mut chain) = (Vec::new(), pool.chain::<3>());
        receive.fill(&mut cache, 3, |unit| filled.push(unit.offset));
        assert!(receive.complete_chain(&mut chain, [(filled[1], 192), (filled[0], 192), (filled[2], 5)]));
        assert_eq!((chain.len(), chain.parts(), chain.is_empty()), (389, 3, false));
        assert_eq!(format!("{chain:?}"), "PacketChain(389 bytes in 3 of 3 units)");
        (0..).zip(chain.iter_mut()).for_each(|(number, part)| part.fill(number));
        assert_eq!(chain.iter().map(|part| part[0]).collect::<Vec<_>>(), [0, 1, 2]);

        let mut sent = Vec::new();
        let count =
            transmit.submit_chain(&mut chain, |part, goes_on| sent.push((part.offset, part.length, goes_on)));
        assert_eq!((count, chain.len(), chain.is_empty()), (3, 0, true));
        assert_eq!(sent, [(filled[1], 192, true), (filled[0], 192, true), (filled[2], 5, false)]);
        assert_eq!(transmit.complete_all_into(&mut cache, filled), 3);
    });
}

/// A packet is completed as a whole: if one part cannot be had, all other units come back.
#[test]
fn a_chain_that_is_cut_off_gives_its_units_back() {
    let good = |filled: &[u64]| -> Parts { filled.iter().map(|offset| (*offset, 9)).collect() };
    let cuts: [fn(&mut Parts); 5] = [
        |parts| parts[1] = (19 * SIZE as u64, 9), // never submitted
        |parts| parts[2] = parts[0],              // named twice
        |parts| parts[0].1 = SIZE as u32,         // reaches beyond its unit
        |parts| parts[1].1 = 0,                   // has no data
        |parts| parts.push((u64::MAX, 9)),        // is in no unit
    ];
    for (number, cut) in cuts.into_iter().enumerate() {
        with_pool(|pool| {
            let (mut cache, mut ring, mut chain) =
                (pool.cache().unwrap(), pool.ring().unwrap(), pool.chain::<4>());
            let mut filled = Vec::new();
            ring.fill(&mut cache, 3, |unit| filled.push(unit.offset));
            let mut parts = good(&filled);
            cut(&mut parts);
            assert!(!ring.complete_chain(&mut chain, parts), "{number}");
            assert!(chain.is_empty(), "{number}");
            let counts = ring.counts();
            let is_empty_part = number == 3;
            assert_eq!(counts.refused, u64::from(!is_empty_part), "{number}");
            // What the device still has, it completes later.
            let outstanding = counts.outstanding();
            assert_eq!(ring.complete_all_into(&mut cache, filled) as u64, outstanding, "{number}");
            assert_eq!(cache.len() + pool.counts().depot, 20, "{number}");
        });
    }
}

#[test]
fn a_packet_of_more_units_than_the_chain_has_room_for_is_dropped() {
    with_pool(|pool| {
        let (mut cache, mut ring, mut chain) =
            (pool.cache().unwrap(), pool.ring().unwrap(), pool.chain::<2>());
        let mut filled = Vec::new();
        ring.fill(&mut cache, 5, |unit| filled.push((unit.offset, 9)));
        assert!(!ring.complete_chain(&mut chain, filled[..3].iter().copied()));
        assert_eq!((chain.parts(), ring.counts().completed, ring.counts().refused), (0, 3, 0));
        assert!(ring.complete_chain(&mut chain, filled[3..].iter().copied()), "the next one fits");
        cache.give_chain(&mut chain);
        assert_eq!((chain.parts(), cache.len() + pool.counts().depot), (0, 20));
    });
}

#[test]
fn a_chain_has_parts_of_its_pool_with_data() {
    with_arena(|arena| {
        let (pool, stranger) = (Pool::create(arena, OPTIONS).unwrap(), Pool::create(arena, OPTIONS).unwrap());
        let (mut ring, mut cache, mut chain) =
            (pool.ring().unwrap(), pool.cache().unwrap(), stranger.chain::<2>());
        assert!(chain.push(stranger.take().unwrap()).is_err(), "without data");
        let mut own = pool.take().unwrap();
        own.extend_from_slice(b"own").unwrap();
        assert_eq!(chain.push(own).map_err(|part| part.to_vec()), Err(b"own".to_vec()));
        for byte in [1, 2, 3] {
            let mut part = stranger.take().unwrap();
            part.extend_from_slice(&[byte]).unwrap();
            assert_eq!(chain.push(part).is_ok(), byte < 3, "it has room for two");
        }
        assert_eq!(ring.submit_chain(&mut chain, |_, _| panic!("nothing is written")), 0);
        assert_eq!((chain.parts(), chain.pop().unwrap()[0]), (2, 1));
        let mut filled = None;
        ring.fill(&mut cache, 1, |unit| filled = Some(unit.offset));
        assert!(!ring.complete_chain(&mut chain, [(filled.unwrap(), 1)]));
        assert_eq!((chain.parts(), ring.counts().outstanding()), (0, 0), "both went to their pools");
        cache.give_chain(&mut chain);
        assert_eq!(stranger.counts().depot, 20);
    });
}
