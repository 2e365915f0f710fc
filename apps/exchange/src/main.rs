//! An exchange, order by order: the books of all stocks from ITCH 5.0 or LOBSTER, with every order and level in a pool.
//!
//! ```sh
//! cargo run --release -p exchange
//! ```
//!
//! Design: `design/exchange.md`.

mod cli;

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use exchange::check::check;
use exchange::compare::{CompareOptions, Entrant, compare, compare_handed, compare_in_processes};
use exchange::day::Day;
use exchange::engine_run::run_engine;
use exchange::frames::{pack, pack_end};
use exchange::outputs::{refuse_same, refuse_unwritable};
use exchange::places::Home;
use exchange::run::run;

use crate::cli::{
    CheckCommand, Command, CompareCommand, DayCommand, EngineCommand, FormName, Options, RunCommand,
};

fn main() -> ExitCode {
    let done = match Options::parse().command {
        Some(Command::Day(command)) => write_day(&command),
        Some(Command::Run(command)) => stoppable(|| keep_books(&command)),
        Some(Command::Compare(command)) => compare_as_asked(&command),
        Some(Command::Engine(command)) => stoppable(|| match_orders(&command)),
        Some(Command::Check(command)) => compare_with_naive(&command),
        None => first_run(),
    };
    match done {
        Ok(()) => match stop::status() {
            Some(status) => status.into(),
            None => ExitCode::SUCCESS,
        },
        Err(failures) => {
            for failure in failures {
                // If this cannot be written either, there is nothing left to do.
                let _ = writeln!(io::stderr(), "exchange: {failure}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Does what is reported even if a signal ends it before the input does.
fn stoppable(work: impl FnOnce() -> Result<(), Failures>) -> Result<(), Failures> {
    stop::install().map_err(|error| vec![error.to_string()])?;
    work()
}

/// How a run was ended, if a signal did.
fn ended() -> String {
    stop::signal()
        .map_or_else(String::new, |signal| format!("{:<22}by signal {signal}, before the input\n", "ended"))
}

/// All that failed, each in one line.
type Failures = Vec<String>;

/// Bytes that are written at a time.
const CHUNK: usize = 1 << 20;

/// The most bytes of a packet: what a frame of Ethernet carries.
const PACKET: usize = 1_400;

fn write_day(command: &DayCommand) -> Result<(), Failures> {
    let failed = |error: io::Error| vec![format!("{}: {error}", command.output.display())];
    let mut output: Box<dyn Write> = if command.output == Path::new("-") {
        Box::new(io::stdout())
    } else {
        Box::new(BufWriter::new(File::create(&command.output).map_err(failed)?))
    };
    let mut day = Day::new(command.day.options());
    let (mut block, mut packets, mut sequence) = (Vec::with_capacity(CHUNK), Vec::new(), 1);
    let mut goes_on = true;
    let mut write_all = || {
        while goes_on {
            block.clear();
            goes_on = day.fill(&mut block, CHUNK);
            if command.form == FormName::Packets {
                packets.clear();
                pack(&block, &mut sequence, PACKET, &mut packets);
                if !goes_on {
                    pack_end(sequence, &mut packets);
                }
                output.write_all(&packets)?;
            } else {
                output.write_all(&block)?;
            }
        }
        output.flush()
    };
    match write_all() {
        // A reader that has enough is no failure.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(failed(error)),
        _ => Ok(()),
    }
}

fn keep_books(command: &RunCommand) -> Result<(), Failures> {
    let options = command.options();
    let outputs = [
        options.outputs.book.as_deref(),
        options.outputs.tops.as_deref(),
        options.outputs.trades.as_deref(),
        command.json.as_deref(),
        command.log.point_log.as_deref(),
    ];
    let inputs = options.inputs.iter().chain(&options.orderbooks).map(PathBuf::as_path);
    refuse_same(inputs, &outputs).map_err(|why| vec![why])?;
    refuse_unwritable(&[command.json.as_deref()]).map_err(|why| vec![why])?;
    command.log.begin(options.home).map_err(|why| vec![why])?;
    let outcome = run(&options).map_err(|why| vec![why])?;
    let inputs: Vec<_> = options.inputs.iter().map(|path| path.display().to_string()).collect();
    let day = options.day;
    let input = if inputs.is_empty() {
        format!(
            "generated: seed {}, {} messages, {} live, {} stocks",
            day.seed, day.messages, day.live, day.symbols
        )
    } else {
        inputs.join(" ")
    };
    let mut failures = outcome.failures.clone();
    failures.extend(command.log.end());
    failures.extend(print(&format!(
        "{:<22}{input}\n{}{:<22}{}\n{outcome}",
        "input",
        ended(),
        "orders live in",
        options.home
    )));
    if let Some(path) = &command.json {
        failures.extend(write_file(path, &outcome.json()));
    }
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

/// Prints a text. A closed output is no failure.
fn print(text: &str) -> Option<String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Some(format!("the summary cannot be written: {error}"))
        }
        _ => None,
    }
}

fn match_orders(command: &EngineCommand) -> Result<(), Failures> {
    let options = command.options();
    command.log.begin(options.home).map_err(|why| vec![why])?;
    let outcome = run_engine(&options).map_err(|why| vec![why])?;
    let mut failures = outcome.failures.clone();
    failures.extend(command.log.end());
    let gateway = if options.gateway { ", by a gateway" } else { "" };
    let ended = ended();
    failures.extend(print(&format!("{ended}{:<22}{}{gateway}\n{outcome}", "orders live in", options.home)));
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

fn compare_with_naive(command: &CheckCommand) -> Result<(), Failures> {
    let checked = check(command.days, command.seed, Home::value_variants()).map_err(|why| vec![why])?;
    let text = format!(
        "{} days, {} messages: all books the same at {} moments; of {} damaged copies {} were refused alike\n",
        checked.days, checked.messages, checked.moments, checked.damaged, checked.refused
    );
    print(&text).map_or(Ok(()), |failure| Err(vec![failure]))
}

fn compare_as_asked(command: &CompareCommand) -> Result<(), Failures> {
    let options = command.options();
    if command.gateway {
        let compared = compare_handed(&options).map_err(|why| vec![why])?;
        return print(&compared.to_string()).map_or(Ok(()), |failure| Err(vec![failure]));
    }
    if command.picture.is_some() && !options.entrants.contains(&Entrant::Hand) {
        return Err(vec!["a picture has ratios to the home hand: name it in --homes".into()]);
    }
    let outputs = [command.json.as_deref(), command.picture.as_deref()];
    refuse_same(core::iter::empty(), &outputs).map_err(|why| vec![why])?;
    refuse_unwritable(&outputs).map_err(|why| vec![why])?;
    let comparison = if command.processes == 1 {
        compare(&options)
    } else {
        let arguments: Vec<_> = std::env::args_os().skip(1).collect();
        compare_in_processes(command.processes, command.draw, &arguments)
    };
    let comparison = comparison.map_err(|why| vec![why])?;
    if command.rows {
        return print(&comparison.rows()).map_or(Ok(()), |failure| Err(vec![failure]));
    }
    let mut failures: Failures = print(&comparison.to_string()).into_iter().collect();
    if let Some(path) = &command.json {
        failures.extend(write_file(path, &comparison.json()));
    }
    if let Some(path) = &command.picture {
        failures.extend(write_file(path, &comparison.svg()));
    }
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

/// Returns what failed.
fn write_file(path: &Path, text: &str) -> Option<String> {
    std::fs::write(path, text).err().map(|error| format!("{}: {error}", path.display()))
}

/// The homes of the brief comparison.
const BRIEF: [Entrant; 4] = [Entrant::Hand, Entrant::Pools, Entrant::PoolsHuge, Entrant::System];

/// A run, and a comparison with few chunks.
fn first_run() -> Result<(), Failures> {
    let run = Options::parse_from(["exchange", "run"]).command;
    let comparing = Options::parse_from(["exchange", "compare", "--brief", "--chunks", "6"]).command;
    let (Some(Command::Run(run)), Some(Command::Compare(comparing))) = (run, comparing) else {
        return Ok(());
    };
    keep_books(&run)?;
    print("\nanother day, with orders in four homes (`exchange compare` has all homes and the whole day):\n");
    let options = CompareOptions { entrants: BRIEF.to_vec(), ..comparing.options() };
    let comparison = compare(&options).map_err(|why| vec![why])?;
    print(&comparison.to_string()).map_or(Ok(()), |failure| Err(vec![failure]))
}
