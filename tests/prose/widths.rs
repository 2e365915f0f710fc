//! Lines of pages are no longer than an editor shows: tables, code, links and pictures excepted.

use crate::page;
use crate::repository::{self, Text};

const WIDTH: usize = 120;

/// Whether a line cannot be broken.
fn is_whole(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['|', '<']) || !line.trim_start_matches(['-', '*', ' ']).contains(' ')
}

fn long_lines(pages: &[Text]) -> Vec<String> {
    let mut long = Vec::new();
    for page in pages {
        let mut in_code = false;
        for (number, line) in (1..).zip(page.text.lines()) {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            } else if !in_code && !is_whole(line) && line.chars().count() > WIDTH {
                long.push(format!("{}:{number}", page.path));
            }
        }
    }
    long
}

#[test]
fn lines_have_at_most_120_columns() {
    let pages = repository::texts("", &["md"]);
    assert!(pages.iter().any(|page| page.path == "CHANGELOG.md"));
    assert_eq!(long_lines(&pages), [""; 0]);
}

#[test]
fn long_lines_are_found() {
    let word = "x".repeat(WIDTH - 1);
    let check = |text: String| long_lines(&[page("a.md", &text)]);
    assert_eq!(check(format!("a {word}")), ["a.md:1"]);
    assert_eq!(check(format!("```\na {word}\n```\n- a {word}")), ["a.md:4"]);
    for whole in
        [format!("{word}x"), format!("| a {word} |"), format!("é{}", &word[1..]), format!("- {word}")]
    {
        assert_eq!(check(whole), [""; 0]);
    }
}
