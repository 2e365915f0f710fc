//! A full-depth order book whose every hot-path object comes from a pool.
//!
//! ```text
//!   file or exchange --> reader --> hot thread --> reference
//!                          ^         book: Mfs        |
//!                          |         scratch: Mvff    |
//!                          |         history: Amc     |
//!                          +------- empty blocks -----+
//! ```
//!
//! The first records are the warm-up. Then the arena is frozen, and what the hot
//! thread asks of the arena, the global allocator and the kernel is a violation of
//! the steady-state contract: counted, and traced to its line.
//!
//! Design: `design/order-book.md`.

mod cli;

use core::cell::Cell;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::thread;

use order_book::contract_report::ContractReport;
use order_book::coordinator::Coordinator;
use order_book::failure::Failure;
use order_book::handoff::{BLOCK_SIZE, Round};
use order_book::hot::{HotReport, Pools, Preparation};
use order_book::levels_file::write_levels;
use order_book::pace::Pace;
use order_book::pinning::Pinning;
use order_book::places::Places;
use order_book::reader::Input;
use order_book::reference::{Reference, ReferenceOptions};
use order_book::rehearsal::Rehearsal;
use order_book::report::Report;
use order_book::tops::{self, Tops, TopsFile};
use order_book::{
    blocks, book_report, feed, historian, kept, levels, memory, reader, reference, report, telemetry,
};
use stop::threads::{join, spawn};
use tripoint::contract::Arenas;
use tripoint::gc::{Heap, HeapOptions};
use tripoint::{Arena, ManualPool, Mvff, MvffOptions, Store};

use crate::cli::Options;

/// The exit status if a violation failed fast.
const FAILED_FAST: u8 = 3;

fn main() -> ExitCode {
    let (has_failed_fast, failures) = match run(&Options::from_command_line()) {
        Ok(outcome) => outcome,
        Err(failure) => (false, vec![failure]),
    };
    for failure in &failures {
        // If this cannot be written either, there is nothing left to do.
        let _ = writeln!(std::io::stderr(), "order-book: {failure}");
    }
    let signalled = stop::status();
    match signalled {
        _ if has_failed_fast => FAILED_FAST.into(),
        _ if !failures.is_empty() => ExitCode::FAILURE,
        Some(status) => status.into(),
        None => ExitCode::SUCCESS,
    }
}

/// Runs and reports. Returns whether a violation failed fast, and all that failed.
fn run(options: &Options) -> Result<(bool, Vec<Failure>), Failure> {
    stop::install().map_err(Failure::new)?;
    telemetry::begin(&options.telemetry)?;
    let no_log = |error| Failure::new(format_args!("the calls cannot be logged: {error}"));
    options.point_log.as_deref().map_or(Ok(()), point_log::begin).map_err(no_log)?;
    let progress = feed::progress_bar();
    let Outcome { hot, reference, contract, places, has_failed_fast, mut failures } =
        keep_books(options, feed::open_all(&options.feed, &progress))?;
    progress.finish_and_clear();
    failures.extend(point_log::end().map_err(no_log).err());
    if failures.is_empty() && !has_failed_fast {
        failures.extend(book_report::failures(&hot, &places));
    }
    let report = Report::new(&hot, &reference, contract, telemetry::samples(), options.history, &places);
    failures.extend(options.book.as_deref().and_then(|path| write_levels(&hot.books, path).err()));
    failures.extend(write_summary(options, &report).err());
    failures.extend(options.json.as_deref().and_then(|path| report.write_json(path).err()));
    Ok((has_failed_fast, failures))
}

/// Prints the summary. A closed output is no failure.
fn write_summary(options: &Options, report: &Report) -> Result<(), Failure> {
    match write!(std::io::stdout(), "{:<24}{}\n{report}", "input", feed::name(&options.feed)) {
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
    contract: ContractReport,
    places: Places,
    has_failed_fast: bool,
    failures: Vec<Failure>,
}

/// Runs the three threads on an arena with three pools, and those of the history, under contract. This thread
/// is the contract's coordinator.
///
/// # Errors
/// Where the run could not begin; nothing was read then.
fn keep_books(options: &Options, inputs: Vec<Input>) -> Result<Outcome, Failure> {
    let arena = memory::create_arena()?;
    let levels = levels::create_pool(&arena).map_err(Failure::new)?;
    let rehearsed = levels::create_pool(&arena).map_err(Failure::new)?;
    let kept = kept::create_pool(&arena).map_err(Failure::new)?;
    let scratch = Mvff::create(&arena, MvffOptions::default()).map_err(Failure::new)?;
    let heap = options.history.map(|_| Heap::create(&arena, HeapOptions::default())).transpose();
    let heap = heap.map_err(Failure::new)?;
    let history = heap.as_ref().map(historian::create_objects).transpose().map_err(Failure::new)?;
    if point_log::is_on() {
        let (logged, rehearsed) = (point_log::store(&levels), point_log::store(&rehearsed));
        let pools = Pools { arena: &arena, levels: &logged, kept: &kept, scratch: &scratch, history: None };
        return run_threads(options, inputs, pools, &rehearsed, || ());
    }
    if !telemetry::may_sample(&options.telemetry) {
        return run_threads(
            options,
            inputs,
            Pools {
                arena: &arena,
                levels: &levels,
                kept: &kept,
                scratch: &scratch,
                history: history.as_ref(),
            },
            &rehearsed,
            || (),
        );
    }
    let (sampled, sampled_rehearsed) = (telemetry::sampled(&levels), telemetry::sampled(&rehearsed));
    let looks = Cell::new(0_u32);
    run_threads(
        options,
        inputs,
        Pools { arena: &arena, levels: &sampled, kept: &kept, scratch: &scratch, history: history.as_ref() },
        &sampled_rehearsed,
        || {
            telemetry::follow_switches([&sampled, &sampled_rehearsed]);
            if looks.replace(looks.get().wrapping_add(1)).is_multiple_of(LOOKS_PER_NOTE) {
                [&levels, &rehearsed].into_iter().for_each(telemetry::note_sizes);
                telemetry::note_sizes(&scratch);
            }
        },
    )
}

/// How many looks of the coordinator there are between two notes of the pools' sizes.
const LOOKS_PER_NOTE: u32 = 20;

/// Runs the three threads. `rehearsed` is where the rehearsal has its levels; `follow_switches` is
/// called now and then.
fn run_threads<L: Store + Sync, S: ManualPool + Sync>(
    options: &Options,
    inputs: Vec<Input>,
    pools: Pools<'_, L, S>,
    rehearsed: &L,
    follow_switches: impl Fn(),
) -> Result<Outcome, Failure> {
    let arenas: [&dyn Arena; 1] = [pools.arena];
    let quiet_moments = options.history.map_or(0, |_| options.quiet_moments);
    let coordinator =
        Coordinator::begin(options.hot.policy, options.hot.passes, quiet_moments).map_err(Failure::new)?;
    let rehearsal = Rehearsal::new(options.feed.market, rehearsed, pools.kept)?;
    let preparation = Preparation::new(&options.hot, &options.feed, options.history.unwrap_or(0));
    let of_reference = ReferenceOptions {
        history: preparation.history,
        kept: preparation.memory.kept,
        is_wanted: !options.no_reference,
    };
    let tops_file = options.tops.as_deref().map(TopsFile::create).transpose()?;
    let tops_of_block = tops_file.as_ref().map_or(0, |_| tops::bound(BLOCK_SIZE, preparation.memory.kept));
    let tops = Tops::new(tops_file.as_ref().map_or(0, |_| preparation.memory.symbols));
    let Round { to_hot, to_reference, to_reader } = Round::with_tops(tops_of_block);
    let names = feed::names(&options.feed);
    // The threads that are made from here on leave a processor to the hot one.
    let pinning = if options.pin { Pinning::leave_one() } else { Pinning::NONE };
    let pace = options.as_recorded.then(Pace::new);
    let is_time_over = || options.time().is_some_and(|time| coordinator.steady_time() >= time);
    let is_over = || stop::signal().is_some() || is_time_over();
    thread::scope(|scope| {
        let reader = spawn(scope, "reader", move || {
            reader::read_all(inputs, names, pace, is_over, to_reader.1, to_hot.0)
        })
        .map_err(Failure::new)?;
        let hot = spawn(scope, "hot", || {
            pinning.pin();
            blocks::keep(preparation, &coordinator, pools, rehearsal, tops, to_hot.1, to_reference.0)
        })
        .map_err(Failure::new)?;
        // Without this thread nothing would end the warm-up.
        let cold = spawn(scope, "cold", move || {
            reference::keep(of_reference, tops_file, to_reference.1, to_reader.0)
        })
        .inspect_err(|_| coordinator.give_up())
        .map_err(Failure::new)?;
        let memory = Arenas::new(&arenas);
        let (contract, contract_failures) =
            coordinator.run(&memory, &arenas, follow_switches, || hot.is_finished());
        let (mut hot, hot_failure) = join(hot);
        (hot.pinned_to, hot.is_pin_wanted) = (pinning.processor(), options.pin);
        let (reference, cold_failure) = join(cold);
        let is_different = cold_failure.is_none() && report::matches(&hot, &reference) == Some(false);
        let difference = is_different.then(|| Failure::new("the book differs from the reference"));
        let is_past_different =
            cold_failure.is_none() && report::history_matches(&hot, &reference) == Some(false);
        let past_difference =
            is_past_different.then(|| Failure::new("the history differs from the reference"));
        // In the order of the lines they are about.
        let (places, outcome) = join(reader);
        let of_input = hot_failure.map(Failure::from).into_iter().chain(cold_failure).chain(outcome.err());
        let of_input = of_input.map(|failure| places.name(&failure));
        let failures = of_input.chain(difference).chain(past_difference).chain(contract_failures).collect();
        Ok(Outcome {
            hot,
            reference,
            contract,
            places: places.clone(),
            has_failed_fast: coordinator.has_failed_fast(),
            failures,
        })
    })
}
