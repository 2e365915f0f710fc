//! Tables name what is there, and nothing else: the files of a folder, the checks of `verify/`, the features of a crate.

use std::collections::BTreeSet;

use crate::page;
use crate::repository::{self, Text};

/// The names in backticks in a column of the rows after a heading, up to the end of the table. The first column is 1.
fn names_in<'t>(column: usize, lines: impl Iterator<Item = &'t str>) -> Vec<String> {
    let rows = lines.map(str::trim).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(column));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The first cells of each table of a page whose first heading is one of these.
fn tables<'t>(lines: &[&'t str], headings: &[&str]) -> Vec<Vec<String>> {
    let is_heading = |line: &&'t str| {
        line.strip_prefix('|')
            .and_then(|row| row.split('|').next())
            .is_some_and(|cell| headings.contains(&cell.trim()))
    };
    let begins = (0..lines.len()).filter(|at| is_heading(&lines[*at]));
    begins.map(|at| names_in(1, lines[at..].iter().copied())).collect()
}

/// What is in one and not in the other, in words.
fn differences(of: &str, listed: &[String], there: &BTreeSet<String>) -> Vec<String> {
    let unique: BTreeSet<_> = listed.iter().cloned().collect();
    let missing = there.difference(&unique).map(|name| format!("{of}: {name} is not listed"));
    let gone = unique.difference(there).map(|name| format!("{of}: {name} is listed, and not there"));
    let twice = (unique.len() < listed.len()).then(|| format!("{of}: a name is listed twice"));
    missing.chain(gone).chain(twice).collect()
}

/// The folder of a module.
fn folder_of(module: &Text) -> String {
    match module.path.strip_suffix("lib.rs") {
        Some(folder) => folder.to_owned(),
        None => format!("{}/", module.path.trim_end_matches(".rs")),
    }
}

/// The files in the folder of a module, without their extension.
fn files_of(module: &Text, sources: &[Text]) -> BTreeSet<String> {
    let folder = folder_of(module);
    let name = |source: &Text| {
        let below = source.path.strip_prefix(&folder)?.strip_suffix(".rs")?;
        (!below.contains('/') && below != "lib").then(|| below.to_owned())
    };
    sources.iter().filter_map(name).collect()
}

/// What the tables of files at the top of a module name: in its documentation or, if users read that, in a comment
/// after it.
fn tables_of_files(module: &Text, there: &BTreeSet<String>) -> Vec<Vec<String>> {
    let comments = module.text.lines().take_while(|line| line.is_empty() || line.starts_with("//"));
    let lines: Vec<_> = comments.map(|line| line.trim_start_matches(['/', '!']).trim()).collect();
    let mut tables = tables(&lines, &["file", "file, from the ground up"]);
    tables.extend(drawn_tables(&lines, there));
    tables
}

/// What is wrong with the table of files in a module's documentation, if it has one.
fn wrong_files(module: &Text, sources: &[Text]) -> Vec<String> {
    let there = files_of(module, sources);
    let tables = tables_of_files(module, &there);
    tables.iter().flat_map(|listed| differences(&module.path, listed, &there)).collect()
}

/// The folders of a few files or more whose module has no table of them.
fn without_table(sources: &[Text]) -> BTreeSet<String> {
    let is_without = |module: &&Text| {
        let there = files_of(module, sources);
        there.len() >= 3 && tables_of_files(module, &there).is_empty()
    };
    let without = sources.iter().filter(is_without).map(folder_of);
    without.map(|folder| folder.trim_end_matches('/').to_owned()).collect()
}

/// Folders that have no table yet. One that gets a table, or is removed, leaves the list.
const WITHOUT_TABLE: &[&str] = &[
    "adaptors/src",
    "ap/src",
    "ap/src/frames",
    "arena-vm/src",
    "benches/src",
    "cli/src",
    "cli/src/commands",
    "cli/src/commands/top",
    "cli/src/core_file",
    "cli/src/export",
    "cli/src/export/perfetto",
    "cli/src/kernel_events",
    "cli/src/pictures",
    "cli/src/plotting",
    "contract/src",
    "core/src/arena/client_arena",
    "core/src/arena/tract_table",
    "fuzz/src",
    "pools/src",
    "pools/src/debug",
    "pools/src/land",
    "stack/src",
    "telemetry/src",
    "telemetry/src/draws",
    "telemetry/src/file",
    "telemetry/src/format",
    "telemetry/src/live",
    "telemetry/src/recorder",
];

/// Tables that are drawn: blocks of text whose lines begin with a name or more, most of them of files. What such a
/// page names elsewhere in its text, it need not draw.
fn drawn_tables(lines: &[&str], there: &BTreeSet<String>) -> Vec<Vec<String>> {
    let mut drawn = Vec::new();
    for (begin, _) in lines.iter().enumerate().filter(|(_, line)| **line == "```text") {
        let block = lines[begin + 1..].iter().take_while(|line| **line != "```");
        let cells = block.filter_map(|line| line.split_once("  ")).map(|(cell, _)| cell);
        let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let mut names: Vec<_> =
            cells.flat_map(|cell| cell.split(", ")).filter(is_name).map(str::to_owned).collect();
        let known = names.iter().filter(|name| there.contains(*name)).count();
        if known >= 3 && 2 * known > names.len() {
            let is_said = |name: &&String| lines.iter().any(|line| line.contains(&format!("`{name}`")));
            let beside = there.iter().filter(|name| *name == "design" || is_said(name));
            let beside: Vec<_> = beside.filter(|name| !names.contains(*name)).cloned().collect();
            names.extend(beside);
            drawn.push(names);
        }
    }
    drawn
}

/// The sources of the crates. A table in another folder may leave files out.
fn sources() -> Vec<Text> {
    let mut sources = repository::texts("", &["rs"]);
    sources.retain(|source| {
        source.path.split('/').nth(1) == Some("src") && !source.path.starts_with("examples/")
    });
    sources
}

#[test]
fn every_file_stands_in_the_table_of_its_folder() {
    let sources = sources();
    let with_table = sources.iter().filter(|source| source.text.contains("//! | file")).count();
    assert!(with_table > 10, "{with_table} tables");
    let wrong: Vec<_> = sources.iter().flat_map(|module| wrong_files(module, &sources)).collect();
    assert_eq!(wrong, [""; 0]);
    let listed: Vec<_> = WITHOUT_TABLE.iter().map(|folder| (*folder).to_owned()).collect();
    assert_eq!(differences("WITHOUT_TABLE", &listed, &without_table(&sources)), [""; 0]);
}

#[test]
fn folders_without_a_table_are_found() {
    let check = |documentation: &str| {
        let files = ["b", "c", "d"].map(|name| page(&format!("x/src/a/{name}.rs"), ""));
        without_table(&[vec![page("x/src/a.rs", documentation)], files.to_vec()].concat())
    };
    assert_eq!(check("//! A."), BTreeSet::from(["x/src/a".to_owned()]));
    let none = BTreeSet::new();
    assert_eq!(check("//! A.\n//! | file | |\n//! |---|---|\n//! | `b` | |"), none);
    assert_eq!(check("//! A.\n//! ```text\n//!   b  one\n//!   c  two\n//!   d  three\n//! ```"), none);
    assert_eq!(without_table(&[page("x/src/a.rs", "//! A."), page("x/src/a/b.rs", "")]), none);
}

#[test]
fn files_that_are_not_listed_are_found() {
    let check = |rows: &str| {
        let module =
            page("x/src/a.rs", &format!("//! A.\n//!\n//! | file | |\n//! |---|---|\n{rows}\nmod b;"));
        wrong_files(
            &module,
            &[page("x/src/a/b.rs", ""), page("x/src/a/c.rs", ""), page("x/src/a/c/d.rs", "")],
        )
    };
    assert_eq!(check("//! | `b`, `c` | both |"), [""; 0]);
    assert_eq!(check("//! | `b` | `c` |"), ["x/src/a.rs: c is not listed"]);
    let module = page("x/src/a.rs", "//! A.\n\n// | file | |\n// |---|---|\n// | `b` | |\n\nmod b;");
    let sources = [page("x/src/a/b.rs", ""), page("x/src/a/c.rs", "")];
    assert_eq!(wrong_files(&module, &sources), ["x/src/a.rs: c is not listed"]);
    assert_eq!(
        check("//! | `b` | |\n//! | `c` | |\n//! | `d` | |"),
        ["x/src/a.rs: d is listed, and not there"]
    );
    assert_eq!(check("//! | `b`, `c` | |\n//! | `c` | |"), ["x/src/a.rs: a name is listed twice"]);
    let draw = |lines: &str| {
        let module = page("x/src/a.rs", &format!("//! A.\n//! ```text\n{lines}//! ```\nmod b;"));
        wrong_files(&module, &["b", "c", "d", "e"].map(|name| page(&format!("x/src/a/{name}.rs"), "")))
    };
    assert_eq!(draw("//!   b, c   two\n//!   d   one\n//!   e   one\n"), [""; 0]);
    assert_eq!(draw("//!   b, c   two\n//!   d   one\n//! ```\n//! `e` is apart.\n"), [""; 0]);
    assert_eq!(draw("//!   b, c   two\n//!   d   one\n"), ["x/src/a.rs: e is not listed"]);
    let gone = ["x/src/a.rs: e is not listed", "x/src/a.rs: f is listed, and not there"];
    assert_eq!(draw("//!   b, c   two\n//!   d   one\n//!   f   one\n"), gone);
    assert_eq!(draw("//!   thread b  and c\n"), [""; 0]);
}

/// What the table of models of a page lists, compared with what is there.
fn wrong_models(page: &Text, there: &BTreeSet<String>) -> Vec<String> {
    let table = page.text.lines().skip_while(|line| *line != "| of | models |");
    differences(&page.path, &names_in(2, table), there)
}

#[test]
fn the_page_of_verification_lists_every_model() {
    let there = repository::texts("tests-loom/tests", &["rs"]).into_iter().map(|model| {
        let name = model.path.rsplit('/').next().and_then(|file| file.strip_suffix(".rs"));
        name.expect("a source").to_owned()
    });
    let pages = repository::texts("design", &["md"]);
    let verification = pages.iter().find(|page| page.path == "design/verification.md").unwrap();
    assert_eq!(wrong_models(verification, &there.collect()), [""; 0]);
}

#[test]
fn models_that_are_not_listed_are_found() {
    let table = "| of | models |\n|---|---|\n| `points` | `trips`, `runs` |\n";
    let check = |there: [&str; 2]| wrong_models(&page("a.md", table), &there.map(str::to_owned).into());
    assert_eq!(check(["runs", "trips"]), [""; 0]);
    assert_eq!(check(["trips", "walk"]), ["a.md: walk is not listed", "a.md: runs is listed, and not there"]);
}

/// The names of the errors, by the source.
fn errors(source: &str) -> BTreeSet<String> {
    let names = source.lines().filter_map(|line| line.trim().strip_suffix("\",")?.split_once(" => \""));
    names.map(|(_, name)| name.to_owned()).filter(|name| name.chars().all(char::is_alphanumeric)).collect()
}

#[test]
fn the_guide_lists_every_error() {
    let there =
        errors(&std::fs::read_to_string(repository::root().join("core/src/values/error.rs")).unwrap());
    assert!(there.len() > 10, "{there:?}");
    let pages = repository::texts("guide/src", &["md"]);
    let page = pages.iter().find(|page| page.path == "guide/src/errors.md").unwrap();
    let lines: Vec<_> = page.text.lines().collect();
    assert_eq!(differences(&page.path, &tables(&lines, &["error"]).concat(), &there), [""; 0]);
}

#[test]
fn the_names_of_errors_are_found() {
    let source =
        "Self::Memory => \"Memory\",\n  Self::Limit { .. } => \"Limit\",\nSelf::Busy => \"call it later\",";
    assert_eq!(errors(source), BTreeSet::from(["Limit".to_owned(), "Memory".to_owned()]));
}

/// What a page lists, compared with what is there.
fn wrong_checks(readme: &Text, there: &BTreeSet<String>) -> Vec<String> {
    let lines: Vec<_> = readme.text.lines().collect();
    let listed: Vec<_> = tables(&lines, &["check", "name"]).concat();
    differences(&readme.path, &listed, there)
}

/// The checks and folders of `verify/`, and the gates.
#[test]
fn the_readme_of_verify_lists_every_check() {
    let names = |folder: &str, prefix: &str| {
        let entries = std::fs::read_dir(repository::root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.map(|name| format!("{prefix}{name}")).collect::<BTreeSet<_>>()
    };
    let mut there = names("verify", "");
    there.extend(names("verify/gates", "gates/"));
    for left_out in ["README.md", "gates/link-proof", "gates/parts"] {
        assert!(there.remove(left_out), "{left_out} is not there");
    }
    let readme =
        repository::texts("verify", &["md"]).into_iter().find(|page| page.path == "verify/README.md");
    assert_eq!(wrong_checks(&readme.unwrap(), &there), [""; 0]);
}

/// The rows of the checks in the README of `verify/`, each in its cells: name, question, time, root, runs.
fn rows_of_checks(readme: &Text) -> Vec<[&str; 5]> {
    let rows = readme.text.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 6);
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let mut cells: [&str; 5] = cells.try_into().expect("five cells");
        cells[0] = cells[0].trim_matches('`');
        cells
    })
    .collect()
}

/// The calls of a check in the script of continuous integration: what follows its name, and the share that has it, if
/// not every run has.
fn calls<'s>(script: &'s str, name: &str) -> Vec<(&'s str, Option<char>)> {
    let mut share = None;
    let mut calls = Vec::new();
    for line in script.lines() {
        if line.ends_with("() {") {
            share = line.strip_prefix("share_").and_then(|rest| rest.chars().next());
        }
        let call = line.trim_start().strip_prefix("verify/").and_then(|call| call.strip_prefix(name));
        if let Some(rest) = call.filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
            // What follows a substitution is another command's.
            calls.push((rest.split("$(").next().unwrap_or(rest), share));
        }
    }
    calls
}

/// What the last cell of a check should be, by the script: `yes` or `part` if a call is in every run or has an option for
/// less, and the shares.
fn runs_of(calls: &[(&str, Option<char>)], is_less: impl Fn(&str) -> bool) -> String {
    if calls.is_empty() {
        return String::new();
    }
    let shares: BTreeSet<_> = calls.iter().filter_map(|(_, share)| *share).map(String::from).collect();
    let is_part = calls.iter().all(|(options, _)| is_less(options));
    let is_always = calls.iter().any(|(_, share)| share.is_none());
    let how = if is_part { Some("part".to_owned()) } else { is_always.then(|| "yes".to_owned()) };
    how.into_iter().chain(shares).collect::<Vec<_>>().join(", ")
}

/// Rows that say other runs than the script has, or another need of root than the check, and options that it has not.
fn wrong_rows(readme: &Text, script: &str, source: impl Fn(&str) -> String) -> Vec<String> {
    // Options by which a check does a part of what it does without.
    let is_less = |options: &str| {
        ["--quick", "--share", "--seconds", "--check", " newest"]
            .iter()
            .any(|option| options.contains(option))
    };
    let mut wrong = Vec::new();
    for [name, question, time, root, runs] in rows_of_checks(readme) {
        let (calls, source) = (calls(script, name), source(name));
        let expected = runs_of(&calls, is_less);
        if runs != expected {
            wrong.push(format!("{name} is run: {expected:?}, not {runs:?}"));
        }
        let installs = source.contains("apt-get install");
        if (root == "to install") != installs && root != "yes" {
            wrong.push(format!("{name} installs: {installs}, and root is {root:?}"));
        }
        let told = [question, time].into_iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let options = told.chain(calls.iter().map(|(options, _)| *options)).flat_map(str::split_whitespace);
        let unknown = options.filter(|word| word.starts_with("--") && !source.contains(word));
        wrong.extend(unknown.map(|option| format!("{name} has no {option}")));
    }
    wrong
}

#[test]
fn the_readme_of_verify_says_what_continuous_integration_runs() {
    let readme = repository::texts("verify", &["md"])
        .into_iter()
        .find(|page| page.path == "verify/README.md")
        .unwrap();
    let read = |path: &str| std::fs::read_to_string(repository::root().join(path)).unwrap();
    assert!(rows_of_checks(&readme).len() >= 25, "rows are not seen");
    // With what it takes in from other files.
    let source = |name: &str| {
        let script = read(&format!("verify/{name}"));
        let others = script.lines().filter_map(|line| line.strip_prefix(". ")).map(read);
        others.fold(script.clone(), |whole, other| whole + &other)
    };
    assert_eq!(wrong_rows(&readme, &read(".ci/run"), source), [""; 0]);
}

#[test]
fn wrong_rows_of_checks_are_found() {
    const SCRIPT: &str =
        "run() {\n    verify/a --quick\n}\nshare_2() {\n    verify/b\n    verify/b --quick\n}\n";
    let check =
        |row: &str, source: &str| wrong_rows(&page("verify/README.md", row), SCRIPT, |_| source.to_owned());
    assert_eq!(
        check("| `a` | ? | 1 min | | part |\n| `b` | ? | `--quick` 1 min | | 2 |", "--quick"),
        [""; 0]
    );
    assert_eq!(check("| `a` | ? | | | yes |", "--quick"), ["a is run: \"part\", not \"yes\""]);
    assert_eq!(check("| `b` | ? | | | 1 |", "--quick"), ["b is run: \"2\", not \"1\""]);
    assert_eq!(check("| `c` | ? | | | 1 |", ""), ["c is run: \"\", not \"1\""]);
    assert_eq!(check("| `b` | ? | | | |", "--quick"), ["b is run: \"2\", not \"\""]);
    assert_eq!(check("| `c` | ? | `--seed 1` | yes | |", ""), ["c has no --seed"]);
    assert_eq!(check("| `a` | ? | | | part |", ""), ["a has no --quick"]);
    assert_eq!(check("| `c` | ? | | | |", "apt-get install"), ["c installs: true, and root is \"\""]);
    assert_eq!(check("| `c` | ? | | to install | |", ""), ["c installs: false, and root is \"to install\""]);
    assert_eq!(check("| `c` | ? | | yes | |", "apt-get install x"), [""; 0]);
}

#[test]
fn checks_that_are_not_listed_are_found() {
    let readme =
        page("verify/README.md", "| check | q |\n|---|---|\n| `a` | ? |\n\n| name |\n|---|\n| `b` |\n");
    let there = |names: [&str; 2]| names.map(str::to_owned).into_iter().collect();
    assert_eq!(wrong_checks(&readme, &there(["a", "b"])), [""; 0]);
    let wrong = ["verify/README.md: c is not listed", "verify/README.md: b is listed, and not there"];
    assert_eq!(wrong_checks(&readme, &there(["a", "c"])), wrong);
}

/// The features that a manifest defines, except the default and those of nothing but other crates.
fn features(manifest: &str) -> BTreeSet<String> {
    let section = manifest.split("[features]\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let names =
        lines.filter(|line| !line.starts_with(['#', ' ', ']'])).filter_map(|line| line.split_once(" ="));
    names.map(|(name, _)| name.to_owned()).filter(|name| name != "default").collect()
}

/// What is wrong with the tables of features in a page or in a crate's documentation.
fn wrong_features(text: &Text, manifest: &str) -> Vec<String> {
    let lines: Vec<_> = text.text.lines().map(|line| line.trim_start_matches("//!").trim()).collect();
    let mut there = features(manifest);
    // Those of tests and of other members.
    there.retain(|name| !["mock", "check"].contains(&name.as_str()));
    let tables = tables(&lines, &["feature"]);
    tables.iter().flat_map(|listed| differences(&text.path, listed, &there)).collect()
}

#[test]
fn tables_of_features_are_those_of_the_manifests() {
    let mut pages = repository::texts("", &["md"]);
    pages.retain(|page| page.path.split('/').nth(1) == Some("README.md"));
    pages.extend(sources().into_iter().filter(|source| source.path.ends_with("src/lib.rs")));
    let mut with_table = 0;
    for page in pages {
        let folder = page.path.trim_end_matches("README.md").trim_end_matches("src/lib.rs");
        let Ok(manifest) = std::fs::read_to_string(repository::root().join(folder).join("Cargo.toml")) else {
            continue;
        };
        with_table += usize::from(page.text.contains("| feature |"));
        assert_eq!(wrong_features(&page, &manifest), [""; 0]);
    }
    assert!(with_table >= 3, "{with_table} tables");
}

#[test]
fn features_that_are_not_listed_are_found() {
    let manifest =
        "[features]\ndefault = [\"a\"]\n# Why.\na = []\nb = [\n    \"a\",\n]\n[dependencies]\nc = \"1\"\n";
    let check =
        |row: &str| wrong_features(&page("x/README.md", &format!("| feature |\n|---|\n{row}")), manifest);
    assert_eq!(check("| `a` |\n| `b` |"), [""; 0]);
    assert_eq!(check("| `a` |"), ["x/README.md: b is not listed"]);
    assert_eq!(check("| `a`, `b` |\n| `c` |"), ["x/README.md: c is listed, and not there"]);
}
