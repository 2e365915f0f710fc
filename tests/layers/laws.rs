//! What a law takes in uses nothing but constants and values, and has no unsafe code (design/laws.md `.law.pure`): so nothing
//! else changes what its sums are. And each file with such sums has laws, or says why it has none (`.law.others`).

use std::path::Path;

use crate::repository::{self, Text};
use crate::source;

/// The folder of the program with the laws.
const PROGRAM: &str = "verify/programs/laws/src";

/// The files with sums that have no laws, each with the kind of its reason.
const OTHERS: &str = "verify/programs/laws/others.tsv";

/// The crates whose memory is safe because of sums.
const CRATES: [&str; 8] =
    ["core/src", "ap/src", "pools/src", "packets/src", "arena-vm/src", "gc/src", "adaptors/src", "xdp/src"];

/// The crates that serve no memory, and yet have pointers into it: of these the files with unsafe code.
const WITH_POINTERS: [&str; 3] = ["contract/src", "stack/src", "telemetry/src"];

/// What sums that may leave their bounds, or that are about alignment and bits, are made by.
const SUMS: [&str; 13] = [
    "checked_add",
    "checked_sub",
    "checked_mul",
    "checked_shl",
    "checked_div",
    "saturating_",
    "wrapping_",
    "div_ceil(",
    "next_multiple_of(",
    "trailing_zeros(",
    "leading_zeros(",
    "align_up(",
    "round_",
];

/// Sums that overflow in silence if the build has no checks.
const PLAIN: [&str; 7] = [" + ", " - ", " * ", " << ", " += ", " -= ", " *= "];

/// Where a pointer moves on the same line that says it is unsafe.
const POINTERS: [&str; 5] = [".add(", ".sub(", ".byte_add(", ".byte_sub(", ".offset("];

/// What a file may use beside constants: values that are numbers, and what shows them.
const VALUES: [&str; 6] = ["Addr", "AddrRange", "Align", "Layout", "Tract", "fmt"];

/// The paths of files that the program takes in.
fn taken_in(program: &[Text]) -> Vec<String> {
    let lines = program.iter().flat_map(|file| file.text.lines());
    let paths = lines.filter_map(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"));
    paths.map(|path| path.trim_start_matches("../").to_owned()).collect()
}

/// A file in front of the tests in it. A line for tests in a file of their own ends nothing.
fn in_front_of_tests(text: &str) -> &str {
    let are_here = |at: &usize| {
        let mut lines = text[*at..].lines();
        lines
            .next()
            .is_some_and(|line| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test"))
            && lines.next().is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    let end = text.match_indices("#[cfg(").map(|(at, _)| at).find(are_here);
    &text[..end.unwrap_or(text.len())]
}

/// The names that a file imports in front of its tests.
fn imported(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for statement in in_front_of_tests(text).split(';') {
        let Some(at) = statement.find("use ").filter(|at| *at == 0 || statement[..*at].ends_with('\n'))
        else {
            continue;
        };
        let leaves = statement[at + 4..].split(['{', '}', ',']).map(str::trim);
        names.extend(leaves.filter(|leaf| !leaf.is_empty() && !leaf.ends_with("::")));
    }
    names.into_iter().map(|name| name.rsplit("::").next().unwrap_or(name)).collect()
}

/// Whether a file has such sums, in front of its tests and beside its comments.
fn has_sums(file: &Text) -> bool {
    let mut lines =
        in_front_of_tests(&file.text).lines().map(|line| line.split("//").next().unwrap_or_default());
    let has_bounds =
        |line: &str| SUMS.iter().any(|sum| line.contains(sum) && !line.contains(&format!("fn {sum}")));
    let moves_pointer =
        |line: &str| line.contains("unsafe {") && POINTERS.iter().any(|moves| line.contains(moves));
    lines.any(|line| has_bounds(line) || is_plain_sum(line) || moves_pointer(line))
}

/// Whether a file has unsafe code in front of its tests.
fn is_unsafe(file: &Text) -> bool {
    let code = in_front_of_tests(&file.text).lines().map(|line| line.split("//").next().unwrap_or_default());
    code.into_iter().any(|line| line.contains("unsafe "))
}

/// Whether a line has a plain operator between numbers, and not between traits, whose names begin with one capital or have a path,
/// or in a text.
fn is_plain_sum(line: &str) -> bool {
    let code: String = line.split('"').step_by(2).collect();
    PLAIN.iter().any(|operator| {
        code.match_indices(operator).any(|(at, _)| {
            let before = code[..at].trim_start().chars().next_back();
            let rest = &code[at + operator.len()..];
            let mut behind = rest.chars();
            let (first, second) = (behind.next().unwrap_or(' '), behind.next().unwrap_or(' '));
            // A line may begin with an operator: what it is of ends the line before.
            let is_number = before.is_none_or(|c| c.is_alphanumeric() || "_)]".contains(c));
            let path = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').strip_prefix("::");
            let has_path = path.is_some_and(|path| path.starts_with(char::is_alphabetic));
            let is_trait = first.is_uppercase() && second.is_lowercase() || "'?".contains(first) || has_path;
            is_number && !is_trait
        })
    })
}

/// What is wrong with the list of files without laws: `page` says what each kind of reason is.
fn unaccounted(files: &[Text], with_laws: &[String], others: &str, page: &str) -> Vec<String> {
    let others: Vec<_> = others.lines().skip(1).filter_map(|line| line.split_once('\t')).collect();
    let with_sums: Vec<_> = files.iter().filter(|file| has_sums(file)).map(|file| &file.path).collect();
    let is_listed = |path: &str| others.iter().any(|(other, _)| *other == path);
    let mut wrong = Vec::new();
    for path in &with_sums {
        if with_laws.contains(path) == is_listed(path) {
            wrong.push(format!("{path} has either laws or a line in {OTHERS}"));
        }
    }
    for (path, kind) in others {
        if !with_sums.iter().any(|other| *other == path) {
            wrong.push(format!("{path} has no sums"));
        }
        if !page.contains(&format!("| `{kind}` |")) {
            wrong.push(format!("{path}: no reason is of the kind {kind}"));
        }
    }
    wrong
}

/// Whether a line is there under a condition, or says something else under one; tests in a file of their own are not.
fn is_conditional(line: &str) -> bool {
    let line = line.split("//").next().unwrap_or_default();
    ["#[cfg(", "#[cfg_attr(", "cfg!(", "macro_rules!", "include!("].iter().any(|mark| line.contains(mark))
        && !line.starts_with("#[cfg(test)]")
}

/// What is wrong with files that laws take in. A function of another such file may be used.
fn impure(files: &[Text]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files {
        if !file.text.contains("#![forbid(unsafe_code)]") {
            wrong.push(format!("{} does not forbid unsafe code", file.path));
        }
        // What the program takes in is what every build has.
        if let Some(line) = in_front_of_tests(&file.text).lines().find(|line| is_conditional(line)) {
            wrong.push(format!("{} has a condition: {}", file.path, line.trim()));
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
        (
            format!(
                "{pure}#[cfg(test)]\nmod tests;\nuse std::vec::Vec;\n    #[cfg(feature = \"f\")]\nfn f() {{}}"
            ),
            vec!["x.rs has a condition: #[cfg(feature = \"f\")]", "x.rs uses Vec"],
        ),
    ] {
        assert_eq!(impure(&[source("x.rs", &text)]), wrong, "{text}");
    }
    let program = source("y.rs", "#[path = \"../../../../core/src/x.rs\"]\nmod x;");
    assert_eq!(taken_in(&[program]), ["core/src/x.rs"]);
}

#[test]
fn every_file_with_sums_has_laws_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let mut files: Vec<_> =
        WITH_POINTERS.iter().flat_map(|folder| repository::texts(folder, &["rs"])).collect();
    files.retain(is_unsafe);
    files.extend(CRATES.iter().flat_map(|folder| repository::texts(folder, &["rs"])));
    files.retain(|file| !file.path.contains("/tests/") && !file.path.ends_with("tests.rs"));
    let with_laws = taken_in(&repository::texts(PROGRAM, &["rs"]));
    assert_eq!(unaccounted(&files, &with_laws, &read(OTHERS), &read("design/laws.md")), [""; 0]);
}

#[test]
fn sums_are_found() {
    for (line, is_sum) in [
        ("let end = begin + 1;", true),
        ("place(at - FIRST)", true),
        ("self.words[index] << shift", true),
        ("count += 1;", true),
        ("    + 1", true),
        ("let byte = unsafe { base.add(offset) };", true),
        ("counts.add(1);", false),
        ("at + size_of::<usize>()", true),
        ("fn f<T: Copy + Send>() -> impl Sized + 'static {}", false),
        ("trait Shown: Sync + fmt::Debug {}", false),
        ("let place = *first;", false),
        ("line(\"a + b\")", false),
    ] {
        let has_one = |front: &str| has_sums(&source("x.rs", &format!("{front}{line}")));
        assert_eq!([has_one(""), has_one("#[cfg(test)]\nmod tests;\n")], [is_sum; 2], "{line}");
        assert!(!has_one("#[cfg(test)]\nmod tests {\n"), "{line}");
    }
}

#[test]
fn files_without_a_reason_are_found() {
    let (page, head) = ("| `count` | |", "file\tkind\n");
    let files = [
        source("a.rs", "fn f() { a.checked_add(b); }"),
        source("b.rs", "// wrapping_add\nfn round_up() { a }\n#[cfg(test)]\nmod tests {\na.div_ceil(b) }"),
    ];
    let [law, none] = [&["a.rs".to_owned()][..], &[][..]];
    let either = format!("a.rs has either laws or a line in {OTHERS}");
    for (with_laws, lines, wrong) in [
        (law, "", vec![]),
        (none, "a.rs\tcount\n", vec![]),
        (none, "", vec![either.clone()]),
        (law, "a.rs\tcount\n", vec![either]),
        (law, "b.rs\tcount\n", vec!["b.rs has no sums".to_owned()]),
        (none, "a.rs\tmood\n", vec!["a.rs: no reason is of the kind mood".to_owned()]),
    ] {
        assert_eq!(unaccounted(&files, with_laws, &format!("{head}{lines}"), page), wrong, "{lines}");
    }
}
