//! What has to hold with a card that writes into units itself.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::os::fd::AsFd;
use std::thread;
use std::time::Instant;

use tripoint::packets::{PacketBox, PacketPool, PacketPoolOptions};
use tripoint::xdp::{XdpAttach, XdpError, XdpFilter, XdpMode, XdpOptions, XdpRedirect, XdpRegion, XdpSocket};
use tripoint::{ArenaVm, ArenaVmOptions, Check, CheckLevel};
use wire::PacketSocket;
use wire::frames::{FRAME_MAX, PORT, Seen, bytes_of, frame};

use crate::machine;

const SIZE: usize = 2048;
/// Units of a pool.
const UNITS: u32 = 1024;
/// The card that has zero copy, and the other end of the wire.
const NEAR: &str = "eth0";
const FAR: &str = "eth1";
/// Frames that are received, each once and whole.
const FRAMES: u64 = 20_000;
/// Frames on their way at once: fewer than any ring has room for.
const AHEAD: u64 = 32;
/// How long anything may take, in a machine that may be slow.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long nothing comes if what is missing was lost.
const STALL: Duration = Duration::from_secs(5);
/// Frames that may be lost: an emulated card or its driver lets one go now and then, which no counter of the socket has.
const LOST_MAX: u64 = FRAMES / 1000;
/// How often a socket is closed while frames come.
const CLOSINGS: u32 = 20;
/// Frames that are sent once a socket was closed and waited for: more than the rings of the card have places.
const AFTERWARDS: u64 = 2_000;

type Pool = PacketPool<ArenaVm, SIZE>;
type Socket = XdpSocket<'static, SIZE>;

const OPTIONS: XdpOptions = XdpOptions {
    mode: XdpMode::ZeroCopy,
    need_wakeup: true,
    busy_poll: None,
    receive_entries: 256,
    transmit_entries: 256,
    drop_long_frames: false,
};

fn pool() -> &'static Pool {
    let arena = ArenaVm::create(ArenaVmOptions::default()).expect("an arena");
    let options = PacketPoolOptions { count: UNITS, ..PacketPoolOptions::default() };
    Box::leak(Box::new(Pool::create(arena, options).expect("a pool")))
}

fn open(pool: &'static Pool) -> (Socket, XdpRedirect) {
    let socket = XdpRegion::of_static(pool).open(NEAR, 0, OPTIONS).expect("a queue with zero copy");
    let redirect = XdpRedirect::attach(NEAR, XdpFilter::UdpPort(PORT), XdpAttach::Driver);
    let redirect = redirect.expect("a driver with XDP");
    redirect.add(&socket).expect("a socket of the interface");
    assert_eq!(socket.report().mode, XdpMode::ZeroCopy);
    (socket, redirect)
}

fn assert_whole(pool: &Pool) {
    let counts = pool.counts();
    assert_eq!((counts.depot, counts.rings, counts.boxed()), (counts.units, 0, 0), "{counts:?}");
    assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
}

/// Frames on their way, of which some may be lost.
struct Course {
    sent: u64,
    lost: u64,
    seen: Seen,
    since: Instant,
}

impl Course {
    fn new() -> Self {
        Self { sent: 0, lost: 0, seen: Seen::new(FRAMES), since: Instant::now() }
    }

    fn is_over(&self) -> bool {
        self.seen.count + self.lost >= FRAMES
    }

    /// The frame to send next, if not too many are on their way.
    fn next(&mut self) -> Option<(u64, Vec<u8>)> {
        let number = self.sent;
        if number == FRAMES || number - self.seen.count - self.lost >= AHEAD {
            return None;
        }
        self.sent += 1;
        Some((number, frame(number, bytes_of(number, FRAME_MAX))))
    }

    /// A frame came: each does once, and whole.
    fn note(&mut self, frame: &[u8]) {
        self.seen.note(frame);
        self.since = Instant::now();
    }

    /// Looks whether what is missing was lost.
    fn look(&mut self, socket: &Socket) {
        if self.since.elapsed() > STALL {
            (self.lost, self.since) = (self.sent - self.seen.count, Instant::now());
            assert!(self.lost <= LOST_MAX, "{} of {}: {}", self.seen.count, self.sent, socket.report());
        }
        thread::yield_now();
    }
}

/// Each frame that comes does once and whole.
fn receive_all(far: &PacketSocket) {
    let pool = pool();
    let (mut socket, redirect) = open(pool);
    let (mut batch, mut course) = (pool.batch::<32>(), Course::new());
    while !course.is_over() {
        while let Some((number, frame)) = course.next() {
            assert!(far.send(&frame), "frame {number} is not taken");
        }
        socket.receive(&mut batch);
        batch.iter().for_each(|frame| course.note(frame));
        socket.cache().give_batch(&mut batch);
        course.look(&socket);
    }
    println!("{}", socket.report());
    assert_eq!(socket.report().kernel.lost(), 0);
    drop((redirect, batch));
    let units = socket.close().wait(PATIENCE).expect("the kernel lets go");
    assert!(units > 0);
    assert_whole(pool);
    let Course { lost, seen, .. } = course;
    println!("zero copy: {} frames were received, each once and whole, and {lost} did not come", seen.count);
}

/// Each packet that is sent arrives once and whole.
fn send_all(far: &PacketSocket) {
    let pool = pool();
    let (mut socket, redirect) = open(pool);
    let (mut batch, mut course) = (pool.batch::<32>(), Course::new());
    while !course.is_over() {
        while batch.room() > 0
            && let Some((_, mut frame)) = course.next()
        {
            // From this card to the other: their addresses change places.
            frame[..12].rotate_left(6);
            let mut packet = socket.cache().take().expect("more units than are ahead");
            packet.extend_from_slice(&frame).expect("there is room");
            batch.push(packet).expect("there is room");
        }
        socket.send(&mut batch);
        socket.wake().expect("an interface that is switched on");
        while let Some(frame) = far.receive() {
            course.note(&frame);
        }
        course.look(&socket);
    }
    assert_eq!(socket.report().transmit.submitted, FRAMES);
    drop((redirect, batch));
    socket.close().wait(PATIENCE).expect("the kernel lets go");
    assert_whole(pool);
    let Course { lost, seen, .. } = course;
    println!("zero copy: {} packets were sent, each once and whole, and {lost} did not arrive", seen.count);
}

/// All units of a pool, each full of one byte.
fn fill_all(pool: &'static Pool, byte: u8) -> Vec<PacketBox<'static, SIZE>> {
    let mut packets: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
    for packet in &mut packets {
        packet.append(SIZE).expect("an empty unit").fill(byte);
    }
    packets
}

/// A socket is closed while frames come. Once it was waited for, the device writes to no unit any more, and another region has the
/// queue at once.
fn close_while_frames_come(far: &PacketSocket) {
    let is_over = AtomicBool::new(false);
    let mut slowest = Duration::ZERO;
    thread::scope(|scope| {
        let _end = End(&is_over);
        let flood = scope.spawn(|| {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                far.send(&frame(number, bytes_of(number, FRAME_MAX)));
                number += 1;
                if number.is_multiple_of(8) {
                    thread::yield_now();
                }
            }
        });
        for turn in 0..CLOSINGS {
            let pool = pool();
            let (mut socket, redirect) = open(pool);
            let (mut batch, mut come, since) = (pool.batch::<32>(), 0, Instant::now());
            while come < 200 {
                come += socket.receive(&mut batch);
                socket.cache().give_batch(&mut batch);
                assert!(since.elapsed() < PATIENCE && !flood.is_finished(), "{}", socket.report());
            }
            drop(batch);
            // The kernel lets go of the queue with the last descriptor. Until then the card writes.
            let duplicate = socket.as_fd().try_clone_to_owned().expect("a descriptor");
            let mut closing = socket.close();
            let units = closing.with_kernel();
            assert!(units > 0);
            let kept = XdpError::StillBound { interface: NEAR.to_owned(), queue: 0, units };
            assert_eq!(closing.wait(Duration::ZERO), Err(kept), "turn {turn}");
            let begin = Instant::now();
            drop(duplicate);
            let units = closing.wait(PATIENCE).expect("the kernel lets go");
            slowest = slowest.max(begin.elapsed());
            assert!(units > 0 && closing.with_kernel() == 0, "turn {turn}");
            drop(redirect);
            assert_whole(pool);
            let packets = fill_all(pool, turn as u8);
            assert_eq!(packets.len(), UNITS as usize);
            // Frames go on coming: to another pool, by the same queue.
            let other = self::pool();
            let (mut socket, redirect) = open(other);
            let (mut batch, mut come, since) = (other.batch::<32>(), 0, Instant::now());
            while come < AFTERWARDS {
                come += socket.receive(&mut batch) as u64;
                socket.cache().give_batch(&mut batch);
                assert!(since.elapsed() < PATIENCE && !flood.is_finished(), "{}", socket.report());
            }
            drop((redirect, batch));
            socket.close().wait(PATIENCE).expect("the kernel lets go");
            for packet in &packets {
                assert!(packet.iter().all(|byte| *byte == turn as u8), "{packet:?} was written to");
            }
        }
    });
    println!("zero copy: {CLOSINGS} sockets were closed while frames came, and nothing was written later");
    println!("zero copy: the slowest took {slowest:?}");
}

/// Ends the flood also if a check fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The queue is refused while it is in use, also to a probe that could bind it.
fn a_queue_in_use_is_refused() {
    let pools = [pool(), pool()];
    let (socket, _redirect) = open(pools[0]);
    let refused = XdpRegion::of_static(pools[1]).open(NEAR, 0, OPTIONS).map(|_| ());
    assert_eq!(refused, Err(XdpError::QueueInUse { interface: NEAR.to_owned(), queue: 0 }));
    socket.close().wait(PATIENCE).expect("the kernel lets go");
    pools.iter().for_each(|pool| assert_whole(pool));
    println!("zero copy: a queue in use was refused");
}

pub(crate) fn run() {
    let numbers = [NEAR, FAR].map(machine::switch_on);
    let far = PacketSocket::bind(numbers[1]).expect("a packet socket");
    receive_all(&far);
    send_all(&far);
    a_queue_in_use_is_refused();
    close_while_frames_come(&far);
}
