//! Frames that lie in several units: an MTU of 9000 with units of 2048 (design/xdp.md `.chains`).

use tripoint_packets::PacketChain;
use tripoint_xdp::{XdpAttach, XdpError, XdpFilter, XdpOptions, XdpRedirect, XdpRegion, XdpSocket};
use wire::frames::{PORT, Seen, bytes_of, frame};
use wire::{End, INTERFACE, PacketSocket};

use super::ways::exchange;
use super::{OPTIONS, Patience, Pool, SIZE, assert_whole, close, pool, wire};

/// Frames of a test: the rings turn over many times.
const FRAMES: u64 = 5_000;

const MTU: u32 = 9000;

/// The bytes of the longest frame.
const FRAME_MAX: usize = MTU as usize + 14;

/// The units in which the longest frame lies: the kernel keeps 256 bytes of each.
const PARTS: usize = FRAME_MAX.div_ceil(SIZE - 256);

/// Room for all frames on their way at once.
const LARGE: XdpOptions = XdpOptions { receive_entries: 512, transmit_entries: 512, ..OPTIONS };

type Chain<const N: usize> = PacketChain<'static, SIZE, N>;

/// A wire with this MTU.
fn long_wire() -> Option<[End; 2]> {
    let ends = wire(1)?;
    ends.iter().for_each(|end| end.set_mtu(MTU).unwrap());
    Some(ends)
}

fn open(pool: &'static Pool<SIZE>, options: XdpOptions) -> XdpSocket<'static, SIZE> {
    XdpRegion::of_static(pool).with_chains().open(INTERFACE, 0, options).unwrap()
}

fn redirect(socket: &XdpSocket<'_, SIZE>) -> XdpRedirect {
    let redirect =
        XdpRedirect::attach_with_chains(INTERFACE, XdpFilter::UdpPort(PORT), XdpAttach::Driver).unwrap();
    redirect.add(socket).unwrap();
    redirect
}

/// Notes a frame, wherever its parts lie.
fn note<const N: usize>(seen: &mut Seen, chain: &Chain<N>) {
    seen.note(&chain.iter().collect::<Vec<_>>().concat());
}

#[test]
fn long_frames_are_received_each_once_and_whole() {
    let Some([near, far]) = long_wire() else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(1024);
    let mut socket = open(pool, LARGE);
    let _redirect = redirect(&socket);
    let (mut chain, mut seen, mut longest) = (pool.chain::<PARTS>(), Seen::new(FRAMES), 0);
    exchange(&PacketSocket::open(&far).unwrap(), FRAMES, FRAME_MAX, || {
        while socket.receive_chain(&mut chain) {
            longest = longest.max(chain.parts());
            note(&mut seen, &chain);
        }
        seen.count
    });
    assert_eq!(longest, PARTS);
    let report = socket.report();
    assert_eq!((report.kernel.lost(), report.chains_dropped, report.receive.refused), (0, 0, 0), "{report}");
    assert!(report.receive.completed > 2 * FRAMES, "most have several parts: {report}");
    drop(chain);
    close(socket);
    assert_whole(pool);
}

/// What came in parts is sent in parts, and the other end has it as one.
#[test]
fn long_frames_go_on_to_another_interface() {
    let (Some([in_near, in_far]), Some([out_near, out_far])) = (long_wire(), long_wire()) else { return };
    let pool = pool::<SIZE>(2048);
    let mut region = XdpRegion::of_static(pool).with_chains();
    in_near.namespace.enter().unwrap();
    let mut from = region.open(INTERFACE, 0, LARGE).unwrap();
    let _redirect = redirect(&from);
    out_near.namespace.enter().unwrap();
    // Places for one or two frames.
    let mut to = region.open(INTERFACE, 0, XdpOptions { transmit_entries: 8, ..LARGE }).unwrap();
    let (sender, receiver) = (PacketSocket::open(&in_far).unwrap(), PacketSocket::open(&out_far).unwrap());
    let (mut chain, mut seen) = (pool.chain::<PARTS>(), Seen::new(FRAMES));
    exchange(&sender, FRAMES, FRAME_MAX, || {
        if !chain.is_empty() || from.receive_chain(&mut chain) {
            to.send_chain(&mut chain).unwrap();
            to.wake().unwrap();
        }
        while let Some(frame) = receiver.receive() {
            seen.note(&frame);
        }
        seen.count
    });
    let patience = Patience::new();
    while to.report().transmit.outstanding() > 0 {
        to.complete();
        patience.wait(to.report());
    }
    let (from_report, to_report) = (from.report(), to.report());
    assert_eq!(to_report.transmit.submitted, from_report.receive.completed, "{from_report}{to_report}");
    assert_eq!((to_report.kernel.transmit_invalid, to_report.transmit.refused), (0, 0), "{to_report}");
    drop(chain);
    close(from);
    close(to);
    assert_whole(pool);
}

/// Sends frames in bursts, which `take` takes once all have come or are counted as lost by the kernel. Returns how many were lost.
fn overrun(
    pool: &'static Pool<SIZE>,
    ends: &[End; 2],
    burst: u64,
    mut take: impl FnMut(&mut XdpSocket<'static, SIZE>, &mut Seen),
) -> (u64, u64) {
    let [near, far] = ends;
    near.namespace.enter().unwrap();
    let (mut socket, sender) = (open(pool, LARGE), PacketSocket::open(far).unwrap());
    let _redirect = redirect(&socket);
    let (mut sent, mut seen) = (0, Seen::new(FRAMES));
    while sent < FRAMES {
        let until = (sent + burst).min(FRAMES);
        while sent < until {
            assert!(sender.send(&frame(sent, bytes_of(sent, FRAME_MAX))));
            sent += 1;
        }
        let patience = Patience::new();
        while seen.count + socket.report().chains_dropped + socket.report().kernel.lost() < sent {
            take(&mut socket, &mut seen);
            patience.wait((sent, socket.report()));
        }
    }
    let report = socket.report();
    assert_eq!(seen.count + report.chains_dropped + report.kernel.lost(), FRAMES, "{report}");
    close(socket);
    (report.kernel.lost(), report.chains_dropped)
}

/// A frame has all its units or none: what a pool has no units for is in the kernel's counters.
#[test]
fn long_frames_that_find_too_few_units_are_counted_by_the_kernel() {
    let Some(ends) = long_wire() else { return };
    let pool = pool::<SIZE>(64);
    let mut chain = pool.chain::<PARTS>();
    let (lost, dropped) = overrun(pool, &ends, 100, |socket, seen| {
        while socket.receive_chain(&mut chain) {
            note(seen, &chain);
        }
    });
    assert!(lost > 0 && dropped == 0, "{lost}, {dropped}");
    drop(chain);
    assert_whole(pool);
}

/// A frame of too many parts is dropped as a whole, and the next one is received.
#[test]
fn long_frames_that_a_chain_has_no_room_for_are_counted() {
    let Some(ends) = long_wire() else { return };
    let pool = pool::<SIZE>(1024);
    let mut chain = pool.chain::<2>();
    let (lost, dropped) = overrun(pool, &ends, 40, |socket, seen| {
        while socket.receive_chain(&mut chain) {
            note(seen, &chain);
        }
    });
    let too_long = (0..FRAMES).filter(|number| bytes_of(*number, FRAME_MAX) > 2 * (SIZE - 256)).count();
    assert_eq!((lost, dropped), (0, too_long as u64));
    drop(chain);
    assert_whole(pool);
}

/// A batch has frames of one unit each, and no part of another is taken for one.
#[test]
fn a_batch_receives_no_part_of_a_long_frame() {
    let Some(ends) = long_wire() else { return };
    let pool = pool::<SIZE>(1024);
    let mut batch = pool.batch::<8>();
    let (lost, dropped) = overrun(pool, &ends, 40, |socket, seen| {
        while socket.receive(&mut batch) > 0 {
            batch.iter().for_each(|frame| seen.note(frame));
            socket.cache().give_batch(&mut batch);
        }
    });
    let too_long = (0..FRAMES).filter(|number| bytes_of(*number, FRAME_MAX) > SIZE - 256).count();
    assert_eq!((lost, dropped), (0, too_long as u64));
    drop(batch);
    assert_whole(pool);
}

/// It would take none of them, so the call ends with the first.
#[test]
fn a_batch_of_another_pool_does_not_drop_all_that_came() {
    let Some([near, far]) = long_wire() else { return };
    near.namespace.enter().unwrap();
    let (pool, other) = (pool::<SIZE>(1024), pool::<SIZE>(64));
    let (mut socket, sender) = (open(pool, LARGE), PacketSocket::open(&far).unwrap());
    let _redirect = redirect(&socket);
    for number in 0..10 {
        assert!(sender.send(&frame(number, 500)));
    }
    let patience = Patience::new();
    while socket.waiting() < 10 {
        patience.wait(socket.report());
    }
    let (mut foreign, mut batch) = (other.batch::<8>(), pool.batch::<16>());
    assert_eq!((socket.receive(&mut foreign), socket.waiting()), (0, 9));
    assert_eq!((socket.receive(&mut batch), socket.report().chains_dropped), (9, 1));
    drop((foreign, batch));
    close(socket);
    assert_whole(pool);
    assert_whole(other);
}

/// A chain with these data, in parts of up to 1,700 bytes.
fn chain_of(pool: &'static Pool<SIZE>, data: &[u8]) -> Chain<PARTS> {
    let mut chain = pool.chain();
    for data in data.chunks(1700) {
        let mut part = pool.take().unwrap();
        part.extend_from_slice(data).unwrap();
        chain.push(part).unwrap();
    }
    chain
}

#[test]
fn a_chain_waits_until_the_ring_has_room_for_all_of_it() {
    let Some([near, far]) = long_wire() else { return };
    near.namespace.enter().unwrap();
    let (pool, receiver) = (pool::<SIZE>(256), PacketSocket::open(&far).unwrap());
    let mut socket = open(pool, XdpOptions { transmit_entries: 8, ..OPTIONS });
    let (mut first, mut second) = (chain_of(pool, &frame(0, 8000)), chain_of(pool, &frame(1, 8000)));
    assert_eq!((first.parts(), first.len()), (5, 8000));
    assert_eq!(socket.send_chain(&mut first), Ok(true));
    assert_eq!(socket.send_chain(&mut second), Ok(false), "three places are free");
    assert_eq!((first.parts(), second.parts(), socket.report().transmit.submitted), (0, 5, 5));
    socket.wake().unwrap();
    assert_eq!(socket.send_chain(&mut second), Ok(true));
    socket.wake().unwrap();
    let (mut seen, patience) = (Seen::new(2), Patience::new());
    while seen.count < 2 {
        receiver.receive().into_iter().for_each(|frame| seen.note(&frame));
        patience.wait(socket.report());
    }
    drop((first, second));
    close(socket);
    assert_whole(pool);
}

#[test]
fn a_chain_that_can_never_be_sent_is_refused() {
    let Some([near, _far]) = long_wire() else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(256);
    let options = XdpOptions { transmit_entries: 4, drop_long_frames: true, ..OPTIONS };
    let regions = [(XdpRegion::of_static(pool), 1), (XdpRegion::of_static(pool).with_chains(), 4)];
    for (mut region, most) in regions {
        let mut socket = region.open(INTERFACE, 0, options).unwrap();
        let mut chain = chain_of(pool, &frame(0, 8000));
        let refused = XdpError::Chain { parts: 5, most };
        assert_eq!(socket.send_chain(&mut chain), Err(refused.clone()));
        let remedy = if most == 1 { "XdpRegion::with_chains" } else { "XdpOptions::transmit_entries" };
        assert!(refused.to_string().contains(remedy), "{refused}");
        assert_eq!((chain.parts(), chain.len()), (5, 8000));
        drop(chain.pop());
        assert_eq!(socket.send_chain(&mut chain).is_ok_and(|is_sent| is_sent), most == 4);
        drop(chain);
        close(socket);
    }
    assert_whole(pool);
}
