//! Tells the linker to drop code that nothing reaches.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,--gc-sections");
}
