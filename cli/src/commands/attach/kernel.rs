//! `tripoint attach --kernel` (design/cli.md `.kernel`).

use core::time::Duration;
use std::path::Path;
use std::thread;
use std::time::Instant;

use indicatif::ProgressBar;

use crate::commands::attach::captured::{Captured, PAUSE};
use crate::error::Error;
use crate::kernel_events::WatchedProcess;
use crate::output::complain;
use crate::signals;
use crate::source::CaptureWriter;

/// How often the files that are mapped are looked at again: libraries may be loaded.
const PERIOD: Duration = Duration::from_secs(1);

/// Captures what the kernel reports of threads with some names, or of all, for a duration.
pub(super) fn capture(
    process: u32,
    threads: &[String],
    duration: Duration,
    output: &Path,
) -> Result<Captured, Error> {
    let mut watched = WatchedProcess::begin(process, threads).map_err(Error::Unwatchable)?;
    watched.unseen.iter().for_each(|unseen| complain(unseen));
    let stop = signals::stop()?;
    let mut writer = CaptureWriter::create(output, process.into(), None)?;
    let begin = Instant::now();
    let mut looked = begin;
    let progress = ProgressBar::new(duration.as_millis() as u64);
    let mut captured = Captured::default();
    loop {
        // What happened before the process ended is read after this.
        captured.has_ended = watched.has_ended();
        if looked.elapsed() >= PERIOD {
            watched.look_at_files();
            looked = Instant::now();
        }
        watched.take(&mut writer)?;
        writer.flush()?;
        progress.set_position(begin.elapsed().as_millis() as u64);
        if captured.has_ended || signals::is_set(&stop) || begin.elapsed() >= duration {
            break;
        }
        thread::sleep(PAUSE.min(duration.saturating_sub(begin.elapsed())));
    }
    progress.finish_and_clear();
    watched.stop(&mut writer)?;
    watched.look_at_files();
    captured.seconds = begin.elapsed().as_secs_f64();
    (captured.events, captured.missed) = (watched.events, watched.missed);
    captured.bytes = writer.finish(&watched.end())?;
    Ok(captured)
}
