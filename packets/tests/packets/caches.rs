//! Caches and bursts.

use tripoint_core::Error;
use tripoint_packets::PacketPoolOptions;

use super::{OPTIONS, Pool, with_arena, with_pool, with_pool_of};

/// (design/packets.md `.cache`)
#[test]
fn a_cache_takes_half_of_what_it_keeps_and_gives_the_older_half_back() {
    with_pool(|pool| {
        let mut cache = pool.cache().unwrap();
        assert!(cache.is_empty());
        let first = cache.take().unwrap();
        assert_eq!((first.number(), cache.len(), pool.counts().depot), (0, 3, 16));
        let mut packets = vec![first];
        packets.extend(core::iter::from_fn(|| cache.take()));
        assert_eq!((packets.len(), pool.counts().depot, pool.counts().boxed()), (20, 0, 20));
        let order: Vec<_> = packets.iter().map(|packet| packet.number()).collect();
        for packet in packets {
            cache.give(packet);
            assert!(cache.len() <= 8);
        }
        assert_eq!((cache.len(), pool.counts().depot), (8, 12));
        let newest = cache.take().unwrap();
        assert_eq!(newest.number(), *order.last().unwrap(), "the unit given back last is taken first");
        cache.give(newest);
        cache.flush();
        assert!(cache.is_empty());
    });
}

#[test]
fn caches_are_as_many_as_the_options_say() {
    with_pool(|pool| {
        let (one, two) = (pool.cache().unwrap(), pool.cache().unwrap());
        assert!(matches!(pool.cache(), Err(Error::Parameter(why)) if why.contains("in use")));
        drop(one);
        let mut three = pool.cache().unwrap();
        let packet = three.take().unwrap();
        drop((two, three));
        assert_eq!(pool.counts().caches, 0, "what a cache keeps goes back when it is dropped");
        drop(packet);
    });
    with_pool_of(PacketPoolOptions { caches: 0, ..OPTIONS }, |pool| {
        assert!(pool.cache().is_err() && pool.take().is_some());
    });
}

/// (design/packets.md `.burst`)
#[test]
fn bursts_are_filled_or_left() {
    with_pool(|pool| {
        let mut cache = pool.cache().unwrap();
        let (mut six, mut eight) = (pool.burst::<6>(), pool.burst::<8>());
        assert!(cache.take_burst(&mut six) && cache.take_burst(&mut six), "a full burst stays full");
        assert_eq!((six.len(), cache.len(), pool.counts().boxed()), (6, 6, 6));
        let packet = six.pop().unwrap();
        assert_eq!((packet.headroom(), packet.len()), (64, 0));
        six.push(packet).unwrap();
        assert!(cache.take_burst(&mut eight));
        assert_eq!(cache.len() + pool.counts().depot, 6);
        let (mut seven, mut more) = (pool.burst::<7>(), pool.burst::<32>());
        assert!(!cache.take_burst(&mut seven) && !cache.take_burst(&mut more));
        assert!(seven.is_empty() && more.is_empty());
        assert_eq!(cache.len() + pool.counts().depot, 6, "a refused burst loses nothing");
        // One that has some units already takes the rest.
        seven.push(six.pop().unwrap()).unwrap();
        assert!(cache.take_burst(&mut seven));
        assert_eq!((seven.len(), cache.len(), pool.counts().depot), (7, 0, 0));
        cache.give_burst(&mut six);
        cache.give_burst(&mut seven);
        cache.give_burst(&mut eight);
        assert!(six.is_empty() && seven.is_empty() && eight.is_empty());
        assert_eq!(pool.counts().boxed(), 0);
        // Larger than what the cache can keep.
        let mut large = pool.burst::<20>();
        assert!(cache.take_burst(&mut large));
        assert_eq!((large.len(), cache.len(), pool.counts().depot), (20, 0, 0));
        let mut numbers: Vec<_> = core::iter::from_fn(|| large.pop()).collect();
        numbers.sort_by_key(|packet| packet.number());
        assert!(numbers.iter().map(|packet| packet.number()).eq(0..20), "each unit is there once");
        for packet in numbers {
            large.push(packet).unwrap();
        }
        cache.give_burst(&mut large);
        assert_eq!((large.len(), pool.counts().depot), (0, 20));
        assert!(cache.take_burst(&mut pool.burst::<0>()));
    });
}

#[test]
fn a_burst_holds_as_many_as_it_says() {
    with_pool(|pool| {
        let mut burst = pool.burst::<2>();
        assert!(burst.is_empty() && burst.pop().is_none());
        burst.push(pool.take().unwrap()).unwrap();
        burst.push(pool.take().unwrap()).unwrap();
        let refused = burst.push(pool.take().unwrap()).unwrap_err();
        assert_eq!((refused.number(), burst.len()), (2, 2));
        assert!(format!("{burst:?}").contains("2 of 2"));
        let last = burst.pop().unwrap();
        assert_eq!((last.number(), burst.len()), (1, 1));
        let mut cache = pool.cache().unwrap();
        cache.give_burst(&mut burst);
        assert_eq!(cache.len(), 1, "only what is in a burst is kept");
        drop((last, refused));
    });
}

/// A cache of one thread takes, and that of another gives back.
#[test]
fn units_pass_between_threads() {
    with_pool_of(PacketPoolOptions { count: 64, ..OPTIONS }, |pool| {
        let (send, receive) = std::sync::mpsc::sync_channel(4);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut cache = pool.cache().unwrap();
                for round in 0..200_u32 {
                    let mut taken = None;
                    tripoint_oracle::wait_until(|| {
                        taken = cache.take();
                        taken.is_some()
                    });
                    let mut packet = taken.unwrap();
                    packet.extend_from_slice(&round.to_le_bytes()).unwrap();
                    send.send(packet).unwrap();
                }
            });
            scope.spawn(move || {
                let mut cache = pool.cache().unwrap();
                for (round, packet) in receive.iter().enumerate() {
                    assert_eq!(packet[..], (round as u32).to_le_bytes());
                    cache.give(packet);
                }
            });
        });
    });
}

/// (design/packets.md `.req.trip`)
#[test]
fn a_trip_has_every_cache_give_back_what_it_keeps() {
    with_pool(|pool| {
        let (mut one, mut two) = (pool.cache().unwrap(), pool.cache().unwrap());
        let held = [(); 12].map(|()| one.take().unwrap());
        let packets = [(); 6].map(|()| two.take().unwrap());
        let [packet, rest @ ..] = packets;
        rest.into_iter().for_each(|packet| two.give(packet));
        assert!(pool.take().is_none() && one.take().is_none(), "the other cache has {}", two.len());
        let before = two.len();
        assert_ne!(before, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| pool.trip_caches());
        });
        two.give(packet);
        assert_eq!((two.len(), pool.counts().depot), (1, before), "it gave back first");
        assert!(one.take().is_some());
        let again = two.take().unwrap();
        two.give(again);
        assert_ne!(two.len(), 0, "a trip is answered once");
        drop(held);
    });
}

/// A cache that was made after a trip does not answer it.
#[test]
fn trips_are_for_the_caches_that_there_are() {
    with_pool(|pool| {
        pool.trip_caches();
        let mut cache = pool.cache().unwrap();
        drop(cache.take());
        let before = cache.len();
        let packet = cache.take().unwrap();
        assert_eq!(cache.len(), before - 1);
        drop(packet);
    });
}

/// What belongs to another pool goes there.
#[test]
fn packets_of_another_pool_are_not_kept() {
    with_arena(|arena| {
        let (pool, other) = (Pool::create(arena, OPTIONS).unwrap(), Pool::create(arena, OPTIONS).unwrap());
        let (mut cache, mut burst) = (pool.cache().unwrap(), pool.burst::<4>());
        cache.give(other.take().unwrap());
        let mut others = other.burst::<4>();
        assert!(!cache.take_burst(&mut others) && other.cache().unwrap().take_burst(&mut others));
        cache.flush();
        cache.give_burst(&mut others);
        assert!(cache.is_empty() && others.is_empty());
        assert!(burst.push(other.take().unwrap()).is_err());
        assert_eq!((other.counts().depot, pool.counts().depot), (20, 20));
    });
}
