//! How a test says that it cannot run here.

use core::fmt;
use std::io::Write;
use std::process::Output;
use std::thread;

/// What a line about a skipped test begins with.
const BEGIN: &str = "skipped: ";

/// The most characters of a reason: it may have the whole output of a tool.
const LONGEST: usize = 300;

/// Says that the calling test, or a part of it, does not run here, and why: `skipped!("no {tool} here")`. It then has to return.
///
/// The line `skipped: NAME: WHY` goes to the standard error, past the harness, which keeps what tests print. The name
/// is that of package, crate and test, or of the calling function if another thread than the test's calls this.
/// `verify/skips` compares the names with those that are allowed.
#[macro_export]
macro_rules! skipped {
    ($($why:tt)+) => {{
        fn here() {}
        let place = (env!("CARGO_PKG_NAME"), env!("CARGO_CRATE_NAME"), ::core::any::type_name_of_val(&here));
        $crate::note_skip(place, ::core::format_args!($($why)+))
    }};
}

/// Prints the line: see [`skipped!`](crate::skipped). `place` is the package, the crate, and the path of a function in the
/// calling one.
#[doc(hidden)]
pub fn note_skip(place: (&str, &str, &str), why: fmt::Arguments<'_>) {
    print(&line(place, thread::current().name(), &why.to_string()));
}

/// Passes on which tests a child skipped, by its standard error. Returns whether there were any.
pub fn pass_skips_on(child: &Output) -> bool {
    let text = String::from_utf8_lossy(&child.stderr);
    let lines = text.lines().filter(|line| line.starts_with(BEGIN));
    lines.map(|line| print(&format!("{line}\n"))).count() > 0
}

/// In one write, so that no other thread's line comes between.
fn print(line: &str) {
    // Not by a macro: the harness keeps what those print. If there is no standard error, no one reads it.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn line((package, name, function): (&str, &str, &str), thread: Option<&str>, why: &str) -> String {
    let why: String = why.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect();
    // The harness names the thread after the test, unless it runs all of them in the main one.
    let in_crate = match thread {
        Some(test) if test != "main" => format!("{name}::{test}"),
        _ => function.trim_end_matches("::here").replace("::{{closure}}", ""),
    };
    format!("{BEGIN}{package}/{in_crate}: {why}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_name_of_the_test_or_of_the_function() {
        let place = ("tripoint-x", "suite", "suite::part::needs_it::{{closure}}::here");
        let by_test = line(place, Some("part::a_test"), "no jq\n here");
        assert_eq!(by_test, "skipped: tripoint-x/suite::part::a_test: no jq here\n");
        for thread in [None, Some("main")] {
            assert_eq!(line(place, thread, "why"), "skipped: tripoint-x/suite::part::needs_it: why\n");
        }
    }
}
