//! The log of all calls on the points and pools of a program, if it was asked for one (`--point-log FILE`): what
//! `tripoint replay FILE` makes again (design/point-log.md).
//!
//! The hook is that of the program's arena, beside others. What the program does on its points and pools is logged if
//! they are made with [`logger`], [`logged`], [`store`] or [`packets`].

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::OnceLock;

use tripoint_core::{Arena, Event, EventHook, ManualPool, PoolClass, Store};
use tripoint_packets::PacketPool;
use tripoint_telemetry::{LoggedPool, LoggedStore, PointLog, PointLogger};

/// The log, for as long as the program runs: an arena keeps its hook forever.
static LOG: OnceLock<PointLog<BufWriter<File>>> = OnceLock::new();

/// Whether calls are logged.
pub type Switch = fn() -> bool;

/// The control of a point whose calls are logged.
pub type Logger = PointLogger<Switch, Hook>;

/// A pool whose calls are logged.
pub type Logged<P> = LoggedPool<P, Switch, Hook>;

/// Passes events on to the log, if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Hook;

impl EventHook for Hook {
    fn event(&self, event: Event) {
        if let Some(log) = LOG.get() {
            log.event(event);
        }
    }

    fn begin_call(&self) {
        if let Some(log) = LOG.get() {
            log.begin_call();
        }
    }

    fn end_call(&self) {
        if let Some(log) = LOG.get() {
            log.end_call();
        }
    }
}

/// Begins a log in a new file: before the arena is created.
///
/// # Errors
/// Those of the file; or there is a log already.
pub fn begin(path: &Path) -> io::Result<()> {
    let log = PointLog::begin(BufWriter::new(File::create(path)?))?;
    LOG.set(log).map_err(|_| io::Error::other("there is one already"))
}

/// Ends the log, if there is one: after the arena was dropped.
///
/// # Errors
/// The first one of the file since the log began.
pub fn end() -> io::Result<()> {
    LOG.get().map_or(Ok(()), |log| log.end().map(drop))
}

/// Whether calls are logged.
pub fn is_on() -> bool {
    LOG.get().is_some()
}

/// Makes a call that is not logged by itself, such as one that makes a pool, in the order of the log.
pub fn call<R>(call: impl FnOnce() -> R) -> R {
    match LOG.get() {
        Some(log) => log.call(call),
        None => call(),
    }
}

/// The control of a point.
pub fn logger() -> Logger {
    PointLogger::new(is_on as Switch, Hook)
}

/// A pool all of whose calls are logged.
pub const fn logged<P: ManualPool>(pool: P) -> Logged<P> {
    LoggedPool::new(pool, is_on as Switch, Hook)
}

/// A pool of packets that reports every call if there is a log.
pub fn packets<A: Arena, const SIZE: usize>(pool: PacketPool<A, SIZE>) -> PacketPool<A, SIZE> {
    if is_on() { pool.logged(&Hook) } else { pool }
}

/// What allocates in a pool, and logs it.
pub fn store<P: PoolClass + Store>(pool: &P) -> LoggedStore<'_, P, Switch, Hook> {
    LoggedStore::new(pool, pool, is_on as Switch, Hook)
}
