//! What the lock file of a user's crate has to name (design/publishing.md `.req.light`).

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::repository;

/// What no lock file of a user should name: all of it is for model checking.
const FOR_MODELS: [&str; 3] = ["loom", "shuttle", "rand"];

/// The packages that the lock file of a crate names, its own among them, if the crate depends on tripoint with
/// these settings and on nothing else. The crate is in no workspace.
fn locked(name: &str, settings: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("src/lib.rs"), "").unwrap();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\ntripoint = {{ path = {:?}, {settings} }}\n",
        repository::root()
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    // Only the versions of the workspace are sure to be on this machine.
    std::fs::copy(repository::root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let update = Command::new(env!("CARGO"))
        .args(["update", "--workspace", "--offline"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(update.status.success(), "{}", String::from_utf8_lossy(&update.stderr));
    let lock = std::fs::read_to_string(folder.join("Cargo.lock")).unwrap();
    let names = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    names.map(str::to_owned).collect()
}

/// What is wrong with a lock file that may have that many entries.
fn wrong_entries(locked: &BTreeSet<String>, most: usize) -> Vec<String> {
    let mut wrong: Vec<_> =
        FOR_MODELS.into_iter().filter(|name| locked.contains(*name)).map(str::to_owned).collect();
    if locked.len() > most {
        wrong.push(format!("{} entries, and not {most}: {locked:?}", locked.len()));
    }
    wrong
}

#[test]
fn pools_alone_put_few_entries_into_a_lock_file() {
    let locked = locked("pools-alone", "default-features = false, features = [\"vm\"]");
    assert_eq!(wrong_entries(&locked, 15), [""; 0]);
}

#[test]
fn defaults_put_few_entries_into_a_lock_file() {
    assert_eq!(wrong_entries(&locked("defaults", "features = []"), 20), [""; 0]);
}

#[test]
fn model_checkers_in_a_lock_file_are_found() {
    let locked = locked("with-models", "default-features = false, features = [\"loom\", \"shuttle\"]");
    let wrong = wrong_entries(&locked, 15);
    assert_eq!(wrong[..3], FOR_MODELS);
    assert_eq!(wrong.len(), 4, "too many entries went unnoticed: {}", locked.len());
}
