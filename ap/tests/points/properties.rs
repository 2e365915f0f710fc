//! Random use of allocation points, against a naive oracle.

use core::alloc::Layout;

use crate::common::{ALIGN_MAX, Draws, Flippable, Form, Manual, SIZE_MAX, with_arena};
use proptest::prelude::*;
use tripoint_core::{INLINE_SIZE_MAX, SymmetricFence};
use tripoint_oracle::{Between, Layouts, Menu, Operation, POINTS, cases, effort, operate_points};

/// Alignments up to one that is not served; sizes also about the edges of what is.
const MENU: Menu = Menu {
    kinds: POINTS,
    layouts: Layouts::Below {
        size: 3000,
        align_log: ALIGN_MAX.ilog2() + 1,
        edges: &[INLINE_SIZE_MAX, SIZE_MAX],
    },
};

/// Runs operations on a mutator's and an internal allocation point of one pool.
fn run<F: Form>(form: F, fill_size: usize, draws: &[Draws; 2], operations: Vec<Operation>) {
    with_arena(24 << 20, |arena| operate_points(arena, form, fill_size, draws, operations));
}

fn draws() -> impl Strategy<Value = Draws> {
    Draws::any_below(20_000)
}

fn fill_size() -> impl Strategy<Value = usize> {
    prop_oneof![Just(16_usize), Just(512), Just(1536), Just(4096), Just(65536)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(96), ..ProptestConfig::default() })]

    #[test]
    fn manual_pools_agree_with_the_oracle(
        fill_size in fill_size(),
        draws in [draws(), draws()],
        operations in MENU.operations(1..effort(80) as usize),
    ) {
        run(Manual, fill_size, &draws, operations);
    }

    #[test]
    fn flippable_pools_agree_with_the_oracle(
        fill_size in fill_size(),
        draws in [draws(), draws()],
        operations in MENU.operations(1..effort(80) as usize),
    ) {
        run(Flippable(SymmetricFence), fill_size, &draws, operations);
    }

    /// Objects almost as large as a buffer: a stop is mostly found in another
    /// buffer than the one it was drawn in, and what buffers lose at their end
    /// must not count.
    #[test]
    fn stops_are_the_same_across_buffers(
        below in 1..10_000_usize,
        seed in any::<u64>(),
        fates in prop::collection::vec(
            (prop::bool::weighted(0.9), prop::bool::weighted(0.7)),
            effort(100) as usize..effort(400) as usize,
        ),
    ) {
        let draws = [Draws::Below { below, seed }, Draws::Never];
        let operations = fates
            .iter()
            .map(|&(commit, large)| {
                let layout = Layout::from_size_align(if large { 1400 } else { 16 }, 8).unwrap();
                Operation::Reserve { point: 0, layout, commit, between: Between::default() }
            })
            .collect();
        run(Manual, 1536, &draws, operations);
    }
}
