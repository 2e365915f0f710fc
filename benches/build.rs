//! Finds peers that are C libraries of the system. What is not there is left out, with a line that says so.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Whether a program that refers to this symbol links with this library.
fn links(library: &str, symbol: &str) -> bool {
    let folder = env::var("OUT_DIR").expect("cargo names a folder");
    let source = Path::new(&folder).join("probe.c");
    fs::write(&source, format!("void {symbol}(void); int main(void) {{ {symbol}(); }}"))
        .expect("a writable folder");
    let mut compiler = Command::new(env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    compiler.arg(&source).arg(format!("-l{library}")).arg("-o").arg(source.with_extension("out"));
    compiler.output().is_ok_and(|output| output.status.success())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CC");
    println!("cargo::rustc-check-cfg=cfg(boehm)");
    if links("gc", "GC_init") {
        println!("cargo::rustc-cfg=boehm");
    } else {
        println!(
            "cargo::warning=the Boehm GC is left out of the comparison of collectors: its library was not found (Debian: libgc-dev)"
        );
    }
}
