//! A unit has one owner (design/packets.md `.req.ways`).

use tripoint_packets::{PacketBox, PacketBurst, PacketCache, PacketRing};

fn copy<T: Clone>() {}

fn misuse() {
    copy::<PacketBox<2048>>();
    copy::<PacketBurst<2048>>();
    copy::<PacketCache<2048>>();
    copy::<PacketRing<2048>>();
}

fn main() {}
