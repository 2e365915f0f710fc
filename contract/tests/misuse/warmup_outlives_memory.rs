//! The memory that a warm-up freezes stays while it goes on.

use tripoint_contract::{Contract, SteadyMemory, Warmup, WarmupOptions};

fn misuse<M: SteadyMemory>(contract: &Contract, memory: M) {
    let mut warmup = Warmup::new(contract, &[], &memory, WarmupOptions::default());
    drop(memory);
    warmup.step(0);
}

fn main() {}
