//! The progress of long work ([design/cli.md `.progress`](crate::design::cli)).

use core::time::Duration;
use std::thread;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output::complain;

/// How often the bar shows how long the work has taken.
const TICK: Duration = Duration::from_millis(500);

/// After how long the first line is written, and how long it is from each line to the next.
const FIRST: Duration = Duration::from_millis(1_500);
const BETWEEN: Duration = Duration::from_secs(10);

/// A bar on standard error, for a number of parts of the work; if standard error is no terminal, a line from time to time. If JSON
/// was asked for, it is neither. A signal that ends the program takes the bar away first. Call [`ProgressBar::finish_and_clear`] at
/// the end of the work: it takes the bar away, too, and ends the lines.
pub(crate) fn begin(json: bool, parts: u64) -> ProgressBar {
    if json {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(parts);
    if bar.is_hidden() {
        write_lines(bar.clone());
        return bar;
    }
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} % {msg} (for {elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    clear_at_signals(bar.clone());
    bar
}

/// Writes a line from time to time, until the bar is finished.
fn write_lines(bar: ProgressBar) {
    thread::spawn(move || {
        let begin = Instant::now();
        thread::sleep(FIRST);
        while !bar.is_finished() {
            complain(&line(&bar, begin.elapsed()));
            thread::sleep(BETWEEN);
        }
    });
}

/// What is done, how much of it, and for how long.
fn line(bar: &ProgressBar, elapsed: Duration) -> String {
    let percent = match bar.length() {
        None | Some(0) => 0,
        Some(length) => (bar.position() as f64 / length as f64 * 100.0) as u64,
    };
    format!("{percent} % {} (for {} s)", bar.message(), elapsed.as_secs())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// (design/cli.md `.progress`)
    #[test]
    fn the_first_line_comes_before_two_seconds_are_over() {
        const { assert!(FIRST.as_millis() < 2_000) };
    }

    #[test]
    fn a_line_says_what_is_done_and_how_much_of_it() {
        let bar = ProgressBar::hidden();
        assert_eq!(line(&bar, Duration::ZERO), "0 %  (for 0 s)");
        bar.set_length(8);
        bar.set_message("replaying on tlsf");
        bar.inc(3);
        assert_eq!(line(&bar, Duration::from_millis(12_700)), "37 % replaying on tlsf (for 12 s)");
    }
}
