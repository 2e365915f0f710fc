//! Compiles the library that `tripoint record` preloads, with the compiler that compiles this package, for the
//! same target. It has no dependencies, so one call does (design/cli-traces.md `.preload.build`).

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=preload");
    println!("cargo::rustc-check-cfg=cfg(recorder)");
    let of_target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let is_known = of_target("OS") == "linux"
        && of_target("ENV") == "gnu"
        && matches!(of_target("ARCH").as_str(), "x86_64" | "aarch64" | "riscv64")
        && of_target("POINTER_WIDTH") == "64";
    if !is_known {
        return;
    }
    let variable = |name: &str| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let library = Path::new(&variable("OUT_DIR")).join("preload.so");
    let mut compiler = Command::new(variable("RUSTC"));
    compiler.args(["--crate-name", "tripoint_preload", "--crate-type", "cdylib", "--edition", "2024"]);
    // Exceptions of C++ pass through it, so panics do not end it at once, and functions have tables for unwinding.
    compiler.args(["-C", "opt-level=3", "-C", "strip=symbols"]);
    compiler.arg("--target").arg(variable("TARGET"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("linker=");
        option.push(linker);
        compiler.arg("-C").arg(option);
    }
    let folder = variable("CARGO_MANIFEST_DIR");
    let output = compiler.arg("-o").arg(library).arg(Path::new(&folder).join("preload/lib.rs")).output();
    let output = output.unwrap_or_else(|error| panic!("the compiler does not start: {error}"));
    if !output.status.success() {
        panic!("the preloaded library does not compile:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    println!("cargo::rustc-cfg=recorder");
}
