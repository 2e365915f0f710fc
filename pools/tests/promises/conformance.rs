//! What every pool class must do, written once and run for each (design/conformance.md).
//!
//! To run it for a class, add to `common/classes.rs` a function that makes a pool of it
//! in any arena, `fn <A: Arena>(arena: A) -> Result<Class<A>>`, and at the end of this
//! file, nowhere else:
//!
//! ```text
//! conformance!(name, classes::function,
//!     serves: [layouts that are served, the first of at least 16 bytes],
//!     refuses: [layouts that are not]);
//! ```
//!
//! - `conformance!` is for classes with `alloc` and `free` (`ManualPool`).
//! - `owned_conformance!` is for those that one thread owns. Same form.
//! - `frame_conformance!` is for classes with frames (`FramePool`). Same form.
//! - `damage_is_found!(name, classes::function, layout)` is for manual classes whose
//!   free blocks begin with a link that a deep check follows.

use core::alloc::Layout;

use crate::common::test_arena::Refusal;
use crate::common::{GRAIN, Oracle, SEAL, TestArena, arena, cases, classes, layout, memory};
use crate::suite::{damage, exhaustion, frames, handles, layouts, lives, points, refusals, threads};
use proptest::prelude::*;
use tripoint_core::{Arena, Check, CheckLevel, PoolClass};

/// Makes an arena of `grains` grains and a pool in it, and runs something with
/// the pool.
macro_rules! with_pool {
    ($create:expr, $grains:expr, |$pool:ident| $run:expr) => {{
        let mut memory = memory($grains);
        let arena = arena(&mut memory);
        let $pool = &$create(&arena).unwrap();
        $run
    }};
}

/// Runs something, for each layout, with a pool whose arena refuses the first request,
/// then with one that refuses the second, and so on until nothing is refused.
macro_rules! with_refusals {
    ($create:expr, $serves:expr, |$arena:ident, $pool:ident, $layout:ident| $run:expr) => {
        let serves = $serves;
        // Under Miri one layout, and refusals that stay, at a few requests.
        let (layouts, refusals, patience_step, grains) =
            if cfg!(miri) { (1, 1, 17, 32) } else { (usize::MAX, 2, 1, 128) };
        let layouts = serves.iter().take(layouts);
        let each = layouts
            .flat_map(|layout| REFUSALS.into_iter().take(refusals).map(move |refusal| (layout, refusal)));
        for ($layout, refusal) in each {
            for patience in (0..).step_by(patience_step) {
                let mut memory = memory(grains);
                let whole = arena(&mut memory);
                let before = whole.sizes();
                let $arena = &TestArena::refusing(&whole, patience, refusal);
                let pool = refusals::insist($arena, || $create($arena));
                let $pool = &pool;
                $run;
                drop(pool);
                refusals::nothing_is_left(&whole, before);
                if !$arena.has_refused() {
                    assert!(patience > 1, "a pool is registered and needs memory");
                    break;
                }
            }
        }
    };
}

const REFUSALS: [Refusal; 2] = [Refusal::Stays, Refusal::Passes];

/// The grains of an arena that has room for all that is allocated in it. Miri walks the whole
/// table of tracts whenever it is borrowed.
const MANY: usize = if cfg!(miri) { 32 } else { 128 };

/// How many of the layouts that a class serves are tried one by one.
const LAYOUTS: usize = if cfg!(miri) { 1 } else { usize::MAX };

/// The layouts to use up an arena with. Under Miri that takes hours unless objects are large:
/// the largest one of which many fit.
fn exhausting(serves: &[Layout]) -> Vec<Layout> {
    let largest = serves.iter().copied().filter(|layout| layout.size() <= GRAIN / 4).max_by_key(Layout::size);
    if cfg!(miri) { largest.into_iter().collect() } else { serves.to_vec() }
}

fn describes_itself<P: PoolClass>(pool: &P, layout: Layout) {
    let mut oracle = Oracle::default();
    oracle.fill(pool, layout, 1).unwrap();
    let mut text = String::new();
    pool.describe(&mut text, 1).unwrap();
    assert!(text.starts_with(&format!("  pool: {} #", P::CLASS)), "{text}");
    assert!(text.contains(&format!("total: {} bytes", pool.sizes().total)), "{text}");
    assert!(text.lines().all(|line| line.starts_with("  ") && line.contains(": ")), "{text}");
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() }
}

/// Runs every test for a manual class.
macro_rules! conformance {
    ($name:ident, $create:expr, serves: $serves:expr, refuses: $refuses:expr $(,)?) => {
        owned_conformance! {
            $name, $create, serves: $serves, refuses: $refuses;
            #[test]
            fn any_thread_frees() {
                with_pool!($create, 24, |pool| threads::any_thread_frees(pool));
            }
        }
    };
}

/// Runs every test for a manual class that one thread owns, and those that are added.
macro_rules! owned_conformance {
    (
        $name:ident, $create:expr, serves: $serves:expr, refuses: $refuses:expr $(,)?
        $(; $($added:item)*)?
    ) => {
        mod $name {
            use super::*;

            $($($added)*)?

            proptest! {
                #![proptest_config(config())]

                #[test]
                fn lives(
                    draws in lives::draws(),
                    operations in lives::operations(const { &$serves }),
                ) {
                    with_pool!($create, 24, |pool| lives::live(pool, &draws, &operations));
                }

                #[test]
                fn reserve_sizes_are_kept(layout in layouts::any_layout()) {
                    with_pool!($create, 2, |pool| layouts::reserve_sizes_are_kept(pool, layout));
                }
            }

            #[test]
            fn fills_and_empties_balance() {
                for layout in $serves.into_iter().take(LAYOUTS) {
                    with_pool!($create, MANY, |pool| points::fills_and_empties_balance(pool, layout));
                }
            }

            #[test]
            fn two_points_balance() {
                with_pool!($create, MANY, |pool| points::two_points_balance(pool, &$serves));
            }

            #[test]
            fn describes_itself() {
                with_pool!($create, 24, |pool| super::describes_itself(pool, $serves[0]));
            }

            /// (design/conformance.md `.req.drop`)
            #[test]
            fn dropping_a_pool_returns_its_tracts() {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let before = arena.sizes();
                let pool = $create(&arena).unwrap();
                Oracle::default().fill(&pool, $serves[0], 1).unwrap();
                assert!(arena.sizes().spare < before.spare);
                drop(pool);
                assert_eq!(arena.sizes(), before);
                arena.check(CheckLevel::Deep).unwrap();
            }

            #[test]
            fn runs_out_and_recovers() {
                let grains = if cfg!(miri) { 5 } else { 64 };
                for layout in exhausting(&$serves) {
                    with_pool!($create, grains, |pool| exhaustion::runs_out_and_recovers(pool, layout));
                }
            }

            #[test]
            fn refused_requests_lose_nothing() {
                with_refusals!($create, $serves, |arena, pool, layout| {
                    let mut oracle = refusals::live_through(arena, pool, *layout);
                    let slack = oracle.slack(pool);
                    oracle.clear(pool);
                    oracle.agree(pool);
                    assert_eq!(oracle.slack(pool), slack, "nothing is lost");
                });
            }

            #[test]
            fn layouts_it_does_not_serve_are_refused() {
                with_pool!($create, 2, |pool| {
                    for layout in $refuses {
                        layouts::refuses(pool, layout);
                    }
                });
            }

            #[test]
            fn alignments_are_kept() {
                with_pool!($create, MANY, |pool| layouts::alignments_are_kept(pool, 48));
            }

            #[test]
            fn resized_objects_are_freed() {
                with_pool!($create, 24, |pool| {
                    for from in $serves.into_iter().take(LAYOUTS) {
                        assert!(layouts::resized_objects_are_freed(pool, from, from));
                        for to in [0, 1, 16, 30, 47, 64, 100].map(|size| layout(size, from.align())) {
                            layouts::resized_objects_are_freed(pool, from, to);
                        }
                    }
                });
            }

            #[test]
            fn objects_of_points_are_freed() {
                with_pool!($create, 24, |pool| points::objects_of_points_are_freed(pool));
            }

            #[test]
            fn boxes_free_what_they_drop() {
                with_pool!($create, 24, |pool| handles::boxes_free_what_they_drop(pool));
            }

            #[test]
            fn the_last_clone_frees() {
                with_pool!($create, 24, |pool| handles::the_last_clone_frees(pool));
            }

            #[test]
            fn objects_without_size_take_no_memory() {
                with_pool!($create, 2, |pool| handles::objects_without_size_take_no_memory(pool));
            }
        }
    };
}

/// Runs every test for a class with frames.
macro_rules! frame_conformance {
    ($name:ident, $create:expr, serves: $serves:expr, refuses: $refuses:expr $(,)?) => {
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(config())]

                #[test]
                fn frames(operations in frames::operations(const { &$serves })) {
                    with_pool!($create, MANY, |pool| frames::live(pool, &operations));
                }

                #[test]
                fn reserve_sizes_are_kept(layout in layouts::any_layout()) {
                    with_pool!($create, 2, |pool| layouts::reserve_sizes_are_kept(pool, layout));
                }
            }

            #[test]
            fn run_out_and_recover() {
                let grains = if cfg!(miri) { 4 } else { 64 };
                for layout in exhausting(&$serves) {
                    with_pool!($create, grains, |pool| frames::run_out_and_recover(pool, layout));
                }
            }

            #[test]
            fn refused_requests_lose_nothing() {
                with_refusals!($create, $serves, |arena, pool, layout| {
                    frames::live_through_refusals(arena, pool, *layout)
                });
            }

            #[test]
            fn layouts_it_does_not_serve_are_refused() {
                with_pool!($create, 2, |pool| {
                    for layout in $refuses {
                        layouts::refuses_to_fill(pool, layout);
                    }
                });
            }
        }
    };
}

/// Runs the negative control for a class with links in its free blocks.
macro_rules! damage_is_found {
    ($name:ident, $create:expr, $layout:expr) => {
        #[test]
        fn $name() {
            with_pool!($create, 24, |pool| damage::is_found(pool, $layout));
        }
    };
}

const HUGE: usize = isize::MAX as usize;

conformance!(mvff, classes::mvff,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN), layout(5000, 2 * GRAIN)],
    refuses: [layout(HUGE, 1)]);

conformance!(mvff_few_bins, classes::mvff_few_bins,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN), layout(5000, 2 * GRAIN)],
    refuses: [layout(HUGE, 1)]);

conformance!(tlsf_bins, classes::tlsf_bins,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN), layout(5000, 2 * GRAIN)],
    refuses: [layout(HUGE, 1)]);

damage_is_found!(damage_in_mvff_few_bins, classes::mvff_few_bins, layout(40, 8));
damage_is_found!(damage_in_tlsf_bins, classes::tlsf_bins, layout(40, 8));

conformance!(mvff_returning, classes::mvff_returning,
    serves: [layout(40, 8), layout(600, 8), layout(16, 1), layout(3 * GRAIN, 16), layout(64, 256)],
    refuses: [layout(HUGE - 1, 1)]);

conformance!(mfs_of, classes::mfs_of,
    serves: [layout(96 - SEAL, 8), layout(0, 1), layout(50, 2 * size_of::<usize>())],
    refuses: [layout(97, 8), layout(96, 32), layout(HUGE, 1)]);

conformance!(mfs_layout, classes::mfs_layout,
    serves: [layout(192 - SEAL, 64), layout(1, 1)],
    refuses: [layout(193, 1), layout(64, 128)]);

conformance!(mvt, classes::mvt,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN), layout(5000, 2 * GRAIN)],
    refuses: [layout(HUGE, 1)]);

conformance!(mvt_returning, classes::mvt_returning,
    serves: [layout(40, 8), layout(600, 8), layout(16, 1), layout(3 * GRAIN, 16), layout(64, 256)],
    refuses: [layout(HUGE - 1, 1)]);

frame_conformance!(snc, classes::snc,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(900, 4), layout(100, 64), layout(24, 1024)],
    refuses: [layout(HUGE, 1)]);

damage_is_found!(damage_in_mvff, classes::mvff, layout(40, 8));
damage_is_found!(damage_in_mvff_returning, classes::mvff_returning, layout(40, 8));
damage_is_found!(damage_in_mvt, classes::mvt, layout(40, 8));
damage_is_found!(damage_in_mfs_of, classes::mfs_of, layout(96 - SEAL, 8));
damage_is_found!(damage_in_mfs_layout, classes::mfs_layout, layout(192 - SEAL, 64));

conformance!(tlsf, classes::tlsf,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN), layout(5000, 2 * GRAIN)],
    refuses: [layout(HUGE, 1)]);

damage_is_found!(tlsf_finds_damage, classes::tlsf, layout(40, 8));

conformance!(tlsf_returning, classes::tlsf_returning,
    serves: [layout(40, 8), layout(600, 8), layout(16, 1), layout(3 * GRAIN, 16), layout(64, 256)],
    refuses: [layout(HUGE - 1, 1)]);

damage_is_found!(damage_in_tlsf_returning, classes::tlsf_returning, layout(40, 8));

owned_conformance!(owned_mvff, classes::owned_mvff,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN), layout(5000, 2 * GRAIN)],
    refuses: [layout(HUGE, 1)]);

owned_conformance!(owned_tlsf, classes::owned_tlsf,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN), layout(5000, 2 * GRAIN)],
    refuses: [layout(HUGE, 1)]);

owned_conformance!(owned_mfs, classes::owned_mfs,
    serves: [layout(96 - SEAL, 8), layout(0, 1), layout(50, 2 * size_of::<usize>())],
    refuses: [layout(97, 8), layout(96, 32), layout(HUGE, 1)]);

owned_conformance!(owned_mvt, classes::owned_mvt,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN), layout(5000, 2 * GRAIN)],
    refuses: [layout(HUGE, 1)]);

frame_conformance!(owned_snc, classes::owned_snc,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(900, 4), layout(100, 64), layout(24, 1024)],
    refuses: [layout(HUGE, 1)]);

damage_is_found!(damage_in_owned_mvff, classes::owned_mvff, layout(40, 8));
damage_is_found!(damage_in_owned_tlsf, classes::owned_tlsf, layout(40, 8));
damage_is_found!(damage_in_owned_mfs, classes::owned_mfs, layout(96 - SEAL, 8));

conformance!(debug_mvff, classes::debug_mvff,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN), layout(5000, 2 * GRAIN)],
    refuses: [layout(HUGE, 1)]);

damage_is_found!(debug_mvff_finds_damage, classes::debug_mvff, layout(40, 8));

conformance!(debug_mfs, classes::debug_mfs,
    serves: [layout(232 - SEAL, 64), layout(1, 1)],
    refuses: [layout(257, 8), layout(64, 128)]);

conformance!(debug_tlsf, classes::debug_tlsf,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN)],
    refuses: [layout(HUGE, 1)]);
