//! The guide is whole: its summary lists every chapter, links lead somewhere, and every chapter
//! with code is compiled with the documentation examples (`src/guide.rs`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(path)).expect("the file can be read")
}

/// Where the links of a page lead: what stands between `](` and `)`.
fn links(page: &str) -> BTreeSet<&str> {
    page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link).collect()
}

/// The chapters, by the names of their files.
fn chapters() -> BTreeSet<String> {
    let files = fs::read_dir(root().join("guide/src")).expect("the folder can be read");
    let names = files.map(|file| file.expect("an entry").file_name().into_string().expect("a plain name"));
    names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect()
}

#[test]
fn the_summary_lists_every_chapter_and_nothing_else() {
    let summary = read("guide/src/SUMMARY.md");
    let listed: BTreeSet<_> = links(&summary).into_iter().map(str::to_owned).collect();
    assert_eq!(listed, chapters());
}

#[test]
fn links_of_the_guide_and_the_readme_lead_somewhere() {
    let mut pages = vec![PathBuf::from("README.md")];
    pages.extend(chapters().iter().map(|name| Path::new("guide/src").join(name)));
    let mut found = 0;
    for page in pages {
        for link in links(&read(&page)) {
            let target = root().join(page.parent().expect("a folder")).join(link);
            assert!(target.exists(), "{}: {link} leads nowhere", page.display());
            found += 1;
        }
    }
    assert!(found > 8, "the links were not found");
}

/// Minutes to read a page, code included, at 230 words a minute.
fn minutes(page: &str) -> f64 {
    page.split_whitespace().count() as f64 / 230.0
}

#[test]
fn the_guide_says_how_long_it_takes() {
    let times: Vec<_> =
        chapters().iter().map(|name| minutes(&read(Path::new("guide/src").join(name)))).collect();
    let longest = times.iter().copied().fold(0.0, f64::max).ceil();
    let all = (times.iter().sum::<f64>() / 5.0).round() * 5.0;
    let claim = format!("at most {longest} minutes to read; all of them take {all}.");
    let introduction = read("guide/src/introduction.md").replace('\n', " ");
    assert!(introduction.contains(&claim), "the introduction should say: {claim}");
    assert_eq!(minutes(&"word ".repeat(460)), 2.0);
}

/// What follows the opening fences of a page, trimmed.
fn fences(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.trim().strip_prefix("```")).step_by(2).collect()
}

/// Whether `src/guide.rs` has a line that takes in this chapter.
fn is_compiled(guide: &str, chapter: &str) -> bool {
    let line = format!("#[doc = include_str!(\"../guide/src/{chapter}\")]");
    guide.lines().any(|own| own == line)
}

#[test]
fn every_chapter_with_code_is_compiled() {
    let compiled = read("src/guide.rs");
    assert!(read("src/lib.rs").lines().any(|line| line == "mod guide;"), "src/guide.rs is not compiled");
    let mut with_code = 0;
    for name in chapters() {
        if fences(&read(Path::new("guide/src").join(&name))).iter().any(|kind| kind.starts_with("rust")) {
            assert!(is_compiled(&compiled, &name), "src/guide.rs leaves out {name}");
            with_code += 1;
        }
    }
    assert!(with_code > 5, "the code was not found");
}

/// Code without a mark would be Rust to `rustdoc` and plain text to mdBook, and code that is
/// ignored would not be compiled.
#[test]
fn every_block_of_code_says_what_it_is() {
    let kinds = ["rust", "rust,standalone_crate", "rust,no_run", "rust,compile_fail", "sh", "text", "toml"];
    for name in chapters() {
        for fence in fences(&read(Path::new("guide/src").join(&name))) {
            assert!(kinds.contains(&fence), "{name} has a block marked '{fence}'");
        }
    }
}

/// The blocks of a page that are marked so.
fn blocks(page: &str, mark: &str) -> Vec<String> {
    let open = format!("```{mark}\n");
    let blocks = page.split(&open).skip(1).filter_map(|rest| rest.split_once("```\n"));
    blocks.map(|(block, _)| block.to_owned()).collect()
}

/// `verify/bare-metal` runs these files.
#[test]
fn the_first_image_is_the_one_that_is_run() {
    let page = read("guide/src/bare-metal.md");
    let file = |name| read(Path::new("verify/boards/first-image/src").join(name));
    assert_eq!(blocks(&page, "rust")[0].replace("fn main()", "pub fn run()"), file("program.rs"));
    assert_eq!(blocks(&page, "text"), [file("main.rs")]);
}

#[test]
fn chapters_that_are_left_out_are_found() {
    let line = "#[doc = include_str!(\"../guide/src/a.md\")]";
    assert!(is_compiled(&format!("{line}\nstruct A;"), "a.md"));
    assert!(!is_compiled(line, "b.md"));
    assert!(!is_compiled(&format!("// {line}"), "a.md"));
    assert_eq!(fences("```rust,ignore\nx\n```\n\n```\ny\n```"), ["rust,ignore", ""]);
}

#[test]
fn every_file_that_the_front_door_names_exists() {
    let mut pages = vec!["README.md".to_owned()];
    pages.extend(chapters().iter().map(|name| format!("guide/src/{name}")));
    let mut found = 0;
    for page in pages {
        for name in read(&page).split('`').filter(|text| !text.contains(char::is_whitespace)) {
            // What begins with a slash is not of this repository.
            let is_path = name
                .split_once('/')
                .is_some_and(|(top, rest)| !top.is_empty() && !rest.is_empty() && root().join(top).is_dir());
            let is_example = name.len() > 3
                && name.as_bytes()[..2].iter().all(u8::is_ascii_digit)
                && name[2..].starts_with('_');
            let path = if is_example { format!("examples/{name}.rs") } else { name.to_owned() };
            if is_path || is_example {
                assert!(root().join(&path).exists(), "{page} names {path}, which does not exist");
                found += 1;
            }
        }
    }
    assert!(found > 20, "the names were not found");
}
