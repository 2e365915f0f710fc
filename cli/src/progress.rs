//! The progress of long work ([design/cli.md `.progress`](crate::design::cli)).

use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// A bar on standard error, for a number of parts of the work. It is not drawn if standard error is no terminal, or if JSON was asked for.
/// A signal that ends the program takes the bar away first. So does [`ProgressBar::finish_and_clear`].
pub(crate) fn begin(json: bool, parts: u64) -> ProgressBar {
    let bar = if json { ProgressBar::hidden() } else { ProgressBar::new(parts) };
    if !bar.is_hidden() {
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} % {msg} (for {elapsed})") {
            bar.set_style(style);
        }
        clear_at_signals(bar.clone());
    }
    bar
}

/// If signals are refused, the bar stays.
fn clear_at_signals(bar: ProgressBar) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    thread::spawn(move || {
        for signal in signals.forever() {
            bar.finish_and_clear();
            // It ends this process by that signal.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
}
