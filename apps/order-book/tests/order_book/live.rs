//! A run that another process reads and switches while it goes on
//! (design/telemetry.md `.reader`, design/order-book.md `.telemetry`).
//!
//! The run cannot end before its input does, and the test ends that only when it has seen what it
//! wants to see: so that was seen while the run went on.

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol};
use serde_json::Value;
use tripoint_telemetry::Mean;
use tripoint_telemetry::reader::{
    Events, Fields, Item, OpenError, Reader, RecordedEvent, Start, SwitchesFile,
};

use crate::feeds::BEGIN;
use crate::{PROGRAM, assert_succeeds, scratch_file};

/// Records of the warm-up.
const WARMUP: &str = "1000";

/// Pieces of input: after that many, what is still unseen will not be seen. A piece is more than the
/// program reads at once.
const PIECES: usize = 50;

/// A book that is kept.
struct Book {
    child: Child,
    json: PathBuf,
}

impl Book {
    /// Starts a run with telemetry that has no path, on an input that is still to be written.
    fn start(name: &str, arguments: &[&str]) -> (Self, ChildStdin) {
        let json = scratch_file(&format!("{name}.json"));
        let _ = std::fs::remove_file(&json);
        let mut child = Command::new(PROGRAM)
            .args(["--input", "-", "--warmup", WARMUP, "--telemetry", "--json"])
            .arg(&json)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        (Self { child, json }, input)
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Reads its telemetry, as soon as there is some.
    fn attach(&mut self) -> Reader {
        let mut found = None;
        tripoint_oracle::wait_until(|| {
            match Reader::attach(self.child.id()) {
                Ok(reader) => found = Some(reader),
                Err(OpenError::NoneFound { .. } | OpenError::Unfinished { .. }) => {
                    assert!(self.is_running(), "it ended before it began");
                }
                Err(error) => panic!("{error}"),
            }
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits for the end of the run, while its events are read.
    fn end(mut self, watch: &mut Watch<'_>) -> (Output, Value) {
        while self.is_running() {
            watch.read_all();
        }
        watch.read_all();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
        let output = Output { status: self.child.wait().unwrap(), stdout, stderr };
        (output, serde_json::from_slice(&std::fs::read(&self.json).unwrap()).unwrap())
    }
}

/// Nothing is left of a run whose test failed, and who writes its input is not left waiting.
impl Drop for Book {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes records until there are `enough`: levels that come and go, so that their number is bounded.
fn feed(mut input: ChildStdin, enough: &AtomicBool) {
    input.write_all(BEGIN.as_bytes()).unwrap();
    let mut line = 3;
    for _ in 0..PIECES {
        let mut piece = String::new();
        for level in 0..5_000 {
            for quantity in ["1.5", "0"] {
                let depth = format!(
                    r#"{{"e":"depthUpdate","U":{line},"u":{line},"b":[["8.{level:05}","{quantity}"]],"a":[]}}"#
                );
                piece += &format!("{line} {{\"stream\":\"x@depth\",\"data\":{depth}}}\n");
                line += 1;
            }
        }
        // A run that has ended is found out by who watches it.
        if enough.load(Ordering::Relaxed) || input.write_all(piece.as_bytes()).is_err() {
            return;
        }
    }
}

/// All that is read of a run.
struct Watch<'r> {
    reader: &'r Reader,
    events: Events<'r>,
    /// Of the two rings of each thread, what was read and what was missed; lasting events last.
    counts: Vec<[(u64, u64); 2]>,
    phases: Vec<String>,
    samples: Vec<RecordedEvent>,
    alarms: Vec<RecordedEvent>,
}

impl<'r> Watch<'r> {
    fn new(reader: &'r Reader) -> Self {
        let (events, counts) = (reader.events(Start::Oldest), vec![[(0, 0); 2]; reader.rings()]);
        Self { reader, events, counts, phases: Vec::new(), samples: Vec::new(), alarms: Vec::new() }
    }

    /// Reads what is there by now.
    fn read_all(&mut self) {
        while let Some(item) = self.events.poll() {
            match item {
                Item::Gap(gap) => {
                    let (read, missed) = &mut self.counts[gap.ring][usize::from(gap.is_lasting)];
                    assert_eq!(gap.first, *read + *missed, "{gap}");
                    *missed += gap.count;
                }
                Item::Event(event) => {
                    let (read, missed) = &mut self.counts[event.ring][usize::from(event.is_lasting)];
                    assert_eq!(event.serial, *read + *missed, "{event}");
                    *read += 1;
                    match event.fields {
                        Fields::Phase { to, .. } => self.phases.push(to.as_str().unwrap().to_owned()),
                        Fields::Sample { .. } => self.samples.push(event),
                        Fields::Violation { kind, .. } if kind.as_str() == Some("alarm") => {
                            self.alarms.push(event);
                        }
                        _ => {}
                    }
                }
            }
        }
        thread::yield_now();
    }

    /// Each event of a run that has ended was read or counted. Returns how many were missed.
    fn assert_complete(&self) -> u64 {
        assert_eq!(self.events.damaged_blocks(), 0);
        for (ring, counts) in self.counts.iter().enumerate() {
            let info = self.reader.ring(ring).unwrap().unwrap();
            let all = counts.map(|(read, missed)| read + missed);
            assert_eq!((all, info.dropped), ([info.events, info.lasting_events], 0), "ring {ring}: {info:?}");
        }
        assert_eq!(self.phases, ["Init", "Warmup", "SteadyState", "Teardown"]);
        self.counts.as_flattened().iter().map(|(_, missed)| missed).sum()
    }
}

/// Feeds a run and watches it until `look` breaks, and then until its end. The run goes on as long as `look`
/// has not broken.
fn watch(
    mut book: Book,
    input: ChildStdin,
    watch: &mut Watch<'_>,
    mut look: impl FnMut(&Watch<'_>) -> ControlFlow<()>,
) -> (Output, Value) {
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        let feeder = scope.spawn(|| feed(input, &enough));
        loop {
            let is_over = feeder.is_finished();
            watch.read_all();
            if look(watch).is_break() {
                break;
            }
            assert!(
                !is_over,
                "not seen while it went on: {:?}, {} samples",
                watch.phases,
                watch.samples.len()
            );
        }
        assert!(book.is_running());
        enough.store(true, Ordering::Relaxed);
        book.end(watch)
    })
}

/// The thread that an event is from is the hot one, in the eyes of the file and of the system.
fn assert_is_hot(reader: &Reader, process: u32, event: &RecordedEvent) {
    let ring = reader.ring(event.ring).unwrap().unwrap();
    assert_eq!((ring.name.as_str(), ring.thread), (Some("hot"), event.thread.into()), "{event}");
    let name = std::fs::read_to_string(format!("/proc/{process}/task/{}/comm", event.thread)).unwrap();
    assert_eq!(name.trim_end(), "hot");
}

/// The functions of the program that these addresses of a running process belong to.
fn functions_at(process: u32, addresses: &[u64]) -> Vec<String> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let program = std::fs::canonicalize(PROGRAM).unwrap();
    let first = maps.lines().find(|line| line.ends_with(program.to_str().unwrap())).unwrap();
    let base = u64::from_str_radix(first.split_once('-').unwrap().0, 16).unwrap();
    let bytes = std::fs::read(program).unwrap();
    let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
    let holds = |symbol: &object::read::elf::ElfSymbol64<'_, '_, Endianness>, address: u64| {
        (symbol.address()..symbol.address() + symbol.size()).contains(&address)
    };
    let name = |&address: &u64| {
        let symbol = file.symbols().find(|symbol| holds(symbol, address.wrapping_sub(base)))?;
        symbol.name().ok().map(str::to_owned)
    };
    addresses.iter().filter_map(name).collect()
}

#[test]
fn a_running_book_is_read_and_its_sampling_switched() {
    let (mut book, input) = Book::start("watched", &[]);
    let process = book.child.id();
    let reader = book.attach();
    let switches = SwitchesFile::attach(process).unwrap();
    let mut watched = Watch::new(&reader);
    let mut is_switched = false;
    let (output, report) = watch(book, input, &mut watched, |watch| {
        if is_switched && !watch.samples.is_empty() {
            assert_is_hot(&reader, process, &watch.samples[0]);
            return ControlFlow::Break(());
        }
        if !is_switched && watch.phases.iter().any(|phase| phase == "SteadyState") {
            assert!(watch.samples.is_empty(), "nothing is sampled before it is asked for");
            switches.set_mean(Mean::new(1_000)).unwrap();
            switches.set_sampling(Some(true)).unwrap();
            is_switched = true;
        }
        ControlFlow::Continue(())
    });
    assert_succeeds(&output);
    assert_eq!(report["book_matches_reference"], true);
    assert_eq!(report["contract"]["armed"], true);

    let missed = watched.assert_complete();
    for sample in &watched.samples {
        let Fields::Sample { size, offset, mean, site, .. } = sample.fields else { panic!("{sample}") };
        assert!(mean == 1_000 && offset < size && !site.as_slice().is_empty(), "{sample}");
    }
    let (seen, samples) = (watched.samples.len() as u64, report["samples"]["samples"].as_u64().unwrap());
    assert!(seen <= samples && samples <= seen + missed, "{seen} of {samples}, {missed} missed");
}

#[test]
fn a_violation_is_seen_with_class_thread_and_site_before_the_run_ends() {
    let (mut book, input) = Book::start("violated", &["--inject", "alloc"]);
    let process = book.child.id();
    let reader = book.attach();
    let mut watched = Watch::new(&reader);
    let mut functions = Vec::new();
    let (output, report) = watch(book, input, &mut watched, |watch| {
        let is_alloc = |event: &&RecordedEvent| match event.fields {
            Fields::Violation { class, .. } => class.as_str() == Some("alloc"),
            _ => false,
        };
        let Some(alarm) = watch.alarms.iter().find(is_alloc) else { return ControlFlow::Continue(()) };
        assert_is_hot(&reader, process, alarm);
        let Fields::Violation { slot, count, site, .. } = alarm.fields else { panic!("{alarm}") };
        // The hot thread is the only one of the contract.
        assert_eq!((slot, count), (0, 1), "{alarm}");
        functions = functions_at(process, site.as_slice());
        ControlFlow::Break(())
    });
    assert_succeeds(&output);
    assert!(functions.iter().any(|function| function.contains("inject_alloc")), "{functions:?}");
    watched.assert_complete();
    let of_report = report["contract"]["violations"].as_array().unwrap();
    assert_eq!(watched.alarms.len(), of_report.len(), "{report:#}");
}

/// (design/telemetry.md `.lasting`)
#[test]
fn a_violation_is_there_for_a_reader_that_comes_when_the_ring_was_overwritten() {
    /// More than twice as many as the hot thread's ring keeps.
    const EVENTS: u64 = 3_000;
    let (mut book, input) = Book::start("late", &["--inject", "alloc", "--sample", "1000"]);
    let process = book.child.id();
    let reader = book.attach();
    let mut watched = Watch::new(&reader);
    let (mut at_alarm, mut functions) = (None, Vec::new());
    let (output, _) = watch(book, input, &mut watched, |watch| {
        let Some(alarm) = watch.alarms.first() else { return ControlFlow::Continue(()) };
        let events = reader.ring(alarm.ring).unwrap().unwrap().events;
        if events < *at_alarm.get_or_insert(events) + EVENTS {
            return ControlFlow::Continue(());
        }
        let (mut late, mut missed) = (reader.events(Start::Oldest), 0);
        while let Some(item) = late.poll() {
            match item {
                Item::Gap(gap) if gap.ring == alarm.ring => {
                    assert!(!gap.is_lasting, "{gap}");
                    missed += gap.count;
                }
                Item::Event(event)
                    if (event.ring, event.serial) == (alarm.ring, alarm.serial) && event.is_lasting =>
                {
                    assert_eq!(event.fields, alarm.fields);
                    functions = functions_at(process, event.frames());
                    break;
                }
                _ => {}
            }
        }
        assert!(missed >= EVENTS, "{missed} events were overwritten");
        ControlFlow::Break(())
    });
    assert_succeeds(&output);
    assert!(functions.iter().any(|function| function.contains("inject_alloc")), "{functions:?}");
}
