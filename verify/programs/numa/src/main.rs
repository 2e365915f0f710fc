//! The first and only program of an emulated machine: builds arenas on its memory nodes, asks the kernel where each page
//! lies, prints what it says, and switches the machine off (verify/numa, design/arena-vm.md `.place`).
//!
//! The machine has memory on the nodes 0 and 1, and a third node without any. The last line says whether all held.

mod checks;
mod machine;

use std::panic;

fn main() {
    machine::mount_all();
    let held = panic::catch_unwind(checks::run).is_ok();
    println!("{}", if held { "numa: all held" } else { "numa: FAILED" });
    machine::switch_off();
}
