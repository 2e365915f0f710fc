//! Which frames a program hands over, and which it leaves to the kernel (design/xdp.md `.redirect`).

use tripoint_xdp::{XdpAttach, XdpError, XdpFilter, XdpRedirect};
use wire::frames::{FRAME_MIN, datagram, frame};
use wire::{INTERFACE, PacketSocket};

use super::{OPTIONS, PORT, Patience, SIZE, assert_whole, close, open, pool, wire};

/// A datagram over IPv4 with this many words of options, to a port, as a packet of this protocol and place in it.
fn over_ipv4(port: u16, options: u8, protocol: u8, fragment: u16, body: &[u8]) -> Vec<u8> {
    let header = 20 + 4 * options;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x40 | (header / 4), 0]);
    frame.extend((u16::from(header) + 8 + body.len() as u16).to_be_bytes());
    frame.extend([0, 1]);
    frame.extend(fragment.to_be_bytes());
    frame.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend(vec![1; 4 * usize::from(options)]);
    frame.extend(9_u16.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend((8 + body.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(body);
    frame
}

/// The frame with a tag of a VLAN behind its addresses.
fn tagged(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat()
}

/// The frame with another byte at a place.
fn with(mut frame: Vec<u8>, place: usize, byte: u8) -> Vec<u8> {
    frame[place] = byte;
    frame
}

/// Which of the frames come to a socket behind the filter. A last one, which does, says that the others were decided.
fn passed(filter: XdpFilter, frames: &[Vec<u8>]) -> Option<Vec<bool>> {
    let [near, far] = wire(1)?;
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(128);
    let mut socket = open(pool, 0, OPTIONS);
    let redirect = XdpRedirect::attach(INTERFACE, filter, XdpAttach::Driver).unwrap();
    redirect.add(&socket).unwrap();
    let (raw, mut batch, mut come) =
        (PacketSocket::open(&far).unwrap(), pool.batch::<32>(), vec![false; frames.len()]);
    let last = frame(0, FRAME_MIN);
    let patience = Patience::new();
    let mut is_over = false;
    for sent in frames.iter().chain([&last]) {
        assert!(raw.send(sent));
    }
    while !is_over {
        socket.receive(&mut batch);
        for data in batch.iter() {
            is_over |= data == last;
            // Frames of the kernel's own have no place in the list.
            if let Some(place) = frames.iter().position(|frame| frame == data) {
                assert!(!core::mem::replace(&mut come[place], true), "{place} came twice");
            }
        }
        socket.cache().give_batch(&mut batch);
        patience.wait(&come);
    }
    drop(batch);
    close(socket);
    assert_whole(pool);
    Some(come)
}

#[test]
fn datagrams_to_the_port_are_handed_over_and_no_others() {
    let body = |number: u8| [number; 40];
    let mut wanted = vec![
        datagram(PORT, &body(1)),
        tagged(&datagram(PORT, &body(2))),
        over_ipv4(PORT, 0, 17, 0x4000, &body(3)),
        tagged(&over_ipv4(PORT, 3, 17, 0, &body(4))),
    ];
    wanted.extend((0..=10).map(|options| over_ipv4(PORT, options, 17, 0, &body(30 + options))));
    let [high, low] = PORT.to_be_bytes();
    let others = [
        datagram(PORT + 1, &body(11)),
        datagram(PORT.swap_bytes(), &body(12)),
        tagged(&datagram(PORT - 1, &body(13))),
        tagged(&tagged(&datagram(PORT, &body(14)))),
        // Not UDP: the number of the protocol, or of the next header.
        with(datagram(PORT, &body(15)), 20, 6),
        over_ipv4(PORT, 0, 6, 0, &body(16)),
        over_ipv4(PORT + 1, 2, 17, 0, &body(17)),
        // The first part of a packet, and a later one.
        over_ipv4(PORT, 0, 17, 0x2000, &body(18)),
        over_ipv4(PORT, 0, 17, 5, &body(19)),
        // A header that ends in the middle of an address, which is the port.
        with(with(with(over_ipv4(9, 0, 17, 0, &body(22)), 14, 0x44), 32, high), 33, low),
        // Another type of Ethernet in front of the same bytes.
        with(datagram(PORT, &body(20)), 13, 0xde),
        with(over_ipv4(PORT, 0, 17, 0, &body(21)), 13, 1),
        // The end of the frame is in front of the end of the header of UDP.
        over_ipv4(PORT, 15 - 5, 17, 0, &[])[..14 + 60 + 7].to_vec(),
        datagram(PORT, &[])[..61].to_vec(),
        tagged(&datagram(PORT, &[]))[..65].to_vec(),
    ];
    let frames = [&wanted[..], &others[..]].concat();
    let Some(passed) = passed(XdpFilter::UdpPort(PORT), &frames) else { return };
    let expected: Vec<_> = (0..frames.len()).map(|place| place < wanted.len()).collect();
    assert_eq!(passed, expected);
}

#[test]
fn all_frames_are_handed_over_if_asked_for() {
    let frames = [
        datagram(PORT + 1, &[1; 40]),
        tagged(&datagram(PORT, &[2; 40])),
        with(datagram(9, &[3; 40]), 13, 1),
        vec![9; 60],
    ];
    let Some(passed) = passed(XdpFilter::All, &frames) else { return };
    assert_eq!(passed, [true; 4]);
}

/// A queue without a socket, and a socket of another interface.
#[test]
fn a_program_hands_over_only_to_sockets_that_were_added() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(128);
    let mut socket = open(pool, 0, OPTIONS);
    let elsewhere = XdpRedirect::attach("lo", XdpFilter::All, XdpAttach::Either).unwrap();
    assert_eq!(elsewhere.attached(), XdpAttach::Stack, "lo has no XDP in its driver");
    let refused = XdpError::OtherInterface { program: "lo".to_owned(), socket: INTERFACE.to_owned() };
    assert_eq!(elsewhere.add(&socket), Err(refused));
    let redirect = XdpRedirect::attach(INTERFACE, XdpFilter::UdpPort(PORT), XdpAttach::Either).unwrap();
    let (raw, mut batch, patience) = (PacketSocket::open(&far).unwrap(), pool.batch::<32>(), Patience::new());
    let kernel = PacketSocket::open(&near).unwrap();
    let is = |number: u64| move |data: Vec<u8>| data == frame(number, 100);
    assert!(raw.send(&frame(1, 100)));
    while !kernel.receive().is_some_and(is(1)) {
        patience.wait("the first frame, at the kernel");
    }
    redirect.add(&socket).unwrap();
    assert!(raw.send(&frame(2, 100)));
    while batch.is_empty() {
        socket.receive(&mut batch);
        patience.wait("the second frame");
    }
    assert!(batch.iter().eq([&frame(2, 100)[..]]));
    drop(redirect);
    assert!(raw.send(&frame(3, 100)));
    while !kernel.receive().is_some_and(is(3)) {
        patience.wait("the third frame, at the kernel");
    }
    drop(batch);
    close(socket);
    assert_whole(pool);
}
