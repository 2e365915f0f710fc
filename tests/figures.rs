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

fn check(root: &Path) -> Output {
    Command::new(root.join("verify/figures")).arg("--check").output().unwrap()
}

/// The command in a folder with a table of its own and the page that it wrote from `TABLE`.
fn folder(name: &str, table: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("figures-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    for part in ["verify", "design"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    std::fs::copy(Path::new(ROOT).join("verify/figures"), folder.join("verify/figures")).unwrap();
    std::fs::write(folder.join("design/figures.toml"), TABLE).unwrap();
    assert!(Command::new(folder.join("verify/figures")).status().unwrap().success());
    std::fs::write(folder.join("design/figures.toml"), table).unwrap();
    folder
}

#[test]
fn the_page_is_what_the_table_says() {
    let output = check(Path::new(ROOT));
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_page_of_a_table_is_accepted() {
    let output = check(&folder("same", TABLE));
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_page_of_another_table_is_found() {
    let output = check(&folder("other", &TABLE.replace("\"6\"", "\"7\"")));
    assert!(String::from_utf8_lossy(&output.stderr).contains("run verify/figures"), "{output:?}");
    assert!(!output.status.success());
}

#[test]
fn figures_without_their_origin_are_found() {
    for line in ["command = \"benches/instructions\"\n", "processor = \"any\"\n", "date = \"2026-11-20\"\n"] {
        let output = check(&folder("origin", &TABLE.replace(line, "")));
        let key = line.split(' ').next().unwrap();
        assert!(
            String::from_utf8_lossy(&output.stderr)
                .contains(&format!("pools lacks, or should not have: {key}")),
            "{output:?}"
        );
    }
}

#[test]
fn rows_without_a_cell_are_found() {
    let output = check(&folder("row", &TABLE.replace(", \"6\"", "")));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not as long as its columns"), "{output:?}");
}
