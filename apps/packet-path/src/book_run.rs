//! A run of a feed: the book behind the wire, and the reference in front of it.

use std::io::Read;
use std::thread;

use order_book::contract_report::ContractReport;
use order_book::coordinator::Coordinator;
use order_book::failure::Failure;
use order_book::handoff::Round;
use order_book::hot::{HotReport, HotThread, Pools, Preparation};
use order_book::places::Places;
use order_book::reference::{Reference, ReferenceOptions};
use order_book::rehearsal::Rehearsal;
use order_book::report::Report;
use order_book::steady::Latency;
use order_book::{book_report, feed, hot_failure, kept, levels, memory, reader, reference, report};
use stop::threads::{join, spawn};
use tripoint::contract::Arenas;
use tripoint::{Arena, ManualPool, Mvff, MvffOptions, Store};

use crate::af_xdp::FramePool;
use crate::cli::Options;
use crate::disturbance::Disturbance;
use crate::ends::Ends;
use crate::hot_packets::{Path, PathMemory};
use crate::moldudp64::Request;
use crate::path_failure::PathFailure;
use crate::path_report::{PathReport, WireReport};
use crate::receivers::{WithSource, with_source};
use crate::run;
use crate::run::{Ended, Received};
use crate::sender::{Sender, SenderCounts, Shared};
use crate::source::Source;
use order_book::pinning::Pinning;

/// Runs and reports. Returns how it ended, and all that failed.
///
/// # Errors
/// If the run could not begin.
pub(crate) fn run(options: &Options) -> Result<(Ended, Vec<Failure>), Failure> {
    let progress = feed::progress_bar();
    let name = feed::name(&options.feed);
    // Before anything is made: what is not there is told at once.
    let input = feed::open(&options.feed, &progress).map_err(|failure| failure.of_input(&name))?;
    let (ends, pinning) = match run::prepare(options) {
        Ok(prepared) => prepared,
        Err(refusal) => return Ok((Ended::Refused, vec![refusal])),
    };
    let outcome = keep_books(options, input, &ends, pinning)?;
    progress.finish_and_clear();
    let Outcome { hot, reference, sent, path, contract, has_failed_fast, failures } = outcome;
    if path.is_refused {
        return Ok((Ended::Refused, failures));
    }
    let wire = WireReport::new(path.receiver, path.fallback, pinning.processor(), sent, path.found);
    let of_book = hot.latency;
    let report = PathReport::new(
        Report::new(&hot, &reference, contract, None, None, &Places::default()),
        of_book,
        wire,
    );
    Ok(run::write_report(options, &name, &report, has_failed_fast, failures))
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

/// Runs the threads on an arena with the pools. This thread is the contract's coordinator, and sends the requests.
///
/// # Errors
/// If the run could not begin; nothing was read then.
fn keep_books(
    options: &Options,
    input: Box<dyn Read + Send>,
    ends: &Ends,
    pinning: Pinning,
) -> Result<Outcome, Failure> {
    let arena = memory::create_arena()?;
    let levels = levels::create_pool(&arena).map_err(Failure::new)?;
    let rehearsed = levels::create_pool(&arena).map_err(Failure::new)?;
    let kept = kept::create_pool(&arena).map_err(Failure::new)?;
    let scratch =
        Mvff::create(&arena, MvffOptions::default()).map(point_log::logged).map_err(Failure::new)?;
    let frames = run::create_frames(&arena)?;
    if point_log::is_on() {
        let (logged, rehearsed) = (point_log::store(&levels), point_log::store(&rehearsed));
        let pools = Pools { arena: &arena, levels: &logged, kept: &kept, scratch: &scratch, history: None };
        return run_threads(options, input, ends, pinning, &frames, pools, &rehearsed);
    }
    let pools = Pools { arena: &arena, levels: &levels, kept: &kept, scratch: &scratch, history: None };
    run_threads(options, input, ends, pinning, &frames, pools, &rehearsed)
}

/// Runs the threads. `rehearsed` is where the rehearsal has its levels.
fn run_threads<L: Store + Sync, S: ManualPool + Sync>(
    options: &Options,
    mut input: Box<dyn Read + Send>,
    ends: &Ends,
    pinning: Pinning,
    frames: &FramePool<'_>,
    pools: Pools<'_, L, S>,
    rehearsed: &L,
) -> Result<Outcome, Failure> {
    let arenas: [&dyn Arena; 1] = [pools.arena];
    let coordinator = Coordinator::begin(options.hot.policy, options.hot.passes, 0).map_err(Failure::new)?;
    let rehearsal = Rehearsal::new(options.feed.market, rehearsed, pools.kept)?;
    let shared = Shared::new();
    let way = Disturbance::new(options.odds(), options.seed);
    let socket = ends.sender.try_clone().map_err(Failure::new)?;
    let sender = Sender::new(run::sender_options(options), &shared, socket, ends.feed_to, way);
    let sender = sender.map_err(Failure::new)?;
    let (requests, mut asked) = run::create_queue();
    let of_reference = ReferenceOptions { history: 0, kept: options.hot.kept, is_wanted: true };
    let Round { to_hot: to_sender, to_reference, to_reader } = Round::new();
    thread::scope(|scope| {
        let reader = spawn(scope, "reader", move || reader::read(&mut *input, to_reader.1, to_sender.0))
            .map_err(Failure::new)?;
        let behind = Behind { options, pinning, ends, frames, pools, coordinator: &coordinator };
        let hot = spawn(scope, "hot", || {
            let outcome = behind.run(rehearsal, &shared, requests);
            // Also if there was no path: the sender must not wait for it.
            shared.end();
            outcome
        })
        .map_err(Failure::new)?;
        // Without these threads nothing would end the warm-up.
        let give_up = |_: &Failure| {
            shared.end();
            shared.end_sending();
            coordinator.give_up();
        };
        let sender = spawn(scope, "sender", move || sender.run(to_sender.1, to_reference.0))
            .map_err(Failure::new)
            .inspect_err(give_up)?;
        let cold =
            spawn(scope, "cold", move || reference::keep(of_reference, None, to_reference.1, to_reader.0))
                .map_err(Failure::new)
                .inspect_err(give_up)?;
        let memory = Arenas::new(&arenas);
        let send = || run::send_requests(&mut asked, ends);
        let (contract, contract_failures) = coordinator.run(&memory, &arenas, send, || hot.is_finished());
        let (mut hot, path, path_failure) = join(hot);
        hot.pinned_to = pinning.processor();
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
        if failures.is_empty()
            && !coordinator.has_failed_fast()
            && report::matches(&hot, &reference) == Some(false)
        {
            failures.push(Failure::new("the book differs from the reference"));
        }
        failures.extend(contract_failures);
        if failures.is_empty() && !coordinator.has_failed_fast() && !path.is_refused {
            failures.extend(book_report::failures(&hot, &Places::default()));
        }
        let has_failed_fast = coordinator.has_failed_fast();
        Ok(Outcome { hot, reference, sent, path, contract, has_failed_fast, failures })
    })
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
        shared: &'a Shared,
        requests: rtrb::Producer<Request>,
    ) -> HotOutcome {
        self.pinning.pin();
        let nothing = |failure| (HotReport::default(), Received::default(), Some(failure));
        if let Err(error) = self.ends.enter_receiver() {
            return nothing(Failure::new(error));
        }
        let (wanted, ends, frames) = (self.options.receiver, self.ends, self.frames);
        match with_source(wanted, ends, frames, KeepBook { behind: self, rehearsal, shared, requests }) {
            Ok(outcome) => outcome.unwrap_or_else(nothing),
            Err(no_source) => {
                let (received, failure) = Received::without(no_source);
                (HotReport::default(), received, Some(failure))
            }
        }
    }
}

/// Keeps the book from whatever source there is.
struct KeepBook<'a, L: Store, S> {
    behind: Behind<'a, L, S>,
    rehearsal: Rehearsal<'a, L>,
    shared: &'a Shared,
    requests: rtrb::Producer<Request>,
}

impl<L: Store, S: ManualPool> WithSource for KeepBook<'_, L, S> {
    type Outcome = Result<HotOutcome, Failure>;

    fn run<R: Source>(self, receiver: &'static str, fallback: Option<String>, source: R) -> Self::Outcome {
        let Self { behind, rehearsal, shared, requests } = self;
        let hot = &behind.options.hot;
        let preparation = Preparation::new(hot, &behind.options.feed, 0);
        let no_room = |error| Failure::new(format_args!("no memory for the window: {error}"));
        let memory = PathMemory::take(behind.pools.scratch).map_err(no_room)?;
        let of_hot = |cause| Failure::from(hot_failure::HotFailure::from(cause));
        let latencies = Latency::histogram().map_err(of_hot)?;
        let thread = HotThread::prepare(preparation, behind.coordinator, behind.pools, rehearsal, ())
            .map_err(of_hot)?;
        let path = Path::new(thread, source, memory, shared, requests, latencies);
        let (report, found, failure) = path.run();
        let name = feed::name(&behind.options.feed);
        let failure = failure.map(|failure| match failure {
            PathFailure::Record(record) => Failure::from(record).of_input(&name),
            other => Failure::new(other),
        });
        Ok((report, Received { is_refused: false, receiver, fallback, found }, failure))
    }
}
