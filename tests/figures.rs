//! The page of figures is what their table says, and only complete figures are in the table.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const TABLE: &str = r#"
[[series]]
tag = "pools"
title = "A pair"
command = "benches/instructions"
processor = "any"
date = "2026-11-20"
columns = ["pool", "instructions"]
rows = [["`Mfs`", "6"]]
"#;

/// Series that a program of the time measured and none does now. One that is measured again leaves the list.
const WITHOUT_COMMAND: &[&str] =
    &["arena-vm", "arena-vm.zero", "land.join", "core.lock", "pool-mfs.last", "pool-mvt.memory"];

/// The tags of the series of a table whose command is not noted.
fn without_command(table: &str) -> Vec<&str> {
    let series = table.split("[[series]]\n").skip(1);
    let without = series.filter(|series| series.contains("\ncommand = \"not noted\"\n"));
    without.map(|series| series.split('"').nth(1).unwrap()).collect()
}

#[test]
fn every_other_series_can_be_measured_again() {
    let table = std::fs::read_to_string(Path::new(ROOT).join("design/figures.toml")).unwrap();
    assert_eq!(without_command(&table), WITHOUT_COMMAND, "in the order of the table");
    let unknown = TABLE.replace("benches/instructions", "not noted");
    assert_eq!([TABLE, &unknown].map(without_command), [vec![], vec!["pools"]]);
}

/// By its interpreter: a program that was just written may still be open in a child of another thread.
fn figures(root: &Path) -> Command {
    let mut command = Command::new("python3");
    command.arg(root.join("verify/figures"));
    command
}

fn check(root: &Path) -> Output {
    figures(root).arg("--check").output().unwrap()
}

/// That a table is refused, and what is said of it.
#[track_caller]
fn refused(name: &str, table: &str, said: &str) {
    let output = check(&folder(name, table));
    assert!(!output.status.success(), "{table}: {output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{table}: {output:?}");
}

/// The command in a folder with a table of its own, without a page.
fn folder(name: &str, table: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("figures-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    for part in ["verify", "design"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    std::fs::copy(Path::new(ROOT).join("verify/figures"), folder.join("verify/figures")).unwrap();
    std::fs::write(folder.join("design/figures.toml"), table).unwrap();
    folder
}

/// The same with the page that it writes.
fn with_page(name: &str, table: &str) -> PathBuf {
    let folder = folder(name, table);
    assert!(figures(&folder).status().unwrap().success());
    folder
}

#[test]
fn the_page_is_what_the_table_says() {
    let output = check(Path::new(ROOT));
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_page_of_a_table_is_accepted() {
    let output = check(&with_page("same", TABLE));
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_page_of_another_table_is_found() {
    let folder = with_page("other", TABLE);
    std::fs::write(folder.join("design/figures.toml"), TABLE.replace("\"6\"", "\"7\"")).unwrap();
    let output = check(&folder);
    assert!(String::from_utf8_lossy(&output.stderr).contains("run verify/figures"), "{output:?}");
    assert!(!output.status.success());
}

#[test]
fn figures_without_their_origin_are_found() {
    for key in ["command", "processor", "date"] {
        let is_other = |line: &&str| !line.starts_with(key);
        let table: Vec<_> = TABLE.lines().filter(is_other).collect();
        refused("origin", &table.join("\n"), &format!("pools lacks, or should not have: {key}"));
    }
}

#[test]
fn empty_values_are_found() {
    let said = "pools has a key, a column or a row without a value";
    for value in ["\"A pair\"", "\"benches/instructions\"", "\"any\"", "\"2026-11-20\"", "\"instructions\""] {
        refused("empty", &TABLE.replace(value, "\"\""), said);
    }
    for value in ["[\"pool\", \"instructions\"]", "\"pools\""] {
        let empty = if value.starts_with('[') { "[]" } else { "\"\"" };
        refused("none", &TABLE.replace(value, empty), "without a value");
    }
    refused("cells", &TABLE.replace("[\"`Mfs`\", \"6\"]", "[\"\", \"\"]"), said);
    // The first column may have no head, and a row a gap.
    let gap = TABLE.replace("\"pool\",", "\"\",").replace("\"6\"", "\"\"");
    refused("gap", &gap, "run verify/figures");
}

#[test]
fn rows_without_a_cell_are_found() {
    refused("row", &TABLE.replace(", \"6\"", ""), "not as long as its columns");
    refused("rows", &TABLE.replace("[[\"`Mfs`\", \"6\"]]", "[]"), "has no rows");
}

#[test]
fn tags_that_are_there_twice_are_found() {
    refused("twice", &TABLE.repeat(2), "two series of a tag: pools");
}

#[test]
fn a_table_without_series_is_found() {
    refused("series", "", "has no series");
    refused("no-series", "series = []", "has no series");
}
