//! Which frame of a site is the program's own, by the names of functions and the paths of sources. For this process, and for
//! programs that read about another one.

use core::fmt;
use std::string::String;
use std::vec::Vec;

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

/// Parts of the paths of packages that cargo has fetched: not of the program's own.
const DEPENDENCIES: [&str; 2] = ["/registry/src/", "/git/checkouts/"];

/// What names of the standard library begin with.
const STANDARD_NAMES: [&str; 3] = ["core::", "alloc::", "std::"];

/// Where this crate was built, and what the folders of its siblings are called instead:
/// with tables of lines and no more, inlined functions have names without their crate.
const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
const SIBLINGS: [&str; 8] = ["contract", "core", "ap", "pools", "arena-vm", "gc", "stack", "telemetry"];

/// The files through which each call of an allocator comes: known in whatever folder the program was built.
const DETECTORS: [&str; 2] = ["/contract/src/thread/current.rs:", "/contract/src/detectors/allocator.rs:"];

/// Whether a place is in one of these crates: beside this one, as when both were built from the same folder, or in a package of
/// it, as cargo unpacks them for any user.
fn is_of_siblings(place: &str, siblings: &[&str]) -> bool {
    let is_beside = |name: &str| {
        let (before, after) = FOLDER.rsplit_once("contract")?;
        let rest = place.strip_prefix(before)?.strip_prefix(name)?.strip_prefix(after)?;
        rest.starts_with("/src/").then_some(())
    };
    let is_packaged = |name: &str| {
        let (_, rest) = place.split_once("/tripoint-")?;
        let version = rest.strip_prefix(name)?.strip_prefix('-')?;
        let (version, _) = version.split_once("/src/")?;
        (version.starts_with(|first: char| first.is_ascii_digit()) && !version.contains('/')).then_some(())
    };
    siblings.iter().any(|name| is_beside(name).or_else(|| is_packaged(name)).is_some())
}

/// One function at one address. An address has several if functions were inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The name of the function.
    pub function: String,
    /// The file and the line, as `src/main.rs:7`.
    pub place: Option<String>,
}

impl Frame {
    /// Whether the place may be the site itself: a line of code that is neither the standard
    /// library's nor this workspace's. Generic code of the standard library is compiled into
    /// the program, but its source path stays the standard library's.
    fn is_own(&self) -> bool {
        let standard =
            |place: &str| STANDARD_LIBRARY.iter().chain(&STANDARD_CRATES).any(|part| place.contains(part));
        let detector = |place: &str| DETECTORS.iter().any(|file| place.contains(file));
        self.place
            .as_ref()
            .is_some_and(|place| !standard(place) && !detector(place) && !is_of_siblings(place, &SIBLINGS))
            && !self.name_begins_with(&ON_THE_WAY)
    }

    /// Whether it is of the crates that find a site and sample it, which lie within every sample.
    #[must_use]
    pub fn is_of_sampler(&self) -> bool {
        let is_place = |place: &String| is_of_siblings(place, &["telemetry", "stack", "core"]);
        self.place.as_ref().is_some_and(is_place)
            || self.name_begins_with(&["tripoint_telemetry::", "tripoint_stack::", "tripoint_core::"])
    }

    /// Whether, by its name alone, it may be the function of the site: for programs without
    /// debug information.
    fn is_own_by_name(&self) -> bool {
        self.place.is_none() && !self.name_begins_with(&ON_THE_WAY) && !self.name_begins_with(&STANDARD_NAMES)
    }

    /// Whether the place is in a package that the program's author has, as far as its path tells.
    fn is_authors(&self) -> bool {
        self.place.as_ref().is_none_or(|place| !DEPENDENCIES.iter().any(|part| place.contains(part)))
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

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{} at {place}", self.function),
            None => f.write_str(&self.function),
        }
    }
}

/// The most frames by which a site is known.
pub(crate) const KNOWN_BY: usize = 3;

/// Finds the frame that names a site: the innermost line of the program's own, in its own object, and neither the
/// standard library's nor this workspace's. If there is none, the innermost function of its own by name, the
/// innermost such line of another object, or else the innermost function known.
///
/// Those of its callers that are such lines, or such functions, make the site known better.
#[derive(Clone, Debug, Default)]
pub struct Innermost {
    own: Vec<Frame>,
    named: Vec<Frame>,
    other: Option<Frame>,
    first: Option<Frame>,
}

/// Keeps a frame if there is room. If all that are kept are of dependencies, the first of the author's takes the place
/// of the outermost.
fn keep(kept: &mut Vec<Frame>, frame: Frame) {
    if kept.last() == Some(&frame) {
        return; // a recursion
    }
    if kept.len() == KNOWN_BY && frame.is_authors() && !kept.iter().any(Frame::is_authors) {
        kept.pop();
    }
    if kept.len() < KNOWN_BY {
        kept.push(frame);
    }
}

impl Innermost {
    /// Looks at the next frame outwards. `of_program` says whether it is in the program's own object.
    pub fn look(&mut self, frame: Frame, of_program: bool) {
        let place = match frame.is_own() {
            true if of_program => return keep(&mut self.own, frame),
            true => &mut self.other,
            false if of_program && frame.is_own_by_name() => return keep(&mut self.named, frame),
            false => &mut self.first,
        };
        place.get_or_insert(frame);
    }

    /// Whether no frame further outwards can be chosen.
    #[must_use]
    pub const fn is_found(&self) -> bool {
        !self.own.is_empty()
    }

    /// Whether no frame further outwards can be kept.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.own.len() == KNOWN_BY && self.own.iter().any(Frame::is_authors)
    }

    /// The frame chosen; `None` if there was none.
    #[must_use]
    pub fn frame(self) -> Option<Frame> {
        self.with_callers().into_iter().next()
    }

    /// The frame chosen, and its callers: at most three in all.
    #[must_use]
    pub fn with_callers(self) -> Vec<Frame> {
        let known = [self.own, self.named].into_iter().find(|frames| !frames.is_empty());
        known.unwrap_or_else(|| self.other.or(self.first).into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

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
        // Of a program that was built elsewhere.
        for place in [
            "/home/me/.cargo/registry/src/index-1/tripoint-pools-0.1.0/src/mfs.rs:1",
            "/builds/7/tripoint-contract-1.2.3-rc.1/src/thread/current.rs:67",
            "/builds/7/tripoint/contract/src/thread/current.rs:67",
            "/builds/7/tripoint/contract/src/detectors/allocator.rs:67",
        ] {
            assert!(!is_own("{closure#0}", Some(place)), "{place}: a name without its crate");
        }
        for place in
            ["/home/me/tripoint-pools-1/user/src/main.rs:7", "/home/me/tripoint-pools-user/src/main.rs:7"]
        {
            assert!(is_own("{closure#0}", Some(place)), "{place}");
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
        assert!(!by_name("program::turn", Some("src/main.rs:7")), "a line says that it is the program's own");
    }

    #[test]
    fn a_site_is_named_by_the_innermost_line_of_the_program() {
        let frame = |function: &str, place: Option<&str>| Frame {
            function: function.to_string(),
            place: place.map(str::to_string),
        };
        let mut innermost = Innermost::default();
        assert_eq!(innermost.clone().frame(), None);
        let offers = [
            (frame("malloc", None), false),
            (frame("library", Some("a.c:1")), false),
            (frame("program::helper", None), true),
            (frame("program::turn", Some("src/main.rs:7")), true),
            (frame("main", Some("src/main.rs:1")), true),
        ];
        let chosen = offers.map(|(frame, of_program)| {
            innermost.look(frame, of_program);
            (innermost.clone().frame().unwrap().function, innermost.is_found())
        });
        let expected = [
            ("malloc", false),
            ("library", false),
            ("program::helper", false),
            ("program::turn", true),
            ("program::turn", true),
        ];
        assert_eq!(chosen.each_ref().map(|(name, found)| (name.as_str(), *found)), expected);
        let lines = innermost.with_callers().into_iter().map(|frame| frame.function).collect::<Vec<_>>();
        assert_eq!(lines, ["program::turn", "main"]);
    }

    /// The frames that are kept, of those that are looked at.
    fn known(places: &[&str]) -> (Vec<String>, bool) {
        let mut innermost = Innermost::default();
        for place in places {
            innermost.look(Frame { function: "f".to_string(), place: Some(place.to_string()) }, true);
        }
        let is_known = innermost.is_known();
        (innermost.with_callers().into_iter().filter_map(|frame| frame.place).collect(), is_known)
    }

    #[test]
    fn a_site_is_known_by_three_frames_and_one_of_them_is_the_authors() {
        const A: &str = "/home/me/.cargo/registry/src/index-1/a-1.0.0/src/lib.rs:1";
        const B: &str = "/home/me/.cargo/registry/src/index-1/a-1.0.0/src/lib.rs:2";
        const C: &str = "/home/me/.cargo/git/checkouts/c-1/2/src/lib.rs:3";
        const STD: &str = "/rustc/5980/library/alloc/src/vec.rs:1";
        for (places, kept, is_known) in [
            (&["src/a.rs:1", STD, "src/b.rs:2"][..], &["src/a.rs:1", "src/b.rs:2"][..], false),
            (&["src/a.rs:1", "b.rs:2", "c.rs:3", "d.rs:4"], &["src/a.rs:1", "b.rs:2", "c.rs:3"], true),
            (&["a.rs:1", "a.rs:1", "a.rs:1", "b.rs:2"], &["a.rs:1", "b.rs:2"], false),
            (&[A, B, C, A], &[A, B, C], false),
            (&[A, B, C, "src/a.rs:1", "src/b.rs:2"], &[A, B, "src/a.rs:1"], true),
        ] {
            assert_eq!(known(places), (kept.iter().map(|place| place.to_string()).collect(), is_known));
        }
    }
}
