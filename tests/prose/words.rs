//! Words that are retired, and what to write instead (`CONTRIBUTING.md`, English).

use crate::repository::{self, Text};
use crate::{front_pages, page};

/// What is not written any more, in lower case, and what is.
const RETIRED: &[(&str, &str)] = &[
    ("control memory", "descriptor memory"),
    ("so many", "that many, or the number"),
    ("for ever", "forever, or without end"),
    ("whoever", "who it is: the caller, the thread"),
    ("nobody", "no thread, no caller"),
    ("anybody", "any thread"),
    ("told of", "reported, observed"),
    ("hears of", "observes"),
    ("as by default", "with defaults"),
    ("mended", "repaired, caught"),
    ("comes home", "is returned"),
    ("in some works", "in some workloads"),
    ("mend", "remedy, what to do"),
    ("in circles", "in cycles"),
    ("with circles", "with cycles"),
];

/// These are about words, or quote them.
const EXCEPT: &[&str] = &["CONTRIBUTING.md", "design/glossary.md", "CHANGELOG.md"];

/// What is read of a file: of a page all of it, of a source its comments.
fn prose(file: &Text) -> Vec<(usize, &str)> {
    let is_page = file.path.ends_with(".md");
    let is_read = |line: &str| is_page || line.trim_start().starts_with("//");
    (1..).zip(file.text.lines()).filter(|(_, line)| is_read(line)).collect()
}

/// Whether a line has a phrase, not as part of a longer word.
fn has(line: &str, phrase: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(phrase).any(|(at, found)| {
        !line[..at].ends_with(continues) && !line[at + found.len()..].starts_with(continues)
    })
}

fn retired(files: &[Text]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| !EXCEPT.contains(&file.path.as_str())) {
        for (number, line) in prose(file) {
            let line = line.to_lowercase();
            let found = RETIRED.iter().filter(|(word, _)| has(&line, word));
            wrong.extend(found.map(|(word, instead)| format!("{}:{number}: {word}: {instead}", file.path)));
        }
    }
    wrong
}

#[test]
fn retired_words_are_not_used() {
    let mut files = front_pages();
    files.extend(repository::texts("design", &["md"]));
    // Those of this folder quote them.
    files.extend(
        repository::texts("", &["rs"]).into_iter().filter(|file| !file.path.starts_with("tests/prose/")),
    );
    assert!(files.len() > 1_000, "{} files", files.len());
    assert_eq!(retired(&files), [""; 0]);
}

#[test]
fn retired_words_are_found() {
    let check = |path: &str, text: &str| retired(&[page(path, text)]).len();
    assert_eq!(check("a.md", "One.\nSo many bytes."), 1);
    assert_eq!(check("a.rs", "    /// waits for ever"), 1);
    assert_eq!(check("a.rs", "//! Whoever, and control memory."), 2);
    assert_eq!(check("a.rs", "    // nobody\nlet whoever = 1;"), 1);
    assert_eq!(check("a.md", "not forever; untold of"), 0);
    assert_eq!(check("CONTRIBUTING.md", "whoever"), 0);
}
