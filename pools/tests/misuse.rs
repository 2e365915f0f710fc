//! Misuse of pools, caches and what lives in them, that must not compile: one file
//! each in `misuse/` (design/adaptors.md `.req.order`).
//!
//! With hardening the compiler has more to say, and nothing else changes.
#![cfg(not(feature = "hardening"))]

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
