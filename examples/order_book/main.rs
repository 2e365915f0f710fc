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

mod allocator_calls;
mod book;
mod cli;
mod coordinator;
mod decimal;
mod event;
mod failure;
mod faults;
mod generator;
mod handoff;
mod historian;
mod history;
mod hot;
mod hot_failure;
mod inject;
mod json;
mod keeper;
mod levels;
mod lock;
mod lookout;
mod malformed;
mod reader;
mod record;
mod reference;
mod rehearsal;
mod report;
mod steady;
#[cfg_attr(not(unix), path = "no_stop.rs")]
mod stop;
mod tally;
mod telemetry;
mod wire;

use std::io::{ErrorKind, Read, Write};
use std::process::ExitCode;
use std::thread::{self, Scope, ScopedJoinHandle};

use indicatif::{ProgressBar, ProgressStyle};
use tripoint::contract::Arenas;
use tripoint::{Arena, ArenaVm, ArenaVmOptions, Error, ManualPool, Mvff, MvffOptions, Prefault, Store};
use tripoint_gc::{Heap, HeapOptions};

use crate::cli::Options;
use crate::coordinator::Coordinator;
use crate::failure::Failure;
use crate::generator::Generator;
use crate::handoff::Round;
use crate::hot::{HotReport, Pools, Preparation};
use crate::reference::Reference;
use crate::rehearsal::Rehearsal;
use crate::report::{ContractReport, Report};

/// The exit status if a violation failed fast.
const FAILED_FAST: u8 = 3;

/// Added to the number of the signal that ended a run, as shells do.
const SIGNALLED: u32 = 128;

fn main() -> ExitCode {
    let (has_failed_fast, failures) = match run(&Options::from_command_line()) {
        Ok(outcome) => outcome,
        Err(failure) => (false, vec![failure]),
    };
    for failure in &failures {
        // If this cannot be written either, there is nothing left to do.
        let _ = writeln!(std::io::stderr(), "order_book: {failure}");
    }
    let signalled = stop::signal().and_then(|signal| u8::try_from(SIGNALLED + signal).ok());
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
    telemetry::begin(options)?;
    let progress = progress_bar();
    let Outcome { hot, reference, contract, has_failed_fast, mut failures } =
        keep_books(options, open_input(options, &progress))?;
    progress.finish_and_clear();
    let report = Report::new(&hot, &reference, contract, telemetry::samples(), options.history);
    failures.extend(write_summary(options, &report).err());
    failures.extend(options.json.as_deref().and_then(|path| report.write_json(path).err()));
    Ok((has_failed_fast, failures))
}

/// Prints the summary. A closed output is no failure.
fn write_summary(options: &Options, report: &Report) -> Result<(), Failure> {
    match write!(std::io::stdout(), "{:<24}{}\n{report}", "input", input_name(options)) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format_args!("the summary cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// A bar on a terminal; nothing elsewhere.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent}% {elapsed} (left: {eta})");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

type Input = Result<Box<dyn Read + Send>, Failure>;

fn open_input(options: &Options, progress: &ProgressBar) -> Input {
    match &options.input {
        Some(path) => reader::open(path, progress),
        None => Ok(Box::new(Generator::new(options.market, options.profile, options.messages, progress))),
    }
}

fn input_name(options: &Options) -> String {
    match &options.input {
        Some(path) => path.display().to_string(),
        None => format!(
            "built-in exchange, {:?}, {:?}, seed {:#x}",
            options.market,
            options.profile,
            generator::SEED
        ),
    }
}

/// What the threads found, and all that failed.
struct Outcome {
    hot: HotReport,
    reference: Reference,
    contract: ContractReport,
    has_failed_fast: bool,
    failures: Vec<Failure>,
}

/// Runs the three threads on an arena with three pools, and those of the history, under contract. This thread
/// is the contract's coordinator.
///
/// # Errors
/// Where the run could not begin; nothing was read then.
fn keep_books(options: &Options, input: Input) -> Result<Outcome, Failure> {
    share_heap();
    let headroom = hold_headroom()?;
    let arena = create_arena().map_err(Failure::new)?;
    drop(headroom);
    let levels = levels::create_pool(&arena).map_err(Failure::new)?;
    let rehearsed = levels::create_pool(&arena).map_err(Failure::new)?;
    let scratch = Mvff::create(&arena, MvffOptions::default()).map_err(Failure::new)?;
    let heap = Heap::create(&arena, HeapOptions::default()).map_err(Failure::new)?;
    let history = options.history.map(|_| historian::create_objects(&heap)).transpose();
    let history = history.map_err(Failure::new)?;
    if !telemetry::may_sample(options) {
        return run_threads(
            options,
            input,
            Pools { arena: &arena, levels: &levels, scratch: &scratch, history: history.as_ref() },
            &rehearsed,
            || (),
        );
    }
    let (levels, rehearsed) = (telemetry::sampled(&levels), telemetry::sampled(&rehearsed));
    run_threads(
        options,
        input,
        Pools { arena: &arena, levels: &levels, scratch: &scratch, history: history.as_ref() },
        &rehearsed,
        || telemetry::follow_switches([&levels, &rehearsed]),
    )
}

/// Runs the three threads. `rehearsed` is where the rehearsal has its levels; `follow_switches` is
/// called now and then.
fn run_threads<L: Store + Sync, S: ManualPool + Sync>(
    options: &Options,
    input: Input,
    pools: Pools<'_, L, S>,
    rehearsed: &L,
    follow_switches: impl Fn(),
) -> Result<Outcome, Failure> {
    let arenas: [&dyn Arena; 1] = [pools.arena];
    let quiet_moments = options.history.map_or(0, |_| options.quiet_moments);
    let coordinator =
        Coordinator::begin(options.policy, options.passes, quiet_moments).map_err(Failure::new)?;
    let rehearsal = Rehearsal::new(options.market, rehearsed)?;
    let preparation = Preparation {
        warmup_messages: options.warmup,
        levels: options.levels,
        history: options.history.unwrap_or(0),
        inject: options.inject,
    };
    let Round { to_hot, to_reference, to_reader } = Round::new();
    thread::scope(|scope| {
        let reader = spawn(scope, "reader", move || {
            input.and_then(|mut input| reader::read(&mut *input, to_reader.1, to_hot.0))
        })?;
        let hot = spawn(scope, "hot", || {
            hot::keep(preparation, &coordinator, pools, rehearsal, to_hot.1, to_reference.0)
        })?;
        // Without this thread nothing would end the warm-up.
        let cold =
            spawn(scope, "cold", move || reference::keep(preparation.history, to_reference.1, to_reader.0))
                .inspect_err(|_| coordinator.give_up())?;
        let memory = Arenas::new(&arenas);
        let (contract, contract_failures) =
            coordinator.run(&memory, &arenas, follow_switches, || hot.is_finished());
        let (hot, hot_failure) = join(hot);
        let (reference, cold_failure) = join(cold);
        let is_different = cold_failure.is_none() && !report::matches(&hot, &reference);
        let difference = is_different.then(|| Failure::new("the book differs from the reference"));
        let is_past_different =
            cold_failure.is_none() && report::history_matches(&hot, &reference) == Some(false);
        let past_difference =
            is_past_different.then(|| Failure::new("the history differs from the reference"));
        // In the order of the lines they are about.
        let of_input =
            hot_failure.map(Failure::from).into_iter().chain(cold_failure).chain(join(reader).err());
        let name = input_name(options);
        let of_input = of_input.map(|failure| failure.of_input(&name));
        let failures = of_input.chain(difference).chain(past_difference).chain(contract_failures).collect();
        Ok(Outcome { hot, reference, contract, has_failed_fast: coordinator.has_failed_fast(), failures })
    })
}

/// Bytes of address space for what is not in the arena: blocks, stacks, heaps, and the
/// symbols of a report, which take the most (design/order-book.md `.headroom`).
const HEADROOM: usize = 128 << 20;

/// Makes all threads share one heap. Otherwise glibc reserves 64 MiB of address space for
/// each thread that first allocates, and may take it from the headroom.
fn share_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a parameter of the allocator, which takes any number.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Holds back memory while the arena is made: the global allocator ends the process
/// when it has none.
fn hold_headroom() -> Result<Vec<u8>, Failure> {
    let mut headroom = Vec::new();
    let lacking = |_| {
        Failure::new(format_args!(
            "less than {} MiB for memory outside the arena: raise the limits of address space and of data \
             (ulimit -v, ulimit -d)",
            HEADROOM >> 20
        ))
    };
    headroom.try_reserve_exact(HEADROOM).map_err(lacking)?;
    Ok(headroom)
}

fn create_arena() -> Result<ArenaVm, Error> {
    ArenaVm::create(ArenaVmOptions {
        prefault: Prefault::AtFill,
        inherit_on_fork: false,
        event_hook: Some(telemetry::arena_hook()),
        ..Default::default()
    })
}

fn spawn<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Failure> {
    let work = || {
        stop::leave_to_others();
        work()
    };
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work).map_err(Failure::new)
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
