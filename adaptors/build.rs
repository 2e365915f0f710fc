//! Names the condition under which the standard library's collections take allocators: `tripoint_standard_allocator`, from
//! Rust 1.100 on.

use std::env::var_os;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(tripoint_standard_allocator)");
    if compiler().is_some_and(|version| has_allocators(&version)) {
        println!("cargo::rustc-cfg=tripoint_standard_allocator");
    }
}

/// What the compiler says of itself: `rustc 1.100.0 (…)`. If it says nothing, the collections are those of
/// `allocator-api2` alone.
fn compiler() -> Option<String> {
    let output = Command::new(var_os("RUSTC")?).arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok()
}

/// Some compilers called 1.100 that are no release are older than the change.
fn has_allocators(version: &str) -> bool {
    let Some(version) = version.split(' ').nth(1) else { return false };
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(1), Some(100)) => !version.contains("nightly") && !version.contains("-dev"),
        (Some(major), Some(minor)) => (major, minor) > (1, 100),
        _ => false,
    }
}
