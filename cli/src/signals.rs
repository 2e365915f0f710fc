//! Ctrl-C and SIGTERM, for subcommands that go on until one comes.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

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

/// Whether a signal came.
pub(crate) fn is_set(stop: &Stop) -> bool {
    stop.load(Ordering::Relaxed)
}
