//! What every board runs: a firmware that allocates without an operating system
//! while its timer interrupt trips and flips its allocation points.
//!
//! | file | shows |
//! |---|---|
//! | `memory.rs` | an arena in a static, and pools in it |
//! | `timer.rs` | an interrupt handler that takes control |
//! | `nursery.rs` | a pool class whose buffers can be flipped, on one core |
//! | `objects.rs` | objects, frames, exhaustion |
//! | `collected.rs` | lists in an automatic pool, and collections of it |
//! | `control.rs` | what becomes of objects that an interrupt hits |
//! | `smallest.rs` | the smallest image of use |
//!
//! (design/bare-metal.md `.req.run`)
#![no_std]

use core::fmt;

use tripoint::Error;

mod collected;
mod control;
mod memory;
mod nursery;
mod objects;
pub mod smallest;
mod timer;

pub use timer::on_timer;

/// What the firmware needs of a board: a console to write to, and a timer.
pub trait Board: fmt::Write {
    /// Makes the timer interrupt once, `delay` steps of about one instruction
    /// from now. The handler calls [`on_timer`].
    fn arm_timer(&mut self, delay: u32);
}

/// Why the firmware stopped.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// The pool system refused something.
    Refused(Error),
    /// This should hold, and does not.
    Unmet(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// Returns an error if `holds` is false.
const fn ensure(holds: bool, rule: &'static str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Unmet(rule)) }
}

/// Runs everything and reports to the console. Returns false if anything
/// failed.
pub fn run(board: &mut impl Board) -> bool {
    let outcome = run_all(board);
    // A console that refuses text does not change the outcome.
    let _ = match outcome {
        Ok(()) => writeln!(board, "passed"),
        Err(failure) => writeln!(board, "FAILED: {failure:?}"),
    };
    outcome.is_ok()
}

fn run_all(board: &mut impl Board) -> Result<(), Failure> {
    let objects = objects::run()?;
    let _ = writeln!(board, "objects: {objects:?}");
    let collected = collected::run()?;
    let _ = writeln!(board, "collected: {collected:?}");
    let hits = control::run(board)?;
    memory::check_counters(objects.allocated + hits.allocated)
}
