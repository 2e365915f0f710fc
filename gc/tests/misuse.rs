//! Misuse of typed objects and of stops that must not compile: one file each in `misuse/` (design/gc-typed.md `.req.safe`,
//! design/gc.md `.own.borrow`).

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
