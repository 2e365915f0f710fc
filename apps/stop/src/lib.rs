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
