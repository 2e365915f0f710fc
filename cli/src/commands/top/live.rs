//! What is known of a process up to now.

use core::time::Duration;
use std::collections::HashMap;
use std::time::Instant;

use tripoint_telemetry::reader::{Events, Reader, Start};

use crate::grid::Grid;
use crate::source::{self, Event};
use crate::summary::{About, Collector, Part, Summary};
use crate::symbols::Symbols;
use crate::target::Target;

/// How long one look may take: keys are not answered meanwhile.
const LONGEST: Duration = Duration::from_millis(100);

/// How often the counters are read again.
const PERIOD: Duration = Duration::from_millis(500);

/// A process that is watched.
pub(super) struct Live<'r> {
    reader: &'r Reader,
    target: &'r Target,
    events: Events<'r>,
    collector: Collector,
    symbols: Symbols,
    summary: Option<Summary>,
    /// When the counters were read, and the fills of each point then.
    before: Option<(Instant, HashMap<u64, u64>)>,
    /// The fills per second of each point.
    rates: HashMap<u64, f64>,
}

impl<'r> Live<'r> {
    pub(super) fn new(reader: &'r Reader, target: &'r Target, all: bool, symbols: Symbols) -> Self {
        Self {
            reader,
            target,
            events: reader.events(Start::Oldest),
            collector: Collector::new(if all { Part::All } else { Part::SteadyState }),
            symbols,
            summary: None,
            before: None,
            rates: HashMap::new(),
        }
    }

    /// Takes the events that are new, and the counters from time to time. Returns whether there was no time for all.
    pub(super) fn look(&mut self, faults: &mut Vec<String>) -> bool {
        let begin = Instant::now();
        let mut line = String::new();
        let mut is_violated = false;
        while begin.elapsed() < LONGEST
            && let Some(item) = self.events.poll()
        {
            match Event::of_item(&item, &mut line) {
                Ok(event) => {
                    is_violated |= event.event == "violation";
                    self.collector.add(&event);
                }
                Err(error) => note(faults, format!("an event could not be read: {error}")),
            }
        }
        let is_due = self.before.as_ref().is_none_or(|(then, _)| then.elapsed() >= PERIOD);
        // A violation is shown at once.
        if is_due || is_violated {
            self.count(faults);
        }
        begin.elapsed() >= LONGEST
    }

    /// Reads the counters.
    pub(super) fn count(&mut self, faults: &mut Vec<String>) {
        let mut found = Vec::new();
        let end = source::end(self.reader, self.target, &mut found);
        found.into_iter().for_each(|fault| note(faults, fault));
        let (process, made) = (self.reader.info().process, source::made(self.reader));
        let about = About { process, made, is_captured: false };
        let summary = self.collector.clone().summary(about, end, &mut self.symbols);
        let now = Instant::now();
        let fills: HashMap<_, _> =
            summary.points.iter().map(|row| (row.point.buffer, row.point.fills)).collect();
        if let Some((then, before)) = &self.before {
            let seconds = now.duration_since(*then).as_secs_f64().max(f64::MIN_POSITIVE);
            let rate = |(buffer, fills): (&u64, &u64)| {
                let more = fills.saturating_sub(*before.get(buffer).unwrap_or(&0));
                (*buffer, more as f64 / seconds)
            };
            self.rates = fills.iter().map(rate).collect();
        }
        self.before = Some((now, fills));
        self.summary = Some(summary);
    }

    /// Does ahead what would delay the first violation.
    pub(super) fn prepare(&mut self) {
        self.symbols.prepare();
    }

    /// What is known up to now; nothing before the first look.
    pub(super) fn known(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The fills of points in a second.
    pub(super) fn fills(&self) -> Grid {
        let mut grid = Grid::new("fills per second", 2, &["", "buffer", "fills/s", "fills", "room"]);
        for row in self.summary.iter().flat_map(|summary| &summary.points) {
            let point = &row.point;
            // The cast saturates.
            let rate = self.rates.get(&point.buffer).copied().unwrap_or(0.0).round() as u64;
            let gone = if point.is_live { "" } else { "gone" };
            grid.add(&[&gone, &format_args!("{:#x}", point.buffer)], &[rate, point.fills, point.room]);
        }
        grid
    }
}

/// Adds a fault once, however often it happens.
fn note(faults: &mut Vec<String>, fault: String) {
    if !faults.contains(&fault) {
        faults.push(fault);
    }
}
