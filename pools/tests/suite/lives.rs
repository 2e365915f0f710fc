//! Random lives against the oracle.

use core::alloc::Layout;

use proptest::prelude::*;
use tripoint_core::ManualPool;
use tripoint_oracle::{Draws, Layouts, MANUAL, Menu, Operation, Scrutiny, Slack, effort, live_manually};

/// Operations of all kinds, about these layouts.
pub(crate) fn operations(layouts: &'static [Layout]) -> impl Strategy<Value = Vec<Operation>> {
    Menu { kinds: MANUAL, layouts: Layouts::OneOf(layouts) }.operations(1..effort(100) as usize)
}

/// The stops of two allocation points.
pub(crate) fn draws() -> impl Strategy<Value = [Draws; 2]> {
    [Draws::any_below(5_000), Draws::any_below(5_000)]
}

/// Does the operations, and compares pool and oracle after each.
pub(crate) fn live<P: ManualPool>(pool: &P, draws: &[Draws], operations: &[Operation]) {
    live_manually(pool, draws, operations.iter().copied(), Slack::OfExtents, Scrutiny::EveryStep);
}
