//! A time line for Perfetto: phases, events of each thread, and bytes over time (design/cli.md `.exports.perfetto`).

mod annotations;
mod balance;
mod packet;
mod slices;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;

use self::annotations::{annotation, annotations};
use self::balance::{Balance, Curve};
use self::packet::{Counter, Process, Thread, Track, Value};
use self::slices::{Edge, Open, edges};
use self::writer::Writer;
use crate::error::Error;
use crate::source::Event;
use crate::summary::Summary;
use crate::symbols::{Named, Symbols};

/// The track of the process. Those of phases and counters are below it.
const PROCESS: u64 = 1;

const PHASES: u64 = 2;

/// The first of the numbers that other tracks get as they are needed.
const OTHERS: u64 = 3;

/// The track of a thread.
struct Row {
    track: u64,
    ring: usize,
    open: Open,
    /// The time of its last event.
    last: u64,
}

/// A violation or an alarm. Its function is known only once the program and its libraries are, at the end of a recording.
struct Violated {
    track: u64,
    ns: u64,
    name: String,
    count: u64,
    bytes: u64,
    site: Vec<u64>,
}

/// A time line that is being written, event by event.
pub(crate) struct Timeline {
    writer: Writer,
    rows: BTreeMap<u32, Row>,
    violated: Vec<Violated>,
    /// How many events were missed before any of their ring was read, by the ring and whether they last.
    missed: BTreeMap<(usize, bool), u64>,
    balance: Balance,
    /// The number of the next track.
    next: u64,
    /// The times of the first and the last event.
    span: Option<(u64, u64)>,
    is_phase_known: bool,
    untimed: u64,
}

impl Timeline {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            writer: Writer::create(path)?,
            rows: BTreeMap::new(),
            violated: Vec::new(),
            missed: BTreeMap::new(),
            balance: Balance::default(),
            next: OTHERS,
            span: None,
            is_phase_known: false,
            untimed: 0,
        })
    }

    /// Adds an event or a gap. If it cannot be written, [`Self::finish`] returns why.
    pub(crate) fn add(&mut self, event: &Event) {
        if event.missed > 0 {
            return self.miss(event);
        }
        let Some(ns) = event.ns else {
            self.untimed += 1;
            return;
        };
        let (first, last) = self.span.unwrap_or((ns, ns));
        self.span = Some((first, last.max(ns)));
        self.balance.add(event, ns);
        let track = self.track(event, ns);
        if let Some(missed) = self.missed.remove(&(event.ring, event.is_lasting)) {
            self.write_missed(track, ns, missed);
        }
        match event.event.as_str() {
            "phase" => self.change_phase(event, ns),
            // The track has the thread's name.
            "thread attach" | "thread detach" => {}
            "violation" => self.violated.push(Violated {
                track,
                ns,
                name: format!("{}: {}", event.kind, event.class),
                count: event.count,
                bytes: event.bytes,
                site: event.site.clone(),
            }),
            "marker" => self.writer.instant(track, ns, &event.name, annotations(event)),
            kind => match edges(kind) {
                [] => self.writer.instant(track, ns, kind, annotations(event)),
                edges => self.turn(event, ns, edges),
            },
        }
    }

    /// The track of an event's thread.
    fn track(&mut self, event: &Event, ns: u64) -> u64 {
        let row = self.rows.entry(event.thread).or_insert_with(|| {
            self.next += 1;
            Row { track: self.next - 1, ring: event.ring, open: Open::default(), last: ns }
        });
        (row.last, row.ring) = (ns, event.ring);
        row.track
    }

    /// Events were missed: which slices ended meanwhile is not known, so all end before. Events that last end none. If no
    /// event of the ring was read yet, it is not known either whose they are, until the next one.
    fn miss(&mut self, gap: &Event) {
        let mut ended = Vec::new();
        for row in self.rows.values_mut().filter(|row| row.ring == gap.ring) {
            let slices = if gap.is_lasting { 0 } else { row.open.end_all() };
            ended.push((row.track, row.last, slices));
        }
        if ended.is_empty() {
            let missed = self.missed.entry((gap.ring, gap.is_lasting)).or_default();
            *missed = missed.saturating_add(gap.missed);
        }
        for (track, last, slices) in ended {
            self.writer.end(track, last, slices, Vec::new());
            self.write_missed(track, last, gap.missed);
        }
    }

    fn write_missed(&mut self, track: u64, ns: u64, missed: u64) {
        let missed = annotation("count", Value::Number(missed));
        self.writer.instant(track, ns, "events missed", vec![missed]);
    }

    fn change_phase(&mut self, event: &Event, ns: u64) {
        if !self.is_phase_known {
            // What came before was in that phase, even if the change to it was not read.
            let first = self.span.map_or(ns, |(first, _)| first);
            self.writer.begin(PHASES, first, &event.from, Vec::new());
            self.is_phase_known = true;
        }
        self.writer.end(PHASES, ns, 1, Vec::new());
        self.writer.begin(PHASES, ns, &event.to, Vec::new());
    }

    fn turn(&mut self, event: &Event, ns: u64, edges: &[Edge]) {
        let Some(row) = self.rows.get_mut(&event.thread) else { return };
        for edge in edges {
            match edge {
                Edge::Begin(name) => {
                    row.open.begin(name);
                    self.writer.begin(row.track, ns, name, annotations(event));
                }
                Edge::End(name) => {
                    self.writer.end(row.track, ns, row.open.end(name), annotations(event));
                }
            }
        }
    }

    /// Writes what is known only now, and names the file. Returns how many events had no time, and are not in it.
    pub(crate) fn finish(mut self, summary: &Summary, symbols: &mut Symbols) -> Result<u64, Error> {
        self.describe(summary, symbols);
        // No event of these rings was read, so they are on the track of the process.
        let last = self.span.map_or(0, |(_, last)| last);
        for missed in core::mem::take(&mut self.missed).into_values() {
            self.write_missed(PROCESS, last, missed);
        }
        for Violated { track, ns, name, count, bytes, site } in self.violated {
            let stack: Vec<_> = symbols.stack(&site).iter().map(Named::to_string).collect();
            let annotations = vec![
                annotation("site", Value::Text(symbols.name(&site).to_string())),
                annotation("stack", Value::Text(stack.join("\n"))),
                annotation("count", Value::Number(count)),
                annotation("bytes", Value::Number(bytes)),
            ];
            self.writer.instant(track, ns, &name, annotations);
        }
        for Curve { label, steps } in self.balance.curves(&summary.arenas, &summary.pools) {
            let counter = Some(Counter { unit: Counter::BYTES });
            self.writer.describe(Track { counter, ..below(PROCESS, self.next, label) });
            steps.into_iter().for_each(|(ns, bytes)| self.writer.count(self.next, ns, bytes));
            self.next += 1;
        }
        self.writer.finish().map(|()| self.untimed)
    }

    /// Names the tracks of the process, its phases and its threads.
    fn describe(&mut self, summary: &Summary, symbols: &Symbols) {
        // A number that no process has is shown as another.
        let pid = summary.about.process as i32;
        let process = Some(Process { pid, name: symbols.program().unwrap_or_default() });
        self.writer.describe(Track { uuid: PROCESS, process, ..Track::default() });
        if self.is_phase_known {
            self.writer.describe(below(PROCESS, PHASES, "phases".to_owned()));
        }
        for (number, row) in &self.rows {
            let name = summary.names.get(number).cloned().unwrap_or_default();
            let thread = Some(Thread { pid, tid: i64::from(*number), name });
            self.writer.describe(Track { uuid: row.track, thread, ..Track::default() });
        }
    }
}

fn below(parent: u64, uuid: u64, name: String) -> Track {
    Track { uuid, name: Some(name), parent: Some(parent), ..Track::default() }
}
