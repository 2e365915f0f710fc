//! What a law takes in uses nothing but constants and values, and has no unsafe code (design/laws.md `.law.pure`): so nothing
//! else changes what its sums are.

use std::path::Path;

use crate::repository::{self, Text};
use crate::source;

/// The folder of the program with the laws.
const PROGRAM: &str = "verify/programs/laws/src";

/// What a file may use beside constants: values that are numbers, and what shows them.
const VALUES: [&str; 6] = ["Addr", "AddrRange", "Align", "Layout", "Tract", "fmt"];

/// The paths of files that the program takes in.
fn taken_in(program: &[Text]) -> Vec<String> {
    let lines = program.iter().flat_map(|file| file.text.lines());
    let paths = lines.filter_map(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"));
    paths.map(|path| path.trim_start_matches("../").to_owned()).collect()
}

/// The names that a file imports in front of its tests.
fn imported(text: &str) -> Vec<&str> {
    let code = text
        .split("#[cfg(test)]")
        .next()
        .and_then(|code| code.split("#[cfg(all(test").next())
        .unwrap_or(text);
    let mut names = Vec::new();
    for statement in code.split(';') {
        let Some(at) = statement.find("use ").filter(|at| *at == 0 || statement[..*at].ends_with('\n'))
        else {
            continue;
        };
        let leaves = statement[at + 4..].split(['{', '}', ',']).map(str::trim);
        names.extend(leaves.filter(|leaf| !leaf.is_empty() && !leaf.ends_with("::")));
    }
    names.into_iter().map(|name| name.rsplit("::").next().unwrap_or(name)).collect()
}

/// What is wrong with files that laws take in. A function of another such file may be used.
fn impure(files: &[Text]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files {
        if !file.text.contains("#![forbid(unsafe_code)]") {
            wrong.push(format!("{} does not forbid unsafe code", file.path));
        }
        let is_constant =
            |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let is_of_another = |name: &str| {
            files.iter().any(|other| {
                ["fn", "struct", "enum"].iter().any(|kind| other.text.contains(&format!(" {kind} {name}")))
            })
        };
        let names = imported(&file.text).into_iter();
        let wrong_names =
            names.filter(|name| !is_constant(name) && !VALUES.contains(name) && !is_of_another(name));
        wrong.extend(wrong_names.map(|name| format!("{} uses {name}", file.path)));
    }
    wrong
}

#[test]
fn files_with_laws_use_constants_and_values_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let paths = taken_in(&repository::texts(PROGRAM, &["rs"]));
    assert!(paths.len() >= 3, "{paths:?}");
    // The page names each, those of one folder in one row.
    let page = std::fs::read_to_string(root.join("design/laws.md")).unwrap();
    let name = |path: &String| Path::new(path).file_name().map(|name| format!("{}`", name.display()));
    let unsaid = paths.iter().filter(|path| !name(path).is_some_and(|name| page.contains(&name)));
    assert_eq!(unsaid.collect::<Vec<_>>(), [""; 0]);
    let files: Vec<_> = paths
        .into_iter()
        .map(|path| Text { text: std::fs::read_to_string(root.join(&path)).unwrap(), path })
        .collect();
    assert_eq!(impure(&files), [""; 0]);
}

#[test]
fn files_that_use_more_are_found() {
    let pure = "#![forbid(unsafe_code)]\nuse crate::a::{LIMIT, b::SIZE};\nuse core::fmt;\n";
    for (text, wrong) in [
        (pure.to_owned(), vec![]),
        (pure.replace("#![forbid(unsafe_code)]", ""), vec!["x.rs does not forbid unsafe code"]),
        (
            format!("{pure}use tripoint_core::internal::{{AtomicUsize,\n Ordering}};\n"),
            vec!["x.rs uses AtomicUsize", "x.rs uses Ordering"],
        ),
        (format!("{pure}#[cfg(test)]\nmod tests {{ use std::vec::Vec; }}"), vec![]),
    ] {
        assert_eq!(impure(&[source("x.rs", &text)]), wrong, "{text}");
    }
    let program = source("y.rs", "#[path = \"../../../../core/src/x.rs\"]\nmod x;");
    assert_eq!(taken_in(&[program]), ["core/src/x.rs"]);
}
