//! Binary trees, built, counted and dropped again and again: what it takes to have memory freed, in each of the ways that
//! this crate has, and in the system's.
//!
//! | contender | who frees a tree | unsafe code |
//! |---|---|---|
//! | typed | the heap: no root leads to it | none |
//! | amc | the heap, which moves what is kept together | a format, and roots for what is being built |
//! | ams | the heap; nodes stay where they are | the same |
//! | mfs | the program, node by node | all uses of nodes |
//! | system | the program, node by node | all uses of nodes |
//!
//! ```sh
//! cargo run --release -p trees
//! cargo run --release -p trees -- --depth 16 --with typed --with system
//! ```
//!
//! All nodes of all trees are counted, so a node that is lost or freed too early is noticed. The contenders run one after
//! the other in one process. Figures that were measured with more care, and those of other collectors, are in
//! `design/figures.md` (`.gc.trees`); `design/gc-figures.md` says how.

mod formatted;
mod manual;
mod memory;
mod plan;
mod typed;

use core::error::Error;
use std::alloc::System;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use tripoint::author::{BarrierPair, SymmetricFence};
use tripoint::gc::{HeapOptions, Moved, Traced};

use manual::Global;
use plan::Plan;

/// A way to have trees.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Contender {
    /// Typed objects.
    Typed,
    /// A pool whose objects have a format and move.
    Amc,
    /// A pool whose objects have a format and stay.
    Ams,
    /// A pool of objects of one size.
    Mfs,
    /// The system's allocator.
    System,
}

/// Builds binary trees in several ways.
#[derive(Debug, Parser)]
struct Options {
    /// The depth of the tree that is kept.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(..=24))]
    depth: u32,
    /// The ways in which they are built; all if none is named.
    #[arg(long = "with", value_enum)]
    contenders: Vec<Contender>,
}

/// Has a contender build all trees, and returns how many nodes they had.
fn grow<B: BarrierPair>(
    contender: Contender,
    plan: Plan,
    heap: HeapOptions<'_, B>,
) -> Result<usize, Box<dyn Error>> {
    let mut sum = 0;
    let counted = |depth, nodes| {
        assert_eq!(nodes, plan::nodes(depth), "nodes of a tree of depth {depth}");
        sum += nodes;
    };
    match contender {
        Contender::Typed => typed::grow(plan, heap, counted)?,
        Contender::Amc => formatted::grow::<Moved, B>(plan, heap, counted)?,
        Contender::Ams => formatted::grow::<Traced, B>(plan, heap, counted)?,
        Contender::Mfs => manual::grow_in_pool(plan, counted)?,
        Contender::System => manual::grow(plan, &Global(System), counted)?,
    }
    Ok(sum)
}

fn run<B: BarrierPair>(options: &Options, heap: HeapOptions<'_, B>) -> Result<(), Box<dyn Error>> {
    let all = || Contender::value_variants().to_vec();
    let contenders = if options.contenders.is_empty() { all() } else { options.contenders.clone() };
    for contender in contenders {
        let start = Instant::now();
        let nodes = grow(contender, Plan::new(options.depth), heap)?;
        println!("{contender:?}: {nodes} nodes in {:.3} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    // With barriers of the kernel's a commit has none, and threads that wait for a collection sleep.
    #[cfg(target_os = "linux")]
    if let Ok(barrier) = tripoint::author::Membarrier::register() {
        return run(&options, HeapOptions { barrier, parking: Some(&tripoint::author::Futex) });
    }
    run(&options, HeapOptions::<SymmetricFence>::default())
}
