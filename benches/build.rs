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

/// The output of a program that ended well.
fn output(program: &mut Command) -> Option<Vec<u8>> {
    program.output().ok().filter(|output| output.status.success()).map(|output| output.stdout)
}

/// Compiles the loops over DPDK's inlined functions to a library; `None` if DPDK is not there.
fn compile_dpdk() -> Option<()> {
    const SOURCE: &str = "benches/packets/dpdk.c";
    println!("cargo::rerun-if-changed={SOURCE}");
    let flags = output(Command::new("pkg-config").args(["--cflags", "libdpdk"]))?;
    let flags = String::from_utf8(flags).ok()?;
    let folder = env::var("OUT_DIR").expect("cargo names a folder");
    let object = Path::new(&folder).join("dpdk.o");
    let mut compiler = Command::new(env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    output(compiler.args(flags.split_whitespace()).args(["-O3", "-c", SOURCE, "-o"]).arg(&object))?;
    let library = Path::new(&folder).join("libpacket_peer.a");
    output(Command::new("ar").arg("crs").arg(library).arg(object))?;
    println!("cargo::rustc-link-search=native={folder}");
    Some(())
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
    println!("cargo::rustc-check-cfg=cfg(dpdk)");
    if compile_dpdk().is_some() {
        println!("cargo::rustc-cfg=dpdk");
    } else {
        println!(
            "cargo::warning=DPDK is left out of the comparison of packets: its libraries were not found (Debian: libdpdk-dev)"
        );
    }
}
