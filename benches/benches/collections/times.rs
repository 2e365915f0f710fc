//! Distributions of times, and the machine that they are of.

use core::time::Duration;

/// What the kernel calls the processor, and how many of it there are.
pub(crate) fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let count = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
    format!("processor: {count} of {}", model.trim_start_matches([' ', '\t', ':']))
}

/// Times, in order.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// The time that that many thousandths of all do not exceed.
    pub(crate) fn at(&self, thousandths: usize) -> Duration {
        let last = self.0.len() - 1;
        self.0[(self.0.len() * thousandths / 1000).min(last)]
    }

    pub(crate) fn median(&self) -> Duration {
        self.at(500)
    }
}

/// The processor time of this thread so far: what else the machine does is not in it.
pub(crate) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time, which is valid for that.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// The processor time that `run` takes.
pub(crate) fn time_of<R>(run: impl FnOnce() -> R) -> Duration {
    let start = processor_time();
    core::hint::black_box(run());
    processor_time() - start
}

pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
