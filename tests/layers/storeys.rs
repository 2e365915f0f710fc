//! The storeys of a crate: a folder or file uses only those of its own storey or below
//! (design/core.md `.req.storeys`, design/ap.md `.storeys`), and tables of files list the ground floor first.

use crate::cycles::{self, Uses};
use crate::repository::{self, Text};
use crate::{crates, source, words};

/// A crate that states its storeys.
struct House {
    folder: &'static str,
    /// Folders, or files without `.rs`, the ground floor first.
    storeys: &'static [&'static str],
}

const HOUSES: &[House] = &[
    House {
        folder: "core/src",
        storeys: &["primitive", "values", "shared", "events", "traits", "arena", "objects"],
    },
    House {
        folder: "ap/src",
        storeys: &["protocol", "slow", "point", "reservation", "free", "alloc", "batch", "frames"],
    },
    House { folder: "contract/src", storeys: &["words", "thread", "linux", "detectors", "phases", "report"] },
    House {
        folder: "arena-vm/src",
        storeys: &[
            "budget",
            "chosen_memory",
            "descriptors",
            "page_report",
            "regions",
            "platform",
            "barrier",
            "mapped_file",
            "parking",
            "placement_check",
            "options",
            "reservation",
            "arena",
        ],
    },
    House {
        folder: "pools/src",
        storeys: &[
            "poison",
            "resize",
            "surplus",
            "sparse_bits",
            "hardening",
            "link",
            "placement",
            "land",
            "seal",
            "extend",
            "growth",
            "blocks",
            "granules",
            "mvt",
            "null",
            "mfs",
            "snc",
            "variable",
            "mvff",
            "tlsf",
            "cache",
            "debug",
        ],
    },
    House {
        folder: "telemetry/src",
        storeys: &[
            "sample",
            "estimators",
            "native",
            "numbering",
            "draws",
            "sampled_object",
            "live",
            "format",
            "clock",
            "ring",
            "sampler",
            "file",
            "recorder",
            "reader",
            "logger",
            "linux",
        ],
    },
    House {
        folder: "gc/src",
        storeys: &[
            "at_stop",
            "list",
            "queue",
            "outlines",
            "segments",
            "scans",
            "roots",
            "policy",
            "locations",
            "messages",
            "heaps",
            "collect",
            "classes",
            "frozen",
            "images",
            "walks",
            "transforms",
            "typed",
        ],
    },
    House {
        folder: "cli/src",
        storeys: &[
            "words",
            "grid",
            "symbols",
            "memory",
            "mapped",
            "core_file",
            "heaps",
            "target",
            "error",
            "whole_file",
            "signals",
            "output",
            "progress",
            "budget",
            "source",
            "kernel_events",
            "trace",
            "points",
            "summary",
            "tables",
            "export",
            "plotting",
            "pictures",
            "commands",
        ],
    },
];

/// What is on no storey: roots, which are above all, and what only documents or shows.
const ABOVE: [&str; 5] = ["lib", "main", "design", "internal", "tests"];

/// Words that name a pool, or the slow path, which connects the protocol with one.
const POOL_WORDS: [&str; 3] = ["Pool", "Manual", "SlowPath"];

impl House {
    fn storey(&self, file: &str) -> Option<usize> {
        let below = file.strip_prefix(self.folder)?.strip_prefix('/')?;
        let name = below.split('/').next()?.trim_end_matches(".rs");
        self.storeys.iter().position(|storey| *storey == name)
    }

    /// Uses of what is on a higher storey.
    fn upward(&self, uses: &Uses) -> Vec<String> {
        let rises = |(from, to): &&(String, String)| {
            self.storey(from).zip(self.storey(to)).is_some_and(|(from, to)| from < to)
        };
        uses.edges.iter().filter(rises).map(|(from, to)| format!("{from} uses {to}")).collect()
    }

    /// Files and folders that are on no storey.
    fn unplaced(&self, sources: &[Text]) -> Vec<String> {
        let is_above = |path: &str| {
            let below = &path[self.folder.len() + 1..];
            below.strip_suffix(".rs").is_some_and(|name| ABOVE.contains(&name))
        };
        let paths = sources.iter().map(|source| &source.path);
        paths.filter(|path| !is_above(path) && self.storey(path).is_none()).cloned().collect()
    }

    /// What the page says of the crate.
    fn line(&self) -> String {
        let storeys: Vec<_> = self.storeys.iter().map(|storey| format!("`{storey}`")).collect();
        format!("- `{}`: {}.", self.folder, storeys.join(", "))
    }
}

/// Lines that name a pool, tests and comments left out.
fn naming_pools(sources: &[Text]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        let code = source.text.split("#[cfg(test)]").next().unwrap();
        for (number, line) in (1..).zip(code.lines()) {
            let named = POOL_WORDS.iter().filter(|word| words::names(words::code(line), word));
            wrong.extend(named.map(|word| format!("{}:{number} names {word}", source.path)));
        }
    }
    wrong
}

#[test]
fn storeys_use_only_what_is_below() {
    for house in HOUSES {
        let sources = repository::texts(house.folder, &["rs"]);
        for storey in house.storeys {
            let there = sources
                .iter()
                .any(|source| house.storey(&source.path).is_some_and(|at| house.storeys[at] == *storey));
            assert!(there, "{}/{storey} is not there", house.folder);
        }
        assert_eq!(house.unplaced(&sources), [""; 0]);
        assert_eq!(house.upward(&cycles::uses_of(house.folder)), [""; 0]);
    }
}

#[test]
fn the_page_of_core_states_the_storeys() {
    let page = std::fs::read_to_string(repository::root().join("design/core.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let stated: Vec<_> = rows.map(|(name, _)| name).collect();
    let built: Vec<_> = HOUSES[0].storeys.iter().rev().copied().collect();
    assert!(stated.windows(built.len()).any(|rows| rows == built), "{stated:?}");
}

#[test]
fn the_page_of_core_lists_the_storeys_of_every_house() {
    let page = std::fs::read_to_string(repository::root().join("design/core.md")).unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<_> = HOUSES.iter().map(House::line).collect();
    let list = lines.join("\n");
    assert!(words(&page).contains(&words(&list)), "the list in design/core.md should be:\n\n{list}");
}

#[test]
fn the_protocol_knows_no_pool() {
    let sources = repository::texts("ap/src/protocol", &["rs"]);
    assert!(sources.len() > 3, "{} files", sources.len());
    assert_eq!(naming_pools(&sources), [""; 0]);
}

#[test]
fn upward_uses_are_found() {
    let house = House { folder: "x/src", storeys: &["low", "high"] };
    let file = |path: &str, text: &str| source(&format!("x/src/{path}"), text);
    let check = |low: &str, high: &str| {
        let root = "mod low; mod high; pub use low::Low; pub use high::High;";
        let sources = [file("lib.rs", root), file("low.rs", low), file("high.rs", high)];
        house.upward(&cycles::uses("x/src", &sources))
    };
    assert_eq!(check("pub struct Low;", "pub struct High(crate::Low);"), [""; 0]);
    assert_eq!(
        check("pub struct Low(crate::High);", "pub struct High;"),
        ["x/src/low.rs uses x/src/high.rs"]
    );
    assert_eq!(house.unplaced(&[file("low/a.rs", ""), file("lib.rs", "")]), [""; 0]);
    assert_eq!(house.unplaced(&[file("cellar/a.rs", "")]), ["x/src/cellar/a.rs"]);
    assert_eq!(house.unplaced(&[file("loose.rs", "")]), ["x/src/loose.rs"]);
}

#[test]
fn pools_in_the_protocol_are_found() {
    let check = |text: &str| naming_pools(&[source("x.rs", text)]);
    assert_eq!(check("use tripoint_core::PoolClass;"), ["x.rs:1 names Pool"]);
    assert_eq!(check("\nfn f(_: &SlowPath) {}"), ["x.rs:2 names SlowPath"]);
    assert_eq!(check("// PoolClass\nlet pool_limit = 1;\n#[cfg(test)]\nuse x::PoolClass;"), [""; 0]);
}

/// The files that a module's documentation lists from the ground up, with their floors: those of one row are on one.
fn floors(module: &Text) -> Vec<Vec<String>> {
    let lines = module.text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let rows = lines.skip_while(|line| !line.starts_with("| file, from the ground up |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cell = |row: &str| row.split('|').nth(1).unwrap_or_default().to_owned();
    let folder = format!("{}/", module.path.trim_end_matches(".rs"));
    rows.map(|row| cell(row).split('`').skip(1).step_by(2).map(|name| format!("{folder}{name}.rs")).collect())
        .collect()
}

/// Uses of what such a table lists further below.
fn against_the_table(module: &Text, uses: &Uses) -> Vec<String> {
    let floors = floors(module);
    let floor = |file: &String| floors.iter().position(|row| row.contains(file));
    let rises =
        |(from, to): &&(String, String)| floor(from).zip(floor(to)).is_some_and(|(from, to)| from < to);
    uses.edges.iter().filter(rises).map(|(from, to)| format!("{from} uses {to}")).collect()
}

#[test]
fn tables_list_files_from_the_ground_up() {
    let mut tables = 0;
    for folder in crates() {
        let sources = repository::texts(folder, &["rs"]);
        let with_table: Vec<_> = sources.iter().filter(|module| !floors(module).is_empty()).collect();
        if !with_table.is_empty() {
            tables += with_table.len();
            let uses = cycles::uses_of(folder);
            let wrong: Vec<_> =
                with_table.iter().flat_map(|module| against_the_table(module, &uses)).collect();
            assert_eq!(wrong, [""; 0]);
        }
    }
    assert!(tables > 5, "{tables} tables");
}

#[test]
fn tables_that_are_not_from_the_ground_up_are_found() {
    let file = |path: &str, text: &str| source(&format!("x/src/{path}"), text);
    let check = |rows: &str| {
        let table = format!("//! A.\n//! | file, from the ground up | |\n//! |---|---|\n{rows}mod b; mod c;");
        let sources = [
            file("lib.rs", "mod a;"),
            file("a.rs", &table),
            file("a/b.rs", "pub(crate) struct B(crate::a::c::C);"),
            file("a/c.rs", "pub(crate) struct C;"),
        ];
        against_the_table(&sources[1], &cycles::uses("x/src", &sources))
    };
    assert_eq!(check("//! | `c` | |\n//! | `b` | |\n"), [""; 0]);
    assert_eq!(check("//! | `b`, `c` | |\n"), [""; 0]);
    assert_eq!(check("//! | `b` | |\n//! | `c` | |\n"), ["x/src/a/b.rs uses x/src/a/c.rs"]);
}
