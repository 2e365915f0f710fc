//! An amnesty ends when it is dropped, here before it began.
#![deny(unused_must_use)]

use tripoint_contract::{AmnestyReason, Detectors, Guard};

fn misuse<R: AmnestyReason, D: Detectors>(guard: &Guard<R, D>, reason: R) {
    guard.amnesty(reason);
}

fn main() {}
