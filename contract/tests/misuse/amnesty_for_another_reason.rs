//! Only the program's own reasons excuse.

use tripoint_contract::{AmnestyReason, Detectors, Guard};

#[derive(Clone, Copy, Debug)]
enum Reason {
    Disconnect,
}

impl AmnestyReason for Reason {
    const NAMES: &'static [&'static str] = &["disconnect"];

    fn index(self) -> usize {
        self as usize
    }
}

fn misuse<D: Detectors>(guard: &Guard<Reason, D>) {
    drop(guard.amnesty(Reason::Disconnect));
    drop(guard.amnesty("whatever"));
}

fn main() {}
