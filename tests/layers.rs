//! The layer order: who may depend on whom, and who may name what
//! (design/core.md `.req.layers`, `.req.bare`, `.primitive`).
//!
//! ```text
//!     examples  benches  fuzz  tests-loom        leaves
//!                       |
//!                   tripoint                     facade
//!                       |
//!     arena-vm   adaptors   pools   ap
//!             \      |       |     /
//!                      core                      no_std, no alloc
//! ```
//!
//! Dependencies are those that the manifests declare for the libraries, on any
//! target and with any feature. Dependencies of tests are free.

mod repository;

use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};
use repository::Text;

/// What one member may depend on. Whoever is not listed may depend on nothing,
/// so a new member or dependency has to be entered here.
struct Layer {
    package: &'static str,
    /// Packages by name, with `for` and the target where there is one.
    may_use: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    Layer {
        package: "tripoint-core",
        may_use: &[
            "bitflags",
            "spin for cfg(target_has_atomic = \"ptr\")",
            "loom for cfg(tripoint_loom)",
            "shuttle for cfg(tripoint_shuttle)",
        ],
    },
    Layer { package: "tripoint-ap", may_use: &["tripoint-core", "bitflags", "memoffset"] },
    Layer { package: "tripoint-pools", may_use: &["tripoint-core"] },
    Layer { package: "tripoint-adaptors", may_use: &["tripoint-core", "allocator-api2"] },
    Layer {
        package: "tripoint-arena-vm",
        may_use: &["tripoint-core", "libc for cfg(target_os = \"linux\")"],
    },
    Layer {
        package: "tripoint-contract",
        may_use: &["tripoint-core", "bitflags", "backtrace", "libc for cfg(target_os = \"linux\")"],
    },
    Layer {
        package: "tripoint",
        may_use: &[
            "tripoint-core",
            "tripoint-ap",
            "tripoint-pools",
            "tripoint-adaptors",
            "tripoint-arena-vm",
            "tripoint-contract",
        ],
    },
];

/// Members that depend on what they like, and that nobody depends on.
const LEAVES: &[&str] = &["tests-loom", "benches", "tripoint-oracle", "tripoint-probe"];

/// The folders with the sources of libraries.
const LIBRARIES: &[&str] =
    &["core/src", "ap/src", "pools/src", "adaptors/src", "arena-vm/src", "contract/src", "src"];

/// A word that only some files or folders may name.
struct Word {
    word: &'static str,
    only_in: &'static [&'static str],
}

const WORDS: &[Word] = &[
    Word { word: "core::sync", only_in: &["core/src/primitive"] },
    Word { word: "loom::", only_in: &["core/src/primitive"] },
    Word { word: "shuttle::", only_in: &["core/src/primitive"] },
    Word { word: "spin::", only_in: &["core/src/primitive"] },
    Word { word: "libc", only_in: &["arena-vm/src/", "contract/src/linux/"] },
    // The portable platform takes its address space from the global allocator.
    Word { word: "extern crate alloc", only_in: &["arena-vm/src/"] },
];

/// A member and the dependencies of its library.
struct Member {
    package: String,
    uses: Vec<String>,
}

fn members(metadata: &Metadata) -> Vec<Member> {
    let member = |package: &cargo_metadata::Package| Member {
        package: package.name.to_string(),
        uses: package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind != DependencyKind::Development)
            .map(|dependency| match &dependency.target {
                Some(target) => format!("{} for {target}", dependency.name),
                None => dependency.name.clone(),
            })
            .collect(),
    };
    metadata.workspace_packages().into_iter().map(member).collect()
}

fn wrong_dependencies(members: &[Member]) -> Vec<String> {
    let mut wrong = Vec::new();
    for member in members.iter().filter(|member| !LEAVES.contains(&member.package.as_str())) {
        let layer = LAYERS.iter().find(|layer| layer.package == member.package);
        let may_use = layer.map_or(&[][..], |layer| layer.may_use);
        let forbidden = member.uses.iter().filter(|used| !may_use.contains(&used.as_str()));
        wrong.extend(forbidden.map(|used| format!("{} uses {used}", member.package)));
    }
    wrong
}

/// A line without its comment.
fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Whether `code` names `word`: not as the end of a longer name.
fn names(code: &str, word: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| !code[..at].ends_with(continues))
}

fn misplaced_words(sources: &[Text]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        for (number, line) in (1..).zip(source.text.lines()) {
            let misplaced = |word: &&Word| {
                names(code(line), word.word)
                    && !word.only_in.iter().any(|place| source.path.starts_with(place))
            };
            wrong.extend(
                WORDS
                    .iter()
                    .filter(misplaced)
                    .map(|word| format!("{}:{number} names {}", source.path, word.word)),
            );
        }
    }
    wrong
}

/// When a library may link `std`: in its tests, or because its user asked.
const STD_ON_REQUEST: [&str; 2] = ["#[cfg(test)]", "#[cfg(any(test, feature = \"std\"))]"];

/// Crate roots that are not `no_std`, and uses of `std` outside tests.
fn bound_to_std(sources: &[Text]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        let lines: Vec<_> = source.text.lines().map(|line| code(line).trim()).collect();
        if source.path.ends_with("lib.rs") && !lines.contains(&"#![no_std]") {
            wrong.push(format!("{} is not no_std", source.path));
        }
        let before = core::iter::once(&"").chain(&lines);
        for (line, before) in lines.iter().zip(before) {
            if line.starts_with("extern crate std") && !STD_ON_REQUEST.contains(before) {
                wrong.push(format!("{} links std", source.path));
            }
        }
    }
    wrong
}

fn library_sources() -> Vec<Text> {
    LIBRARIES.iter().flat_map(|folder| repository::texts(folder, &["rs"])).collect()
}

#[test]
fn libraries_depend_downwards_only() {
    let metadata = MetadataCommand::new()
        .manifest_path(repository::root().join("Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .unwrap();
    let members = members(&metadata);
    for package in LAYERS.iter().map(|layer| layer.package).chain(LEAVES.iter().copied()) {
        assert!(members.iter().any(|member| member.package == package), "{package} is no member");
    }
    assert_eq!(wrong_dependencies(&members), [""; 0]);
}

#[test]
fn wrong_dependencies_are_found() {
    let member = |package: &str, used: &str| Member { package: package.into(), uses: vec![used.into()] };
    for (package, used) in [
        ("tripoint-core", "tripoint-ap"),
        ("tripoint-core", "loom"),
        ("tripoint-ap", "tripoint-pools"),
        ("tripoint-pools", "tripoint-arena-vm"),
        ("tripoint-pools", "libc"),
        ("tripoint-arena-vm", "libc"),
        ("tripoint", "benches"),
        ("newcomer", "tripoint-core"),
    ] {
        let found = wrong_dependencies(&[member(package, used)]);
        assert_eq!(found, [format!("{package} uses {used}")]);
    }
    let members = [member("tripoint-ap", "memoffset"), member("benches", "mimalloc")];
    assert_eq!(wrong_dependencies(&members), [""; 0]);
}

/// What is compiled, not what is declared: without the virtual memory arena no
/// library that a bare machine lacks is linked.
#[test]
fn the_facade_without_vm_links_neither_libc_nor_loom() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--no-default-features"])
        .args(["--package", "tripoint"])
        .current_dir(repository::root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let mut linked: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    linked.sort_unstable();
    linked.dedup();
    let expected =
        ["bitflags", "memoffset", "spin", "tripoint", "tripoint-ap", "tripoint-core", "tripoint-pools"];
    assert_eq!(linked, expected);
}

#[test]
fn words_stay_where_they_belong() {
    assert_eq!(misplaced_words(&library_sources()), [""; 0]);
}

#[test]
fn misplaced_words_are_found() {
    let source = |path: &str, text: &str| Text { path: path.into(), text: text.into() };
    for (path, text, word) in [
        ("ap/src/bad.rs", "use core::sync::atomic::AtomicUsize;", "core::sync"),
        ("core/src/bad.rs", "    loom::model(|| ());", "loom::"),
        ("core/src/bad.rs", "    shuttle::check(|| ());", "shuttle::"),
        ("pools/src/bad.rs", "lock: spin::Mutex<()>,", "spin::"),
        ("core/src/bad.rs", "let page = libc::PROT_NONE;", "libc"),
        ("pools/src/bad.rs", "extern crate alloc;", "extern crate alloc"),
    ] {
        assert_eq!(misplaced_words(&[source(path, text)]), [format!("{path}:1 names {word}")]);
    }
    let allowed = [
        source("core/src/primitive.rs", "pub use core::sync::atomic::AtomicPtr;"),
        source("arena-vm/src/platform/linux.rs", "use libc::c_int;"),
        source("ap/src/good.rs", "// core::sync is named in a comment\nuse tripoint_loom::word;"),
    ];
    assert_eq!(misplaced_words(&allowed), [""; 0]);
}

#[test]
fn libraries_do_without_std() {
    assert_eq!(bound_to_std(&library_sources()), [""; 0]);
}

#[test]
fn libraries_bound_to_std_are_found() {
    let source = |text: &str| [Text { path: "core/src/lib.rs".into(), text: text.into() }];
    assert_eq!(bound_to_std(&source("//! #![no_std]\npub mod words;")), ["core/src/lib.rs is not no_std"]);
    let linked = bound_to_std(&source("#![no_std]\nextern crate std;"));
    assert_eq!(linked, ["core/src/lib.rs links std"]);
    assert_eq!(bound_to_std(&source("#![no_std]\n#[cfg(test)]\nextern crate std;")), [""; 0]);
}
