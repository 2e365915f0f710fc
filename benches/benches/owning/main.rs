//! Arenas that own their memory beside typed_arena and bumpalo, and boxes of a library beside those of the system's
//! allocator (design/adaptors.md `.own.goals`).
//!
//! `CARGO_INCREMENTAL=0 cargo bench -p benches --bench owning`, with `-- --quick` to see only that it runs, with
//! `-- --seed S` to repeat the orders of contenders. Each contender takes its memory and returns it within the time. In
//! the tables a peer's ratio is its time divided by ours: a goal of 0.70x a peer's time is a ratio of at least 1.43.

/// Compares two types of arenas, each with its name, by the same code.
macro_rules! compare_arenas {
    (
        [$our_name:literal, $($ours:ident)::+],
        [$their_name:literal, $($theirs:ident)::+],
        $title:expr, $amount:expr, $operations:expr, |$arena:ident| $body:block
    ) => {{
        let ours = || {
            $crate::timed(|| {
                #[allow(unused_imports)]
                use $($ours)::+ as $arena;
                $body
            })
        };
        let theirs = || {
            $crate::timed(|| {
                #[allow(unused_imports)]
                use $($theirs)::+ as $arena;
                $body
            })
        };
        let mut contenders = [
            benches::compare::Contender::new($our_name, ours),
            benches::compare::Contender::new($their_name, theirs),
        ];
        let compared = benches::compare::compare(&mut contenders, $amount.rounds, $operations);
        benches::compare::print(&$title, &compared);
    }};
}

mod boxes;
mod scratches;
mod typed;

use core::time::Duration;
use std::time::Instant;

use benches::processor::pin;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Amount {
    rounds: usize,
    /// The objects of a large arena.
    objects: usize,
    /// The number of small arenas or containers.
    small: usize,
}

/// The time that work takes.
fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn main() {
    pin(0);
    let quick = std::env::args().any(|argument| argument == "--quick");
    let amount = if quick {
        Amount { rounds: 3, objects: 10_000, small: 100 }
    } else {
        Amount { rounds: 41, objects: 1_000_000, small: 10_000 }
    };
    typed::measure(amount);
    scratches::measure(amount);
    boxes::measure(amount);
}
