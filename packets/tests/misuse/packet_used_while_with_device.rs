//! What is with a device can be neither read nor written (design/packets.md `.req.ways`).

use tripoint_packets::{PacketBox, PacketRing};

fn misuse<'p>(ring: &mut PacketRing<'p, 2048>, mut packet: PacketBox<'p, 2048>) {
    let data = packet.append(8).unwrap();
    let _ = ring.submit(packet);
    data.fill(0);
}

fn main() {}
