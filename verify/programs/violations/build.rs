//! Compiles the cases in C++, and a library whose functions are bound when they are first called. Without a
//! compiler the program has the same cases, and they say that they cannot run.

use std::path::Path;
use std::process::Command;

fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
}

fn main() {
    println!("cargo::rerun-if-changed=src/foreign");
    println!("cargo::rerun-if-env-changed=CXX");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let file = |name: &str| Path::new(&out).join(name).to_str().expect("a path in UTF-8").to_owned();
    let (object, archive, lazy) = (file("cases.o"), file("libforeign.a"), file("liblazy.so"));
    let lazily = ["-shared", "-fPIC", "-O1", "-Wl,-z,lazy", "-o", &lazy, "src/foreign/lazy.cpp"];
    if run(&compiler, &["-c", "-fPIC", "-O1", "-o", &object, "src/foreign/cases.cpp"])
        && run("ar", &["crs", &archive, &object])
        && run(&compiler, &lazily)
    {
        println!("cargo::rustc-cfg=foreign_code");
        println!("cargo::rustc-env=LAZY_LIBRARY={lazy}");
        println!("cargo::rustc-link-search=native={out}");
        println!("cargo::rustc-link-lib=static=foreign");
        println!("cargo::rustc-link-lib=stdc++");
    } else {
        println!("cargo::warning={compiler} is not there, or cannot compile: cases in C++ are left out");
    }
}
