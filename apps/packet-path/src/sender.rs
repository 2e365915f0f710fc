//! The sender: records to datagrams, paced, and once more if they are asked for.

use core::net::SocketAddrV6;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::thread;
use std::time::Instant;

use order_book::failure::Failure;
use order_book::handoff;
use serde::Serialize;

use crate::datagram_writer::Writer;
use crate::disturbance::{Disturbance, Disturbed};
use crate::moldudp64::{FIRST, HEADER_BYTES, Request, Session};
use crate::sent::Sent;

/// The name of the session.
pub(crate) const SESSION: Session = *b"tripoint  ";

/// How far the sender may be ahead of the receiver, in messages. A real exchange does not wait: it stands for its rate
/// (design/packet-path.md `.pace`).
pub(crate) const AHEAD_MAX: u64 = 4_096;

/// The messages that can be asked for again.
const SENT_MESSAGES: usize = 2 * AHEAD_MAX as usize;

/// How long the sender sleeps if it must wait.
const PAUSE: Duration = Duration::from_micros(20);

/// What is due later than this is slept for: a sender that keeps its processor busy keeps the kernel's own threads from it, and these
/// bring datagrams to the receiver (design/packet-path.md `.pace.sleep`).
const SLEEP_MIN: Duration = Duration::from_micros(30);

/// The longest that the sender sleeps: requests wait for it.
const SLEEP_MAX: Duration = Duration::from_millis(1);

/// The time between two datagrams that only say which message is next.
const HEARTBEAT: Duration = Duration::from_millis(2);

/// How often the end of the session is said.
const ENDS: u32 = 5_000;

/// The time between two ends.
const END_PAUSE: Duration = Duration::from_millis(1);

/// What both ends of the wire know, because they are in one process.
#[derive(Debug)]
pub(crate) struct Shared {
    /// When the run began. All times are in ns since then.
    pub(crate) start: Instant,
    /// The number of the message that the receiver expects.
    pub(crate) taken: AtomicU64,
    /// The receiver has come to its end.
    has_ended: AtomicBool,
    /// The sender has: nothing more is sent.
    has_sent: AtomicBool,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            taken: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            has_sent: AtomicBool::new(false),
        }
    }

    /// Says that the receiver has come to its end.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Says that nothing more is sent.
    pub(crate) fn end_sending(&self) {
        self.has_sent.store(true, Ordering::Release);
    }

    /// Whether nothing more is sent.
    pub(crate) fn has_sent(&self) -> bool {
        self.has_sent.load(Ordering::Acquire)
    }

    /// The time now.
    pub(crate) fn now(&self) -> u64 {
        self.at(Instant::now())
    }

    /// The time at `instant`.
    pub(crate) fn at(&self, instant: Instant) -> u64 {
        u64::try_from(instant.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// How the sender sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderOptions {
    /// The most bytes of a datagram.
    pub(crate) datagram_bytes: usize,
    /// The most messages of a datagram.
    pub(crate) messages: u16,
    /// The time between two datagrams.
    pub(crate) pause: Duration,
    /// When the input ends, if it does not end before: what was taken of it by then is sent.
    pub(crate) time_limit: Duration,
    /// Whether messages are sent again.
    pub(crate) answers: bool,
}

/// What the sender counted.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct SenderCounts {
    /// Messages, each counted once.
    pub(crate) messages: u64,
    /// Messages that were sent again.
    pub(crate) messages_again: u64,
    /// Requests that came.
    pub(crate) requests: u64,
    /// Requests that were not answered: for messages that are not there any more, or by option.
    pub(crate) unanswered: u64,
    /// What was made of it, the end of the session apart.
    pub(crate) datagrams: Disturbed,
    /// Datagrams without a message, which say which is next, or that the session is over.
    pub(crate) without_messages: u64,
    /// Bytes of payload in what was sent, datagrams without a message apart.
    pub(crate) bytes: u64,
}

/// A sender of one session.
pub(crate) struct Sender<'a> {
    options: SenderOptions,
    shared: &'a Shared,
    socket: UdpSocket,
    to: SocketAddrV6,
    writer: Writer,
    sent: Sent,
    /// The number of the first message that was not sent yet, and the bytes of those that were not.
    first: u64,
    size: usize,
    disturbance: Disturbance,
    /// When the next datagram may be sent.
    due: Instant,
    /// When the receiver may be told again which message is next.
    heartbeat: Instant,
    counts: SenderCounts,
}

impl<'a> Sender<'a> {
    /// A sender from a `socket`, on which it takes requests, to a port of the other end.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn new(
        options: SenderOptions,
        shared: &'a Shared,
        socket: UdpSocket,
        to: SocketAddrV6,
        disturbance: Disturbance,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (sent, size) = (Sent::new(SENT_MESSAGES), HEADER_BYTES);
        let writer = Writer::new(SESSION, options.datagram_bytes);
        let (first, due, counts) = (sent.next(), Instant::now(), SenderCounts::default());
        let heartbeat = due;
        Ok(Self {
            options,
            shared,
            socket,
            to,
            writer,
            sent,
            first,
            size,
            disturbance,
            due,
            heartbeat,
            counts,
        })
    }

    /// Sends the lines of the blocks of `full`, hands the blocks on to `next`, and ends the session.
    pub(crate) fn run(
        self,
        mut full: handoff::Receiver,
        mut next: handoff::Sender,
    ) -> (SenderCounts, Option<Failure>) {
        // The others run dry when it has sent all.
        self.run_session(move |sender| {
            while let Some(mut block) = full.receive() {
                let mut sent = 0;
                for line in block.lines() {
                    if sender.is_time_over() {
                        break;
                    }
                    sender.record(line)?;
                    sent += 1;
                }
                // The reference gets what was sent, and no more.
                block.keep_lines(sent);
                next.send(block);
                if sender.is_time_over() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Has `send_all` send records, and ends the session.
    pub(crate) fn run_session(
        mut self,
        send_all: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> (SenderCounts, Option<Failure>) {
        // Sleeps end when they are over. Where the system does not allow that, they take some 50 µs more.
        let _ = nix::sys::prctl::set_timerslack(1);
        let outcome = send_all(&mut self).and_then(|()| self.flush());
        let outcome = outcome.and(self.end());
        self.shared.end_sending();
        self.counts.datagrams = self.disturbance.counts();
        self.counts.messages = self.first - FIRST;
        let failure = outcome.err().map(|error| Failure::new(format_args!("the sender: {error}")));
        (self.counts, failure)
    }

    /// Sends a record, as one message or as many as it takes.
    pub(crate) fn record(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let whole = self.options.datagram_bytes - HEADER_BYTES - Sent::size_of(0);
        loop {
            let room = (self.options.datagram_bytes - self.size).saturating_sub(Sent::size_of(0));
            let is_full = self.sent.next() - self.first >= u64::from(self.options.messages);
            // What would fit into a datagram of its own is not cut.
            if self.sent.next() > self.first && (is_full || room < bytes.len().min(whole)) {
                self.flush()?;
                continue;
            }
            let (piece, rest) = bytes.split_at(room.min(bytes.len()));
            self.sent.push(piece, rest.is_empty());
            self.size += Sent::size_of(piece.len());
            if rest.is_empty() {
                return Ok(());
            }
            bytes = rest;
        }
    }

    /// Whether the time for input is over.
    pub(crate) fn is_time_over(&self) -> bool {
        self.shared.start.elapsed() > self.options.time_limit
    }

    /// Sends what waits, and then waits until `time`, or until the time is over.
    ///
    /// # Errors
    /// The operating system's, and if the receiver has ended.
    pub(crate) fn wait_until(&mut self, time: Instant) -> io::Result<()> {
        self.flush()?;
        while Instant::now() < time && !self.is_time_over() {
            self.serve()?;
            self.ensure_goes_on()?;
            thread::sleep(PAUSE.min(time.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Whether there is a receiver.
    fn ensure_goes_on(&self) -> io::Result<()> {
        match self.shared.has_ended.load(Ordering::Acquire) {
            true => Err(io::Error::other("the receiver has ended")),
            false => Ok(()),
        }
    }

    /// Sends the messages that wait.
    fn flush(&mut self) -> io::Result<()> {
        let numbers = self.first..self.sent.next();
        if numbers.is_empty() {
            return Ok(());
        }
        self.wait(numbers.end)?;
        self.sent.stamp(numbers.clone(), self.shared.now());
        self.sent.write(numbers.clone(), false, &mut self.writer);
        (self.first, self.size) = (numbers.end, HEADER_BYTES);
        self.send()
    }

    /// Waits until the receiver is near enough, and the datagram is due.
    fn wait(&mut self, end: u64) -> io::Result<()> {
        loop {
            self.serve()?;
            let taken = self.shared.taken.load(Ordering::Acquire);
            self.ensure_goes_on()?;
            let early = self.due.saturating_duration_since(Instant::now());
            if taken < FIRST {
                // The receiver is not there yet.
                thread::sleep(PAUSE);
            } else if end > taken + AHEAD_MAX {
                self.be_heard()?;
                thread::sleep(PAUSE);
            } else if early > SLEEP_MIN {
                thread::sleep(early.min(SLEEP_MAX));
            } else if !early.is_zero() {
                thread::yield_now();
            } else {
                // Time that was lost is not caught up with a burst.
                self.due = self.due.max(Instant::now() - self.options.pause) + self.options.pause;
                return Ok(());
            }
        }
    }

    /// Says which message is next, now and then: the receiver cannot know that the last ones were lost.
    fn be_heard(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if now < self.heartbeat {
            return Ok(());
        }
        self.heartbeat = now + HEARTBEAT;
        self.writer.begin(self.first);
        self.counts.without_messages += 1;
        send(&self.socket, self.writer.finish(), self.to)
    }

    /// Sends the datagram that was written.
    fn send(&mut self) -> io::Result<()> {
        let Self { disturbance, writer, socket, to, counts, .. } = self;
        disturbance.pass(writer.finish(), |datagram| {
            counts.bytes += datagram.len() as u64;
            send(socket, datagram, *to)
        })
    }

    /// Answers the requests that have come.
    fn serve(&mut self) -> io::Result<()> {
        let mut bytes = [0; HEADER_BYTES + 1];
        loop {
            match self.socket.recv(&mut bytes) {
                Ok(size) => match Request::parse(&bytes[..size]) {
                    Some(request) if request.session == SESSION => self.answer(request)?,
                    _ => {}
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn answer(&mut self, request: Request) -> io::Result<()> {
        self.counts.requests += 1;
        let mut next = request.sequence;
        let end = next.saturating_add(u64::from(request.count)).min(self.first);
        let before = self.counts.messages_again;
        while self.options.answers && next < end {
            let count = self.sent.write(next..end, true, &mut self.writer);
            if count == 0 {
                break;
            }
            self.counts.messages_again += count;
            next += count;
            self.send()?;
        }
        self.counts.unanswered += u64::from(self.counts.messages_again == before);
        Ok(())
    }

    /// Says that the session is over, until the receiver has all of it that was sent.
    fn end(&mut self) -> io::Result<()> {
        let Self { disturbance, socket, to, counts, .. } = self;
        disturbance.finish(|datagram| {
            counts.bytes += datagram.len() as u64;
            send(socket, datagram, *to)
        })?;
        for _ in 0..ENDS {
            if self.shared.has_ended.load(Ordering::Acquire) {
                return Ok(());
            }
            self.counts.without_messages += 1;
            send(&self.socket, self.writer.end_of_session(self.first), self.to)?;
            self.serve()?;
            thread::sleep(END_PAUSE);
        }
        Err(io::Error::new(ErrorKind::TimedOut, "the receiver does not end"))
    }
}

/// Sends a datagram. If the socket has no room, the datagram waits: the wire is what may lose it.
fn send(socket: &UdpSocket, datagram: &[u8], to: SocketAddrV6) -> io::Result<()> {
    loop {
        match socket.send_to(datagram, to) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
}
