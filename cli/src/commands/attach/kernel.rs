//! `tripoint attach --kernel` (design/cli.md `.kernel`).

use core::time::Duration;
use std::thread;
use std::time::Instant;

use indicatif::ProgressBar;

use crate::commands::attach::{Attach, Captured, PAUSE};
use crate::error::{Error, Outcome};
use crate::kernel_events::WatchedProcess;
use crate::output::{Output, complain};
use crate::recording::{CaptureWriter, Target};
use crate::signals;

/// How often the files that are mapped are looked at again: libraries may be loaded.
const PERIOD: Duration = Duration::from_secs(1);

impl Attach {
    pub(super) fn run_kernel(&self, out: &mut Output) -> Result<Outcome, Error> {
        let Target::Process(process) = self.target else {
            return Err(Error::NoProcess { target: self.target.clone() });
        };
        let mut watched = WatchedProcess::begin(process, &self.threads).map_err(Error::Unwatchable)?;
        watched.unseen.iter().for_each(|unseen| complain(unseen));
        let stop = signals::stop()?;
        let mut writer = CaptureWriter::create(&self.output, process.into(), None)?;
        let begin = Instant::now();
        let mut looked = begin;
        let progress = ProgressBar::new(self.duration.as_millis() as u64);
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
            if captured.has_ended || signals::is_set(&stop) || begin.elapsed() >= self.duration {
                break;
            }
            thread::sleep(PAUSE.min(self.duration.saturating_sub(begin.elapsed())));
        }
        progress.finish_and_clear();
        watched.stop(&mut writer)?;
        watched.look_at_files();
        captured.seconds = begin.elapsed().as_secs_f64();
        (captured.events, captured.missed) = (watched.events, watched.missed);
        captured.bytes = writer.finish(&watched.end())?;
        self.tell(&captured, out)?;
        Ok(Outcome::Fine)
    }
}
