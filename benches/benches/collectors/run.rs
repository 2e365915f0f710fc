//! What is measured of one run: processor time, memory and pauses.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::fs;

use benches::processor::{process_time, thread_time};

/// How much work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// As much as a figure needs.
    Full,
    /// A small part of that, to see that it runs.
    Quick,
}

impl Size {
    /// As many of `full` as are done.
    pub(crate) const fn of(self, full: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Quick => full / 256,
        }
    }
}

/// The longest processor time of the thread between two laps. About the same work is done in each.
#[derive(Debug, Default)]
pub(crate) struct Laps {
    last: Option<Duration>,
    longest: Duration,
}

impl Laps {
    /// A lap ends, and the next begins.
    pub(crate) fn lap(&mut self) {
        let now = thread_time();
        if let Some(last) = self.last.replace(now) {
            self.longest = self.longest.max(now - last);
        }
    }
}

/// One run of a contender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// The processor time of all threads of the process, in seconds.
    pub(crate) time: f64,
    /// The most memory that the process had, in MiB.
    pub(crate) memory: f64,
    /// The longest lap, in milliseconds.
    pub(crate) pause: f64,
    /// What the work came to.
    pub(crate) result: u64,
}

impl Sample {
    /// Does the work, and measures it.
    pub(crate) fn take(work: impl FnOnce(&mut Laps) -> u64) -> Self {
        let mut laps = Laps::default();
        let start = process_time();
        let result = work(&mut laps);
        let time = (process_time() - start).as_secs_f64();
        Self { time, memory: peak_memory(), pause: laps.longest.as_secs_f64() * 1e3, result }
    }
}

/// The most memory that this process had so far, in MiB.
fn peak_memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux system");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak of memory");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    kib / 1024.0
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.time, self.memory, self.pause, self.result)
    }
}

impl FromStr for Sample {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or(());
        let (time, memory, pause) = (number()?, number()?, number()?);
        let result = words.next().and_then(|word| word.parse().ok()).ok_or(())?;
        Ok(Self { time, memory, pause, result })
    }
}
