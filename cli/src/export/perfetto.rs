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
    balance: Balance,
    /// The number of the next track.
    next: u64,
    /// The time of the first event.
    first: Option<u64>,
    is_phase_known: bool,
    untimed: u64,
}

impl Timeline {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            writer: Writer::create(path)?,
            rows: BTreeMap::new(),
            violated: Vec::new(),
            balance: Balance::default(),
            next: OTHERS,
            first: None,
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
        self.first.get_or_insert(ns);
        self.balance.add(event, ns);
        let track = self.track(event, ns);
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

    /// Events were missed: which slices ended meanwhile is not known, so all end before. Events that last end none.
    fn miss(&mut self, gap: &Event) {
        for row in self.rows.values_mut().filter(|row| row.ring == gap.ring) {
            let ended = if gap.is_lasting { 0 } else { row.open.end_all() };
            self.writer.end(row.track, row.last, ended, Vec::new());
            let missed = annotation("count", Value::Number(gap.missed));
            self.writer.instant(row.track, row.last, "events missed", vec![missed]);
        }
    }

    fn change_phase(&mut self, event: &Event, ns: u64) {
        if !self.is_phase_known {
            // What came before was in that phase, even if the change to it was not read.
            self.writer.begin(PHASES, self.first.unwrap_or(ns), &event.from, Vec::new());
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
