//! `tripoint attach` (design/cli.md `.attach`).

mod captured;
#[cfg(target_os = "linux")]
mod kernel;

use core::time::Duration;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use clap::Args;
use indicatif::ProgressBar;
use tripoint_telemetry::reader::Start;

use self::captured::{Captured, PAUSE};
use crate::error::{Error, Outcome};
use crate::output::Output;
use crate::signals;
use crate::source::{self, CaptureWriter, Look};
use crate::target::Target;

/// The shortest time between two looks at counters.
const SHORTEST: Duration = Duration::from_millis(1);

/// Capture what a running process records, for `tripoint report` and others
///
/// The process is not stopped, and does not notice. The capture begins with what the process still has of earlier
/// events, and ends after the duration, when the process ends, or at Ctrl-C. Events that were overwritten before they were
/// read are counted. There must be no file OUT yet.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint attach 4711 --duration 10s -o orders.capture && tripoint report orders.capture
  tripoint attach /dev/shm/orders --duration 5min -o orders.capture
  tripoint attach --kernel 4711 --threads hot,io --duration 10s -o kernel.capture
  tripoint report kernel.capture; tripoint gate kernel.capture --budget budget.toml")]
pub(crate) struct Attach {
    /// The number of the process, or its telemetry file
    target: Target,

    /// How long, as in 10s, 500ms, 2min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    duration: Duration,

    /// Capture page faults and memory calls of any program, as the kernel reports them, instead of telemetry
    #[cfg(target_os = "linux")]
    #[arg(long)]
    kernel: bool,

    /// With --kernel: only threads with these names, and those that they start
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "kernel")]
    threads: Vec<String>,

    /// How often the counters of arenas and pools are looked at, for pictures of them over time
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = humantime::parse_duration)]
    every: Duration,

    /// Where the capture is written to
    #[arg(long, short, value_name = "OUT")]
    output: PathBuf,
}

impl Attach {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        #[cfg(target_os = "linux")]
        if self.kernel {
            let Target::Process(process) = self.target else {
                return Err(Error::NoProcess { target: self.target.clone() });
            };
            let captured = kernel::capture(process, &self.threads, self.duration, &self.output)?;
            self.tell(&captured, out)?;
            return Ok(Outcome::Fine);
        }
        let (reader, mut faults) = self.target.reader()?;
        let stop = signals::stop()?;
        let mut writer = CaptureWriter::create(&self.output, reader.info().process, source::made(&reader))?;
        let begin = Instant::now();
        let is_over = || signals::is_set(&stop) || begin.elapsed() >= self.duration;
        let progress = ProgressBar::new(self.duration.as_millis() as u64);
        let mut captured = Captured::default();
        let mut events = reader.events(Start::Oldest);
        let every = self.every.max(SHORTEST);
        let mut last_look: Option<Instant> = None;
        loop {
            // What was written before the process ended is read after this.
            captured.has_ended = !source::is_running(&reader, &self.target);
            captured.take(&mut events, &mut writer, is_over)?;
            if last_look.is_none_or(|last| last.elapsed() >= every) {
                last_look = Some(Instant::now());
                // Of a process that has ended, the counters are those of its last event, however long ago that was.
                let ns = if captured.has_ended { captured.last_ns } else { Some(source::now()) };
                // If nothing can be read any more, the last line says so.
                let look = ns.and_then(|ns| Look::of(&reader, ns).ok());
                look.map_or(Ok(()), |look| writer.add_look(&look))?;
            }
            writer.flush()?;
            progress.set_position(begin.elapsed().as_millis() as u64);
            if captured.has_ended || is_over() {
                break;
            }
            thread::sleep(PAUSE.min(every).min(self.duration.saturating_sub(begin.elapsed())));
        }
        progress.finish_and_clear();
        captured.seconds = begin.elapsed().as_secs_f64();
        if events.damaged_blocks() > 0 {
            faults.push(format!("{} blocks of events could not be read", events.damaged_blocks()));
        }
        let end = source::end(&reader, &self.target, &mut faults);
        captured.dropped = end.threads.iter().map(|thread| thread.dropped).sum();
        captured.bytes = writer.finish(&end)?;
        self.tell(&captured, out)?;
        match faults.is_empty() {
            true => Ok(Outcome::Fine),
            false => Err(Error::Partial { target: self.target.clone(), faults }),
        }
    }

    fn tell(&self, captured: &Captured, out: &mut Output) -> Result<(), Error> {
        match out.is_json() {
            true => out.write_json(captured),
            false => captured.write(&self.output, out),
        }
    }
}
