//! The first and only program of an emulated machine: receives by a card that writes into units itself, closes the socket while
//! frames come, and switches the machine off (verify/zero-copy, design/xdp.md `.home`).
//!
//! The machine has two cards on one wire. The last line says whether all held.

mod checks;
mod machine;

use std::panic;

fn main() {
    let run = || {
        machine::begin();
        checks::run();
    };
    let held = panic::catch_unwind(run).is_ok();
    println!("{}", if held { "zero copy: all held" } else { "zero copy: FAILED" });
    machine::switch_off();
}
