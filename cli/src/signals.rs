//! Ctrl-C and SIGTERM, for subcommands that go on until one comes; and the signal of a file that is too large.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use crate::error::Error;

/// A flag that the signals set.
pub(crate) type Stop = Arc<AtomicBool>;

/// A flag that Ctrl-C, SIGTERM and the end of the terminal set. The second of them ends this program.
pub(crate) fn stop() -> Result<Stop, Error> {
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let refused = |error| Error::Signals { error };
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop)).map_err(refused)?;
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(refused)?;
    }
    Ok(stop)
}

/// Lets a write beyond the limit of the size of files fail, as other writes do, instead of ending this program. A program that
/// this one starts has the signal as it was: a handler does not pass to it.
pub(crate) fn survive_full_files() -> Result<(), Error> {
    signal_hook::flag::register(SIGXFSZ, Stop::default()).map_err(|error| Error::Signals { error })?;
    Ok(())
}

/// Whether a signal came.
pub(crate) fn is_set(stop: &Stop) -> bool {
    stop.load(Ordering::Relaxed)
}
