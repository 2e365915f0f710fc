//! Where some words may stand (design/core.md `.primitive`), that libraries do not use `std` (design/core.md
//! `.req.bare`), and that a condition that many places share has a name.

use crate::repository::{self, Text};
use crate::{LIBRARIES, source};

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
    Word {
        word: "libc",
        only_in: &[
            "arena-vm/src/",
            "stack/src/objects.rs",
            "contract/src/linux/",
            "telemetry/src/linux/",
            "telemetry/src/native/",
        ],
    },
    // The portable platform takes its address space from the global allocator, and the program's own `Arc` is in it.
    Word { word: "extern crate alloc", only_in: &["arena-vm/src/", "packets/src/owned.rs"] },
];

/// A line without its comment.
pub(crate) fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Whether `code` names `word`: not as the end of a longer name.
pub(crate) fn names(code: &str, word: &str) -> bool {
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

/// When a library may link `std`: in its tests, or if its user turned the
/// feature on.
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

/// Conditions on the feature that are not the name that a crate's `build.rs` has for them. Documentation spells them out,
/// and so does the line that sees whether the name is set.
fn spelt_out(sources: &[Text]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        let lines = (1..).zip(source.text.lines().map(code));
        let spelt = lines.filter(|(_, line)| {
            line.contains("feature = \"linux\"")
                && !line.contains("doc(cfg(")
                && !line.contains("not(tripoint_")
        });
        wrong.extend(spelt.map(|(number, _)| format!("{}:{number} spells a condition out", source.path)));
    }
    wrong
}

fn library_sources() -> Vec<Text> {
    LIBRARIES.iter().flat_map(|folder| repository::texts(folder, &["rs"])).collect()
}

#[test]
fn words_stay_where_they_belong() {
    assert_eq!(misplaced_words(&library_sources()), [""; 0]);
}

#[test]
fn misplaced_words_are_found() {
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
fn conditions_on_linux_have_their_name() {
    assert_eq!(spelt_out(&library_sources()), [""; 0]);
    let check = |text: &str| spelt_out(&[source("telemetry/src/bad.rs", text)]);
    assert_eq!(
        check("#[cfg(tripoint_on_linux)]\n#[cfg(all(feature = \"linux\", target_os = \"linux\"))]"),
        ["telemetry/src/bad.rs:2 spells a condition out"]
    );
    assert_eq!(check("#[cfg_attr(docsrs, doc(cfg(feature = \"linux\")))]\n// feature = \"linux\""), [""; 0]);
}

#[test]
fn libraries_do_without_std() {
    assert_eq!(bound_to_std(&library_sources()), [""; 0]);
}

#[test]
fn libraries_bound_to_std_are_found() {
    let source = |text: &str| [source("core/src/lib.rs", text)];
    assert_eq!(bound_to_std(&source("//! #![no_std]\npub mod words;")), ["core/src/lib.rs is not no_std"]);
    let linked = bound_to_std(&source("#![no_std]\nextern crate std;"));
    assert_eq!(linked, ["core/src/lib.rs links std"]);
    assert_eq!(bound_to_std(&source("#![no_std]\n#[cfg(test)]\nextern crate std;")), [""; 0]);
}
