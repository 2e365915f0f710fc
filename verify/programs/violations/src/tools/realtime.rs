//! RealtimeSanitizer, which ends the process with a report.

use std::thread;

use crate::case::{Act, Facts};

#[sanitize(realtime = "nonblocking")]
#[inline(never)]
fn steady(act: &mut dyn FnMut(), turns: u64) {
    for _ in 0..turns {
        act();
    }
}

pub(crate) fn watch(prepare: fn() -> Act, turns: u64) -> Facts {
    thread::spawn(move || steady(&mut *prepare(), turns)).join().expect("cases do not panic");
    0
}
