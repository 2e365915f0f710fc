//! What the run shows to other processes meanwhile, and samples of the levels that it allocates
//! (design/order-book.md `.telemetry`).

use core::fmt;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use point_log::Hook;
use serde::Serialize;
use tripoint::contract::PoolEvents;
use tripoint::events::EventHook;
use tripoint::telemetry::{
    ArenaHook, Attached, Confidence, Groups, Interval, Mean, SampledObject, SampledStore, Sampling,
    Telemetry, Threads, Window,
};
use tripoint::{PoolClass, Store};

use crate::failure::Failure;
use crate::options::TelemetryOptions;

/// Tells the contract of fills and growth, and the log of points, if there is one.
static POOL_EVENTS: Events = (PoolEvents, Hook);

type Events = (PoolEvents, Hook);

/// The telemetry, if it is wanted.
static TELEMETRY: OnceLock<Telemetry> = OnceLock::new();

/// Tells these and the telemetry.
static BOTH: OnceLock<(Events, ArenaHook<'static>)> = OnceLock::new();

/// The switch of all samplers. Runs with the same input draw the same bytes.
static SAMPLING: Sampling = Sampling::off(0x5eed);

/// What the samples add up to, pool by pool, as in the telemetry: the levels and those of the rehearsal.
static ESTIMATES: Mutex<Option<Groups<u32, 2>>> = Mutex::new(None);

/// Begins what the options ask for.
///
/// # Errors
/// The telemetry's.
pub fn begin(options: &TelemetryOptions) -> Result<(), Failure> {
    if let Some(path) = &options.telemetry {
        let telemetry = create(path.as_deref())?;
        let telemetry = TELEMETRY.get_or_init(|| telemetry);
        BOTH.get_or_init(|| (POOL_EVENTS, telemetry.arena_hook()));
    }
    SAMPLING.set_sites(options.telemetry.is_some());
    SAMPLING.set_mean(options.sample.and_then(Mean::new));
    Ok(())
}

#[cfg(target_os = "linux")]
fn create(path: Option<&Path>) -> Result<Telemetry, Failure> {
    use tripoint::telemetry::FileOptions;
    Telemetry::create(&FileOptions { path, ..FileOptions::default() }).map_err(Failure::new)
}

#[cfg(not(target_os = "linux"))]
fn create(_path: Option<&Path>) -> Result<Telemetry, Failure> {
    Err(Failure::new("telemetry for other processes needs Linux"))
}

/// The hook of the arena.
pub fn arena_hook() -> &'static dyn EventHook {
    match BOTH.get() {
        Some(both) => both,
        None => &POOL_EVENTS,
    }
}

/// The hook of the contract, if it has to tell anything.
pub fn contract_hook() -> Option<&'static dyn EventHook> {
    TELEMETRY.get().map(|telemetry| telemetry as &dyn EventHook)
}

/// Names the calling thread until the value is dropped.
pub fn attach(name: &str) -> Option<Attached<'static>> {
    TELEMETRY.get().map(|telemetry| telemetry.attach(name))
}

/// Switches sampling as another process asked for, in these stores at once: one that does not sample
/// would never look.
pub fn follow_switches<P: PoolClass + Store>(stores: [&Sampled<'_, P>; 2]) {
    let Some(telemetry) = TELEMETRY.get() else { return };
    let before = SAMPLING.mean();
    telemetry.switches().apply_to(&SAMPLING);
    if SAMPLING.mean() != before {
        stores.into_iter().for_each(SampledStore::follow_switch);
    }
}

/// Notes the sizes of a pool for readers (design/telemetry.md `.counters.sizes`).
pub fn note_sizes<P: PoolClass>(pool: &P) {
    if let Some((_, hook)) = BOTH.get() {
        hook.note_sizes(pool.header().id(), pool.sizes());
    }
}

/// What the system refused.
pub fn warnings() -> Vec<String> {
    let refusals = TELEMETRY.get().map(|telemetry| telemetry.report().refusals());
    refusals.into_iter().flatten().map(|refusal| format!("telemetry: {refusal}")).collect()
}

/// Whether levels may be sampled: also if another process may ask for that later.
pub const fn may_sample(options: &TelemetryOptions) -> bool {
    options.telemetry.is_some() || options.sample.is_some()
}

/// A pool whose objects are sampled.
pub type Sampled<'pool, P> = SampledStore<'pool, P, fn(SampledObject), Threads>;

/// Samples what is allocated in `pool`, as the switch says.
pub fn sampled<P: PoolClass + Store>(pool: &P) -> Sampled<'_, P> {
    let on_sample: fn(SampledObject) = count;
    SampledStore::shared(pool, &SAMPLING, on_sample).of_pool(pool)
}

/// Counts a sample, and reports it. It is called on the hot thread, so it does not allocate.
fn count(sampled: SampledObject) {
    let mut estimates = ESTIMATES.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = estimates.get_or_insert_with(|| Groups::new(sampled.sample.mean()));
    pools.add(sampled.pool.map_or(0, |pool| pool.get()), &sampled.sample);
    drop(estimates);
    if let Some((_, hook)) = BOTH.get() {
        hook.event_at(sampled.event(), sampled.site.frames());
    }
}

/// What samples say of the levels that were allocated.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Samples {
    samples: u64,
    /// The estimate, in bytes.
    bytes: f64,
    /// An interval that holds the truth in 95 of 100 runs.
    at_least: u64,
    at_most: u64,
}

/// What the samples say up to now; nothing if there are none.
pub fn samples() -> Option<Samples> {
    let pools = (*ESTIMATES.lock().unwrap_or_else(PoisonError::into_inner))?;
    let mut estimate = *pools.others();
    pools.iter().for_each(|(_, pool)| estimate.merge(pool));
    let window = Window { begins_at_sample: true, ends_at_sample: false };
    let confidence = Confidence::PERCENT_95;
    // There are limits unless another process has changed the mean meanwhile.
    let limits = estimate.limits(confidence, window);
    let Interval { low, high } = limits.unwrap_or_else(|_| estimate.interval(confidence));
    Some(Samples { samples: estimate.samples(), bytes: estimate.bytes(), at_least: low, at_most: high })
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, bytes, at_least, at_most } = self;
        write!(f, "{bytes:.0} bytes, between {at_least} and {at_most}, estimated from {samples} samples")
    }
}
