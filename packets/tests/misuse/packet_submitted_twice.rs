//! A packet is given to a device once: submitting consumes it (design/packets.md `.req.ways`).

use tripoint_packets::{PacketBox, PacketRing};

fn misuse<'p>(ring: &mut PacketRing<'p, 2048>, packet: PacketBox<'p, 2048>) {
    let _ = ring.submit(packet);
    let _ = ring.submit(packet);
}

fn main() {}
