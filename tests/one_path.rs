//! Every public item of a crate has one path: none is both in a module and at the root, or in two
//! modules (design/core.md `.req.one-path`).
//!
//! The items are those of the listings in `design/api`, which `verify/public-api` compares with
//! the source. Two items of one name at two paths count as one item: a reader could not tell them
//! apart either.

mod repository;

use std::collections::{BTreeMap, BTreeSet};

use repository::Text;

/// The kinds of items that a module can have, beside modules.
const KINDS: [&str; 9] = ["const", "enum", "fn", "macro", "static", "struct", "trait", "type", "union"];

/// The kind and the path of the item that a line of a listing is about.
fn item(line: &str) -> Option<(&str, &str)> {
    // Attributes come first, and implementations are no items.
    let unmarked = if line.starts_with("#[") { line.split_once("] ")?.1 } else { line };
    let mut rest = unmarked.strip_prefix("pub ")?;
    // A `const` may begin a function.
    while let Some(after) = rest.strip_prefix("const ").or(rest.strip_prefix("unsafe ")) {
        let is_modifier = ["unsafe ", "fn ", "trait "].iter().any(|next| after.starts_with(next));
        if !is_modifier {
            break;
        }
        rest = after;
    }
    let (kind, after) = rest.split_once(' ')?;
    Some((kind, path(after)))
}

/// The path that a text begins with.
fn path(text: &str) -> &str {
    let continues = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let end = text.find(|c| !continues(c)).unwrap_or(text.len());
    text[..end].trim_end_matches(':')
}

/// The items of a crate's modules that have more than one path, with their paths.
fn at_two_paths(listing: &str) -> Vec<String> {
    let items: Vec<_> = listing.lines().filter_map(item).collect();
    let modules: BTreeSet<_> =
        items.iter().filter(|(kind, _)| *kind == "mod").map(|(_, path)| *path).collect();
    let mut paths: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, path) in items.iter().filter(|(kind, _)| KINDS.contains(kind) || *kind == "use") {
        if let Some((module, name)) = path.rsplit_once("::")
            && modules.contains(module)
        {
            paths.entry(name).or_default().insert(*path);
        }
    }
    let several = paths.into_values().filter(|paths| paths.len() > 1);
    several.map(|paths| paths.into_iter().collect::<Vec<_>>().join(" and ")).collect()
}

/// The listings of whole crates, not those of what a feature changes.
fn listings() -> Vec<Text> {
    let mut listings = repository::texts("design/api", &["txt"]);
    listings.retain(|listing| listing.path.matches('.').count() == 1);
    listings
}

#[test]
fn every_public_item_has_one_path() {
    let listings = listings();
    assert!(listings.len() >= 7, "{} listings", listings.len());
    for listing in listings {
        assert!(listing.text.lines().filter_map(item).count() > 10, "{} lists nothing", listing.path);
        assert_eq!(at_two_paths(&listing.text), [""; 0], "{}", listing.path);
    }
}

#[test]
fn items_at_two_paths_are_found() {
    for item in [
        "pub struct PATH",
        "pub struct PATH<'a, T: core::fmt::Debug>",
        "#[non_exhaustive] pub enum PATH",
        "#[repr(C)] pub union PATH",
        "pub trait PATH: core::marker::Sized",
        "pub unsafe trait PATH",
        "pub fn PATH(usize) -> usize",
        "pub const unsafe fn PATH()",
        "pub const PATH: usize",
        "pub type PATH = core::result::Result<(), x::E>",
        "pub macro PATH!",
        "pub use PATH",
    ] {
        let listing = |paths: &[&str]| {
            let lines = paths.iter().map(|path| item.replace("PATH", path));
            ["pub mod x".to_owned(), "pub mod x::y".to_owned()].into_iter().chain(lines).collect::<Vec<_>>()
        };
        let check = |paths: &[&str]| at_two_paths(&listing(paths).join("\n"));
        assert_eq!(check(&["x::A", "x::y::A"]), ["x::A and x::y::A"], "{item}");
        assert_eq!(check(&["x::A", "x::y::B", "x::B::A"]), [""; 0], "{item}");
    }
}

/// Re-exports under another name, which no listing would show as a second path.
fn renamed(sources: &[Text]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for item in source.text.split(';').filter_map(|item| item.rsplit_once("pub use ")) {
            let is_renamed = item.1.split_whitespace().any(|word| word == "as");
            found.extend(is_renamed.then(|| format!("{}: pub use {}", source.path, item.1)));
        }
    }
    found
}

#[test]
fn nothing_is_renamed_on_its_way_out() {
    let folders = ["core", "ap", "pools", "adaptors", "arena-vm", "stack", "contract", "telemetry", "gc", ""];
    let roots: Vec<_> = folders
        .iter()
        .flat_map(|folder| repository::texts(format!("{folder}/src").trim_start_matches('/'), &["rs"]))
        .collect();
    // These crates are modules of the facade.
    let modules =
        ["contract", "telemetry"].map(|name| format!("src/lib.rs: pub use tripoint_{name} as {name}"));
    assert_eq!(renamed(&roots), modules);
}

#[test]
fn renamed_items_are_found() {
    let check = |text: &str| renamed(&[Text { path: "x.rs".to_owned(), text: text.to_owned() }]);
    assert_eq!(check("pub use a::{A, B as C};"), ["x.rs: pub use a::{A, B as C}"]);
    assert_eq!(check("pub use a::Assembly; use a::B as C;"), [""; 0]);
}

#[test]
fn methods_of_one_name_are_passed() {
    let listing = "pub mod x\npub struct x::A\npub fn x::A::new()\npub struct x::B\npub const fn x::B::new()";
    assert_eq!(at_two_paths(listing), [""; 0]);
}
