//! The hot thread of the packet path: its lines come in datagrams (design/packet-path.md `.hot`).

use core::mem;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::time::Instant;

use hdrhistogram::Histogram;
use order_book::handoff::BLOCK_SIZE;
use order_book::steady::Latency;
use point_log::{Logger, logger};
use rtrb::Producer;
use serde::Serialize;
use tripoint::{AllocationPoint, BufferKind, ManualPool, PoolBox, Result};

use crate::course::{Course, Peaks, distribution};
use crate::gap_watch::GapWatch;
use crate::message::Message;
use crate::moldudp64::{Datagram, FIRST, Kind, Request};
use crate::path_failure::PathFailure;
use crate::records::Records;
use crate::sender::{SESSION, Shared};
use crate::silence::Silence;
use crate::source::{BURST, FrameCounts, Source, SourceCounts};
use crate::window::{Arrival, Slot, Turn, Window};

/// The messages that the window reaches: more than the sender is ever ahead.
pub(crate) const WINDOW_MESSAGES: usize = 8_192;

/// How long nothing comes when all has come.
const DRAIN_TIME: Duration = Duration::from_millis(5);

/// Looks at an empty ring between two at the clock.
const LOOKS_PER_CLOCK: u32 = 1_024;

/// What came, and what became of it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Received {
    pub(crate) datagrams: u64,
    /// Bytes of payload.
    pub(crate) bytes: u64,
    /// Those without a message: they say which is next, or that the session is over.
    pub(crate) without_messages: u64,
    /// Datagrams that are malformed, or of another session.
    pub(crate) malformed: u64,
    /// Datagrams all of whose messages had come.
    pub(crate) duplicates: u64,
    /// Datagrams that came after later ones, those that were sent again apart.
    pub(crate) reordered: u64,
    /// Datagrams that the window did not reach.
    pub(crate) beyond_window: u64,
    /// The most datagrams that waited in the window.
    pub(crate) window_most: u64,
    /// Messages that were asked for, each as often as it was.
    pub(crate) messages_asked_for: u64,
    /// Messages that were taken from datagrams that were sent again.
    pub(crate) messages_recovered: u64,
}

impl Received {
    /// Datagrams that are well-formed and of the session.
    const fn of_session(&self) -> u64 {
        self.datagrams - self.malformed
    }
}

/// What the hot thread found.
#[derive(Default)]
pub(crate) struct PathFound {
    pub(crate) received: Received,
    pub(crate) source: SourceCounts,
    pub(crate) frames: FrameCounts,
    /// From the sender's clock to the book, in ns, of the messages that were sent in the steady part.
    pub(crate) latency: Latency,
    /// The same, for each share of them.
    pub(crate) distribution: Vec<(f64, f64)>,
    pub(crate) course: Course,
}

/// Memory for the window and for a record in pieces, from the pool `S`.
pub(crate) struct PathMemory<'pool, F, S: ManualPool> {
    slots: PoolBox<'pool, [Slot<F>], S>,
    pieces: PoolBox<'pool, [u8], S>,
}

impl<'pool, F, S: ManualPool> PathMemory<'pool, F, S> {
    /// Takes the memory, and touches all of it.
    ///
    /// # Errors
    /// The pool's.
    pub(crate) fn take(pool: &'pool S) -> Result<Self> {
        let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, logger())?;
        Ok(Self {
            slots: fill(&mut point, WINDOW_MESSAGES, || None)?,
            pieces: fill(&mut point, BLOCK_SIZE, || 0)?,
        })
    }
}

fn fill<'pool, T, S: ManualPool>(
    point: &mut AllocationPoint<'pool, S, Logger>,
    count: usize,
    value: impl Fn() -> T,
) -> Result<PoolBox<'pool, [T], S>> {
    let mut batch = point.batch(count)?;
    (0..count).for_each(|_| batch.push(value()).unwrap_or_else(|_| unreachable!("a batch has its room")));
    Ok(batch.commit_boxed())
}

/// The hot thread: from a source to what takes the records.
pub(crate) struct Path<'a, 'pool, K: Records, S: ManualPool, R: Source> {
    records: K,
    source: R,
    window: Window<PoolBox<'pool, [Slot<R::Frame>], S>>,
    pieces: PoolBox<'pool, [u8], S>,
    /// The bytes of the record that is in pieces.
    assembled: usize,
    burst: Vec<R::Frame>,
    waiting: u64,
    shared: &'a Shared,
    gaps: GapWatch,
    course: Course,
    /// Looks at an empty ring since the last look at the clock.
    looks: u32,
    silence: Silence,
    is_over: bool,
    received: Received,
    latencies: Histogram<u64>,
    /// When the steady part began.
    steady: Option<u64>,
}

impl<'a, 'pool, K: Records, S: ManualPool, R: Source> Path<'a, 'pool, K, S, R> {
    pub(crate) fn new(
        records: K,
        source: R,
        memory: PathMemory<'pool, R::Frame, S>,
        shared: &'a Shared,
        requests: Producer<Request>,
        latencies: Histogram<u64>,
    ) -> Self {
        let PathMemory { slots, pieces } = memory;
        shared.taken.store(FIRST, Ordering::Release);
        Self {
            records,
            source,
            window: Window::new(slots, FIRST),
            pieces,
            assembled: 0,
            burst: Vec::with_capacity(BURST),
            waiting: 0,
            shared,
            gaps: GapWatch::new(requests),
            course: Course::new(),
            looks: 0,
            silence: Silence::default(),
            is_over: false,
            received: Received::default(),
            latencies,
            steady: None,
        }
    }

    /// Takes records until the session is over, and reports.
    pub(crate) fn run(mut self) -> (K::Report, PathFound, Option<PathFailure>) {
        let outcome = self.keep();
        self.shared.end();
        let outcome = outcome.and_then(|()| Ok(self.records.finish()?));
        let Self {
            records,
            mut source,
            mut window,
            mut received,
            mut burst,
            shared,
            latencies,
            gaps,
            course,
            ..
        } = self;
        received.messages_asked_for = gaps.asked_for();
        // First, before anything else costs something.
        let report = records.report();
        drain(&mut source, &mut burst, shared, &mut received);
        while let Some(frame) = window.take_any() {
            source.release(frame);
        }
        let (latency, counts) = (Latency::of(&latencies), source.counts());
        let distribution = distribution(&latencies);
        let found =
            PathFound { received, source: counts, frames: source.finish(), latency, distribution, course };
        (report, found, outcome.err())
    }

    fn keep(&mut self) -> core::result::Result<(), PathFailure> {
        while (!self.is_over || self.window.has_gap()) && !self.records.has_failed_fast() {
            let mut burst = mem::take(&mut self.burst);
            self.source.receive(&mut burst);
            let outcome = if burst.is_empty() { self.idle() } else { self.take(&mut burst) };
            self.burst = burst;
            outcome?;
            self.source.refill();
        }
        Ok(())
    }

    /// Handles what has come at once.
    fn take(&mut self, burst: &mut Vec<R::Frame>) -> core::result::Result<(), PathFailure> {
        self.looks = 0;
        let of_session = self.received.of_session();
        self.records.begin_burst(burst.iter().map(|frame| frame.len()).sum());
        let waiting = self.source.waiting() + burst.len();
        let mut outcome = Ok(());
        for frame in burst.drain(..) {
            match outcome {
                Ok(()) => outcome = self.arrive(frame),
                // What a failure left over goes home as well.
                Err(_) => self.source.release(frame),
            }
        }
        outcome?;
        if self.received.of_session() > of_session {
            self.silence.end();
        } else {
            self.bear_silence()?;
        }
        self.shared.taken.store(self.window.expected(), Ordering::Release);
        self.course.note(self.shared.now(), Peaks { waiting: waiting as u64, window: self.waiting });
        self.look_for_gaps()
    }

    fn arrive(&mut self, frame: R::Frame) -> core::result::Result<(), PathFailure> {
        self.received.datagrams += 1;
        self.received.bytes += frame.len() as u64;
        let Some(datagram) = of_our_session(&frame) else {
            self.received.malformed += 1;
            self.source.release(frame);
            return Ok(());
        };
        let span = datagram.span();
        self.received.without_messages += u64::from(span.is_empty());
        if datagram.kind == Kind::EndOfSession {
            self.is_over |= self.window.arrive_end(span.end);
        } else if !span.is_empty() && span.start < self.window.belief().said() && !was_sent_again(&datagram) {
            self.received.reordered += 1;
        }
        match self.window.arrive(span.clone(), frame) {
            Arrival::Kept => self.waiting += 1,
            Arrival::Duplicate(frame) => {
                self.received.duplicates += u64::from(!span.is_empty());
                self.source.release(frame);
            }
            Arrival::Beyond(frame) => {
                self.received.beyond_window += 1;
                self.source.release(frame);
            }
        }
        self.received.window_most = self.received.window_most.max(self.waiting);
        while let Some(Turn { item, skip }) = self.window.next() {
            self.waiting -= 1;
            let outcome = self.deliver(&item, skip);
            self.source.release(item);
            outcome?;
        }
        Ok(())
    }

    /// Handles the messages of a datagram whose turn it is.
    fn deliver(&mut self, frame: &[u8], skip: u64) -> core::result::Result<(), PathFailure> {
        // It was parsed when it came.
        let Ok(datagram) = Datagram::parse(frame) else { return Ok(()) };
        for (number, message) in datagram.span().zip(datagram.messages()).skip(skip as usize) {
            let message = Message::parse(message).ok_or(PathFailure::NoPiece { number })?;
            self.received.messages_recovered += u64::from(message.sent_again);
            self.piece(number, &message)?;
            if self.records.has_failed_fast() {
                break;
            }
        }
        Ok(())
    }

    /// Handles a piece of a record; if it is all of it, where it lies.
    fn piece(&mut self, number: u64, message: &Message<'_>) -> core::result::Result<(), PathFailure> {
        let handled = if self.assembled == 0 && message.ends_record {
            self.records.keep(message.bytes)?
        } else {
            let end = self.assembled + message.bytes.len();
            let room = self.pieces.get_mut(self.assembled..end).ok_or(PathFailure::TooLong { number })?;
            room.copy_from_slice(message.bytes);
            self.assembled = end;
            if !message.ends_record {
                return Ok(());
            }
            self.assembled = 0;
            self.records.keep(&self.pieces[..end])?
        };
        if let Some(handled) = handled {
            let now = self.shared.at(handled);
            // What was sent before it waited for the warm-up to end.
            if message.sent >= *self.steady.get_or_insert(now) {
                self.latencies.saturating_record(now.saturating_sub(message.sent));
            }
        }
        Ok(())
    }

    /// Looks whether messages are missing, and asks for them in time.
    fn look_for_gaps(&mut self) -> core::result::Result<(), PathFailure> {
        self.gaps.look(&self.window).map_err(PathFailure::Gap)
    }

    /// Nothing has come.
    fn idle(&mut self) -> core::result::Result<(), PathFailure> {
        core::hint::spin_loop();
        self.looks += 1;
        if self.looks < LOOKS_PER_CLOCK {
            return Ok(());
        }
        self.looks = 0;
        self.bear_silence()?;
        self.look_for_gaps()
    }

    /// No datagram of the session has come.
    fn bear_silence(&mut self) -> core::result::Result<(), PathFailure> {
        if self.silence.is_too_long(Instant::now()) {
            let (next, malformed) = (self.window.expected(), self.received.malformed);
            return Err(PathFailure::Silent { next, malformed });
        }
        Ok(())
    }
}

/// Takes what comes when nothing is missing any more, until all has come that was sent. Datagrams that are not of the session do
/// not prolong it.
fn drain<R: Source>(source: &mut R, burst: &mut Vec<R::Frame>, shared: &Shared, received: &mut Received) {
    let mut quiet = Instant::now();
    while quiet.elapsed() < DRAIN_TIME {
        source.receive(burst);
        let of_session = received.of_session();
        for frame in burst.drain(..) {
            received.datagrams += 1;
            received.bytes += frame.len() as u64;
            match of_our_session(&frame) {
                Some(datagram) if datagram.span().is_empty() => received.without_messages += 1,
                Some(_) => received.duplicates += 1,
                None => received.malformed += 1,
            }
            source.release(frame);
        }
        if !shared.has_sent() || received.of_session() > of_session {
            quiet = Instant::now();
        }
        source.refill();
    }
}

/// The datagram in a frame, if it is one of the session.
fn of_our_session(frame: &[u8]) -> Option<Datagram<'_>> {
    Datagram::parse(frame).ok().filter(|datagram| datagram.session == SESSION)
}

/// Whether the messages of a datagram were sent before.
fn was_sent_again(datagram: &Datagram<'_>) -> bool {
    datagram.messages().next().and_then(Message::parse).is_some_and(|message| message.sent_again)
}
