//! From a frame to the payload of its datagram.

use core::ops::Range;

use etherparse::{SlicedPacket, TransportSlice};

/// Where the payload is in a frame of Ethernet, if it is a UDP datagram to `port`, whole.
pub(crate) fn payload(frame: &[u8], port: u16) -> Option<Range<usize>> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let Some(TransportSlice::Udp(datagram)) = &packet.transport else { return None };
    if datagram.destination_port() != port || packet.is_ip_payload_fragmented() {
        return None;
    }
    let payload = datagram.payload();
    let start = payload.as_ptr().addr() - frame.as_ptr().addr();
    Some(start..start + payload.len())
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    fn frame(port: u16, payload: &[u8]) -> Vec<u8> {
        let link = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv6(link, link, 1).udp(9, port);
        let mut bytes = Vec::new();
        builder.write(&mut bytes, payload).unwrap();
        bytes
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

    proptest! {
        #[test]
        fn damaged_frames_have_an_answer(place in 0..60_usize, value: u8) {
            let mut bytes = frame(7, b"0123456789");
            bytes[place] = value;
            if let Some(range) = payload(&bytes, 7) {
                prop_assert!(range.end <= bytes.len());
            }
        }
    }
}
