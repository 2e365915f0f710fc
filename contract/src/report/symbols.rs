//! Names and lines for code addresses. Slow, and allocates: for cold threads.

use core::fmt::{self, Write};
use std::string::{String, ToString};

use tripoint_stack::Site;

use crate::detectors::platform;
use crate::phases::last_words;
use crate::report::frame::{Frame, Innermost};
use crate::report::resolve::Resolve;
use crate::thread::current;
use crate::thread::standing::Mode;
use crate::words::record::Record;

/// Resolves sites by the debug information of the running program. Release builds have none
/// unless the profile says so, and only functions are named then: set
/// `debug = "line-tables-only"` in `[profile.release]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Symbols;

/// The range that the system maps the program's own code at. Code of other objects, such
/// as C's library with its debug information, lies between the site and the detector.
struct Program(Option<core::ops::Range<usize>>);

impl Program {
    fn here() -> Self {
        #[cfg(target_os = "linux")]
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        #[cfg(not(target_os = "linux"))]
        let maps = "";
        let here = (Self::here as fn() -> Self) as usize;
        let mapping = |line: &str| {
            let (start, rest) = line.split_once('-')?;
            let (end, rest) = rest.split_once(' ')?;
            let path = rest.find('/').map(|from| rest[from..].to_string())?;
            Some((usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?, path))
        };
        let mappings: std::vec::Vec<_> = maps.lines().filter_map(mapping).collect();
        let own = mappings.iter().find(|(range, _)| range.contains(&here)).map(|(_, path)| path);
        let of_own = mappings.iter().filter(|(_, path)| Some(path) == own).map(|(range, _)| range.clone());
        Self(of_own.reduce(|all, range| all.start.min(range.start)..all.end.max(range.end)))
    }

    /// Whether an address is in the program; true if the program's range is not known.
    fn contains(&self, address: usize) -> bool {
        self.0.as_ref().is_none_or(|range| range.contains(&address))
    }
}

fn frames_at(address: usize, mut found: impl FnMut(Frame)) {
    backtrace::resolve(core::ptr::without_provenance_mut(address), |symbol| {
        let function = symbol.name().map_or_else(|| "?".to_string(), |name| std::format!("{name:#}"));
        let place = symbol.filename().zip(symbol.lineno());
        let place = place.map(|(file, line)| std::format!("{}:{line}", file.display()));
        found(Frame { function, place });
    });
}

/// The frames of a site, up to the first after which it is `enough`.
fn innermost(site: &Site, enough: impl Fn(&Innermost) -> bool) -> Innermost {
    let program = Program::here();
    let mut innermost = Innermost::default();
    for &address in site.frames() {
        let of_program = program.contains(address);
        frames_at(address, |frame| innermost.look(frame, of_program));
        if enough(&innermost) {
            break;
        }
    }
    innermost
}

impl Resolve for Symbols {
    /// The frame that [`Innermost`] chooses.
    fn resolve(&self, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result {
        match innermost(site, Innermost::is_found).frame() {
            Some(frame) => write!(out, "{frame}"),
            None => out.write_str("unknown"),
        }
    }

    /// At most two.
    fn callers(&self, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result {
        let frames = innermost(site, Innermost::is_known).with_callers();
        let separators = core::iter::once("").chain(core::iter::repeat(" < "));
        separators
            .zip(frames.iter().skip(1))
            .try_for_each(|(separator, frame)| write!(out, "{separator}{frame}"))
    }

    fn frame(&self, address: usize, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut outcome = Ok(());
        let mut separator = "";
        frames_at(address, |frame| {
            outcome = outcome.and_then(|()| write!(out, "{separator}{frame}"));
            separator = " < ";
        });
        outcome
    }
}

impl Symbols {
    /// Prints an alarm on standard error: class, count, bytes, thread and phase, then the line
    /// and the whole stack. For [`Policies::fail_fast`](crate::Policies), on the violating
    /// thread; its own events are only counted.
    pub fn report(alarm: &Record) {
        if let Some(slot) = current::slot() {
            slot.set_mode(Mode::Counting);
        }
        let mut text = String::new();
        let told = last_words::write(alarm, &mut text)
            .and_then(|()| text.write_str("\n  in "))
            .and_then(|()| Self.resolve(&alarm.site, &mut text))
            .and_then(|()| {
                alarm.site.frames().iter().try_for_each(|&address| {
                    text.write_str("\n     ")?;
                    Self.frame(address, &mut text)
                })
            })
            .and_then(|()| text.write_str("\n"));
        // Writing to a string does not fail.
        let _ = told;
        platform::tell(text.as_bytes());
    }

    /// As [`Symbols::report`]; then aborts the process.
    ///
    /// ```
    /// use tripoint_contract::{Policies, Policy, Symbols};
    ///
    /// let policies = Policies::all(Policy::FailFast).with_fail_fast(Symbols::report_and_abort);
    /// # let _ = policies;
    /// ```
    pub fn report_and_abort(alarm: &Record) {
        Self::report(alarm);
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter has no map of the process")]
    fn this_program_is_told_from_the_library_of_c() {
        let program = Program::here();
        assert!(program.contains(Program::here as fn() -> Program as usize));
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        {
            unsafe extern "C" {
                fn strlen(text: *const u8) -> usize;
            }
            assert!(!program.contains(strlen as *const () as usize));
        }
        assert!(Program(None).contains(7), "everything, if it is not known");
    }
}
