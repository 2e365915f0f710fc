//! The facade shows every item of the parts that it re-exports one by one, and no name of it hides
//! one of Rust's: a program may import all of them.

mod repository;

use std::collections::BTreeSet;

#[allow(unused_imports)]
use tripoint::*;

#[test]
fn taking_every_name_leaves_core_and_std_as_they_are() {
    assert_eq!(core::mem::size_of::<Addr>(), size_of::<usize>());
}

/// The parts, by the names of their crates. The contract is a module of the facade as it is.
const PARTS: [&str; 6] = [
    "tripoint_core",
    "tripoint_ap",
    "tripoint_pools",
    "tripoint_packets",
    "tripoint_arena_vm",
    "tripoint_adaptors",
];

/// The facade calls the platform of the target `Native`.
const LEFT_OUT: [&str; 1] = ["Linux"];

/// The names of the items at the root of a part, in a listing.
fn names<'t>(listing: &'t str, part: &str) -> BTreeSet<&'t str> {
    let root = format!(" {part}::");
    let name = |line: &'t str| {
        let line = line.trim_start_matches("+ ");
        let (start, rest) = line.split_once(root.as_str())?;
        let start = start.split("] ").last()?;
        let is_item = start.starts_with("pub ") && !start.ends_with("mod") && !start.contains(['(', ':']);
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        (is_item && !rest[end..].starts_with("::")).then_some(&rest[..end])
    };
    listing.lines().filter_map(name).collect()
}

/// Whether the facade's source re-exports a name.
fn is_shown(source: &str, name: &str) -> bool {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')).any(|word| word == name)
}

/// The listings in `design/api` have what features add as well.
#[test]
#[cfg_attr(miri, ignore = "the repository is tested")]
fn every_item_of_the_parts_is_shown() {
    let sources = repository::texts("src", &["rs"]);
    let is_facade = |path: &str| ["src/lib.rs", "src/author.rs"].contains(&path);
    let facade: String =
        sources.into_iter().filter(|file| is_facade(&file.path)).map(|file| file.text).collect();
    let listings = repository::texts("design/api", &["txt"]);
    for part in PARTS {
        let found: BTreeSet<_> = listings.iter().flat_map(|listing| names(&listing.text, part)).collect();
        assert!(found.len() > 1, "{part} lists nothing");
        let missing: Vec<_> =
            found.into_iter().filter(|name| !LEFT_OUT.contains(name) && !is_shown(&facade, name)).collect();
        assert_eq!(missing, [""; 0], "{part}");
    }
}

#[test]
fn items_that_are_not_shown_are_found() {
    let listing = "pub mod x\npub mod x::m\n#[repr(C)] pub struct x::A<T>\npub fn x::A::f() -> x::B\n+ pub fn x::seed(usize)\nimpl x::C for x::A";
    assert_eq!(names(listing, "x"), BTreeSet::from(["A", "seed"]));
    assert!(is_shown("pub use x::{A, B};", "A"));
    assert!(!is_shown("// A\npub use x::{Ab, B};", "A"));
}
