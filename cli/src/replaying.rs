//! Replaying a trace on allocators: the same operations, threads and order
//! ([design/cli-traces.md `.replay`](crate::design::cli_traces)).
//!
//! ```text
//! plan.rs        a trace as actions with layouts, and whose turn it is
//! memory.rs      what a thread of a contender does
//! pools.rs       pools of tripoint          general.rs   general allocators, and none
//! contenders.rs  all of them, by name
//! stamp.rs       bytes that tell which object they belong to
//! turns.rs       threads take turns, in the order of the trace
//! worker.rs      one thread
//! run.rs         one run, in this process
//! footprint.rs   what the kernel says of this process
//! process.rs     each run in a process of its own
//! demand.rs      how many objects of each size       trial.rs   what an Init needs
//! ```

mod contenders;
mod demand;
mod footprint;
mod general;
mod memory;
mod plan;
mod pools;
mod process;
mod run;
mod stamp;
#[cfg(test)]
mod tests;
mod trial;
mod turns;
mod worker;

pub(crate) use contenders::Contender;
pub(crate) use plan::{Plan, TooLarge};
pub(crate) use process::run_apart;
pub(crate) use run::{Measure, Outcome, run};
pub(crate) use trial::{Init, try_out};
