//! Names the condition under which the files that other processes read are compiled: `tripoint_on_linux`.

use std::env::{var, var_os};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(tripoint_on_linux)");
    let is_linux = var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && var_os("CARGO_FEATURE_LINUX").is_some() {
        println!("cargo::rustc-cfg=tripoint_on_linux");
    }
}
