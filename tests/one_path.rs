//! Every public item of a crate has one path: none is both in a module and at the root, or in two
//! modules (design/core.md `.req.one-path`).
//!
//! The items are those of the listings in `design/api`, which `verify/public-api` compares with
//! the source. Two items of one name at two paths count as one item: a reader could not tell them
//! apart either. Of crates that are modules of the facade, that holds for what they and the facade
//! re-export: each has names of its own, but no path to what another crate has.

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
    several_paths(listing, |_| true)
}

/// The names with more than one path for which `counts` holds of the kind of one of the items.
fn several_paths(listing: &str, counts: impl Fn(&str) -> bool) -> Vec<String> {
    let items: Vec<_> = listing.lines().filter_map(item).collect();
    let modules: BTreeSet<_> =
        items.iter().filter(|(kind, _)| *kind == "mod").map(|(_, path)| *path).collect();
    let mut paths: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for (kind, path) in items.iter().filter(|(kind, _)| KINDS.contains(kind) || *kind == "use") {
        if let Some((module, name)) = path.rsplit_once("::")
            && modules.contains(module)
        {
            paths.entry(name).or_default().insert(*path, *kind);
        }
    }
    let several =
        paths.into_values().filter(|paths| paths.len() > 1 && paths.values().any(|kind| counts(kind)));
    several.map(|paths| paths.into_keys().collect::<Vec<_>>().join(" and ")).collect()
}

/// The crates that are modules of the facade, by the names of these modules.
const MODULES: [&str; 4] = ["contract", "telemetry", "gc", "xdp"];

/// The listing of the facade, and those of the crates that are modules of it, as a user of the facade sees them.
fn joined(listings: &[Text]) -> String {
    let listing = |name: &str| {
        let path = format!("design/api/{name}.txt");
        listings
            .iter()
            .find(|listing| listing.path == path)
            .unwrap_or_else(|| panic!("no {path}"))
            .text
            .clone()
    };
    let module = |name: &&str| {
        listing(&format!("tripoint-{name}"))
            .replace(&format!("tripoint_{name}"), &format!("tripoint::{name}"))
    };
    [listing("tripoint")].into_iter().chain(MODULES.iter().map(module)).collect()
}

/// What the facade, or a module of it, re-exports although it has another path there.
fn re_exported_twice(listing: &str) -> Vec<String> {
    several_paths(listing, |kind| kind == "use")
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
fn every_item_has_one_path_through_the_facade() {
    assert_eq!(re_exported_twice(&joined(&listings())), [""; 0]);
}

#[test]
fn items_with_two_paths_through_the_facade_are_found() {
    // Of the facade and of its first modules; the other modules have no items.
    let check = |texts: [&str; 4]| {
        let suffixes = [""].into_iter().chain(MODULES);
        let texts = texts.into_iter().chain(core::iter::repeat(""));
        let listings: Vec<_> = suffixes
            .zip(texts)
            .map(|(module, text)| {
                let [dash, underscore] = if module.is_empty() { ["", ""] } else { ["-", "_"] };
                let path = format!("design/api/tripoint{dash}{module}.txt");
                Text { path, text: format!("pub mod tripoint{underscore}{module}\n{text}\n") }
            })
            .collect();
        re_exported_twice(&joined(&listings))
    };
    let (contract, telemetry) = ("pub use tripoint_contract::A", "pub use tripoint_telemetry::A");
    assert_eq!(check(["", contract, telemetry, ""]), ["tripoint::contract::A and tripoint::telemetry::A"]);
    let gc = "pub use tripoint_gc::A";
    assert_eq!(check(["pub use tripoint::A", "", "", gc]), ["tripoint::A and tripoint::gc::A"]);
    assert_eq!(check(["pub use tripoint::A", contract, "", ""]), ["tripoint::A and tripoint::contract::A"]);
    assert_eq!(check(["pub use tripoint::A", "", "", ""]), [""; 0]);
    let own = ["", "pub struct tripoint_contract::A", "pub struct tripoint_telemetry::A", ""];
    assert_eq!(check(own), [""; 0], "each has an item of its own");
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
    let folders = [
        "core",
        "ap",
        "pools",
        "packets",
        "adaptors",
        "arena-vm",
        "stack",
        "contract",
        "telemetry",
        "gc",
        "xdp",
        "",
    ];
    let roots: Vec<_> = folders
        .iter()
        .flat_map(|folder| repository::texts(format!("{folder}/src").trim_start_matches('/'), &["rs"]))
        .collect();
    let modules = MODULES.map(|name| format!("src/lib.rs: pub use tripoint_{name} as {name}"));
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
