//! What the hot thread costs from the end of the warm-up on.

use core::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use tripoint::{Arena, ArenaCounts, ArenaVm};

use crate::allocator_calls::calls_of_this_thread;
use crate::faults::{PageFaults, faults_of_this_thread};
use crate::hot_failure::HotCause;

/// The longest latency that is counted separately, in ns: ten seconds.
const LATENCY_MAX: u64 = 10_000_000_000;

/// Decimal digits of a latency that are kept.
const LATENCY_DIGITS: u8 = 3;

/// What the steady part asked of the arena, the global allocator and the kernel.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SteadyCosts {
    /// Bytes the arena newly committed.
    pub arena_growth_bytes: u64,
    /// Number of times a buffer was filled.
    pub fills: u64,
    /// Bytes that fills gave to buffers.
    pub fill_bytes: u64,
    /// Bytes that buffers gave back unused.
    pub empty_bytes: u64,
    /// Calls of the global allocator by the hot thread, frees included.
    pub global_allocator_calls: u64,
    /// Page faults of the hot thread served without a device; `None` where the
    /// kernel does not say.
    pub minor_page_faults: Option<u64>,
    /// Page faults of the hot thread served from a device.
    pub major_page_faults: Option<u64>,
}

/// Time to handle one record, in ns.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latency {
    pub p50: u64,
    pub p99: u64,
    pub p999: u64,
    pub p9999: u64,
    pub max: u64,
}

impl Latency {
    /// An empty histogram of latencies, whose memory has all been touched.
    ///
    /// # Errors
    /// The histogram's.
    pub fn histogram() -> Result<Histogram<u64>, HotCause> {
        let mut latencies =
            Histogram::new_with_bounds(1, LATENCY_MAX, LATENCY_DIGITS).map_err(HotCause::NoHistogram)?;
        // Writes every counter, and so brings memory behind each.
        latencies.reset();
        Ok(latencies)
    }

    /// What is in a histogram.
    pub fn of(latencies: &Histogram<u64>) -> Self {
        Self {
            p50: latencies.value_at_quantile(0.5),
            p99: latencies.value_at_quantile(0.99),
            p999: latencies.value_at_quantile(0.999),
            p9999: latencies.value_at_quantile(0.9999),
            max: latencies.max(),
        }
    }
}

/// Readings at one moment, all of them growing.
struct Readings {
    growth: u64,
    fills: u64,
    fill_bytes: u64,
    empty_bytes: u64,
    allocator_calls: u64,
    faults: Option<PageFaults>,
}

impl Readings {
    fn take(counts: &ArenaCounts) -> Self {
        Self {
            growth: counts.growth.get(),
            fills: counts.fills.get(),
            fill_bytes: counts.fill_mutator.get(),
            empty_bytes: counts.empty_mutator.get(),
            allocator_calls: calls_of_this_thread(),
            faults: faults_of_this_thread(),
        }
    }

    fn costs_since(&self, start: &Self) -> SteadyCosts {
        let faults = self.faults.zip(start.faults).map(|(now, earlier)| now.since(earlier));
        SteadyCosts {
            arena_growth_bytes: self.growth - start.growth,
            fills: self.fills - start.fills,
            fill_bytes: self.fill_bytes - start.fill_bytes,
            empty_bytes: self.empty_bytes - start.empty_bytes,
            global_allocator_calls: self.allocator_calls - start.allocator_calls,
            minor_page_faults: faults.map(|faults| faults.minor),
            major_page_faults: faults.map(|faults| faults.major),
        }
    }
}

/// Measures the steady part of the thread that uses it.
pub struct SteadyMeter<'a> {
    arena: &'a ArenaVm,
    latencies: Histogram<u64>,
    busy: Duration,
    start: Option<Readings>,
}

impl<'a> SteadyMeter<'a> {
    /// A meter whose memory has all been touched.
    ///
    /// # Errors
    /// The histogram's.
    pub fn new(arena: &'a ArenaVm) -> Result<Self, HotCause> {
        let latencies = Latency::histogram()?;
        // Reads and clock run once before they count.
        let _ = Readings::take(arena.counts());
        Ok(Self { arena, latencies, busy: Duration::ZERO, start: None })
    }

    /// Ends the warm-up: starts to measure, with the arena frozen also where the
    /// contract has not frozen it.
    pub fn begin(&mut self) {
        self.arena.freeze();
        self.latencies.reset();
        self.busy = Duration::ZERO;
        self.start = Some(Readings::take(self.arena.counts()));
    }

    /// Whether the warm-up is over.
    pub const fn has_begun(&self) -> bool {
        self.start.is_some()
    }

    /// Records that a message took `time`. What is recorded before the warm-up ends
    /// is forgotten then.
    pub fn record(&mut self, time: Duration) {
        self.busy += time;
        self.latencies.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(LATENCY_MAX));
    }

    /// What the steady part cost up to now; nothing before it began.
    pub fn costs(&self) -> SteadyCosts {
        match &self.start {
            Some(start) => Readings::take(self.arena.counts()).costs_since(start),
            None => SteadyCosts::default(),
        }
    }

    /// How often another thread got the processor in the steady part; `None` if the kernel does not say.
    pub fn involuntary_switches(&self) -> Option<u64> {
        let earlier = self.start.as_ref()?.faults?;
        Some(faults_of_this_thread()?.since(earlier).involuntary_switches)
    }

    /// How long messages took.
    pub fn latency(&self) -> Latency {
        Latency::of(&self.latencies)
    }

    /// The number of messages recorded.
    pub fn messages(&self) -> u64 {
        if self.has_begun() { self.latencies.len() } else { 0 }
    }

    /// Messages per second of the time spent on messages.
    pub fn messages_per_second(&self) -> f64 {
        let seconds = self.busy.as_secs_f64();
        if seconds > 0.0 { self.messages() as f64 / seconds } else { 0.0 }
    }
}
