//! Programs that are compiled as a user's are: in a crate outside the workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::advised::advised;

/// What is compiled, in a folder that stays for the next run.
pub(crate) static OUTSIDE: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    let sources = folder.join("src/bin");
    std::fs::create_dir_all(&sources).unwrap();
    let guide = std::fs::read_to_string(root.join("guide/src/watched.md")).unwrap();
    std::fs::write(folder.join("Cargo.toml"), manifest(&guide, root)).unwrap();
    std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    std::fs::write(sources.join("guide.rs"), program_of(&guide)).unwrap();
    let wired = std::fs::read_to_string(root.join("cli/tests/programs/wired.rs")).unwrap();
    std::fs::write(sources.join("wired.rs"), &wired).unwrap();
    // A switch that no program can have while it runs.
    let allocator = "static ALLOCATOR: ContractAllocator = ContractAllocator::system();";
    assert!(wired.contains(allocator));
    let bare = wired.replace(allocator, "static ALLOCATOR: std::alloc::System = std::alloc::System;");
    let bare = bare.replace(" ContractAllocator,", "");
    std::fs::write(sources.join("bare.rs"), bare).unwrap();
    std::fs::write(sources.join("advised.rs"), advised()).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--offline", "--bins", "--target-dir"]).arg(folder.join("target"));
    let built = cargo.current_dir(&folder).stdin(Stdio::null()).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    folder.join("target/debug")
});

/// The manifest of a page, for programs that are built unoptimised.
fn manifest(page: &str, root: &Path) -> String {
    let shown = block(page, "```toml\n[package]");
    let mut manifest = format!("[package]{shown}\n[workspace]\n");
    for (theirs, ours) in [
        ("path = \"../tripoint\"", format!("path = '{}'", root.display())),
        (
            "[profile.release]",
            "[profile.dev.package.tripoint-contract]\nopt-level = 1\n\n[profile.dev]".to_owned(),
        ),
    ] {
        assert!(manifest.contains(theirs), "{theirs}");
        manifest = manifest.replace(theirs, &ours);
    }
    manifest
}

/// The only Rust program of a page.
pub(crate) fn program_of(page: &str) -> &str {
    block(page, "```rust,standalone_crate\n")
}

/// The rest of the block of a page that begins so.
fn block<'p>(page: &'p str, begin: &str) -> &'p str {
    let (_, rest) = page.split_once(begin).unwrap();
    rest.split_once("```\n").unwrap().0
}
