//! The memory of a burst is not reached after it was given back (design/packets.md `.burst`).

use tripoint_packets::{PacketBurst, PacketCache};

fn misuse<'p>(cache: &mut PacketCache<'p, 2048>, mut burst: PacketBurst<'p, 2048>) {
    let unit = burst.units_mut().next().unwrap();
    cache.give_burst(&mut burst);
    unit.fill(0);
}

fn main() {}
