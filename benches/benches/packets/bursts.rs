//! Bursts of packets taken and given back, in our pool.

use core::hint::black_box;

use tripoint::packets::{PacketCache, PacketPool, PacketPoolOptions};
use tripoint::{ArenaVm, ArenaVmOptions};

/// The bytes of a unit.
pub(crate) const SIZE: usize = 2048;
/// The units of a pool.
pub(crate) const COUNT: u32 = 4096;
/// The units that a thread's cache keeps.
pub(crate) const CACHE_SIZE: u32 = 256;

pub(crate) type Pool = PacketPool<ArenaVm, SIZE>;

pub(crate) fn pool() -> Pool {
    let arena = ArenaVm::create(ArenaVmOptions::default());
    let options = PacketPoolOptions { count: COUNT, cache_size: CACHE_SIZE, ..PacketPoolOptions::default() };
    PacketPool::create(arena.unwrap(), options).unwrap()
}

/// Takes bursts and gives them back.
#[inline(never)]
pub(crate) fn bursts<'p, const N: usize, const WRITES: bool>(
    pool: &'p Pool,
    cache: &mut PacketCache<'p, SIZE>,
    rounds: usize,
) {
    let mut burst = pool.burst::<N>();
    for round in 0..rounds {
        assert!(cache.take_burst(&mut burst), "the pool ran out");
        if WRITES {
            for unit in burst.units_mut() {
                *unit.first_chunk_mut().expect("a unit has a word") = (round as u64).to_ne_bytes();
            }
        }
        cache.give_burst(black_box(&mut burst));
    }
}

/// Takes packets one by one, as many as a burst has, and gives them back.
#[inline(never)]
pub(crate) fn boxes<const N: usize, const WRITES: bool>(cache: &mut PacketCache<'_, SIZE>, rounds: usize) {
    let mut packets = [const { None }; N];
    for round in 0..rounds {
        for packet in &mut packets {
            let mut taken = cache.take().expect("the pool ran out");
            if WRITES {
                let word = taken.append(8).expect("a unit has a word");
                word.copy_from_slice(&(round as u64).to_ne_bytes());
            }
            *packet = Some(taken);
        }
        for packet in black_box(&mut packets) {
            cache.give(packet.take().expect("just taken"));
        }
    }
}

/// Runs bursts of `burst`, which is 1, 8 or 32.
pub(crate) fn run<'p>(
    pool: &'p Pool,
    cache: &mut PacketCache<'p, SIZE>,
    rounds: usize,
    burst: usize,
    writes: bool,
) {
    match (burst, writes) {
        (1, false) => bursts::<1, false>(pool, cache, rounds),
        (8, false) => bursts::<8, false>(pool, cache, rounds),
        (32, false) => bursts::<32, false>(pool, cache, rounds),
        (1, true) => bursts::<1, true>(pool, cache, rounds),
        (8, true) => bursts::<8, true>(pool, cache, rounds),
        (32, true) => bursts::<32, true>(pool, cache, rounds),
        _ => panic!("bursts have 1, 8 or 32 packets"),
    }
}

/// As [`run`], one by one.
pub(crate) fn run_boxes(cache: &mut PacketCache<'_, SIZE>, rounds: usize, burst: usize, writes: bool) {
    match (burst, writes) {
        (1, false) => boxes::<1, false>(cache, rounds),
        (8, false) => boxes::<8, false>(cache, rounds),
        (32, false) => boxes::<32, false>(cache, rounds),
        (1, true) => boxes::<1, true>(cache, rounds),
        (8, true) => boxes::<8, true>(cache, rounds),
        (32, true) => boxes::<32, true>(cache, rounds),
        _ => panic!("bursts have 1, 8 or 32 packets"),
    }
}
