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
    ("come home", "are returned"),
    ("comes home", "is returned"),
    ("came home", "was returned"),
    ("in some works", "in some workloads"),
    ("mend", "remedy, what to do"),
    ("in circles", "in cycles"),
    ("with circles", "with cycles"),
];

/// These are about words, or quote them.
const EXCEPT: &[&str] = &["CONTRIBUTING.md", "design/glossary.md", "CHANGELOG.md"];

/// What is read of a line: of a page all of it, of a source a comment without its marks.
fn prose(line: &str, is_page: bool) -> Option<&str> {
    let line = line.trim();
    if is_page {
        Some(line)
    } else {
        line.strip_prefix("//").map(|text| text.trim_start_matches(['/', '!', ' ']))
    }
}

/// What is read of a file, in lower case: the lines that follow each other as one, with the number of the first.
fn paragraphs(file: &Text) -> Vec<(usize, Vec<String>)> {
    let mut paragraphs = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(file.text.lines()) {
        let text = prose(line, file.path.ends_with(".md")).filter(|text| !text.is_empty());
        if let Some(text) = text {
            if !is_open {
                paragraphs.push((number, Vec::new()));
            }
            paragraphs.last_mut().expect("one is open").1.push(text.to_lowercase());
        }
        is_open = text.is_some();
    }
    paragraphs
}

/// Where a line has a phrase, not as part of a longer word or number.
fn places<'t>(line: &'t str, phrase: &'t str) -> impl Iterator<Item = usize> + 't {
    let is_digit = |c: char| c.is_ascii_digit();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let begins_longer = move |before: &str| {
        phrase.starts_with(is_word) && before.ends_with(is_word)
            || phrase.starts_with(is_digit)
                && before.strip_suffix([',', '.']).is_some_and(|rest| rest.ends_with(is_digit))
    };
    let ends_longer = move |after: &str| {
        phrase.ends_with(is_word) && after.starts_with(is_word)
            || phrase.ends_with(is_digit)
                && after.strip_prefix([',', '.']).is_some_and(|rest| rest.starts_with(is_digit))
    };
    let found = line.match_indices(phrase).map(|(at, _)| at);
    found.filter(move |at| !begins_longer(&line[..*at]) && !ends_longer(&line[at + phrase.len()..]))
}

/// Whether a line has a phrase, not as part of a longer word or number.
pub(crate) fn has(line: &str, phrase: &str) -> bool {
    places(line, phrase).next().is_some()
}

/// The number of the line in which a place of a paragraph lies.
fn line_of((first, lines): &(usize, Vec<String>), place: usize) -> usize {
    let ends = lines.iter().scan(0, |end, line| {
        *end += line.len() + 1;
        Some(*end)
    });
    first + ends.take_while(|end| *end <= place).count()
}

fn retired(files: &[Text]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| !EXCEPT.contains(&file.path.as_str())) {
        for paragraph in paragraphs(file) {
            let text = paragraph.1.join(" ");
            for (word, instead) in RETIRED {
                let numbers = places(&text, word).map(|place| line_of(&paragraph, place));
                wrong.extend(numbers.map(|number| format!("{}:{number}: {word}: {instead}", file.path)));
            }
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
    assert_eq!(check("a.rs", "x();\n    /// Waits for\n    /// ever, so\n    /// many."), 2);
    assert_eq!(check("a.rs", "/// So\nx();\n// many, or so.\n//\n// Many."), 0);
    assert_eq!(retired(&[page("a.md", "One.\n\nOnly one, not so\nmany.")])[0][..17], *"a.md:3: so many: ");
    assert_eq!(check("a.md", "not forever; untold of"), 0);
    assert_eq!(check("CONTRIBUTING.md", "whoever"), 0);
}
