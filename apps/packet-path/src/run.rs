//! A run: between which ends, of a feed or of captured packets, and how it ended.

use std::io::{self, ErrorKind, Write};

use order_book::failure::Failure;
use rtrb::{Consumer, Producer, RingBuffer};
use serde::Serialize;
use tripoint::ArenaVm;
use tripoint::packets::PacketPoolOptions;

use crate::af_xdp::FramePool;
use crate::cli::{Options, Receiver};
use crate::ends::Ends;
use crate::hot_packets::PathFound;
use crate::message::PREFIX_BYTES;
use crate::moldudp64::{self, Request};
use crate::path_report::write_json;
use crate::receivers::{FRAMES, NoSource};
use crate::sender::{SESSION, SenderOptions};
use crate::{book_run, capture_run};
use order_book::pinning::Pinning;

/// The most bytes of a datagram that fit into a frame of 1,500 bytes, behind the headers of IPv6 and UDP.
const DATAGRAM_BYTES: usize = 1_500 - 40 - 8;

/// Requests that may wait for the main thread.
const REQUESTS: usize = 1_024;

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

/// Runs and reports. Returns how it ended, and all that failed.
///
/// # Errors
/// If the run could not begin.
pub(crate) fn run(options: &Options) -> Result<(Ended, Vec<Failure>), Failure> {
    let no_log = |error| Failure::new(format_args!("the calls cannot be logged: {error}"));
    options.point_log.as_deref().map_or(Ok(()), point_log::begin).map_err(no_log)?;
    let (ended, mut failures) = match &options.pcap {
        Some(file) => capture_run::run(options, file),
        None => book_run::run(options),
    }?;
    failures.extend(point_log::end().map_err(no_log).err());
    Ok((ended, failures))
}

/// Makes the ends, takes signals, and leaves a processor to the hot thread; or says what the system does not allow, and what
/// runs without it.
pub(crate) fn prepare(options: &Options) -> Result<(Ends, Pinning), Failure> {
    let ends = open_ends(options)?;
    stop::install().map_err(Failure::new)?;
    Ok((ends, Pinning::leave_one()))
}

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

/// A pool of frames for any receiver.
pub(crate) fn create_frames(arena: &ArenaVm) -> Result<FramePool<'_>, Failure> {
    let options = PacketPoolOptions { count: FRAMES as u32, ..PacketPoolOptions::default() };
    point_log::call(|| FramePool::create(arena, options)).map(point_log::packets).map_err(Failure::new)
}

/// What the hot thread found behind the wire.
#[derive(Default)]
pub(crate) struct Received {
    /// The system does not allow the receiver that was asked for.
    pub(crate) is_refused: bool,
    pub(crate) receiver: &'static str,
    /// Why it is not the one that comes first.
    pub(crate) fallback: Option<String>,
    pub(crate) found: PathFound,
}

impl Received {
    /// Nothing, because there was no source; and why.
    pub(crate) fn without(source: NoSource) -> (Self, Failure) {
        match source {
            NoSource::Refused(failure) => (Self { is_refused: true, ..Self::default() }, failure),
            NoSource::Failed(failure) => (Self::default(), failure),
        }
    }
}

/// How the options have the sender send.
pub(crate) fn sender_options(options: &Options) -> SenderOptions {
    SenderOptions {
        datagram_bytes: DATAGRAM_BYTES,
        messages: options.per_datagram,
        pause: options.pause(),
        time_limit: core::time::Duration::from_secs(options.seconds),
        answers: !options.unanswered,
    }
}

/// A queue for requests, all of whose memory has been written to.
pub(crate) fn create_queue() -> (Producer<Request>, Consumer<Request>) {
    let (mut requests, mut asked) = RingBuffer::new(REQUESTS);
    while requests.push(Request { session: SESSION, sequence: 0, count: 0 }).is_ok() {}
    while asked.pop().is_ok() {}
    (requests, asked)
}

/// Sends what the hot thread asked for.
pub(crate) fn send_requests(asked: &mut Consumer<Request>, ends: &Ends) {
    while let Ok(request) = asked.pop() {
        // A request that is not sent is made again.
        let _ = ends.receiver.send_to(&request.bytes(), ends.requests_to);
    }
}

/// Prints the summary of a run, and writes its report. Returns how the run ended, and all that failed.
pub(crate) fn write_report(
    options: &Options,
    input: &str,
    report: &(impl core::fmt::Display + Serialize),
    has_failed_fast: bool,
    mut failures: Vec<Failure>,
) -> (Ended, Vec<Failure>) {
    failures.extend(write_summary(input, report).err());
    failures.extend(options.json.as_deref().and_then(|file| write_json(report, file).err()));
    (if has_failed_fast { Ended::FailedFast } else { Ended::Whole }, failures)
}

/// Prints a summary. A closed output is no failure.
fn write_summary(input: &str, report: &impl core::fmt::Display) -> Result<(), Failure> {
    match write!(io::stdout(), "{:<24}{input}\n{report}", "input") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format_args!("the summary cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
