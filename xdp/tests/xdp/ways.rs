//! The ways of frames: received, sent, back, and on to another interface (design/xdp.md `.req.ways`).

use core::sync::atomic::{AtomicBool, Ordering};

use tripoint_packets::PacketBatch;
use tripoint_xdp::{XdpAttach, XdpFilter, XdpMode, XdpOptions, XdpRedirect, XdpRegion, XdpSocket};
use wire::frames::{FRAME_MAX, Seen, bytes_of, frame, number};
use wire::{INTERFACE, PacketSocket};

use super::{OPTIONS, Patience, Pool, SIZE, assert_whole, close, open, pool, redirect, wire};

/// Frames of a test: the rings turn over many times.
const FRAMES: u64 = 20_000;

/// Frames on their way at once: fewer than any ring on the way has room for, and than the units that a kernel has at least.
const AHEAD: u64 = 40;

/// The addresses of Ethernet in a frame of these tests that was sent back.
const ECHOED: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

/// Sends all frames by a packet socket, and calls `take`, which returns how many have come back or arrived, until all have.
pub(super) fn exchange(sender: &PacketSocket, frames: u64, longest: usize, mut take: impl FnMut() -> u64) {
    let (mut sent, mut come, mut patience) = (0, 0, Patience::new());
    while come < frames {
        while sent < frames && sent - come < AHEAD {
            assert!(sender.send(&frame(sent, bytes_of(sent, longest))));
            sent += 1;
        }
        let now = take();
        if now == come {
            patience.wait((come, sent));
        } else {
            (come, patience) = (now, Patience::new());
        }
    }
}

/// What has come to a socket is noted, and given back.
fn note<const SIZE: usize, const N: usize>(
    socket: &mut XdpSocket<'static, SIZE>,
    batch: &mut PacketBatch<'static, SIZE, N>,
    seen: &mut Seen,
) {
    socket.receive(batch);
    batch.iter().for_each(|frame| seen.note(frame));
    socket.cache().give_batch(batch);
}

fn receive_all<const SIZE: usize>(pool: &'static Pool<SIZE>, mtu: u32) {
    let Some([near, far]) = wire(1) else { return };
    [&near, &far].iter().for_each(|end| end.set_mtu(mtu).unwrap());
    near.namespace.enter().unwrap();
    let mut socket = open(pool, 0, OPTIONS);
    let _redirect = redirect(&socket);
    let (mut batch, mut seen) = (pool.batch::<32>(), Seen::new(FRAMES));
    exchange(&PacketSocket::open(&far).unwrap(), FRAMES, mtu as usize + 14, || {
        note(&mut socket, &mut batch, &mut seen);
        seen.count
    });
    let report = socket.report();
    assert_eq!((report.mode, report.queue, &report.interface[..]), (XdpMode::Copy, 0, INTERFACE));
    assert_eq!((report.receive.completed, report.kernel.lost()), (FRAMES, 0), "{report}");
    assert_eq!((report.receive.refused, report.transmit.submitted), (0, 0), "{report}");
    drop(batch);
    assert!(close(socket) > 0);
    assert_whole(pool);
}

#[test]
fn frames_are_received_each_once_and_whole() {
    receive_all(pool::<2048>(256), 1500);
}

#[test]
fn long_frames_fit_into_units_of_4096() {
    receive_all(pool::<4096>(256), 3400);
}

/// What does not come was counted by the kernel: nothing is lost without a word (design/xdp.md `.req.count`).
#[test]
fn what_is_lost_was_counted_by_the_kernel() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(64);
    let (mut socket, sender) = (open(pool, 0, OPTIONS), PacketSocket::open(&far).unwrap());
    let _redirect = redirect(&socket);
    let (mut batch, mut seen) = (pool.batch::<32>(), Seen::new(FRAMES));
    let mut sent = 0_u64;
    while sent < FRAMES {
        let patience = Patience::new();
        // No more than the wire keeps, so that it drops none; far more than there are units.
        let until = (sent + 200).min(FRAMES);
        while sent < until {
            assert!(sender.send(&frame(sent, bytes_of(sent, FRAME_MAX))));
            sent += 1;
        }
        // The program takes its frames only when the others are lost.
        while seen.count + socket.waiting() as u64 + socket.report().kernel.lost() < sent {
            patience.wait((sent, socket.report()));
        }
        while socket.waiting() > 0 {
            note(&mut socket, &mut batch, &mut seen);
        }
    }
    let report = socket.report();
    assert_eq!(seen.count + report.kernel.lost(), FRAMES, "{report}");
    assert_eq!(report.receive.completed, seen.count);
    assert!(report.kernel.receive_dropped > FRAMES / 2 && seen.count >= FRAMES / 200 * 32, "{report}");
    drop(batch);
    close(socket);
    assert_whole(pool);
}

/// Sends back what comes, with its addresses exchanged, until told to stop. What the socket has no room for waits in the batch.
fn echo(socket: &mut XdpSocket<'static, SIZE>, pool: &'static Pool<SIZE>, is_over: &AtomicBool) {
    let mut batch = pool.batch::<32>();
    while !is_over.load(Ordering::Relaxed) {
        if batch.is_empty() {
            socket.receive(&mut batch);
            for frame in batch.iter_mut() {
                let (to, from) = frame[..12].split_at_mut(6);
                to.swap_with_slice(from);
            }
        }
        socket.send(&mut batch);
        socket.wake().unwrap();
        std::thread::yield_now();
    }
    let patience = Patience::new();
    while socket.report().transmit.outstanding() > 0 {
        socket.complete();
        patience.wait(socket.report());
    }
}

#[test]
fn frames_go_back_where_they_came_from() {
    let Some([near, far]) = wire(1) else { return };
    let (pool, is_over, raw) = (pool::<SIZE>(256), AtomicBool::new(false), PacketSocket::open(&far).unwrap());
    let report = std::thread::scope(|scope| {
        let echo = scope.spawn(|| {
            near.namespace.enter().unwrap();
            // Fewer than a batch: most frames wait in it before they are sent.
            let mut socket = open(pool, 0, XdpOptions { transmit_entries: 4, ..OPTIONS });
            let _redirect = redirect(&socket);
            echo(&mut socket, pool, &is_over);
            let report = socket.report();
            close(socket);
            report
        });
        let mut seen = Seen::new(FRAMES);
        let _end = End(&is_over);
        // The first frames are lost until the socket is there.
        wait_for_echo(&raw);
        exchange(&raw, FRAMES, FRAME_MAX, || {
            while let Some(frame) = raw.receive() {
                seen.note(&frame);
                assert!(number(&frame).is_none() || frame[..12] == ECHOED, "{:x?}", &frame[..12]);
            }
            assert!(!echo.is_finished(), "the echo has failed");
            seen.count
        });
        is_over.store(true, Ordering::Relaxed);
        echo.join().unwrap()
    });
    assert_eq!(report.transmit.submitted, report.receive.completed, "{report}");
    assert_eq!((report.transmit.outstanding(), report.kernel.transmit_invalid), (0, 0), "{report}");
    assert_eq!(
        (report.receive.refused, report.transmit.refused, report.kernel.lost()),
        (0, 0, 0),
        "{report}"
    );
    assert!(report.transmit_calls > 0, "a copy needs calls: {report}");
    assert_whole(pool);
}

/// Ends another thread also if this one fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends datagrams without a number until one comes back, and takes all that come back.
fn wait_for_echo(raw: &PacketSocket) {
    let probe = wire::frames::datagram(wire::frames::PORT, b"");
    let is_probe = |frame: &Vec<u8>| frame[..12] == ECHOED && frame[12..] == probe[12..];
    let patience = Patience::new();
    let (mut sent, mut come) = (0, 0);
    while come == 0 {
        assert!(raw.send(&probe));
        sent += 1;
        come += u32::from(raw.receive().as_ref().is_some_and(is_probe));
        patience.wait(sent);
    }
    // Those on their way have no number, and are noted as none of the test's.
}

/// One region for two interfaces, each in a namespace of its own.
#[test]
fn frames_go_on_to_another_interface() {
    let (Some([in_near, in_far]), Some([out_near, out_far])) = (wire(1), wire(1)) else { return };
    let pool = pool::<SIZE>(256);
    let mut region = XdpRegion::of_static(pool);
    in_near.namespace.enter().unwrap();
    let mut from = region.open(INTERFACE, 0, OPTIONS).unwrap();
    let _redirect = redirect(&from);
    out_near.namespace.enter().unwrap();
    let mut to = region.open(INTERFACE, 0, OPTIONS).unwrap();
    assert!(format!("{region:?}").contains("2 sockets"), "{region:?}");
    let (sender, receiver) = (PacketSocket::open(&in_far).unwrap(), PacketSocket::open(&out_far).unwrap());
    let (mut batch, mut seen) = (pool.batch::<32>(), Seen::new(FRAMES));
    exchange(&sender, FRAMES, FRAME_MAX, || {
        from.receive(&mut batch);
        to.send(&mut batch);
        to.wake().unwrap();
        while let Some(frame) = receiver.receive() {
            seen.note(&frame);
        }
        seen.count
    });
    drop(batch);
    assert_eq!(from.report().receive.completed, FRAMES);
    assert_eq!(to.report().transmit.submitted, FRAMES);
    // The first that was opened may be the first that is closed.
    close(from);
    close(to);
    assert_whole(pool);
}

/// Two queues of one interface over one region, each with a thread of its own; frames stay on their queue.
#[test]
fn each_queue_has_its_own_socket_and_thread() {
    const QUEUES: u32 = 2;
    let Some([near, far]) = wire(QUEUES) else { return };
    let (pool, is_over) = (pool::<SIZE>(512), AtomicBool::new(false));
    near.namespace.enter().unwrap();
    let mut region = XdpRegion::of_static(pool);
    let redirect =
        XdpRedirect::attach(INTERFACE, XdpFilter::UdpPort(wire::frames::PORT), XdpAttach::Either).unwrap();
    let sockets = [0, 1].map(|queue| {
        let socket = region.open(INTERFACE, queue, OPTIONS).unwrap();
        redirect.add(&socket).unwrap();
        socket
    });
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        let is_over = &is_over;
        let echoes = sockets.map(|mut socket| {
            scope.spawn(move || {
                echo(&mut socket, pool, is_over);
                let report = socket.report();
                close(socket);
                report
            })
        });
        // Frames that AF_XDP sends by a queue come by the same queue at the other end.
        far.namespace.enter().unwrap();
        let far_pool = self::pool::<SIZE>(256);
        let raw = PacketSocket::open(&far).unwrap();
        let counts = [0, 1].map(|queue| {
            let count = FRAMES / 4 * (u64::from(queue) + 1);
            let mut socket = open(far_pool, queue, OPTIONS);
            let (mut batch, mut seen) = (far_pool.batch::<32>(), Seen::new(FRAMES));
            let (mut sent, mut last, mut patience) = (0, 0, Patience::new());
            while seen.count < count {
                while sent < count && sent - seen.count < AHEAD && batch.room() > 0 {
                    let mut packet = socket.cache().take().unwrap();
                    packet.extend_from_slice(&frame(sent, bytes_of(sent, FRAME_MAX))).unwrap();
                    batch.push(packet).unwrap();
                    sent += 1;
                }
                socket.send(&mut batch);
                socket.wake().unwrap();
                while let Some(frame) = raw.receive() {
                    seen.note(&frame);
                }
                if seen.count > last {
                    (last, patience) = (seen.count, Patience::new());
                }
                patience.wait((queue, seen.count, sent));
            }
            drop(batch);
            close(socket);
            count
        });
        is_over.store(true, Ordering::Relaxed);
        let reports = echoes.map(|echo| echo.join().unwrap());
        for (queue, report) in (0..).zip(&reports) {
            assert_eq!((report.queue, report.receive.completed), (queue, counts[queue as usize]), "{report}");
        }
        assert_whole(far_pool);
    });
    assert_whole(pool);
}
