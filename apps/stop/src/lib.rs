//! How programs end before their input does (design/order-book.md `.stop`).

#[cfg(unix)]
mod signals;
#[cfg(unix)]
pub use signals::{Stoppable, file, install, leave_to_others, signal, stdin};

#[cfg(not(unix))]
mod no_signals;
#[cfg(not(unix))]
pub use no_signals::{file, install, leave_to_others, signal, stdin};

pub mod threads;

/// Added to the number of the signal that ended a run, as shells do.
const SIGNALLED: u32 = 128;

/// The exit status of a program that a signal ended.
pub fn status() -> Option<u8> {
    signal().and_then(|signal| u8::try_from(SIGNALLED + signal).ok())
}
