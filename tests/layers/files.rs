//! No files of a crate use each other in a cycle, nor do its folders (design/core.md
//! `.req.storeys`).

use crate::cycles::{self, Uses};
use crate::{crates, source};

/// The cycles in a crate, paths that lead nowhere, and files that are in no module, in words.
fn wrong_uses(uses: &Uses) -> Vec<String> {
    let cycles = cycles::cycles(uses);
    let undeclared = uses.undeclared.iter().map(|file| format!("{file} is in no module"));
    let unresolved = uses.unresolved.iter().cloned();
    unresolved.chain(undeclared).chain(cycles.into_iter().map(|cycle| cycle.join(" <-> "))).collect()
}

#[test]
fn no_files_use_each_other_in_a_cycle() {
    let wrong: Vec<_> = crates().flat_map(|folder| wrong_uses(&cycles::uses_of(folder))).collect();
    assert_eq!(wrong, [""; 0]);
}

/// What is wrong with a crate of three files: the root, `a` and `b`.
fn check(root: &str, a: &str, b: &str) -> Vec<String> {
    let sources = [source("x/src/lib.rs", root), source("x/src/a.rs", a), source("x/src/b.rs", b)];
    wrong_uses(&cycles::uses("x/src", &sources))
}

const ROOT: &str = "mod a; mod b; pub use a::A; pub use b::B;";

#[test]
fn cycles_are_found() {
    let files = ["x/src/a <-> x/src/b", "x/src/a.rs <-> x/src/b.rs"];
    // Whichever way the one names the other.
    for a in [
        "use crate::B; pub struct A;",
        "use crate::b::B as Other; pub struct A;",
        "use super::{B}; pub struct A;",
        "use crate::b; pub struct A(b::B);",
        "pub struct A(crate::B);",
        "pub struct A; impl crate::B {}",
        "pub struct A; fn f() { use crate::b::B; }",
        "pub struct A; fn f() { assert!(size_of::<crate::B>() == 0, \"text\"); }",
        "pub struct A; mod inner { fn f(_: super::super::B) {} }",
        "pub struct A; use crate::*; fn f(_: B) {}",
        "pub struct A; mod deep { pub fn deep() {} } use deep::{deep}; use crate::b; fn f() -> b::B { deep() }",
    ] {
        assert_eq!(check(ROOT, a, "use crate::A; pub struct B;"), files, "{a}");
        assert_eq!(check(ROOT, a, "pub struct B; // crate::A"), [""; 0], "{a}");
    }
    // Whichever way the one calls a method of the other.
    for a in [
        "pub struct A; impl A { fn f(&self) { self.g() } }",
        "pub struct A; impl A { fn f(&self) { let c = || self.g(); } }",
        "pub struct A; impl A { fn f(&self) { assert!(self.g(), \"text\"); } }",
        "pub struct A; impl A { fn f() { Self::g(&Self) } }",
        "pub struct A; fn f() { A::g(&A) }",
        "pub struct A; fn f(a: &A) { a.g() }",
        "pub struct A; fn f(a: [A; 1]) { a[0].g() }",
    ] {
        for b in ["impl crate::A { pub fn g(&self) {} }", "use super::A; impl A { pub fn g(&self) {} }"] {
            assert_eq!(check("mod a; mod b; pub use a::A;", a, b), files, "{a} {b}");
        }
    }
    let of_trait = "pub struct A; impl A { fn f(&self) { self.clone() } }";
    assert_eq!(
        check("mod a; mod b; pub use a::A;", of_trait, "impl Clone for crate::A { fn clone(&self) {} }"),
        files
    );
    let macros =
        check("mod a; mod b;", "macro_rules! m { () => {} } use crate::b::B;", "m!(); pub struct B;");
    assert_eq!(macros, files);
}

#[test]
fn cycles_of_folders_are_found() {
    let file = |path: &str, text: &str| source(&format!("x/src/{path}"), text);
    let sources = [
        file("lib.rs", "mod a; mod b;"),
        file("a.rs", "pub mod top; pub mod ground;"),
        file("a/top.rs", "use crate::b::B; pub struct Top;"),
        file("a/ground.rs", "pub struct Ground;"),
        file("b.rs", "use crate::a::ground::Ground; pub struct B;"),
    ];
    assert_eq!(wrong_uses(&cycles::uses("x/src", &sources)), ["x/src/a <-> x/src/b"]);
}

#[test]
fn uses_that_make_no_cycle_are_passed() {
    for (a, b) in [
        // A test may use what is above.
        ("pub struct A; #[cfg(test)] mod tests { use crate::B; }", "use crate::A; pub struct B;"),
        ("pub struct A; #[cfg(all(test, unix))] use crate::B;", "use crate::A; pub struct B;"),
        // A re-export is not a use.
        ("pub struct A; pub use crate::b::B;", "use crate::a::A; pub struct B;"),
        ("use other::B; pub struct A;", "use crate::a::A; pub struct B;"),
        // A file of another folder belongs to the one that takes it in.
        ("#[path = \"../b.rs\"] mod b; use b::B; pub struct A;", "use crate::a::A; pub struct B;"),
        // A module and a function of one name.
        (
            "mod c { pub fn c() {} pub struct C; } use self::c::{C, c}; pub struct A(C);",
            "use crate::A; pub struct B;",
        ),
        // Both have a method of this name.
        (
            "pub struct A; impl A { fn g(&self) { self.g() } }",
            "impl crate::A { fn g(&self) {} } pub struct B;",
        ),
        (
            "pub struct A; impl A { fn g(&self) { B.g() } }",
            "use crate::A; pub struct B; impl B { fn g(&self) {} }",
        ),
        // A trait is used, and not what implements it.
        (
            "pub struct A; pub trait T { fn g(&self); } fn f(t: &dyn T) { t.g() }",
            "use crate::a::{A, T}; pub struct B; impl T for B { fn g(&self) {} }",
        ),
        // A test may call what is above, and the method of a test is no method of the crate.
        (
            "pub struct A; impl A { #[cfg(test)] fn f(&self) { self.g() } }",
            "impl crate::A { fn g(&self) {} } pub struct B;",
        ),
        (
            "pub struct A; fn f(a: &A) { a.g() }",
            "pub struct B(crate::A); impl B { #[cfg(test)] fn g(&self) {} }",
        ),
        (
            "pub struct A; fn f(a: &[A]) { a.is_empty() }",
            "pub struct B(crate::A); impl B { fn is_empty(&self) {} }",
        ),
    ] {
        assert_eq!(check(ROOT, a, b), [""; 0], "{a}");
    }
}

#[test]
fn paths_that_lead_nowhere_are_found() {
    let wrong = check("mod a; mod b;", "use crate::b::Gone;", "pub struct B;");
    assert_eq!(wrong, ["x/src/a.rs names crate::b::Gone"]);
}

#[test]
fn files_in_no_module_are_found() {
    assert_eq!(check("mod a;", "pub struct A;", "pub struct B;"), ["x/src/b.rs is in no module"]);
    assert_eq!(check("mod a; #[cfg(test)] mod b;", "pub struct A;", "pub struct B;"), [""; 0]);
}

#[test]
fn programs_of_a_crate_are_in_no_module() {
    let file = |path: &str| source(&format!("x/src/{path}"), "");
    let uses = cycles::uses("x/src", &[file("lib.rs"), file("main.rs"), file("bin/b.rs")]);
    assert_eq!(wrong_uses(&uses), [""; 0]);
}
