//! Packets: pools of units that devices write to (design/packets.md).

mod batches;
mod caches;
mod chains;
#[cfg(feature = "alloc")]
mod owned;
mod packets;
mod pools;
mod rings;
mod ways;

use tripoint_core::{ClientArena, ClientArenaOptions};
use tripoint_packets::{PacketPool, PacketPoolOptions, PacketRing};

/// The bytes of a unit in these tests.
const SIZE: usize = 256;

type Pool<'a, 'm> = PacketPool<&'a ClientArena<'m>, SIZE>;

/// Units enough for two full caches and a rest.
const OPTIONS: PacketPoolOptions = PacketPoolOptions { count: 20, headroom: 64, caches: 2, cache_size: 8 };

/// Takes back what is with a ring.
fn reclaim(ring: &mut PacketRing<'_, SIZE>) -> usize {
    // SAFETY: no device exists in these tests: they write to memory only while they hold a box.
    unsafe { ring.reclaim() }
}

/// Runs a test in an arena of its own.
fn with_arena(test: impl FnOnce(&ClientArena<'_>)) {
    let mut memory = Box::new_uninit_slice(64 << 10);
    test(&ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap());
}

/// Runs a test with a pool of these options, and expects everything in the depot afterwards.
fn with_pool_of(options: PacketPoolOptions, test: impl FnOnce(&Pool<'_, '_>)) {
    with_arena(|arena| {
        let pool = PacketPool::create(arena, options).unwrap();
        test(&pool);
        assert_whole(&pool);
    });
}

fn with_pool(test: impl FnOnce(&Pool<'_, '_>)) {
    with_pool_of(OPTIONS, test);
}

/// All units are free, and the counts agree (design/packets.md `.req.count`).
fn assert_whole(pool: &Pool<'_, '_>) {
    use tripoint_core::{Check, CheckLevel};
    let counts = pool.counts();
    assert_eq!((counts.depot, counts.boxed()), (counts.units, 0), "{counts:?}");
    assert_eq!(counts.taken, counts.given, "{counts:?}");
    assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
}
