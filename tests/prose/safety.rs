//! A SAFETY comment answers the duties of what is called (`CONTRIBUTING.md`, Unsafe code). These say only that there
//! is an answer.

use crate::page;
use crate::repository::{self, Text};

/// Whole comments, without the full stop.
const BARE: &[&str] = &[
    "as above",
    "as below",
    "as before",
    "see above",
    "the same",
    "the caller promises so",
    "the caller promises the same",
    "the caller promises it",
    "the caller's duty",
    "the caller's duties",
    "the caller's duties are the same",
    "the caller's promise",
    "the caller's promises",
    "the caller's contract",
    "trivial",
];

/// The comments of a file that begin with `SAFETY:`, each with its line.
fn safety_comments(file: &Text) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(file.text.lines()) {
        if let Some((_, first)) = line.split_once("// SAFETY: ") {
            comments.push((number, first.trim().to_owned()));
            is_open = true;
        } else if let Some(rest) = line.trim_start().strip_prefix("// ").filter(|_| is_open) {
            let last = &mut comments.last_mut().expect("one is open").1;
            last.push(' ');
            last.push_str(rest.trim());
        } else {
            is_open = false;
        }
    }
    comments
}

fn bare(files: &[Text]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files {
        let comments = safety_comments(file).into_iter();
        let bare =
            comments.filter(|(_, text)| BARE.contains(&text.trim_end_matches('.').to_lowercase().as_str()));
        wrong.extend(bare.map(|(number, text)| format!("{}:{number}: {text}", file.path)));
    }
    wrong
}

#[test]
fn safety_comments_name_the_duties() {
    let mut files = repository::texts("", &["rs"]);
    files.retain(|file| file.path != "tests/prose/safety.rs");
    let comments: usize = files.iter().map(|file| safety_comments(file).len()).sum();
    assert!(comments > 1_000, "{comments} comments");
    assert_eq!(bare(&files), [""; 0]);
}

#[test]
fn bare_comments_are_found() {
    let check = |text: &str| bare(&[page("a.rs", text)]);
    assert_eq!(check("    // SAFETY: as above.\n    unsafe {"), ["a.rs:1: as above."]);
    assert_eq!(check("x(); // SAFETY: the caller promises\n// so.\n"), ["a.rs:1: the caller promises so."]);
    assert_eq!(check("// SAFETY: as above; the block is owned.\n"), [""; 0]);
    assert_eq!(check("// SAFETY: the same\n// block, owned.\n"), [""; 0]);
}
