//! What an `attach` captured.

use core::time::Duration;
use std::io::Write as _;
use std::path::Path;

use serde::Serialize;
use tripoint_telemetry::reader::{Events, Item};

use crate::error::Error;
use crate::output::Output;
use crate::source::CaptureWriter;

/// How long to wait if there is nothing new.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// The counts of a capture.
#[derive(Debug, Default, Serialize)]
pub(super) struct Captured {
    pub(super) events: u64,
    /// Events that were overwritten before they were read.
    pub(super) missed: u64,
    /// Events that the program dropped, in its whole run.
    pub(super) dropped: u64,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) has_ended: bool,
    /// The time of the last event, in ns of the system's monotonic clock.
    #[serde(skip)]
    pub(super) last_ns: Option<u64>,
}

impl Captured {
    /// Takes the events that are there, until there are none or it is over.
    pub(super) fn take(
        &mut self,
        events: &mut Events<'_>,
        writer: &mut CaptureWriter,
        is_over: impl Fn() -> bool,
    ) -> Result<(), Error> {
        while let Some(item) = events.poll() {
            match item {
                Item::Event(ref event) => {
                    self.events += 1;
                    self.last_ns = self.last_ns.max(event.nanoseconds);
                }
                Item::Gap(gap) => self.missed = self.missed.saturating_add(gap.count),
            }
            writer.add(&item)?;
            if is_over() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn write(&self, path: &Path, out: &mut Output) -> Result<(), Error> {
        writeln!(
            out,
            "{} events in {:.1} s, {} bytes in {}",
            self.events,
            self.seconds,
            self.bytes,
            path.display()
        )?;
        if self.missed > 0 {
            writeln!(out, "{} events were overwritten before they were read", self.missed)?;
        }
        if self.dropped > 0 {
            writeln!(out, "{} events were dropped, because their ring was in use", self.dropped)?;
        }
        if self.has_ended {
            writeln!(out, "the process has ended")?;
        }
        Ok(())
    }
}
