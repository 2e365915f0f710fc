//! The scripts of `verify/`: each says what it does, and those that compare pages or tables find what is not there.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Output};

/// What a script says that it does: its second line.
fn purpose(source: &str) -> Option<&str> {
    let line = source.lines().nth(1)?.trim_start_matches(['#', ' ', '"']);
    (!line.is_empty()).then_some(line)
}

/// Each script of `verify/` says what it does, also if it is started in its own folder, and runs
/// nothing then.
#[test]
fn scripts_say_what_they_do_wherever_they_are_started() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("verify");
    let mut scripts = 0;
    for script in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        // What a script reads has an extension.
        if !script.is_file() || script.extension().is_some() {
            continue;
        }
        let source = std::fs::read_to_string(&script).unwrap();
        let first =
            purpose(&source).unwrap_or_else(|| panic!("{}: say in line 2 what it does", script.display()));
        let program = Path::new(".").join(script.file_name().unwrap());
        let output = Command::new(program).arg("--help").current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", script.display());
        let told = String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned();
        assert!(told.starts_with(first), "{}: {told}", script.display());
        scripts += 1;
    }
    assert!(scripts > 10);
}

#[test]
fn scripts_that_do_not_say_what_they_do_are_found() {
    assert_eq!(purpose("#!/usr/bin/env bash\n# Counts.\nset -eu\n"), Some("Counts."));
    assert_eq!(purpose("#!/usr/bin/env python3\n\"\"\"Counts.\"\"\"\n"), Some("Counts.\"\"\""));
    for silent in ["", "#!/bin/sh\n", "#!/bin/sh\n\n# Counts.\n", "#!/bin/sh\n#\n", "#!/bin/sh\n\"\"\"\n"] {
        assert_eq!(purpose(silent), None, "{silent}");
    }
}

/// `verify/misuse --check` with a page and with what its program printed, for both builds of it.
fn check_misuse(name: &str, page: &str, printed: &str) -> Output {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("misuse-{name}"));
    for part in ["verify", "design"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("verify/misuse");
    std::fs::copy(source, folder.join("verify/misuse")).unwrap();
    std::fs::write(folder.join("design/hardening.md"), page).unwrap();
    // Bash takes this for a function of that name.
    let cargo = "() { printf '%s' \"$PRINTED\"; }";
    Command::new("bash")
        .args(["verify/misuse", "--check"])
        .current_dir(folder)
        .envs([("BASH_FUNC_cargo%%", cargo), ("PRINTED", printed)])
        .output()
        .unwrap()
}

#[test]
fn the_page_of_misuse_is_compared_with_what_is_printed() {
    // The page has no debug pools in its first table.
    let table = |classes: usize| {
        let row = |name: &str| format!("| {name} |{}\n", " 1 |".repeat(classes));
        format!("{}|---|\n{}{}\n", row("fault"), row("one"), row("two"))
    };
    let printed = table(9);
    let page = format!("{}{printed}| pool | ways |\n| a | b |\n", table(6));
    let output = check_misuse("same", &page, &printed);
    assert!(output.status.success(), "{output:?}");
    let two = "| two | 1 | 1 | 1 | 1 | 1 | 1 |";
    let wrong = [
        (page.replacen(&format!("{two}\n"), "", 1), printed.clone(), format!("> {two}")),
        (
            page.replacen(two, &format!("{two}\n| three | 1 |"), 1),
            printed.clone(),
            "< | three | 1 |".to_owned(),
        ),
        (page.replacen("| two | 1", "| two | 3", 1), printed.clone(), format!("> {two}")),
        (page.replacen("| fault | 1", "| fault | `2`", 1), printed.clone(), "< | fault | 2 | 1".to_owned()),
        (page, String::new(), format!("< {two}")),
        (table(6), printed, "two tables".to_owned()),
        (String::new(), String::new(), "two tables".to_owned()),
    ];
    for (page, printed, said) in wrong {
        let output = check_misuse("other", &page, &printed);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(&said), "{said}: {output:?}");
    }
}

/// `verify/xdp-mutants --check` in a folder.
fn check_mistakes(folder: &Path) -> Output {
    Command::new("verify/xdp-mutants").arg("--check").current_dir(folder).output().unwrap()
}

#[test]
fn mistakes_apply_to_the_sources_as_they_are() {
    let output = check_mistakes(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(output.status.success(), "{output:?}");
}

/// Lines that apply to no source, or that nothing notices.
#[test]
fn mistakes_that_do_not_apply_are_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mistakes");
    for part in ["verify", "xdp/tests/xdp"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("verify/xdp-mutants");
    std::fs::copy(script, folder.join("verify/xdp-mutants")).unwrap();
    std::fs::write(folder.join("source.rs"), "one(); two();\n    two();").unwrap();
    std::fs::write(folder.join("xdp/tests/xdp/ways.rs"), "#[test]\nfn comes() {}\nfn helper() {}").unwrap();
    let check = |line: [&str; 6]| {
        let table = format!("what\tfile\tbefore\tafter\ttest\twhy\n{}\n", line.join("\t"));
        std::fs::write(folder.join("verify/xdp-mutants.tsv"), table).unwrap();
        check_mistakes(&folder)
    };
    for right in [
        ["a call is left out", "source.rs", "one();", "", "xdp::ways::comes", ""],
        ["spaces do not count", "source.rs", "one();  two();", "", "xdp::ways::comes", ""],
        ["none can notice", "source.rs", "one();", "", "-", "it is made twice"],
    ] {
        let output = check(right);
        assert!(output.status.success(), "{right:?}: {output:?}");
    }
    for (wrong, said) in [
        (["not there", "source.rs", "three();", "", "xdp::ways::comes", ""], "is there 0 times"),
        (["there twice", "source.rs", "two();", "", "xdp::ways::comes", ""], "is there 2 times"),
        (["no such file", "other.rs", "one();", "", "xdp::ways::comes", ""], "there is no other.rs"),
        (["no such test", "source.rs", "one();", "", "xdp::ways::goes", ""], "no test xdp::ways::goes"),
        (["no test", "source.rs", "one();", "", "xdp::ways::helper", ""], "no test xdp::ways::helper"),
        (["no reason", "source.rs", "one();", "", "-", ""], "why none does"),
        (["both", "source.rs", "one();", "", "xdp::ways::comes", "none"], "why none does"),
    ] {
        let output = check(wrong);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(said), "{wrong:?}: {output:?}");
    }
}
