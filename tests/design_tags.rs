//! Every tag and document that code cites exists, every requirement is cited by
//! code, no document points at a file that does not exist, and every document
//! is a page of some crate's documentation.
//!
//! The conventions are in `design/README.md`.

mod repository;

use std::collections::BTreeSet;
use std::path::Path;

use repository::Text;

/// A tag of a design document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tag {
    document: String,
    tag: String,
}

impl core::fmt::Display for Tag {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} `{}`", self.document, self.tag)
    }
}

/// The text without comment markers and line breaks, so that a citation may run
/// over the end of a line.
fn joined(text: &str) -> String {
    let unmarked =
        |line: &str| line.trim().trim_start_matches(['/', '#']).trim_start_matches('!').trim().to_owned();
    text.lines().map(unmarked).collect::<Vec<_>>().join(" ")
}

fn is_tag(word: &str) -> bool {
    word.strip_prefix('.').is_some_and(|name| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c))
    })
}

/// The tag that a text begins with, in backticks, and what follows it.
fn leading_tag(text: &str) -> Option<(&str, &str)> {
    let (tag, rest) = text.strip_prefix('`')?.split_once('`')?;
    is_tag(tag).then_some((tag, rest))
}

/// What follows the target of a link, if a text begins with one.
fn without_link(text: &str) -> &str {
    let after = text.strip_prefix("](").and_then(|target| target.split_once(')'));
    after.map_or(text, |(_, after)| after)
}

/// Every mention of a document in a text, with the tags that follow it.
fn mentions(text: &str) -> Vec<(String, Vec<String>)> {
    let text = joined(text);
    let mut found = Vec::new();
    for (at, _) in text.match_indices("design/") {
        let Some(end) = text[at..].find(".md") else { continue };
        let (document, mut rest) = text[at..].split_at(end + ".md".len());
        if !document["design/".len()..].chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c)) {
            continue;
        }
        let mut tags = Vec::new();
        rest = rest.strip_prefix('`').unwrap_or(rest);
        rest = without_link(rest);
        while let Some((tag, after)) = leading_tag(rest.trim_start_matches([' ', ','])) {
            tags.push(tag.to_owned());
            rest = after;
        }
        found.push((document.to_owned(), tags));
    }
    found
}

/// Every citation in a text.
fn citations(text: &str) -> BTreeSet<Tag> {
    let tags = |(document, tags): (String, Vec<String>)| {
        tags.into_iter().map(move |tag| Tag { document: document.clone(), tag })
    };
    mentions(text).into_iter().flat_map(tags).collect()
}

/// The tags that documents define: those that begin a line, in bold.
fn definitions(documents: &[Text]) -> BTreeSet<Tag> {
    let mut found = BTreeSet::new();
    for document in documents {
        for line in document.text.lines() {
            let line = line.strip_prefix("- ").unwrap_or(line);
            if let Some((tag, rest)) = line.strip_prefix("**").and_then(leading_tag)
                && rest.starts_with("**")
            {
                found.insert(Tag { document: document.path.clone(), tag: tag.to_owned() });
            }
        }
    }
    found
}

/// Citations, in code or documents, of tags that no document defines.
fn undefined(citing: &[Text], documents: &[Text]) -> Vec<String> {
    let defined = definitions(documents);
    let cited = |text: &Text| {
        let path = text.path.clone();
        citations(&text.text).into_iter().map(move |tag| (path.clone(), tag))
    };
    let missing = citing.iter().flat_map(cited).filter(|(_, tag)| !defined.contains(tag));
    missing.map(|(path, tag)| format!("{path} cites {tag}")).collect()
}

/// Mentions in code of documents that do not exist.
fn missing_documents(code: &[Text], documents: &[Text]) -> Vec<String> {
    let mut missing = Vec::new();
    for text in code {
        let mut mentioned: BTreeSet<_> =
            mentions(&text.text).into_iter().map(|(document, _)| document).collect();
        mentioned.retain(|mentioned| documents.iter().all(|document| document.path != *mentioned));
        missing.extend(mentioned.iter().map(|document| format!("{} mentions {document}", text.path)));
    }
    missing
}

/// Requirements that no code cites.
fn unmet(code: &[Text], documents: &[Text]) -> Vec<String> {
    let cited: BTreeSet<Tag> = code.iter().flat_map(|text| citations(&text.text)).collect();
    let requirements = definitions(documents).into_iter().filter(|tag| tag.tag.starts_with(".req."));
    requirements.filter(|tag| !cited.contains(tag)).map(|tag| tag.to_string()).collect()
}

/// A document, and the module that shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Page {
    document: String,
    module: String,
}

/// The rows of the table in `design/README.md`.
fn listed_pages(table: &str) -> BTreeSet<Page> {
    let row = |line: &str| {
        let mut cells = line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).skip(1);
        let (document, module) = (cells.next()?, cells.next()?);
        (document.starts_with("design/") && document.ends_with(".md")).then_some(Page { document, module })
    };
    table.lines().filter_map(row).collect()
}

/// The pages that a `src/design.rs` shows: each is a line with its text and a line
/// with its module.
fn shown_pages(source: &Text) -> BTreeSet<Page> {
    let folder = source.path.strip_suffix("src/design.rs").unwrap();
    let package = match folder.trim_end_matches('/') {
        "" => "tripoint".to_owned(),
        member => format!("tripoint_{}", member.replace('-', "_")),
    };
    let lines: Vec<_> = source.text.lines().collect();
    let page = |pair: &[&str]| {
        let document = pair[0].strip_prefix("#[doc = include_str!(\"../")?.strip_suffix("\")]")?.to_owned();
        let name = pair[1].strip_prefix("pub mod ")?.strip_suffix(" {}")?;
        Some(Page { document, module: format!("{package}::design::{name}") })
    };
    lines.windows(2).filter_map(page).collect()
}

/// Pages that are in the table but not shown, shown but not in the table, or in
/// neither.
fn misplaced_pages(table: &str, sources: &[Text], documents: &[Text]) -> Vec<String> {
    let listed = listed_pages(table);
    let shown: BTreeSet<Page> = sources.iter().flat_map(shown_pages).collect();
    let mut wrong: Vec<_> = listed
        .symmetric_difference(&shown)
        .map(|page| format!("{} in {}", page.document, page.module))
        .collect();
    let is_page = |path: &str| path.starts_with("design/") && path != "design/README.md";
    let pages = documents.iter().filter(|document| is_page(&document.path));
    let nowhere = pages.filter(|document| !listed.iter().any(|page| page.document == document.path));
    wrong.extend(nowhere.map(|document| format!("{} in no module", document.path)));
    wrong
}

/// Whether a word in backticks is meant as a path in the repository.
fn is_repository_path(word: &str, root: &Path) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let first = word.split('/').next().unwrap_or_default();
    plain && word.contains('/') && !first.starts_with("..") && first != "target" && root.join(first).is_dir()
}

/// What a document points at: the targets of links, and paths in backticks, both
/// from the root.
fn pointed_at(document: &Text, root: &Path) -> Vec<String> {
    let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
    let text = joined(&document.text);
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#']).next());
    let links = links.filter(|link| !link.is_empty() && !link.contains("::") && !link.contains("://"));
    let links = links.map(|link| folder.join(link).to_str().unwrap().to_owned());
    // Pictures in HTML, of which there is one for each theme.
    let pictures = ["src=\"", "srcset=\""].into_iter().flat_map(|start| text.split(start).skip(1));
    let pictures = pictures.filter_map(|rest| rest.split('"').next()).filter(|path| !path.contains("://"));
    let pictures = pictures.map(|path| folder.join(path).to_str().unwrap().to_owned());
    let links = links.chain(pictures);
    let words = text.split('`').skip(1).step_by(2).filter(|word| is_repository_path(word, root));
    links.chain(words.map(str::to_owned)).collect()
}

fn broken_paths(documents: &[Text], root: &Path) -> Vec<String> {
    let mut broken = Vec::new();
    for document in documents {
        let missing = pointed_at(document, root).into_iter().filter(|path| !root.join(path).exists());
        broken.extend(missing.map(|path| format!("{} points at {path}", document.path)));
    }
    broken
}

/// This file cites tags that do not exist, to test itself.
fn code() -> Vec<Text> {
    let mut code = repository::texts("", &["rs"]);
    code.retain(|text| text.path != "tests/design_tags.rs");
    code
}

/// Whatever else may cite: chapters, readmes, manifests, models and programs.
fn others() -> Vec<Text> {
    let mut others = repository::texts("", &["md", "toml", "py", "pml"]);
    let without_extension = repository::texts("verify", &[""]);
    others.extend(without_extension.into_iter().filter(|file| file.text.starts_with("#!")));
    others
}

/// The documents at the top and in `design`.
fn documents() -> Vec<Text> {
    let mut documents = repository::texts("", &["md"]);
    documents.retain(|text| text.path.starts_with("design/") || !text.path.contains('/'));
    documents
}

fn text(path: &str, text: &str) -> Text {
    Text { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn every_cited_tag_is_defined() {
    let (mut citing, documents) = (code(), documents());
    citing.extend(others());
    assert_eq!(undefined(&citing, &documents), [""; 0]);
}

#[test]
fn every_mentioned_document_exists() {
    let (mut citing, documents) = (code(), documents());
    citing.extend(others());
    assert_eq!(missing_documents(&citing, &documents), [""; 0]);
}

#[test]
fn every_requirement_is_cited_by_code() {
    assert_eq!(unmet(&code(), &documents()), [""; 0]);
}

#[test]
fn every_path_in_a_document_exists() {
    assert_eq!(broken_paths(&documents(), repository::root()), [""; 0]);
}

#[test]
fn every_document_is_the_page_of_a_module() {
    let documents = documents();
    let readme = documents.iter().find(|document| document.path == "design/README.md").unwrap();
    let mut sources = code();
    sources.retain(|source| source.path.ends_with("src/design.rs"));
    assert_eq!(misplaced_pages(&readme.text, &sources, &documents), [""; 0]);
}

#[test]
fn the_repository_cites_tags() {
    let cited: BTreeSet<Tag> = code().iter().flat_map(|text| citations(&text.text)).collect();
    let flip_order = Tag { document: "design/ap.md".into(), tag: ".flip.order".into() };
    assert!(cited.contains(&flip_order) && cited.len() > 20, "{cited:?}");
}

#[test]
fn chapters_and_programs_cite_as_well() {
    let others = others();
    for path in ["guide/src/own-class.md", "core/README.md", "pools/Cargo.toml", "verify/stress"] {
        assert!(others.iter().any(|text| text.path == path), "{path} is not looked at");
    }
}

#[test]
fn undefined_tags_are_found() {
    let documents = [text("design/a.md", "**`.known`** A tag.\n- **`.listed`** Another.\nSee `.mentioned`.")];
    let check = |code: &str| undefined(&[text("x.rs", code)], &documents);
    assert_eq!(check("// (design/a.md `.known`, `.listed`)"), [""; 0]);
    assert_eq!(check("//! Design: `design/a.md` `.lost`."), ["x.rs cites design/a.md `.lost`"]);
    assert_eq!(check("/// (design/a.md\n    /// `.known` `.lost`)"), ["x.rs cites design/a.md `.lost`"]);
    assert_eq!(check("/// [design/a.md `.lost`](crate::design::a)"), ["x.rs cites design/a.md `.lost`"]);
    assert_eq!(check("/// [`design/a.md`](crate::design::a) `.lost`"), ["x.rs cites design/a.md `.lost`"]);
    assert_eq!(check("# (design/a.md\n# `.lost`)"), ["x.rs cites design/a.md `.lost`"]);
    assert_eq!(check("// (design/a.md `.mentioned`)"), ["x.rs cites design/a.md `.mentioned`"]);
    assert_eq!(check("// (design/gone.md `.known`)"), ["x.rs cites design/gone.md `.known`"]);
    assert_eq!(check("// (seed 004 `.count.fillsize`)"), [""; 0]);
}

#[test]
fn missing_documents_are_found() {
    let code = [text("x.rs", "//! Design: `design/a.md`, `design/gone.md`.")];
    assert_eq!(missing_documents(&code, &[text("design/a.md", "")]), ["x.rs mentions design/gone.md"]);
}

#[test]
fn misplaced_pages_are_found() {
    let shown = [text("arena-vm/src/design.rs", "#[doc = include_str!(\"../design/a.md\")]\npub mod a {}")];
    let check = |table: &str| misplaced_pages(table, &shown, &[text("design/a.md", "")]);
    assert_eq!(check("| `design/a.md` | `tripoint_arena_vm::design::a` | words |"), [""; 0]);
    assert_eq!(
        check("no table"),
        ["design/a.md in tripoint_arena_vm::design::a", "design/a.md in no module"]
    );
    let both = ["design/a.md in tripoint_ap::design::a", "design/a.md in tripoint_arena_vm::design::a"];
    assert_eq!(check("| `design/a.md` | `tripoint_ap::design::a` | words |"), both);
}

#[test]
fn requirements_that_are_not_cited_are_found() {
    let documents = [text("design/a.md", "**`.req.met`** One.\n**`.req.unmet`** Two.\n**`.other`** Three.")];
    let code = [text("x.rs", "// (design/a.md `.req.met`)")];
    assert_eq!(unmet(&code, &documents), ["design/a.md `.req.unmet`"]);
}

#[test]
fn broken_paths_are_found() {
    let check = |words: &str| broken_paths(&[text("design/a.md", words)], repository::root());
    assert_eq!(check("[a](../Cargo.toml#x) `core/src/lib.rs` `a/b` <https://x.y> `target/x`"), [""; 0]);
    assert_eq!(check("[a](gone.md)"), ["design/a.md points at design/gone.md"]);
    assert_eq!(check("see `core/src/gone.rs`"), ["design/a.md points at core/src/gone.rs"]);
}
