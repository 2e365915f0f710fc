//! Takes the guide's program out of its page.

use std::path::Path;
use std::{env, fs};

fn main() {
    const PAGE: &str = "../../../guide/src/af-xdp.md";
    println!("cargo::rerun-if-changed={PAGE}");
    let page = fs::read_to_string(PAGE).expect("the page of the guide");
    let (_, rest) = page.split_once("```rust\n").expect("a program in the page");
    let (program, _) = rest.split_once("```\n").expect("its end");
    // Lines that readers do not see are the test of the page.
    let lines: Vec<&str> = program.lines().filter(|line| !line.starts_with("# ") && *line != "#").collect();
    let folder = env::var("OUT_DIR").expect("cargo names a folder");
    fs::write(Path::new(&folder).join("guide.rs"), lines.join("\n")).expect("a writable folder");
}
