//! Random graphs in automatic pools against a shadow graph, which knows what is reachable
//! (design/gc.md `.req.kept`, `.req.freed`).

use crate::common::with_heap;
use crate::graph::{Step, run};
use proptest::prelude::*;
use tripoint_gc::{Leaf, Moved, MovedLeaf, Policy, Traced};
use tripoint_oracle::cases;

fn step() -> impl Strategy<Value = Step> {
    let references = prop_oneof![8 => 0_usize..6, 1 => 6_usize..80, 1 => 400_usize..700];
    prop_oneof![
        12 => (any::<u8>(), references, any::<u8>())
            .prop_map(|(pool, references, slot)| Step::Make { pool, references, slot }),
        6 => (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(from, index, to)| Step::Link { from, index, to }),
        3 => (any::<u8>(), any::<u8>(), any::<u8>())
            .prop_map(|(from, index, slot)| Step::Follow { from, index, slot }),
        3 => any::<u8>().prop_map(|slot| Step::Clear { slot }),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(slot, byte)| Step::Point { slot, byte }),
        1 => Just(Step::Forget),
        1 => any::<u8>().prop_map(|pool| Step::Empty { pool }),
        2 => Just(Step::Collect),
        4 => (0_u8..2).prop_map(|oldest| Step::CollectYoung { oldest }),
        1 => Just(Step::Hold),
        1 => Just(Step::Walk),
        2 => ([(any::<u8>(), any::<u8>()), (any::<u8>(), any::<u8>())], any::<bool>())
            .prop_map(|(pairs, collects)| Step::Transform { pairs, collects }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 4 } else { 128 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_reachable_is_kept_and_nothing_else(
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 60 } else { 600 }),
        is_small in any::<bool>(),
        capacity in prop_oneof![Just(usize::MAX), 0_usize..(64 << 10)],
        is_every in any::<bool>(),
        young in 0..3_u8,
        is_stressed in any::<bool>(),
        kinds in 0..4_usize,
    ) {
        let run = [run::<Traced, Leaf>, run::<Moved, MovedLeaf>, run::<Moved, Leaf>, run::<Traced, MovedLeaf>][kinds];
        // A collection after each step, or in each allocation, or only where the steps say so.
        let collect = match young {
            0 => Step::Collect,
            young => Step::CollectYoung { oldest: young - 1 },
        };
        let every = |step: &Step| if is_every { vec![*step, collect] } else { vec![*step] };
        let steps: Vec<_> = steps.iter().flat_map(every).take(if is_every || is_stressed { 120 } else { 600 }).collect();
        with_heap(if is_small { 48 << 10 } else { 1 << 20 }, |heap| {
            heap.set_policy(Policy::with_capacity(capacity));
            let _stressed = is_stressed.then(|| heap.stress());
            run(heap, &steps, false);
        });
    }
}

/// The twin: a format that forgets the last reference of each node.
#[test]
#[should_panic(expected = "a node was")]
fn a_format_that_forgets_references_loses_nodes() {
    let mut steps = vec![Step::Make { pool: 0, references: 0, slot: 0 }];
    steps.push(Step::Make { pool: 0, references: 1, slot: 0 });
    steps.extend([Step::Empty { pool: 0 }, Step::Collect]);
    with_heap(64 << 10, |heap| {
        run::<Traced, Leaf>(heap, &steps, true);
    });
}

/// The twin of walks.
#[test]
#[should_panic(expected = "a path was missed")]
fn a_format_that_forgets_references_hides_paths() {
    let mut steps = vec![Step::Make { pool: 0, references: 0, slot: 0 }];
    steps.push(Step::Make { pool: 0, references: 1, slot: 0 });
    steps.push(Step::Walk);
    with_heap(64 << 10, |heap| {
        run::<Traced, Leaf>(heap, &steps, true);
    });
}

/// The twin of transforms.
#[test]
#[should_panic(expected = "a node was lost")]
fn a_format_that_forgets_references_keeps_old_nodes() {
    let mut steps = vec![Step::Make { pool: 0, references: 0, slot: 0 }];
    steps.push(Step::Make { pool: 0, references: 0, slot: 1 });
    steps.push(Step::Make { pool: 0, references: 1, slot: 2 });
    steps.push(Step::Transform { pairs: [(0, 1), (3, 3)], collects: false });
    with_heap(64 << 10, |heap| {
        run::<Traced, Leaf>(heap, &steps, true);
    });
}

/// Transforms are applied, and refused, and a node is in the place of another afterwards.
#[test]
fn nodes_take_the_place_of_others() {
    let transform = |(step, make): (usize, Step)| match step % 8 {
        5 => vec![make, Step::Transform { pairs: [(1, 2), (3, 4)], collects: step % 16 == 5 }],
        7 => vec![make, Step::Transform { pairs: [(1, 2), (step as u8, 5)], collects: false }],
        _ => vec![make],
    };
    let steps: Vec<_> =
        many(if cfg!(miri) { 100 } else { 600 }, true).into_iter().enumerate().flat_map(transform).collect();
    for run in [run::<Traced, Leaf>, run::<Moved, MovedLeaf>] {
        with_heap(1 << 20, |heap| {
            let found = run(heap, &steps, false);
            assert!(found.transformed > 10 && found.not_applied > 0, "{found:?}");
        });
    }
}

/// Steps that make many nodes, have a word point into some, and collect if they are to.
fn many(count: u32, collections: bool) -> Vec<Step> {
    let steps = |step: u32| {
        let slot = (step % 251) as u8;
        let make = Step::Make { pool: slot, references: if cfg!(miri) { 120 } else { 5 }, slot };
        match step % 16 {
            3 => vec![make, Step::Point { slot, byte: slot }],
            11 if collections => vec![make, Step::Collect],
            _ => vec![make],
        }
    };
    (0..count).flat_map(steps).collect()
}

/// In a small arena some nodes are refused, and some copies, so that the properties are tested there too.
#[test]
fn small_arenas_are_filled() {
    let steps = many(if cfg!(miri) { 100 } else { 1000 }, false);
    with_heap(48 << 10, |heap| {
        let found = run::<Traced, Leaf>(heap, &steps, false);
        assert!(found.refused > 1, "{found:?}");
    });
    with_heap(48 << 10, |heap| {
        let found = run::<Moved, MovedLeaf>(heap, &steps, false);
        assert!(found.refused > 1 && found.not_copied > 1, "{found:?}");
    });
}

/// The properties are tested of nodes that move, and of some that could and do not.
#[test]
fn nodes_move_if_their_class_does() {
    let count = if cfg!(miri) { 80 } else { 600 };
    let steps = many(count, true);
    with_heap(1 << 20, |heap| assert_eq!(run::<Traced, Leaf>(heap, &steps, false).moved, 0));
    with_heap(1 << 20, |heap| {
        let found = run::<Moved, MovedLeaf>(heap, &steps, false);
        assert!(
            found.moved > count as usize / 6 && found.nailed > count as usize / 40 && found.not_copied == 0,
            "{found:?}"
        );
    });
}
