//! What the linker is told: to drop what nothing reaches.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,--gc-sections");
}
