//! Misuse of packets and bursts that must not compile: one file each in `misuse/`.

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
