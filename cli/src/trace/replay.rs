//! Replaying a trace on allocators: its operations, by as many threads, in its order
//! ([design/cli-traces.md `.replay`](crate::design::cli_traces)).
//!
//! ```text
//! outline.rs     what is known of a trace before it is replayed
//! window.rs      a part of it as actions with layouts, and whose turn it is
//! layouts.rs     layouts of its objects
//! memory.rs      what a thread of a contender does
//! pools.rs       pools of tripoint          general.rs   general allocators, and none
//! contenders.rs  all of them, by name
//! stamp.rs       bytes that tell which object they belong to
//! turns.rs       threads take turns, in the order of the trace
//! worker.rs      one thread, and contenders that run it
//! outcome.rs     what a run found
//! run.rs         one run, in this process
//! gauge.rs       what it takes while it goes on
//! footprint.rs   what the kernel says of this process
//! process.rs     each run in a process of its own
//! demand.rs      how many objects of each size       trial.rs   what an Init needs
//! ```

mod contenders;
mod demand;
mod footprint;
mod gauge;
mod general;
mod layouts;
mod memory;
mod outcome;
mod outline;
mod pools;
mod process;
mod run;
mod stamp;
#[cfg(test)]
mod tests;
mod trial;
mod turns;
mod window;
mod worker;

pub(crate) use contenders::{Contender, PEERS};
pub(crate) use outcome::{Outcome, Sample};
pub(crate) use outline::Outline;
pub(crate) use process::run_apart;
pub(crate) use run::run;
pub(crate) use trial::{Init, try_out};
pub(crate) use worker::{Measure, Order};
