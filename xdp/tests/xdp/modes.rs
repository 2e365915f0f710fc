//! What can be asked of a socket, and what the kernel says that it gave (design/xdp.md `.mode`).

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_packets::{PacketPool, PacketPoolOptions};
use tripoint_xdp::{BusyPoll, XdpAttach, XdpError, XdpFilter, XdpMode, XdpOptions, XdpRedirect, XdpRegion};
use wire::frames::{FRAME_MAX, frame, number};
use wire::{INTERFACE, PacketSocket};

use super::{OPTIONS, PORT, Patience, Pool, SIZE, assert_whole, close, open, pool, redirect, wire};

/// Ten frames come and go with these options. Returns the calls to receive.
fn works(options: XdpOptions, attach: XdpAttach) -> Option<u64> {
    let [near, far] = wire(1)?;
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(256);
    let mut socket = open(pool, 0, options);
    let redirect = XdpRedirect::attach(INTERFACE, XdpFilter::UdpPort(PORT), attach).unwrap();
    redirect.add(&socket).unwrap();
    let (raw, mut batch, patience) = (PacketSocket::open(&far).unwrap(), pool.batch::<32>(), Patience::new());
    for expected in 0..10 {
        assert!(raw.send(&frame(expected, 300)));
        while batch.is_empty() {
            socket.receive(&mut batch);
            patience.wait(socket.report());
        }
        assert_eq!(batch.iter().map(number).collect::<Vec<_>>(), [Some(expected)]);
        assert_eq!(socket.send(&mut batch), 1);
        loop {
            socket.wake().unwrap();
            if raw.receive().and_then(|frame| number(&frame)) == Some(expected) {
                break;
            }
            patience.wait(socket.report());
        }
    }
    drop(batch);
    let report = socket.report();
    assert_eq!((report.mode, report.kernel.lost()), (XdpMode::Copy, 0), "{report}");
    close(socket);
    assert_whole(pool);
    Some(report.receive_calls)
}

#[test]
fn each_option_works() {
    let Some(calls) = works(OPTIONS, XdpAttach::Either) else { return };
    assert_eq!(calls, 0, "this driver asks for no call to receive");
    works(XdpOptions { need_wakeup: false, ..OPTIONS }, XdpAttach::Driver);
    works(XdpOptions { mode: XdpMode::Copy, ..OPTIONS }, XdpAttach::Stack);
    let busy_poll = Some(BusyPoll { microseconds: 20, budget: 64 });
    let calls = works(XdpOptions { busy_poll, ..OPTIONS }, XdpAttach::Driver);
    assert!(calls >= Some(10), "{calls:?}");
    works(XdpOptions { receive_entries: 1, transmit_entries: 1, ..OPTIONS }, XdpAttach::Driver);
}

#[test]
fn zero_copy_is_refused_by_a_driver_without() {
    let Some([near, _far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(256);
    let mut region = XdpRegion::of_static(pool);
    let options = XdpOptions { mode: XdpMode::ZeroCopy, ..OPTIONS };
    let refused = region.open(INTERFACE, 0, options).map(|_| ());
    assert_eq!(refused, Err(XdpError::NoZeroCopy { interface: INTERFACE.to_owned() }));
    assert_whole(pool);
    // Nothing of it is left.
    close(region.open(INTERFACE, 0, OPTIONS).unwrap());
}

/// What the report says, in words.
#[test]
fn a_report_says_what_the_kernel_did() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(256);
    let mut socket = open(pool, 0, OPTIONS);
    let _redirect = redirect(&socket);
    let (raw, mut batch, patience) = (PacketSocket::open(&far).unwrap(), pool.batch::<32>(), Patience::new());
    assert!(raw.send(&frame(0, 300)));
    while batch.is_empty() {
        socket.receive(&mut batch);
        patience.wait(socket.report());
    }
    let text = socket.report().to_string();
    for part in [
        "wire, queue 0, by a copy, frames of up to 1792 bytes",
        "received 1, lost 0",
        "sent 0, 0 of them not completed",
        "63 with the kernel, 63 of them in the fill ring",
        "0 completions refused",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(format!("{socket:?}"), "XdpSocket(wire, queue 0)");
    drop(batch);
    close(socket);
}

#[test]
fn rings_have_a_power_of_two_of_entries() {
    let mut region = XdpRegion::of_static(pool::<SIZE>(16));
    for entries in [0, 3, 1 << 21] {
        for options in [
            XdpOptions { receive_entries: entries, ..OPTIONS },
            XdpOptions { transmit_entries: entries, ..OPTIONS },
        ] {
            let refused = region.open("lo", 0, options).map(|_| ());
            assert_eq!(refused, Err(XdpError::Entries { entries }));
        }
    }
}

/// The kernel leaves free what the pool keeps at the front of a unit: a header fits in front of a frame that came.
#[test]
fn a_header_is_put_in_front_of_a_frame_that_came() {
    const HEADROOM: u32 = 64;
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let options = PacketPoolOptions { count: 128, headroom: HEADROOM, ..PacketPoolOptions::default() };
    let pool: &'static Pool<SIZE> = Box::leak(Box::new(PacketPool::create(arena, options).unwrap()));
    let mut socket = open(pool, 0, OPTIONS);
    assert_eq!(socket.report().frame_max, 2048 - 256 - HEADROOM);
    let _redirect = redirect(&socket);
    let (raw, mut batch, patience) = (PacketSocket::open(&far).unwrap(), pool.batch::<1>(), Patience::new());
    assert!(raw.send(&frame(5, FRAME_MAX)));
    while batch.is_empty() {
        socket.receive(&mut batch);
        patience.wait(socket.report());
    }
    let mut packet = batch.pop().unwrap();
    assert_eq!((packet.headroom(), packet.len()), (256 + HEADROOM as usize, FRAME_MAX));
    packet.truncate(800);
    packet.prepend(300).unwrap().fill(0xee);
    let expected = [&[0xee; 300], &frame(5, FRAME_MAX)[..800]].concat();
    batch.push(packet).unwrap();
    assert_eq!(socket.send(&mut batch), 1);
    socket.wake().unwrap();
    while raw.receive() != Some(expected.clone()) {
        patience.wait(socket.report());
    }
    close(socket);
    assert_whole(pool);
}
