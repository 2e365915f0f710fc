//! The crate assert_no_alloc, in its mode that counts.

use std::thread;

use assert_no_alloc::{AllocDisabler, assert_no_alloc, violation_count};

use crate::case::{Act, Facts, RUST_HEAP};

#[global_allocator]
static ALLOCATOR: AllocDisabler = AllocDisabler;

pub(crate) fn watch(prepare: fn() -> Act, turns: u64) -> Facts {
    let steady = move || {
        let mut act = prepare();
        assert_no_alloc(|| (0..turns).for_each(|_| act()));
        if violation_count() > 0 { RUST_HEAP } else { 0 }
    };
    thread::spawn(steady).join().expect("cases do not panic")
}
