//! A run of captured packets: the bytes of each are sent as a record, and counted behind the wire (design/packet-path.md `.pcap`).

use core::hash::Hasher as _;
use std::collections::hash_map::DefaultHasher;
use std::io::Read;
use std::path::Path as FilePath;
use std::thread;
use std::time::Instant;

use order_book::contract_report::ContractReport;
use order_book::coordinator::{Coordinator, Reason};
use order_book::failure::Failure;
use order_book::handoff::BLOCK_SIZE;
use order_book::hot_failure::{HotCause, HotFailure};
use order_book::steady::{Latency, SteadyCosts, SteadyMeter};
use order_book::{feed, memory, reader};
use rtrb::Producer;
use serde::Serialize;
use stop::threads::{join, spawn};
use tripoint::contract::{Arenas, Guard};
use tripoint::{Arena, ArenaVm, ManualPool, Mvff, MvffOptions};

use crate::af_xdp::FramePool;
use crate::capture::Capture;
use crate::capture_report::{CaptureReport, Sent};
use crate::cli::Options;
use crate::disturbance::Disturbance;
use crate::ends::Ends;
use crate::hot_packets::{Path, PathMemory};
use crate::moldudp64::Request;
use crate::path_report::WireReport;
use crate::receivers::{WithSource, with_source};
use crate::records::Records;
use crate::run::{self, Ended, Received};
use crate::sender::{Sender, SenderCounts, Shared};
use crate::source::Source;
use order_book::pinning::Pinning;

/// Packets and their bytes, and what is in them: equal for the same packets in the same order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Packets {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
}

impl Packets {
    /// Adds a packet.
    fn add(&mut self, bytes: &[u8]) {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.digest);
        hasher.write_usize(bytes.len());
        hasher.write(bytes);
        let Self { packets, bytes: sum, digest } = self;
        (*packets, *sum, *digest) = (*packets + 1, *sum + bytes.len() as u64, hasher.finish());
    }
}

/// What the hot thread found.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Counted {
    pub(crate) packets: Packets,
    /// What they cost.
    pub(crate) steady: SteadyCosts,
}

/// Runs and reports. Returns how it ended, and all that failed.
///
/// # Errors
/// If the run could not begin.
pub(crate) fn run(options: &Options, file: &FilePath) -> Result<(Ended, Vec<Failure>), Failure> {
    let progress = feed::progress_bar();
    let name = file.display().to_string();
    // Before anything is made: what is not there is told at once.
    let input: Result<Box<dyn Read + Send>, Failure> = reader::open_any(file, &progress);
    let capture = input.and_then(Capture::open).map_err(|failure| failure.of_input(&name))?;
    let (ends, pinning) = match run::prepare(options) {
        Ok(prepared) => prepared,
        Err(refusal) => return Ok((Ended::Refused, vec![refusal])),
    };
    let outcome = send_capture(options, capture, &name, &ends, pinning)?;
    progress.finish_and_clear();
    let Outcome { counted, sent, counts, path, contract, has_failed_fast, failures } = outcome;
    if path.is_refused {
        return Ok((Ended::Refused, failures));
    }
    let wire = WireReport::new(path.receiver, path.fallback, pinning.processor(), counts, path.found);
    let report = CaptureReport::new(sent, counted, contract, wire);
    Ok(run::write_report(options, &name, &report, has_failed_fast, failures))
}

/// What the threads found, and all that failed.
struct Outcome {
    counted: Counted,
    sent: Sent,
    counts: SenderCounts,
    path: Received,
    contract: ContractReport,
    has_failed_fast: bool,
    failures: Vec<Failure>,
}

/// Runs the threads on an arena with the pools. This thread is the contract's coordinator, and sends the requests.
///
/// # Errors
/// If the run could not begin; nothing was sent then.
fn send_capture(
    options: &Options,
    capture: Capture,
    name: &str,
    ends: &Ends,
    pinning: Pinning,
) -> Result<Outcome, Failure> {
    let arena = memory::create_arena()?;
    let scratch =
        Mvff::create(&arena, MvffOptions::default()).map(point_log::logged).map_err(Failure::new)?;
    let frames = run::create_frames(&arena)?;
    // A packet takes one way whatever is in it: there is nothing to rehearse.
    let coordinator = Coordinator::begin(options.hot.policy, 0, 0).map_err(Failure::new)?;
    let shared = Shared::new();
    let way = Disturbance::new(options.odds(), options.seed);
    let socket = ends.sender.try_clone().map_err(Failure::new)?;
    let sender = Sender::new(run::sender_options(options), &shared, socket, ends.feed_to, way);
    let sender = sender.map_err(Failure::new)?;
    let (requests, mut asked) = run::create_queue();
    thread::scope(|scope| {
        let (shared, arena, coordinator) = (&shared, &arena, &coordinator);
        let count = CountPackets { arena, scratch: &scratch, coordinator, shared, requests };
        let hot = spawn(scope, "hot", || {
            let outcome = receive(options, ends, &frames, pinning, count);
            // Also if there was no path: the sender must not wait for it.
            shared.end();
            outcome
        })
        .map_err(Failure::new)?;
        let give_up = |_: &Failure| {
            shared.end();
            shared.end_sending();
            coordinator.give_up();
        };
        let as_recorded = options.as_recorded;
        let sender = spawn(scope, "sender", move || send(sender, capture, as_recorded))
            .map_err(Failure::new)
            .inspect_err(give_up)?;
        let arenas: [&dyn Arena; 1] = [arena];
        let memory = Arenas::new(&arenas);
        let send = || run::send_requests(&mut asked, ends);
        let (contract, contract_failures) = coordinator.run(&memory, &arenas, send, || hot.is_finished());
        let (counted, path, path_failure) = join(hot);
        let (sent, counts, capture_failure, sender_failure) = join(sender);
        let mut failures: Vec<_> = path_failure.into_iter().collect();
        // What failed behind the wire makes the sender fail.
        if failures.is_empty() && !coordinator.has_failed_fast() {
            failures.extend(sender_failure);
        }
        if failures.is_empty() && !coordinator.has_failed_fast() && counted.packets != sent.packets {
            failures.push(Failure::new("the packets behind the wire differ from those in front of it"));
        }
        failures.extend(capture_failure.map(|failure| failure.of_input(name)));
        failures.extend(contract_failures);
        let has_failed_fast = coordinator.has_failed_fast();
        Ok(Outcome { counted, sent, counts, path, contract, has_failed_fast, failures })
    })
}

/// Sends all packets of a capture, or those until a signal. Returns also why not all could be read, and why not all were sent.
fn send(
    sender: Sender<'_>,
    mut capture: Capture,
    as_recorded: bool,
) -> (Sent, SenderCounts, Option<Failure>, Option<Failure>) {
    let (mut sent, mut unread) = (Sent::default(), None);
    let (counts, failure) = sender.run_session(|sender| {
        let (mut outcome, mut first) = (Ok(()), None);
        let read = capture.read(|packet| {
            if packet.bytes.len() > BLOCK_SIZE {
                sent.too_long += 1;
                return true;
            }
            outcome = match packet.time.filter(|_| as_recorded) {
                Some(time) => {
                    let (began, at_first) = *first.get_or_insert_with(|| (Instant::now(), time));
                    // Packets of several interfaces need not be in the order of their times.
                    sender.wait_until(began + time.saturating_sub(at_first))
                }
                None => Ok(()),
            };
            outcome = core::mem::replace(&mut outcome, Ok(())).and_then(|()| sender.record(packet.bytes));
            if outcome.is_ok() {
                sent.packets.add(packet.bytes);
                sent.cut += u64::from(packet.is_cut);
            }
            outcome.is_ok() && stop::signal().is_none() && !sender.is_time_over()
        });
        unread = read.err();
        outcome
    });
    sent.links = capture.links;
    (sent, counts, unread, failure)
}

type HotOutcome = (Counted, Received, Option<Failure>);

/// Opens the source, and counts the packets.
fn receive<S: ManualPool>(
    options: &Options,
    ends: &Ends,
    frames: &FramePool<'_>,
    pinning: Pinning,
    count: CountPackets<'_, S>,
) -> HotOutcome {
    pinning.pin();
    let nothing = |failure| (Counted::default(), Received::default(), Some(failure));
    if let Err(error) = ends.enter_receiver() {
        return nothing(Failure::new(error));
    }
    match with_source(options.receiver, ends, frames, count) {
        Ok(outcome) => outcome.unwrap_or_else(nothing),
        Err(no_source) => {
            let (received, failure) = Received::without(no_source);
            (Counted::default(), received, Some(failure))
        }
    }
}

/// Counts the packets from whatever source there is.
struct CountPackets<'a, S> {
    arena: &'a ArenaVm,
    scratch: &'a S,
    coordinator: &'a Coordinator,
    shared: &'a Shared,
    requests: Producer<Request>,
}

impl<S: ManualPool> WithSource for CountPackets<'_, S> {
    type Outcome = Result<HotOutcome, Failure>;

    fn run<R: Source>(self, receiver: &'static str, fallback: Option<String>, source: R) -> Self::Outcome {
        let Self { arena, scratch, coordinator, shared, requests } = self;
        let no_room = |error| Failure::new(format_args!("no memory for the window: {error}"));
        let memory = PathMemory::take(scratch).map_err(no_room)?;
        let of_hot = |cause| Failure::from(HotFailure::from(cause));
        let latencies = Latency::histogram().map_err(of_hot)?;
        let counter = Counter::prepare(arena, coordinator).map_err(of_hot)?;
        let path = Path::new(counter, source, memory, shared, requests, latencies);
        let (counted, found, failure) = path.run();
        let failure = failure.map(Failure::new);
        Ok((counted, Received { is_refused: false, receiver, fallback, found }, failure))
    }
}

/// Counts packets under the contract.
struct Counter<'a> {
    coordinator: &'a Coordinator,
    guard: Guard<Reason>,
    meter: SteadyMeter<'a>,
    packets: Packets,
}

impl<'a> Counter<'a> {
    fn prepare(arena: &'a ArenaVm, coordinator: &'a Coordinator) -> Result<Self, HotCause> {
        let guard = coordinator.register().map_err(HotCause::NotRegistered)?;
        let meter = SteadyMeter::new(arena)?;
        Ok(Self { coordinator, guard, meter, packets: Packets::default() })
    }

    /// Waits until the coordinator says that the warm-up is over; from then on this thread is armed.
    fn warm_up(&mut self) {
        self.coordinator.finish_records();
        while !self.coordinator.is_warm_up_over() {
            self.guard.check();
            core::hint::spin_loop();
        }
        self.meter.begin();
        self.guard.check();
    }
}

impl Records for Counter<'_> {
    type Report = Counted;

    fn begin_burst(&mut self, _bytes: usize) {
        if !self.meter.has_begun() {
            self.warm_up();
        }
    }

    fn keep(&mut self, packet: &[u8]) -> Result<Option<Instant>, HotFailure> {
        self.packets.add(packet);
        self.guard.check();
        Ok(Some(Instant::now()))
    }

    fn has_failed_fast(&self) -> bool {
        self.coordinator.has_failed_fast()
    }

    fn finish(&self) -> Result<(), HotFailure> {
        self.guard.poll();
        self.guard.check();
        Ok(())
    }

    fn report(self) -> Counted {
        Counted { steady: self.meter.costs(), packets: self.packets }
    }
}
