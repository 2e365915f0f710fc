//! The ways of packets, with a device that lies, against the naive model.

use tripoint::packets::{PacketPool, PacketPoolOptions};
use tripoint_oracle::{Choices, walk_packets};

use crate::manual::{ARENA_SIZE, GRAIN};
use crate::memory::with_arena;

/// Takes, gives, submits, completes and lies as the bytes say, in a pool of up to 32 units.
///
/// # Panics
/// If a unit is in two places or in none, or a device gets more than the model says.
pub fn packet_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let drawn = (choices.below(32), choices.below(9), choices.below(65));
    let (Some(count), Some(cache_size), Some(headroom)) = drawn else { return };
    with_arena(ARENA_SIZE, GRAIN, |arena| {
        let options = PacketPoolOptions {
            count: count as u32 + 1,
            headroom: headroom as u32,
            caches: 2,
            cache_size: cache_size as u32 + 1,
        };
        let pool = PacketPool::<_, 128>::create(arena, options).unwrap();
        walk_packets(&pool, &mut choices);
    });
}
