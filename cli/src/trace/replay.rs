//! Replaying a trace on allocators: its operations, by as many threads, in its order
//! ([design/cli-traces.md `.replay`](crate::design::cli_traces)).
//!
//! | file | |
//! |---|---|
//! | `comparison` | all runs on all contenders, and how busy the machine was |
//! | `contenders` | all contenders, by name |
//! | `demand` | how many objects of each size a trace has, at most at once |
//! | `footprint` | what the kernel says of this process: its memory, its faults, and what a thread had of a processor |
//! | `gauge` | what a replay takes while it goes on: its footprint and its time |
//! | `general` | general allocators, and none |
//! | `layouts` | the layouts of a trace's objects |
//! | `memory` | what a thread of a contender does |
//! | `outcome` | what a run found |
//! | `outline` | what is known of a trace before it is replayed |
//! | `pools` | pools of tripoint as contenders |
//! | `process` | each run in a process of its own, so that its footprint is its own |
//! | `run` | one run, in this process |
//! | `stamp` | bytes that tell which object they belong to |
//! | `tests` | its tests |
//! | `trial` | what a replay on a pool with caches needs, to size an Init by it |
//! | `turns` | which threads have work now, and whose turn it is |
//! | `window` | a part of a trace in memory |
//! | `worker` | one thread of a replay, and contenders that run it |

mod comparison;
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

pub(crate) use comparison::{Compared, Comparison, Machine, Row};
pub(crate) use contenders::{Contender, PEERS};
pub(crate) use outcome::{Outcome, Sample};
pub(crate) use outline::Outline;
pub(crate) use process::run_apart;
pub(crate) use run::run;
pub(crate) use trial::{Init, try_out};
pub(crate) use worker::{Measure, Order};
