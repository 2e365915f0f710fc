//! A run: its threads, its pools, and what it found.

use std::io::{self, ErrorKind, Read, Write};
use std::thread;

use indicatif::ProgressBar;
use rtrb::{Consumer, RingBuffer};
use tripoint::contract::Arenas;
use tripoint::{Arena, ManualPool, Mvff, MvffOptions, PacketPoolOptions, Store};

use crate::af_xdp::{AfXdp, FramePool, RING_ENTRIES};
use crate::cli::{Options, Receiver};
use crate::contract_report::ContractReport;
use crate::coordinator::Coordinator;
use crate::disturbance::Disturbance;
use crate::ends::{Ends, PORT};
use crate::failure::Failure;
use crate::handoff::Round;
use crate::hot::{HotReport, HotThread, Pools, Preparation};
use crate::hot_packets::{Path, PathFailure, PathFound, PathMemory, WINDOW_MESSAGES};
use crate::message::PREFIX_BYTES;
use crate::moldudp64::Request;
use crate::packet_mmap::PacketMmap;
use crate::path_report::{PathReport, WireReport};
use crate::pinning::Pinning;
use crate::recvmmsg::Recvmmsg;
use crate::reference::Reference;
use crate::rehearsal::Rehearsal;
use crate::report::Report;
use crate::sender::{Sender, SenderCounts, SenderOptions, Shared};
use crate::source::Source;
use crate::steady::Latency;
use crate::threads::{join, spawn};
use crate::{feed, hot_failure, levels, memory, moldudp64, reader, reference, report, stop};

/// The most bytes of a datagram that fit into a frame of 1,500 bytes, behind the headers of IPv6 and UDP.
const DATAGRAM_BYTES: usize = 1_500 - 40 - 8;

/// Requests that may wait for the main thread.
const REQUESTS: usize = 1_024;

/// The frames that are not with the kernel: those that wait in the window, and those in caches and in the burst.
const OTHER_FRAMES: usize = WINDOW_MESSAGES + 1_024;

/// The frames of either receiver.
const FRAMES: usize = RING_ENTRIES as usize + OTHER_FRAMES;

// A message has room in a datagram.
const _: () = assert!(DATAGRAM_BYTES > moldudp64::HEADER_BYTES + moldudp64::LENGTH_BYTES + PREFIX_BYTES);

/// How a run ended that could begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, well or not.
    Whole,
    /// A violation failed fast.
    FailedFast,
    /// The system does not allow what was asked for: nothing was received.
    Refused,
}

/// Makes the ends, runs and reports. Returns how it ended, and all that failed.
///
/// # Errors
/// If the run could not begin.
pub(crate) fn run(options: &Options) -> Result<(Ended, Vec<Failure>), Failure> {
    let progress = feed::progress_bar();
    // Before anything is made: what is not there is told at once.
    let name = feed::name(&options.feed);
    let input = feed::open(&options.feed, &progress).map_err(|failure| failure.of_input(&name))?;
    match open_ends(options) {
        Ok(ends) => run_between(options, input, &ends, &progress),
        Err(refusal) => Ok((Ended::Refused, vec![refusal])),
    }
}

/// Makes the ends, or says what the system does not allow, and what runs without it.
fn open_ends(options: &Options) -> Result<Ends, Failure> {
    if options.receiver == Some(Receiver::Loopback) {
        return Ends::on_loopback().map_err(Failure::new);
    }
    Ends::of_a_wire().map_err(|error| {
        let without = "--receiver loopback runs without, over the loopback interface";
        match error.kind() {
            ErrorKind::PermissionDenied => Failure::new(format_args!(
                "network namespaces and a wire between them need CAP_SYS_ADMIN and CAP_NET_ADMIN, as root has them; \
                 {without}"
            )),
            _ => Failure::new(format_args!(
                "two network namespaces and a wire (veth) between them cannot be made: {error}; {without}"
            )),
        }
    })
}

fn run_between(
    options: &Options,
    input: Box<dyn Read + Send>,
    ends: &Ends,
    progress: &ProgressBar,
) -> Result<(Ended, Vec<Failure>), Failure> {
    stop::install().map_err(Failure::new)?;
    let pinning = Pinning::leave_one();
    let outcome = keep_books(options, input, ends, pinning)?;
    progress.finish_and_clear();
    let Outcome { hot, reference, sent, path, contract, has_failed_fast, mut failures } = outcome;
    if path.is_refused {
        return Ok((Ended::Refused, failures));
    }
    let report = PathReport {
        book: Report::new(&hot, &reference, contract, None, None),
        wire: WireReport::new(path.receiver, path.fallback, pinning.processor(), sent, path.found),
    };
    failures.extend(write_summary(options, &report).err());
    failures.extend(options.json.as_deref().and_then(|file| report.write_json(file).err()));
    Ok((if has_failed_fast { Ended::FailedFast } else { Ended::Whole }, failures))
}

/// Prints the summary. A closed output is no failure.
fn write_summary(options: &Options, report: &PathReport) -> Result<(), Failure> {
    match write!(io::stdout(), "{:<24}{}\n{report}", "input", feed::name(&options.feed)) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format_args!("the summary cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// What the threads found, and all that failed.
struct Outcome {
    hot: HotReport,
    reference: Reference,
    sent: SenderCounts,
    path: Received,
    contract: ContractReport,
    has_failed_fast: bool,
    failures: Vec<Failure>,
}

/// What the hot thread found behind the wire.
#[derive(Default)]
struct Received {
    /// The system does not allow the receiver that was asked for.
    is_refused: bool,
    receiver: &'static str,
    /// Why it is not the one that comes first.
    fallback: Option<String>,
    found: PathFound,
}

/// Runs the threads on an arena with the pools. This thread is the contract's coordinator, and sends the requests.
///
/// # Errors
/// If the run could not begin; nothing was read then.
fn keep_books(
    options: &Options,
    mut input: Box<dyn Read + Send>,
    ends: &Ends,
    pinning: Pinning,
) -> Result<Outcome, Failure> {
    let arena = memory::create_arena()?;
    let levels = levels::create_pool(&arena).map_err(Failure::new)?;
    let rehearsed = levels::create_pool(&arena).map_err(Failure::new)?;
    let scratch = Mvff::create(&arena, MvffOptions::default()).map_err(Failure::new)?;
    let frames = PacketPoolOptions { count: FRAMES as u32, ..PacketPoolOptions::default() };
    let frames = FramePool::create(&arena, frames).map_err(Failure::new)?;
    let pools = Pools { arena: &arena, levels: &levels, scratch: &scratch, history: None };
    let coordinator = Coordinator::begin(options.hot.policy, options.hot.passes, 0).map_err(Failure::new)?;
    let rehearsal = Rehearsal::new(options.feed.market, &rehearsed)?;
    let shared = Shared::new();
    let way = Disturbance::new(options.odds(), options.seed);
    let socket = ends.sender.try_clone().map_err(Failure::new)?;
    let sender = Sender::new(sender_options(options), &shared, socket, ends.feed_to, way);
    let sender = sender.map_err(Failure::new)?;
    let (requests, mut asked) = RingBuffer::new(REQUESTS);
    let Round { to_hot: to_sender, to_reference, to_reader } = Round::new();
    thread::scope(|scope| {
        let reader = spawn(scope, "reader", move || reader::read(&mut *input, to_reader.1, to_sender.0))?;
        let behind = Behind { options, pinning, ends, frames: &frames, pools, coordinator: &coordinator };
        let hot = spawn(scope, "hot", || {
            let outcome = behind.run(rehearsal, &shared, requests);
            // Also if there was no path: the sender must not wait for it.
            shared.end();
            outcome
        })?;
        // Without these threads nothing would end the warm-up.
        let give_up = |_: &Failure| {
            shared.end();
            shared.end_sending();
            coordinator.give_up();
        };
        let sender =
            spawn(scope, "sender", move || sender.run(to_sender.1, to_reference.0)).inspect_err(give_up)?;
        let cold = spawn(scope, "cold", move || reference::keep(0, to_reference.1, to_reader.0))
            .inspect_err(give_up)?;
        let arenas: [&dyn Arena; 1] = [&arena];
        let memory = Arenas::new(&arenas);
        let send = || send_requests(&mut asked, ends);
        let (contract, contract_failures) = coordinator.run(&memory, &arenas, send, || hot.is_finished());
        let (hot, path, path_failure) = join(hot);
        let (sent, sender_failure) = join(sender);
        let (reference, cold_failure) = join(cold);
        let name = feed::name(&options.feed);
        let of_input =
            cold_failure.into_iter().chain(join(reader).err()).map(|failure| failure.of_input(&name));
        let mut failures: Vec<_> = path_failure.into_iter().chain(of_input).collect();
        // What failed in front of or behind the wire makes the sender fail, and the books differ.
        if failures.is_empty() && !coordinator.has_failed_fast() {
            failures.extend(sender_failure);
        }
        if failures.is_empty() && !coordinator.has_failed_fast() && !report::matches(&hot, &reference) {
            failures.push(Failure::new("the book differs from the reference"));
        }
        failures.extend(contract_failures);
        let has_failed_fast = coordinator.has_failed_fast();
        Ok(Outcome { hot, reference, sent, path, contract, has_failed_fast, failures })
    })
}

fn sender_options(options: &Options) -> SenderOptions {
    SenderOptions {
        datagram_bytes: DATAGRAM_BYTES,
        messages: options.per_datagram,
        pause: options.pause(),
        time_limit: core::time::Duration::from_secs(options.seconds),
        answers: !options.unanswered,
    }
}

/// Sends what the hot thread asked for.
fn send_requests(asked: &mut Consumer<Request>, ends: &Ends) {
    while let Ok(request) = asked.pop() {
        // A request that is not sent is made again.
        let _ = ends.receiver.send_to(&request.bytes(), ends.requests_to);
    }
}

/// What the hot thread has behind the wire.
#[derive(Clone, Copy)]
struct Behind<'a, L, S> {
    options: &'a Options,
    pinning: Pinning,
    ends: &'a Ends,
    frames: &'a FramePool<'a>,
    pools: Pools<'a, L, S>,
    coordinator: &'a Coordinator,
}

type HotOutcome = (HotReport, Received, Option<Failure>);

impl<'a, L: Store, S: ManualPool> Behind<'a, L, S> {
    /// Opens the source, and keeps the book.
    fn run(
        self,
        rehearsal: Rehearsal<'a, L>,
        shared: &Shared,
        requests: rtrb::Producer<Request>,
    ) -> HotOutcome {
        self.open(rehearsal, shared, requests)
            .unwrap_or_else(|failure| (HotReport::default(), Received::default(), Some(failure)))
    }

    fn open(
        self,
        rehearsal: Rehearsal<'a, L>,
        shared: &Shared,
        requests: rtrb::Producer<Request>,
    ) -> Result<HotOutcome, Failure> {
        self.pinning.pin();
        self.ends.enter_receiver().map_err(Failure::new)?;
        let (wanted, mut fallback) = (self.options.receiver, None);
        if matches!(wanted, None | Some(Receiver::Xdp)) {
            match AfXdp::open(self.frames, PORT) {
                Ok(source) => return self.keep("AF_XDP", None, source, rehearsal, shared, requests),
                Err(error) if wanted.is_none() => fallback = Some(refusal("AF_XDP", "CAP_BPF", &error)),
                Err(error) => return Ok(refused("AF_XDP", "CAP_BPF", &error)),
            }
        }
        if matches!(wanted, None | Some(Receiver::Packet)) {
            return match PacketMmap::open(self.frames, PORT) {
                Ok(source) => self.keep("PACKET_MMAP", fallback, source, rehearsal, shared, requests),
                Err(error) => Ok(refused("PACKET_MMAP", "CAP_NET_RAW", &error)),
            };
        }
        let socket = self.ends.receiver.try_clone().map_err(Failure::new)?;
        let source = Recvmmsg::new(socket, FRAMES).map_err(Failure::new)?;
        self.keep("recvmmsg", None, source, rehearsal, shared, requests)
    }

    fn keep<R: Source>(
        self,
        receiver: &'static str,
        fallback: Option<String>,
        source: R,
        rehearsal: Rehearsal<'a, L>,
        shared: &Shared,
        requests: rtrb::Producer<Request>,
    ) -> Result<HotOutcome, Failure> {
        let hot = &self.options.hot;
        let preparation =
            Preparation { warmup_messages: hot.warmup, levels: hot.levels, history: 0, inject: hot.inject };
        let no_room = |error| Failure::new(format_args!("no memory for the window: {error}"));
        let memory = PathMemory::take(self.pools.scratch).map_err(no_room)?;
        let of_hot = |cause| Failure::from(hot_failure::HotFailure::from(cause));
        let latencies = Latency::histogram().map_err(of_hot)?;
        let thread =
            HotThread::prepare(preparation, self.coordinator, self.pools, rehearsal).map_err(of_hot)?;
        let path = Path::new(thread, source, memory, shared, requests, latencies);
        let (report, found, failure) = path.run();
        let name = feed::name(&self.options.feed);
        let failure = failure.map(|failure| match failure {
            PathFailure::Record(record) => Failure::from(record).of_input(&name),
            other => Failure::new(other),
        });
        Ok((report, Received { is_refused: false, receiver, fallback, found }, failure))
    }
}

/// Nothing was received.
fn refused(receiver: &str, privilege: &str, error: &io::Error) -> HotOutcome {
    let failure = Failure::new(refusal(receiver, privilege, error));
    (HotReport::default(), Received { is_refused: true, ..Received::default() }, Some(failure))
}

/// Why a receiver cannot be, and what can.
fn refusal(receiver: &str, privilege: &str, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            format!("{receiver} needs {privilege}, as root has it: {error}; see --receiver")
        }
        _ => format!("{receiver} is not to be had from this kernel: {error}; see --receiver"),
    }
}
