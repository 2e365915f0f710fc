//! smoltcp's own TCP over the pool, with the kernel's at the other end (design/xdp.md `.smoltcp`).

use core::time::Duration;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use tripoint_xdp::smoltcp::XdpDevice;
use tripoint_xdp::{XdpAttach, XdpFilter, XdpRedirect};
use wire::frames::{FRAME_MAX, FRAME_MIN, bytes_of, frame};
use wire::{INTERFACE, PacketSocket};

use super::{OPTIONS, PATIENCE, PORT, Patience, Pool, SIZE, assert_whole, open, pool, wire};

/// The bytes that are sent, and come back.
const BYTES: usize = 1 << 19;

/// The bytes of either buffer of the socket.
const BUFFER: usize = 1 << 16;

type Xdp = XdpDevice<'static, SIZE>;

/// A stack with the address of this end, and a socket that waits for a peer.
fn stack(device: &mut Xdp) -> (Interface, SocketSet<'static>, SocketHandle) {
    let config = Config::new(EthernetAddress([2, 0, 0, 0, 0, 1]).into());
    let mut interface = Interface::new(config, device, Instant::now());
    let address = IpCidr::new(IpAddress::v6(0xfe80, 0, 0, 0, 0, 0, 0, 1), 64);
    interface.update_ip_addrs(|addresses| addresses.push(address).unwrap());
    let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.listen(PORT).unwrap();
    let mut sockets = SocketSet::new(Vec::new());
    let handle = sockets.add(socket);
    (interface, sockets, handle)
}

/// Sends back what has come.
fn echo(socket: &mut tcp::Socket<'_>) {
    while socket.can_recv() && socket.can_send() {
        let room = socket.send_capacity() - socket.send_queue();
        let mut bytes = [0; 4096];
        let most = room.min(bytes.len());
        let count = socket.recv_slice(&mut bytes[..most]).unwrap();
        assert_eq!(socket.send_slice(&bytes[..count]), Ok(count));
    }
    if socket.state() == tcp::State::CloseWait && socket.recv_queue() == 0 {
        socket.close();
    }
}

/// Sends bytes to an address, and returns what comes back.
fn exchange(mut stream: TcpStream, bytes: &[u8]) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut sender = stream.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            sender.write_all(bytes).unwrap();
            sender.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        back
    })
}

#[test]
fn what_the_kernel_sends_to_smoltcp_comes_back_whole() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(512);
    let socket = open(pool, 0, OPTIONS);
    let redirect = XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Either).unwrap();
    redirect.add(&socket).unwrap();
    let mut device = XdpDevice::new(socket);
    assert_eq!(device.capabilities().max_transmission_unit, FRAME_MAX);
    let (mut interface, mut sockets, handle) = stack(&mut device);

    let bytes: Vec<u8> = (0..BYTES as u64).map(|place| ((place * place) >> 7) as u8).collect();
    let address = far.port_of(&near, PORT);
    let back = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let connect = || TcpStream::connect_timeout(&address.into(), Duration::from_secs(30));
            exchange(far.namespace.within(connect).unwrap(), &bytes)
        });
        let patience = Patience::new();
        while !client.is_finished() {
            interface.poll(Instant::now(), &mut device, &mut sockets);
            echo(sockets.get_mut(handle));
            device.flush().unwrap();
            patience.wait(&device);
        }
        client.join().unwrap()
    });
    assert!(back == bytes, "{} bytes of {BYTES} came back, or others", back.len());
    let report = device.socket().report();
    assert_eq!((report.receive.refused, report.transmit.refused), (0, 0), "{report}");
    assert!(report.transmit.submitted > (BYTES / FRAME_MAX) as u64, "{report}");
    drop(redirect);
    device.close().wait(PATIENCE).unwrap();
    assert_whole(pool);
}

/// A device for the datagrams of these tests, over a pool of its own, and what hands them to it.
fn device(units: u32) -> (&'static Pool<SIZE>, Xdp, XdpRedirect) {
    let pool = pool::<SIZE>(units);
    let socket = open(pool, 0, OPTIONS);
    let redirect = super::redirect(&socket);
    (pool, XdpDevice::new(socket), redirect)
}

/// Sends the frame back that has come, if one has.
fn answer(device: &mut Xdp, now: Instant, sent: &[u8]) -> bool {
    let Some((receive, send)) = device.receive(now) else { return false };
    receive.consume(|came| {
        assert_eq!(came, sent);
        send.consume(came.len(), |bytes| bytes.copy_from_slice(came));
    });
    true
}

#[test]
fn frames_are_received_and_sent_whole() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let (pool, mut device, redirect) = device(256);
    let now = Instant::from_millis(0);
    // Longer than any frame may be: built somewhere, and not sent.
    device.transmit(now).unwrap().consume(SIZE + 1, |bytes| bytes.fill(1));
    device.transmit(now).unwrap().consume(65_535, |bytes| assert_eq!(bytes.len(), 65_535));
    device.flush().unwrap();
    assert_eq!(device.socket().report().transmit.submitted, 0);

    let peer = PacketSocket::open(&far).unwrap();
    for number in 0..500 {
        let sent = frame(number, bytes_of(number, FRAME_MAX));
        assert!(peer.send(&sent));
        let patience = Patience::new();
        while !answer(&mut device, now, &sent) {
            patience.wait(number);
        }
        device.flush().unwrap();
        while peer.receive().is_none_or(|back| back != sent) {
            patience.wait(number);
        }
    }
    drop(redirect);
    device.close().wait(PATIENCE).unwrap();
    assert_whole(pool);
}

/// If the kernel has every unit, frames still come: some are dropped, so that others can be answered.
#[test]
fn a_pool_without_a_free_unit_loses_frames_and_goes_on() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let (pool, mut device, redirect) = device(OPTIONS.receive_entries);
    let now = Instant::from_millis(0);
    assert!(device.transmit(now).is_none() && device.receive(now).is_none());
    let peer = PacketSocket::open(&far).unwrap();
    let (mut came, patience) = (0, Patience::new());
    for sent in (4..=100).step_by(4) {
        // Several at once: the second has the unit of the first.
        (0..4).for_each(|number| assert!(peer.send(&frame(number, FRAME_MIN))));
        while came + device.dropped() < sent {
            if let Some((receive, send)) = device.receive(now) {
                receive.consume(|_| ());
                send.consume(FRAME_MIN, |bytes| bytes.fill(0));
                came += 1;
            }
            patience.wait(sent);
        }
    }
    assert!(came > 10 && device.dropped() > 0, "{came} came, {} dropped", device.dropped());
    device.flush().unwrap();
    let report = device.socket().report();
    assert_eq!(report.transmit.submitted, came, "each that came had a unit for its answer: {report}");
    drop(redirect);
    device.close().wait(PATIENCE).unwrap();
    assert_whole(pool);
}

fn panics(work: impl FnOnce()) -> bool {
    std::panic::catch_unwind(core::panic::AssertUnwindSafe(work)).is_err()
}

/// Tokens that are dropped, leaked, or whose use panics: at most the unit of a frame that was leaked is lost.
#[test]
fn tokens_that_are_not_used_well_lose_no_other_unit() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let (pool, mut device, redirect) = device(256);
    let now = Instant::from_millis(0);
    let peer = PacketSocket::open(&far).unwrap();
    const LEAKED: u32 = 8;
    for number in 0..6 * u64::from(LEAKED) {
        assert!(peer.send(&frame(number, FRAME_MIN)));
        let patience = Patience::new();
        let (receive, send) = loop {
            if let Some(tokens) = device.receive(now) {
                break tokens;
            }
            patience.wait(number);
        };
        match number % 6 {
            0 => drop((receive, send)),
            1 => drop((send, receive)),
            2 => core::mem::forget((receive, send)),
            3 => assert!(panics(|| receive.consume(|_| panic!("reading")))),
            4 => {
                drop(receive);
                assert!(panics(|| send.consume(9, |_| panic!("building"))));
            }
            _ => receive.consume(|came| send.consume(came.len(), |bytes| bytes.copy_from_slice(came))),
        }
    }
    let _ = device.transmit(now);
    device.flush().unwrap();
    assert_eq!(device.socket().report().transmit.submitted, u64::from(LEAKED), "only what was built");
    drop(redirect);
    device.close().wait(PATIENCE).unwrap();
    let counts = pool.counts();
    assert_eq!((counts.boxed() as u32, counts.rings), (LEAKED, 0), "{counts:?}");
}
