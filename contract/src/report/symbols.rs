//! Names and lines for code addresses. Slow, and allocates: for cold threads.

use core::fmt::{self, Write};
use std::string::{String, ToString};

use tripoint_stack::Site;

use crate::detectors::platform;
use crate::phases::last_words;
use crate::report::resolve::Resolve;
use crate::thread::current;
use crate::thread::standing::Mode;
use crate::words::record::Record;

/// The crates of this workspace that lie between a site and the detector. Also the calls
/// that the compiler puts between a program and its global allocator: their line is that
/// of the allocator's definition.
const ON_THE_WAY: [&str; 9] = [
    "tripoint_contract::",
    "tripoint_core::",
    "tripoint_ap::",
    "tripoint_pools::",
    "tripoint_arena_vm::",
    "tripoint_gc::",
    "tripoint_stack::",
    "tripoint_telemetry::",
    "__rust",
];

/// Parts of the paths of the standard library's sources, and of those it is built with: as
/// distributed, as installed with a compiler, and as packaged by systems.
const STANDARD_LIBRARY: [&str; 4] = ["/rustc/", "/rust/deps/", "/rustlib/src/rust/", "/library/std/src/"];
const STANDARD_CRATES: [&str; 2] = ["/library/core/src/", "/library/alloc/src/"];

/// What names of the standard library begin with.
const STANDARD_NAMES: [&str; 3] = ["core::", "alloc::", "std::"];

/// Where this crate was built, and what the folders of its siblings are called instead:
/// with tables of lines and no more, inlined functions have names without their crate.
const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
const SIBLINGS: [&str; 8] = ["contract", "core", "ap", "pools", "arena-vm", "gc", "stack", "telemetry"];

fn is_of_siblings(place: &str) -> bool {
    let Some((before, after)) = FOLDER.rsplit_once("contract") else { return false };
    let inside = |name: &&str| place.strip_prefix(before)?.strip_prefix(name)?.strip_prefix(after);
    SIBLINGS.iter().any(|name| inside(name).is_some_and(|rest| rest.starts_with("/src/")))
}

/// Resolves sites by the debug information of the running program. Release builds have none
/// unless the profile says so, and only functions are named then: set
/// `debug = "line-tables-only"` in `[profile.release]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Symbols;

/// One function at one address. An address has several if functions were inlined.
struct Frame {
    function: String,
    place: Option<String>,
}

impl Frame {
    /// Whether the place may be the site itself: a line of code that is neither the standard
    /// library's nor this workspace's. Generic code of the standard library is compiled into
    /// the program, but its source path stays the standard library's.
    fn is_own(&self) -> bool {
        let standard =
            |place: &str| STANDARD_LIBRARY.iter().chain(&STANDARD_CRATES).any(|part| place.contains(part));
        self.place.as_ref().is_some_and(|place| !standard(place) && !is_of_siblings(place))
            && !self.name_begins_with(&ON_THE_WAY)
    }

    /// Whether, by its name alone, it may be the function of the site: for programs without
    /// debug information.
    fn is_own_by_name(&self) -> bool {
        self.place.is_none() && !self.name_begins_with(&ON_THE_WAY) && !self.name_begins_with(&STANDARD_NAMES)
    }

    fn name_begins_with(&self, beginnings: &[&str]) -> bool {
        // `<&mut tripoint_core::…>::alloc`, `<&A as tripoint_core::…>::alloc`: the trait
        // decides if the type has no path.
        let name = self.function.trim_start_matches(['<', '&', '*']).trim_start_matches("mut ");
        let name = match name.split_once(" as ") {
            Some((of, of_trait)) if !of.contains("::") => of_trait,
            _ => name,
        };
        beginnings.iter().any(|beginning| name.starts_with(beginning))
    }
}

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

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{} at {place}", self.function),
            None => f.write_str(&self.function),
        }
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

impl Resolve for Symbols {
    /// The innermost line of the program's own: in its own object, and neither the standard
    /// library's nor this workspace's. If there is none, the innermost function of its own by
    /// name, the innermost such line of another object, or else the innermost function known.
    fn resolve(&self, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result {
        let program = Program::here();
        let (mut own, mut named, mut other, mut first) = (None, None, None, None);
        for &address in site.frames() {
            let of_program = program.contains(address);
            frames_at(address, |frame| match frame.is_own() {
                true if of_program => own = own.take().or(Some(frame)),
                true => other = other.take().or(Some(frame)),
                false if of_program && frame.is_own_by_name() => named = named.take().or(Some(frame)),
                false => first = first.take().or(Some(frame)),
            });
            if own.is_some() {
                break;
            }
        }
        match own.or(named).or(other).or(first) {
            Some(frame) => write!(out, "{frame}"),
            None => out.write_str("unknown"),
        }
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

    fn is_own(function: &str, place: Option<&str>) -> bool {
        Frame { function: function.to_string(), place: place.map(str::to_string) }.is_own()
    }

    #[test]
    fn the_standard_library_is_known_by_its_paths_and_this_workspace_by_its_crates() {
        let line = Some("src/main.rs:7");
        for (function, place) in [
            (
                "<u8 as <[_]>::to_vec_in::ConvertVec>::to_vec",
                Some("/rustc/59807616e/library/alloc/src/slice.rs:448"),
            ),
            ("hashbrown::raw::RawTable<T>::reserve", Some("/rust/deps/hashbrown-0.16.1/src/raw.rs:9")),
            ("panic_unwind::imp::panic", Some("/rustc/59807616e/library/panic_unwind/src/gcc.rs:1")),
            (
                "<[program::Order]>::sort",
                Some("/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/slice.rs:1"),
            ),
            ("core::ptr::write", Some("/usr/src/rustc-1.96.0/library/core/src/ptr/mod.rs:1")),
            ("tripoint_contract::allocator::alloc", line),
            ("<&A as tripoint_core::Arena>::alloc_tracts", line),
            ("<&mut tripoint_pools::Mvff as tripoint_core::Pool>::fill", line),
            ("__rustc::__rust_realloc", line),
            ("malloc", None),
        ] {
            assert!(!is_own(function, place), "{function}");
        }
        if let Some((before, after)) = FOLDER.rsplit_once("contract") {
            for sibling in SIBLINGS {
                let place = std::format!("{before}{sibling}{after}/src/current.rs:67");
                assert!(!is_own("{closure#0}", Some(&place)), "{place}: a name without its crate");
            }
            assert!(is_own("{closure#0}", Some(&std::format!("{before}examples{after}/src/main.rs:7"))));
            assert!(is_own("{closure#0}", Some(&std::format!("{FOLDER}/tests/report.rs:7"))));
        }
        for function in [
            "<u64 as program::Price>::round",
            "<[program::Order] as program::Batch>::send",
            "program::core::Order::send",
            "hashbrown::raw::mine",
            "tripoint_contract_user::main",
            "main",
        ] {
            assert!(is_own(function, line), "{function}");
        }
    }

    #[test]
    fn without_lines_a_function_of_the_program_is_known_by_its_name() {
        let by_name = |function: &str, place: Option<&str>| {
            Frame { function: function.to_string(), place: place.map(str::to_string) }.is_own_by_name()
        };
        assert!(by_name("program::turn", None));
        for function in [
            "__rustc::__rust_alloc",
            "tripoint_contract::current::observe",
            "<alloc::vec::Vec<T,A> as core::clone::Clone>::clone",
            "<T as alloc::slice::ConvertVec>::to_vec",
            "<std::sys::thread::unix::Thread>::new::thread_start",
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
        ] {
            assert!(!by_name(function, None), "{function}");
        }
        assert!(!by_name("program::turn", Some("src/main.rs:7")), "that is told by its line");
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter has no map of the process")]
    fn this_program_is_told_from_the_library_of_c() {
        let program = Program::here();
        assert!(program.contains(is_own as fn(&'static str, _) -> _ as usize));
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
