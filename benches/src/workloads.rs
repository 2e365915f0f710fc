//! The workloads, which the benchmarks print and the report collects.
//!
//! | file | |
//! |---|---|
//! | `objects`, `by_layout` | the contenders, for objects of 64 bytes and of any size |
//! | `pair` | one object made and taken back |
//! | `fixed` | one object freed as one is made |
//! | `window`, `mixed` | many live objects, of one size and of many |
//! | `bulk` | many small objects, freed all at once |
//! | `holes` | first fit behind many holes |
//! | `locked` | pools without a cache |
//! | `ring`, `mixed_ring`, `producers` | one thread makes objects, and another takes them back |
//! | `scaling` | from one thread to two |
//! | `trips` | what trips cost |
//! | `tails` | how long single allocations take at worst |
//! | `aged` | a structure built again, in memory that was freed in random order |
//! | `churn` | fragmentation |
//! | `growth` | growing to many live objects |
//! | `startup` | how long reserving takes |

mod aged;
mod bulk;
mod by_layout;
mod churn;
mod fixed;
mod growth;
mod holes;
mod locked;
mod mixed;
mod mixed_ring;
mod objects;
mod pair;
mod producers;
mod ring;
mod scaling;
mod startup;
mod tails;
mod trips;
mod window;

use crate::table::Table;

pub use aged::{Aged, CONTENDERS as AGED, run_aged};
pub use growth::measure as measure_growth;
pub use pair::run_one as run_pairs;

/// Makes the tables of a workload. If it is told to be quick, to see only that it runs.
pub type Workload = fn(bool) -> Vec<Table>;

/// All workloads, by name.
pub const WORKLOADS: [(&str, Workload); 18] = [
    ("bulk", |quick| bulk::measure(rounds(quick, 101))),
    ("fixed", |quick| fixed::measure(rounds(quick, 101))),
    ("pair", |quick| pair::measure(rounds(quick, 301))),
    ("window", |quick| window::measure(1_000, rounds(quick, 201))),
    ("wide-window", |quick| window::measure(100_000, rounds(quick, 41))),
    ("mixed", |quick| mixed::measure(1_000, rounds(quick, 201))),
    ("wide-mixed", |quick| mixed::measure(100_000, rounds(quick, 31))),
    ("locked", |quick| locked::measure(rounds(quick, 61))),
    ("ring", |quick| ring::measure(rounds(quick, 61))),
    ("mixed-ring", |quick| mixed_ring::measure(rounds(quick, 61))),
    ("producers", |quick| producers::measure(rounds(quick, 61))),
    ("holes", |quick| holes::measure(rounds(quick, 101))),
    ("tails", tails::measure),
    ("churn", churn::measure),
    ("scaling", |quick| scaling::measure(rounds(quick, 101))),
    ("trips", |quick| trips::measure(rounds(quick, 21))),
    ("growth", |quick| growth::measure(if quick { 10_000 } else { 1_000_000 })),
    ("startup", |quick| startup::measure(if quick { 3 } else { 100 })),
];

fn rounds(quick: bool, full: usize) -> usize {
    if quick { 3 } else { full }
}

/// Makes the tables of the workload of this name; `None` if there is none.
#[must_use]
pub fn run(name: &str, quick: bool) -> Option<Vec<Table>> {
    let (_, measure) = WORKLOADS.iter().find(|(known, _)| *known == name)?;
    Some(measure(quick))
}
