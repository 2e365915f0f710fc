//! Runs the guide's program for AF_XDP, and sends it frames with numbers and hashes, by packet sockets.
//!
//! `frames-of-the-guide FRAMES`, as root, in a network namespace of its own with two pairs of interfaces that are switched on:
//! `in0` and `in1`, `out0` and `out1`.

// As the guide has it: a program needs no more.
include!(concat!(env!("OUT_DIR"), "/guide.rs"));

use std::ffi::CString;
use std::sync::atomic::AtomicU64;
use std::time::Instant;
use std::{fs, thread};

use wire::PacketSocket;
use wire::frames::{FRAME_MAX, PORT, Seen, bytes_of, datagram, frame};

/// Frames on their way at once: fewer than any ring on the way has room for.
const AHEAD: u64 = 160;

/// In place of how many have come, before one has.
const NONE: u64 = u64::MAX - 1;

/// How long the next frame may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn socket(interface: &str) -> PacketSocket {
    let name = CString::new(interface).expect("a name");
    // SAFETY: a string of C.
    PacketSocket::bind(unsafe { libc::if_nametoindex(name.as_ptr()) }).expect("a packet socket")
}

/// Ends the guide's program also if this thread fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends frames until all have come, of which `come` says how many; `is_over` if the guide's program has ended.
fn send(sender: &PacketSocket, frames: u64, mut come: impl FnMut() -> u64, is_over: impl Fn() -> bool) {
    let (mut sent, mut last, mut since) = (0, 0, Instant::now());
    while last < frames {
        while sent < frames && sent - last < AHEAD {
            assert!(sender.send(&frame(sent, bytes_of(sent, FRAME_MAX))), "frame {sent} is not taken");
            sent += 1;
        }
        let now = come();
        assert!(!is_over() && since.elapsed() < PATIENCE, "{now} of {sent} frames have come");
        if now == last {
            thread::yield_now();
        } else {
            (last, since) = (now, Instant::now());
        }
    }
}

/// Sends frames until one of them comes. What comes before the guide's program is there is the kernel's, and none of it has a
/// number.
fn begin(sender: &PacketSocket, mut has_come: impl FnMut(&[u8]) -> bool) {
    let (probe, start) = (datagram(PORT, b""), Instant::now());
    while !has_come(&probe) {
        assert!(sender.send(&probe) && start.elapsed() < PATIENCE, "the guide's program does not begin");
        thread::yield_now();
    }
}

fn assert_whole(pool: &Pool) {
    let counts = pool.counts();
    assert_eq!((counts.depot, counts.rings, counts.boxed()), (counts.units, 0, 0), "{counts:?}");
}

fn assert_none_lost(report: &XdpReport) {
    assert_eq!((report.kernel.lost(), report.receive.refused), (0, 0), "{report}");
    assert_eq!((report.transmit.refused, report.kernel.transmit_invalid), (0, 0), "{report}");
}

fn check_receive(pool: &'static Pool, frames: u64) {
    let (stop, come, sender) = (AtomicBool::new(false), AtomicU64::new(NONE), socket("in1"));
    let report = thread::scope(|scope| {
        let _end = End(&stop);
        let program = scope.spawn(|| {
            let mut seen = Seen::new(frames);
            receive(pool, "in0", PORT, &stop, |frame| {
                seen.note(frame);
                come.store(seen.count, Ordering::Relaxed);
            })
        });
        begin(&sender, |_| come.load(Ordering::Relaxed) != NONE);
        send(&sender, frames, || come.load(Ordering::Relaxed), || program.is_finished());
        stop.store(true, Ordering::Relaxed);
        program.join().expect("the guide's program").expect("no error")
    });
    assert_none_lost(&report);
    assert!(report.receive.completed >= frames, "{report}");
    assert_whole(pool);
    println!("received  {frames} frames, each once and whole\n{report}");
}

fn interface_counter(interface: &str, counter: &str) -> u64 {
    let text = fs::read_to_string(format!("/sys/class/net/{interface}/statistics/{counter}"));
    text.expect("a counter").trim().parse().expect("a number")
}

/// Frames come back to where they were sent from, or arrive at the end of another pair.
fn check_sent(
    pool: &'static Pool,
    frames: u64,
    what: &str,
    end: &str,
    program: impl FnOnce(&AtomicBool) -> Result<Vec<XdpReport>, XdpError> + Send,
) {
    let (stop, sender, receiver) = (AtomicBool::new(false), socket("in1"), socket(end));
    let reports = thread::scope(|scope| {
        let _end = End(&stop);
        let program = scope.spawn(|| program(&stop));
        begin(&sender, |probe| receiver.receive().is_some_and(|frame| frame[12..] == probe[12..]));
        let mut seen = Seen::new(frames);
        let come = || {
            while let Some(frame) = receiver.receive() {
                seen.note(&frame);
            }
            seen.count
        };
        send(&sender, frames, come, || program.is_finished());
        stop.store(true, Ordering::Relaxed);
        program.join().expect("the guide's program").expect("no error")
    });
    reports.iter().for_each(assert_none_lost);
    assert_whole(pool);
    println!("{what:9} {frames} frames, each once and whole");
    reports.iter().for_each(|report| println!("{report}"));
}

/// Frames as fast as they are taken: what does not come is in a counter of the kernel.
fn check_flood(pool: &'static Pool, frames: u64) {
    let (stop, come, sender) = (AtomicBool::new(false), AtomicU64::new(NONE), socket("in1"));
    let most = frames + 1_000_000;
    let dropped = || interface_counter("in1", "tx_dropped");
    let (report, seen, sent, on_the_wire) = thread::scope(|scope| {
        let _end = End(&stop);
        let program = scope.spawn(|| {
            let mut seen = Seen::new(most);
            let report = receive(pool, "in0", PORT, &stop, |frame| {
                seen.note(frame);
                // Time that makes rings overflow.
                (0..1_000).for_each(|_| std::hint::spin_loop());
                come.store(seen.last, Ordering::Relaxed);
            });
            report.map(|report| (report, seen.count))
        });
        begin(&sender, |_| come.load(Ordering::Relaxed) != NONE);
        let (before, mut sent) = (dropped(), 0);
        let mut send_next = || {
            let is_taken = sender.send(&frame(sent, bytes_of(sent, FRAME_MAX)));
            sent += u64::from(is_taken);
            sent
        };
        while send_next() < frames {}
        // One more at a time, until one comes: all before it were decided.
        loop {
            let next = send_next();
            assert!(next < most, "nothing comes after {frames}");
            // As long as others come.
            let (mut last, mut looks) = (NONE, 0);
            while looks < 1_000_000 && last + 1 != next {
                let now = come.load(Ordering::Relaxed);
                looks = if now == last { looks + 1 } else { 0 };
                last = now;
            }
            if last + 1 == next {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let (report, seen) = program.join().expect("the guide's program").expect("no error");
        (report, seen, sent, dropped() - before)
    });
    assert_eq!(sent - seen, report.kernel.lost() + on_the_wire, "{report}");
    assert_whole(pool);
    println!(
        "flooded   {sent} frames: {} lost, {} of them on the wire, as the kernel counts",
        sent - seen,
        on_the_wire
    );
}

fn main() {
    let frames = std::env::args().nth(1).and_then(|number| number.parse().ok()).expect("a number of frames");
    let pool = pool().expect("a pool");
    check_receive(pool, frames);
    check_sent(pool, frames, "echoed", "in1", |stop| {
        echo(pool, "in0", PORT, stop).map(|report| vec![report])
    });
    check_sent(pool, frames, "forwarded", "out1", |stop| {
        forward(pool, ["in0", "out0"], PORT, stop).map(Vec::from)
    });
    check_flood(pool, frames / 10);
}
