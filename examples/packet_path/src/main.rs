//! Packets from the wire to the order book, in pool memory from the driver's ring to the last free.
//!
//! ```text
//!   namespace of the sender                      namespace of the receiver
//!   file or exchange --> sender ===== wire ====> hot thread: ring, window, book
//!                          ^ |  <--- requests --     all its memory from pools
//!                   empty  | | blocks
//!                   blocks | v
//!                       reference                 main thread: contract, requests
//! ```
//!
//! The reference has the records from in front of the wire, and the hot thread from behind it.
//!
//! Design: `design/packet-path.md`; the book: `design/order-book.md`.

// What is the packet path's own.
mod af_xdp;
mod cli;
mod disturbance;
mod ends;
mod frame;
mod hot_packets;
mod link;
mod message;
mod moldudp64;
mod namespace;
mod packet_mmap;
mod path_report;
mod pinning;
mod recvmmsg;
mod redirect;
mod sender;
mod sent;
mod source;
mod window;

// The order book, included as it is, because an example is no library. Its files name each other from the root of their
// crate, and their own tests run there.
#[allow(dead_code)]
#[path = "../../order_book/allocator_calls.rs"]
mod allocator_calls;
#[allow(dead_code)]
#[path = "../../order_book/book.rs"]
mod book;
#[allow(dead_code)]
#[path = "../../order_book/contract_report.rs"]
mod contract_report;
#[allow(dead_code)]
#[path = "../../order_book/coordinator.rs"]
mod coordinator;
#[allow(dead_code)]
#[path = "../../order_book/decimal.rs"]
mod decimal;
#[allow(dead_code)]
#[path = "../../order_book/event.rs"]
mod event;
#[allow(dead_code)]
#[path = "../../order_book/failure.rs"]
mod failure;
#[allow(dead_code)]
#[path = "../../order_book/faults.rs"]
mod faults;
#[allow(dead_code)]
#[path = "../../order_book/feed.rs"]
mod feed;
#[allow(dead_code)]
#[path = "../../order_book/generator.rs"]
mod generator;
#[allow(dead_code)]
#[path = "../../order_book/handoff.rs"]
mod handoff;
#[allow(dead_code)]
#[path = "../../order_book/historian.rs"]
mod historian;
#[allow(dead_code)]
#[path = "../../order_book/history.rs"]
mod history;
#[allow(dead_code)]
#[path = "../../order_book/history_report.rs"]
mod history_report;
#[allow(dead_code)]
#[path = "../../order_book/hot.rs"]
mod hot;
#[allow(dead_code)]
#[path = "../../order_book/hot_failure.rs"]
mod hot_failure;
#[allow(dead_code)]
#[path = "../../order_book/inject.rs"]
mod inject;
#[allow(dead_code)]
#[path = "../../order_book/json.rs"]
mod json;
#[allow(dead_code)]
#[path = "../../order_book/keeper.rs"]
mod keeper;
#[allow(dead_code)]
#[path = "../../order_book/levels.rs"]
mod levels;
#[allow(dead_code)]
#[path = "../../order_book/lock.rs"]
mod lock;
#[allow(dead_code)]
#[path = "../../order_book/lookout.rs"]
mod lookout;
#[allow(dead_code)]
#[path = "../../order_book/malformed.rs"]
mod malformed;
#[allow(dead_code)]
#[path = "../../order_book/market.rs"]
mod market;
#[allow(dead_code)]
#[path = "../../order_book/memory.rs"]
mod memory;
#[allow(dead_code)]
#[path = "../../order_book/options.rs"]
mod options;
#[allow(dead_code)]
#[path = "../../order_book/reader.rs"]
mod reader;
#[allow(dead_code)]
#[path = "../../order_book/record.rs"]
mod record;
#[allow(dead_code)]
#[path = "../../order_book/reference.rs"]
mod reference;
#[allow(dead_code)]
#[path = "../../order_book/rehearsal.rs"]
mod rehearsal;
#[allow(dead_code)]
#[path = "../../order_book/report.rs"]
mod report;
#[allow(dead_code)]
#[path = "../../order_book/steady.rs"]
mod steady;
#[allow(dead_code)]
#[path = "../../order_book/stop.rs"]
mod stop;
#[allow(dead_code)]
#[path = "../../order_book/summary.rs"]
mod summary;
#[allow(dead_code)]
#[path = "../../order_book/tally.rs"]
mod tally;
#[allow(dead_code)]
#[path = "../../order_book/telemetry.rs"]
mod telemetry;
#[allow(dead_code)]
#[path = "../../order_book/threads.rs"]
mod threads;
#[allow(dead_code)]
#[path = "../../order_book/wire.rs"]
mod wire;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::thread;

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
use crate::feed::Input;
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

/// The exit status if the system does not allow what was asked for.
const REFUSED: u8 = 2;

/// The exit status if a violation failed fast.
const FAILED_FAST: u8 = 3;

/// Added to the number of the signal that ended a run, as shells do.
const SIGNALLED: u32 = 128;

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

fn main() -> ExitCode {
    let options = Options::from_command_line();
    let (status, failures) = match open_ends(&options) {
        Err(refusal) => (Some(REFUSED), vec![refusal]),
        Ok(ends) => match run(&options, &ends) {
            Ok((has_failed_fast, failures)) => (has_failed_fast.then_some(FAILED_FAST), failures),
            Err(failure) => (None, vec![failure]),
        },
    };
    for failure in &failures {
        // If this cannot be written either, there is nothing left to do.
        let _ = writeln!(io::stderr(), "packet-path: {failure}");
    }
    let signalled = stop::signal().and_then(|signal| u8::try_from(SIGNALLED + signal).ok());
    match status.or(signalled) {
        Some(status) if status == REFUSED || status == FAILED_FAST => status.into(),
        _ if !failures.is_empty() => ExitCode::FAILURE,
        Some(status) => status.into(),
        None => ExitCode::SUCCESS,
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

/// Runs and reports. Returns whether a violation failed fast, and all that failed.
fn run(options: &Options, ends: &Ends) -> Result<(bool, Vec<Failure>), Failure> {
    stop::install().map_err(Failure::new)?;
    let pinning = Pinning::leave_one();
    let progress = feed::progress_bar();
    let input = feed::open(&options.feed, &progress);
    let outcome = keep_books(options, input, ends, pinning)?;
    progress.finish_and_clear();
    let Outcome { hot, reference, sent, path, contract, has_failed_fast, mut failures } = outcome;
    let report = PathReport {
        book: Report::new(&hot, &reference, contract, None, None),
        wire: WireReport::new(path.receiver, path.fallback, pinning.processor(), sent, path.found),
    };
    failures.extend(write_summary(options, &report).err());
    failures.extend(options.json.as_deref().and_then(|file| report.write_json(file).err()));
    Ok((has_failed_fast, failures))
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
    receiver: &'static str,
    /// Why it is not the one that comes first.
    fallback: Option<String>,
    found: PathFound,
}

/// Runs the threads on an arena with the pools. This thread is the contract's coordinator, and sends the requests.
///
/// # Errors
/// If the run could not begin; nothing was read then.
fn keep_books(options: &Options, input: Input, ends: &Ends, pinning: Pinning) -> Result<Outcome, Failure> {
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
        let reader = spawn(scope, "reader", move || {
            input.and_then(|mut input| reader::read(&mut *input, to_reader.1, to_sender.0))
        })?;
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
                Err(error) => return Err(Failure::new(refusal("AF_XDP", "CAP_BPF", &error))),
            }
        }
        if matches!(wanted, None | Some(Receiver::Packet)) {
            let source = PacketMmap::open(self.frames, PORT)
                .map_err(|error| Failure::new(refusal("PACKET_MMAP", "CAP_NET_RAW", &error)))?;
            return self.keep("PACKET_MMAP", fallback, source, rehearsal, shared, requests);
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
        Ok((report, Received { receiver, fallback, found }, failure))
    }
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
