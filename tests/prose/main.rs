//! Prose answers to the code: tables name every file, numbers are those of constants, feature tables those of
//! manifests. And it keeps to the rules of `CONTRIBUTING.md`: its words, its lines, what a SAFETY comment says.

mod claims;
mod constants;
mod defaults;
#[path = "../repository/mod.rs"]
mod repository;
mod safety;
mod tables;
mod widths;
mod words;

use repository::Text;

/// The pages that a user or a contributor reads first.
fn front_pages() -> Vec<Text> {
    let mut pages = repository::texts("", &["md"]);
    pages.retain(|page| {
        let is_design = page.path.split('/').any(|folder| folder == "design");
        let is_front = page.path.ends_with("README.md") || page.path.starts_with("guide/src/");
        (is_front && !is_design) || page.path == "CONTRIBUTING.md"
    });
    pages
}

/// A file that is not in the repository, for tests of these tests.
fn page(path: &str, text: &str) -> Text {
    Text { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn the_front_pages_are_found() {
    let paths: Vec<_> = front_pages().into_iter().map(|page| page.path).collect();
    for path in ["README.md", "CONTRIBUTING.md", "gc/README.md", "verify/README.md", "guide/src/points.md"] {
        assert!(paths.iter().any(|found| found == path), "{path} is not among {paths:?}");
    }
}
