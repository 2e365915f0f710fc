//! The command from outside, as a shell starts it.

use std::process::{Command, Output, Stdio};

fn tripoint(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tripoint"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    tripoint(arguments).output().unwrap()
}

/// (design/cli.md `.req.status`)
#[test]
fn bad_arguments_have_status_2_and_leave_standard_output_empty() {
    for arguments in [&[][..], &["no-such-subcommand"], &["completions"], &["completions", "no-such-shell"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn help_has_status_0_and_names_the_statuses() {
    let output = run(&["--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text.contains("Exit status: 0"), "{text}");
}

#[test]
fn completions_name_the_subcommands_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("completions"), "{shell}");
    }
    let json = run(&["--json", "completions", "bash"]).stdout;
    let script: String = serde_json::from_slice(&json).unwrap();
    assert_eq!(script.into_bytes(), run(&["completions", "bash"]).stdout);
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let man = folder.path().join("man1");
    let output = run(&["man", man.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let written: Vec<std::path::PathBuf> = serde_json::from_slice(&output.stdout).unwrap();
    for name in ["tripoint.1", "tripoint-man.1", "tripoint-completions.1"] {
        let page = man.join(name);
        assert!(written.contains(&page), "{written:?}");
        assert!(std::fs::read_to_string(page).unwrap().contains("tripoint"), "{name}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_has_status_2_and_is_named() {
    let output = run(&["man", "/dev/null/man1"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("/dev/null/man1"), "{text}");
}

/// (design/cli.md `.output`)
#[test]
fn a_reader_that_ends_is_no_error() {
    let mut child =
        tripoint(&["completions", "zsh"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn output_that_cannot_be_written_has_status_2() {
    for arguments in [&["completions", "bash"][..], &["--help"], &["report", "--help"], &["--version"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = tripoint(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            String::from_utf8(output.stderr).unwrap().contains("cannot write the output"),
            "{arguments:?}"
        );
    }
}
