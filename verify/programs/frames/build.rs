//! Takes the guide's program out of its page.

use std::path::Path;
use std::{env, fs};

fn main() {
    const PAGE: &str = "../../../guide/src/af-xdp.md";
    println!("cargo::rerun-if-changed={PAGE}");
    let page = fs::read_to_string(PAGE).expect("the page of the guide");
    let (_, rest) = page.split_once("```rust\n").expect("a program in the page");
    let (program, _) = rest.split_once("```\n").expect("its end");
    // This crate has a `main` of its own, and in that of the page are lines that readers do not see: its test.
    let (program, _) = program.split_once("\nfn main()").expect("what a user runs");
    let folder = env::var("OUT_DIR").expect("cargo names a folder");
    fs::write(Path::new(&folder).join("guide.rs"), program).expect("a writable folder");
}
