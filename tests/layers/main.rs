//! The order of the house: which crate may use which, where some words may stand, that no
//! files of a crate use each other in a cycle or what is on a higher storey, and what a user's
//! lock file gets, and what files with laws use (design/core.md `.req.layers`, `.req.bare`, `.req.storeys`, `.primitive`;
//! design/publishing.md `.req.light`).

mod crates;
mod cycles;
mod files;
mod laws;
mod lock;
mod methods;
#[path = "../repository/mod.rs"]
mod repository;
mod storeys;
mod words;

use repository::Text;

/// The folders with the sources of libraries.
const LIBRARIES: &[&str] = &[
    "core/src",
    "ap/src",
    "pools/src",
    "packets/src",
    "adaptors/src",
    "arena-vm/src",
    "stack/src",
    "contract/src",
    "telemetry/src",
    "gc/src",
    "src",
];

/// The folders with the sources of programs, of what only they use, and of the library that is for one system alone: these may
/// use `std`, and libc anywhere.
const PROGRAMS: &[&str] = &["benches/src", "cli/preload", "cli/src", "verify/oracle/src", "xdp/src"];

/// The folders of all crates whose files are looked at.
fn crates() -> impl Iterator<Item = &'static &'static str> {
    LIBRARIES.iter().chain(PROGRAMS)
}

/// A file that is not in the repository, for tests of these tests.
fn source(path: &str, text: &str) -> Text {
    Text { path: path.to_owned(), text: text.to_owned() }
}
