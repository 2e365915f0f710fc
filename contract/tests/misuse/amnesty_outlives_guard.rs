//! An amnesty is its thread's, and ends before the registration.

use tripoint_contract::{AmnestyReason, Detectors, Guard};

fn misuse<R: AmnestyReason, D: Detectors>(guard: Guard<R, D>, reason: R) {
    let amnesty = guard.amnesty(reason);
    drop(guard);
    drop(amnesty);
}

fn main() {}
