//! Automatic pools, in a client arena, against a shadow graph (`gc/tests/graph/mod.rs`).

use tripoint_gc::{Leaf, Moved, MovedLeaf, Policy, Traced};
use tripoint_oracle::Choices;

use crate::common::with_heap;
use crate::graph::{Step, run};

/// Makes nodes, changes references and roots, and collects, as the bytes say: what is reachable is kept as it was made,
/// and no byte more than that. In the end nothing is left.
///
/// # Panics
/// If any of that does not hold.
pub fn gc_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some((size, capacity)) = draw_heap(&mut choices) else { return };
    let Some(kinds) = choices.below(2) else { return };
    let run = [run::<Traced, Leaf>, run::<Moved, MovedLeaf>][kinds];
    let steps: Vec<_> = core::iter::from_fn(|| draw_step(&mut choices)).collect();
    with_heap(size, |heap| {
        heap.set_policy(Policy::with_capacity(capacity));
        run(heap, &steps, false);
    });
}

/// The bytes of the arena, and those after whose allocation a fill collects.
fn draw_heap(choices: &mut Choices<'_>) -> Option<(usize, usize)> {
    let size = [48 << 10, 1 << 20][choices.below(2)?];
    let capacity = choices.below(64 << 10)?;
    Some((size, if capacity < 48 << 10 { capacity } else { usize::MAX }))
}

fn draw_step(choices: &mut Choices<'_>) -> Option<Step> {
    Some(match choices.below(25)? {
        0..8 => {
            let references = match choices.below(10)? {
                0 => 400 + choices.below(300)?,
                1 => choices.below(80)?,
                _ => choices.below(6)?,
            };
            Step::Make { pool: choices.byte()?, references, slot: choices.byte()? }
        }
        8..12 => Step::Link { from: choices.byte()?, index: choices.byte()?, to: choices.byte()? },
        12..15 => Step::Follow { from: choices.byte()?, index: choices.byte()?, slot: choices.byte()? },
        15..17 => Step::Clear { slot: choices.byte()? },
        17 => Step::Point { slot: choices.byte()?, byte: choices.byte()? },
        18 => Step::Forget,
        19 => Step::Empty { pool: choices.byte()? },
        20 => Step::Collect,
        21 => Step::CollectYoung { oldest: choices.byte()? % 3 },
        22 => Step::Hold,
        23 => Step::Walk,
        _ => {
            let mut pair = || Some((choices.byte()?, choices.byte()?));
            Step::Transform { pairs: [pair()?, pair()?], collects: choices.below(2)? == 1 }
        }
    })
}
