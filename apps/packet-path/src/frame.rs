//! From a frame to the payload of its datagram.

use core::ops::Range;

use etherparse::{NetSlice, SlicedPacket, TransportSlice, UdpSlice};

/// Where the payload is in a frame of Ethernet, if it is a UDP datagram to `port`, whole, with a checksum that is right. A tag of
/// a VLAN makes no difference.
pub(crate) fn payload(frame: &[u8], port: u16) -> Option<Range<usize>> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let Some(TransportSlice::Udp(datagram)) = &packet.transport else { return None };
    if datagram.destination_port() != port || packet.is_ip_payload_fragmented() {
        return None;
    }
    if !is_intact(packet.net.as_ref()?, datagram) {
        return None;
    }
    let payload = datagram.payload();
    let start = payload.as_ptr().addr() - frame.as_ptr().addr();
    Some(start..start + payload.len())
}

/// Whether the checksum of a datagram is right, or there is none, which only IPv4 allows.
fn is_intact(net: &NetSlice<'_>, datagram: &UdpSlice<'_>) -> bool {
    let (header, payload) = (datagram.to_header(), datagram.payload());
    let checksum = match net {
        NetSlice::Ipv4(_) if header.checksum == 0 => return true,
        NetSlice::Ipv4(ip) => {
            header.calc_checksum_ipv4_raw(ip.header().source(), ip.header().destination(), payload)
        }
        NetSlice::Ipv6(ip) => {
            header.calc_checksum_ipv6_raw(ip.header().source(), ip.header().destination(), payload)
        }
        NetSlice::Arp(_) => return false,
    };
    checksum == Ok(header.checksum)
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, PacketBuilderStep, UdpHeader, VlanId};
    use proptest::prelude::*;

    use super::*;

    const LINK: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

    fn written(packet: PacketBuilderStep<UdpHeader>, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.write(&mut bytes, payload).unwrap();
        bytes
    }

    fn frame(port: u16, payload: &[u8]) -> Vec<u8> {
        written(PacketBuilder::ethernet2([2; 6], [4; 6]).ipv6(LINK, LINK, 1).udp(9, port), payload)
    }

    fn frame_of_ipv4(port: u16, payload: &[u8]) -> Vec<u8> {
        written(
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 1).udp(9, port),
            payload,
        )
    }

    fn found(frame: &[u8]) -> Option<&[u8]> {
        payload(frame, 7).map(|range| &frame[range])
    }

    #[test]
    fn a_datagram_is_found_behind_its_headers() {
        let bytes = frame(7, b"payload");
        assert_eq!(payload(&bytes, 7).map(|range| &bytes[range]), Some(&b"payload"[..]));
        assert_eq!(payload(&bytes, 8), None);
        // The shortest frames have padding.
        let padded = [&bytes[..], &[0; 20]].concat();
        assert_eq!(payload(&padded, 7).map(|range| &padded[range]), Some(&b"payload"[..]));
        (0..bytes.len()).for_each(|end| assert_eq!(payload(&bytes[..end], 7), None, "{end}"));
    }

    #[test]
    fn a_tag_makes_no_difference() {
        let tag = VlanId::try_new(5).unwrap();
        let tagged = PacketBuilder::ethernet2([2; 6], [4; 6]).single_vlan(tag).ipv6(LINK, LINK, 1).udp(9, 7);
        assert_eq!(found(&written(tagged, b"payload")), Some(&b"payload"[..]));
        let (outer, inner) = (VlanId::try_new(5).unwrap(), VlanId::try_new(6).unwrap());
        let tagged =
            PacketBuilder::ethernet2([2; 6], [4; 6]).double_vlan(outer, inner).ipv6(LINK, LINK, 1).udp(9, 7);
        assert_eq!(found(&written(tagged, b"payload")), Some(&b"payload"[..]));
    }

    /// RFC 768: zero says that there is none; RFC 8200: there has to be one.
    #[test]
    fn only_ipv4_has_datagrams_without_a_checksum() {
        let mut bytes = frame_of_ipv4(7, b"payload");
        assert_eq!(found(&bytes), Some(&b"payload"[..]));
        bytes[40..42].fill(0);
        assert_eq!(found(&bytes), Some(&b"payload"[..]));
        let mut bytes = frame(7, b"payload");
        bytes[60..62].fill(0);
        assert_eq!(found(&bytes), None);
    }

    proptest! {
        /// One wrong byte of the addresses, of the ports or of the payload is never taken for right.
        #[test]
        fn damaged_datagrams_are_found_out(place in 22..72_usize, change in 1..=u8::MAX) {
            let mut bytes = frame(7, b"0123456789");
            bytes[place] ^= change;
            prop_assert_eq!(payload(&bytes, 7), None);
            // The sum of IPv4's own header is the network's to check.
            let mut bytes = frame_of_ipv4(7, b"0123456789");
            let place = place % 26 + 26;
            bytes[place] ^= change;
            let is_gone = (40..42).contains(&place) && bytes[40..42] == [0; 2];
            prop_assert_eq!(payload(&bytes, 7).is_none(), !is_gone);
        }

        #[test]
        fn damaged_frames_have_an_answer(place in 0..72_usize, value: u8) {
            let mut bytes = frame(7, b"0123456789");
            bytes[place] = value;
            if let Some(range) = payload(&bytes, 7) {
                prop_assert!(range.end <= bytes.len());
            }
        }
    }
}
