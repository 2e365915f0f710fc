//! What every manual pool class must do, written once and run for each.

mod common;

use core::alloc::Layout;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::mpsc;

use common::{GRAIN, Oracle, Subject, arena, memory};
use proptest::prelude::*;
use tripoint_core::primitive::{AtomicUsize, Ordering};
use tripoint_core::{Arena, Check, CheckLevel, Error, PoolBox, PoolSizes};

#[derive(Clone, Debug)]
enum Step {
    Alloc(usize),
    Free(usize),
    Fill { layout: usize, objects: usize },
    Empty(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => any::<usize>().prop_map(Step::Alloc),
        4 => any::<usize>().prop_map(Step::Free),
        2 => (any::<usize>(), 0..8_usize).prop_map(|(layout, objects)| Step::Fill { layout, objects }),
        2 => any::<usize>().prop_map(Step::Empty),
    ];
    prop::collection::vec(step, 1..100)
}

/// One of several, by any number.
fn pick<T: Copy>(from: &[T], which: usize) -> Option<T> {
    (!from.is_empty()).then(|| from[which % from.len()])
}

/// A random life against the oracle, compared after every step; in the end nothing
/// is lost (design/pool-mvff.md `.req.lost`).
fn lives<P: Subject>(pool: &P, layouts: &[Layout], steps: &[Step]) {
    let mut oracle = Oracle::default();
    for step in steps {
        match *step {
            Step::Alloc(layout) => {
                let object = oracle.alloc(pool, pick(layouts, layout).unwrap());
                assert!(matches!(object, Ok(_) | Err(Error::Limit)));
            }
            Step::Fill { layout, objects } => {
                let filled = oracle.fill(pool, pick(layouts, layout).unwrap(), objects);
                assert!(matches!(filled, Ok(_) | Err(Error::Limit)));
            }
            Step::Free(which) => {
                if let Some(addr) = pick(&oracle.addresses(true), which) {
                    oracle.free(pool, addr);
                }
            }
            Step::Empty(which) => {
                if let Some(addr) = pick(&oracle.addresses(false), which) {
                    oracle.empty(pool, addr);
                }
            }
        }
        oracle.agree(pool);
    }
    let slack = slack(&oracle, pool);
    oracle.clear(pool);
    assert_eq!(slack, oracle.agree(pool).total - oracle.agree(pool).free, "nothing is lost");
}

/// The bytes that are neither live nor free: ends of extents that make no unit.
fn slack<P: Subject>(oracle: &Oracle, pool: &P) -> usize {
    let sizes = oracle.agree(pool);
    sizes.total - sizes.free - oracle.live_size()
}

/// Allocates until the arena is used up; gives the number of objects.
fn exhaust<P: Subject>(oracle: &mut Oracle, pool: &P, layout: Layout) -> usize {
    (0..)
        .find(|_| match oracle.alloc(pool, layout) {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error, Error::Limit);
                true
            }
        })
        .unwrap()
}

fn runs_out_and_recovers<P: Subject>(pool: &P, layout: Layout) {
    let mut oracle = Oracle::default();
    let count = exhaust(&mut oracle, pool, layout);
    assert!(count > 10);
    assert_eq!(oracle.fill(pool, layout, 0).unwrap_err(), Error::Limit);
    let full = oracle.agree(pool);

    // Still usable: what is freed can be had again, also by a fill.
    oracle.free(pool, oracle.addresses(true)[count / 2]);
    let again = oracle.alloc(pool, layout).unwrap();
    oracle.free(pool, again.addr().get());
    oracle.fill(pool, layout, 1).unwrap();
    for rest in oracle.addresses(false) {
        oracle.empty(pool, rest);
    }
    assert_eq!(oracle.agree(pool), full);

    // Nothing is lost: as many again, or more where extents have coalesced.
    oracle.clear(pool);
    oracle.agree(pool);
    assert!(exhaust(&mut oracle, pool, layout) >= count);
    assert_eq!(oracle.agree(pool).total, full.total);
    oracle.clear(pool);
}

/// The bytes a pool has and could not give out. Ends of extents that make no unit
/// count as used from the first extent on, so there has to be one.
fn used(sizes: PoolSizes) -> usize {
    sizes.total - sizes.free
}

/// A buffer's `fill - empty` is what was allocated, and the pool agrees.
fn fills_and_empties_balance<P: Subject>(pool: &P, layout: Layout) {
    let mut oracle = Oracle::default();
    oracle.alloc(pool, layout).unwrap();
    let size = pool.reserve_size(layout).unwrap();
    for objects in 0..5 {
        let before = oracle.agree(pool);
        let count = oracle.addresses(true).len();
        let filled = oracle.fill(pool, layout, objects).unwrap().size();
        let during = oracle.agree(pool);
        assert_eq!(used(during) - used(before), filled, "a fill takes free memory");
        let allocated = (oracle.addresses(true).len() - count) * size;
        for rest in oracle.addresses(false) {
            oracle.empty(pool, rest);
        }
        let after = oracle.agree(pool);
        assert_eq!(used(during) - used(after), filled - allocated, "an empty gives the rest back");
    }
    oracle.clear(pool);
}

/// Threads pass objects round; each frees what another allocated.
fn any_thread_frees<P: Subject>(pool: &P) {
    const THREADS: usize = 3;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::sync_channel(16)).unzip();
    std::thread::scope(|scope| {
        for (thread, receiver) in receivers.into_iter().enumerate() {
            let sender = senders[(thread + 1) % THREADS].clone();
            scope.spawn(move || {
                for round in 0..2000_u64 {
                    let object = PoolBox::new_in([round, round ^ 0x55, thread as u64], pool).unwrap();
                    sender.send(object).unwrap();
                    let received = receiver.recv().unwrap();
                    assert_eq!([received[0], received[1]], [round, round ^ 0x55]);
                    assert_eq!(received[2], ((thread + THREADS - 1) % THREADS) as u64);
                }
            });
        }
    });
    Oracle::default().agree(pool);
    pool.check(CheckLevel::Deep).unwrap();
}

static DROPS: AtomicUsize = AtomicUsize::new(0);

/// Counts its drops, and panics in them if told to.
struct Loud(#[allow(dead_code)] u64, bool);

impl Drop for Loud {
    fn drop(&mut self) {
        DROPS.fetch_add(1, Ordering::Relaxed);
        assert!(!self.1, "told to");
    }
}

fn boxes_free_what_they_drop<P: Subject>(pool: &P) {
    let keep = PoolBox::new_in(1_u64, pool).unwrap();
    let before = pool.sizes();
    drop(PoolBox::new_in(Loud(1, false), pool).unwrap());
    assert_eq!(pool.sizes().free, before.free);

    let quiet = PoolBox::new_in(Loud(2, true), pool).unwrap();
    assert!(pool.sizes().free < before.free);
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(quiet)));
    assert!(dropped.is_err());
    assert_eq!(pool.sizes().free, before.free, "freed although the drop panicked");

    assert_eq!(PoolBox::into_inner(PoolBox::new_in(7_u32, pool).unwrap()), 7);
    assert_eq!(pool.sizes().free, before.free);
    assert_eq!(*keep, 1);
}

struct Empty;

static EMPTY_DROPS: AtomicUsize = AtomicUsize::new(0);

impl Drop for Empty {
    fn drop(&mut self) {
        EMPTY_DROPS.fetch_add(1, Ordering::Relaxed);
    }
}

fn objects_without_size_take_no_memory<P: Subject>(pool: &P) {
    let drops = EMPTY_DROPS.load(Ordering::Relaxed);
    drop(PoolBox::new_in(Empty, pool).unwrap());
    // Other tests of this file may drop theirs at the same time.
    assert!(EMPTY_DROPS.load(Ordering::Relaxed) > drops);
    assert_eq!(pool.sizes(), PoolSizes::default());
}

fn refuses<P: Subject>(pool: &P, layout: Layout) {
    assert_eq!(pool.reserve_size(layout), None);
    assert!(matches!(pool.alloc(layout), Err(Error::Parameter(_))));
    assert!(matches!(pool.fill(layout), Err(Error::Parameter(_))));
    assert_eq!(pool.sizes().total, 0);
}

/// Negative control: the check finds free memory that was written over.
fn the_check_finds_damage<P: Subject>(pool: &P, layout: Layout) {
    let mut oracle = Oracle::default();
    for _ in 0..9 {
        oracle.alloc(pool, layout).unwrap();
    }
    for addr in oracle.addresses(true).into_iter().step_by(2) {
        oracle.free(pool, addr);
    }
    oracle.agree(pool);
    let mut free = Vec::new();
    pool.walk_free(&mut |block| free.push(block.base().cast::<usize>()));
    assert!(free.len() > 3);
    // The last block of a fixed-size pool is its run, which keeps nothing in itself.
    free.truncate(3);
    for word in free {
        for value in [usize::MAX, 0x5151_5151, 0x5151_5140, 9] {
            // SAFETY: free memory, aligned, and put right before the pool uses it.
            let saved = unsafe { word.replace(value) };
            assert!(pool.check(CheckLevel::Shallow).is_ok());
            assert!(pool.check(CheckLevel::Deep).is_err(), "{value:#x} goes unseen");
            // SAFETY: as above.
            unsafe { word.write(saved) };
            pool.check(CheckLevel::Deep).unwrap();
        }
    }
    oracle.clear(pool);
}

fn describes_itself<P: Subject>(pool: &P, layout: Layout) {
    let mut oracle = Oracle::default();
    oracle.alloc(pool, layout).unwrap();
    let mut text = String::new();
    pool.describe(&mut text, 1).unwrap();
    assert!(text.starts_with(&format!("  pool: {} #", P::CLASS)), "{text}");
    assert!(text.contains(&format!("total: {} bytes", pool.sizes().total)), "{text}");
    assert!(text.lines().all(|line| line.starts_with("  ") && line.contains(": ")), "{text}");
    oracle.clear(pool);
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// Runs every test for one class: its name, how a pool is made, layouts it serves,
/// and layouts it does not.
macro_rules! conformance {
    ($class:ident, $create:path, serves: $serves:expr, refuses: $refuses:expr) => {
        mod $class {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

                #[test]
                fn lives(steps in steps()) {
                    let mut memory = memory(24);
                    let arena = arena(&mut memory);
                    super::lives(&$create(&arena), &$serves, &steps);
                }
            }

            #[test]
            fn runs_out_and_recovers() {
                for layout in $serves {
                    let mut memory = memory(64);
                    let arena = arena(&mut memory);
                    super::runs_out_and_recovers(&$create(&arena), layout);
                }
            }

            #[test]
            fn fills_and_empties_balance() {
                for layout in $serves {
                    let mut memory = memory(24);
                    let arena = arena(&mut memory);
                    super::fills_and_empties_balance(&$create(&arena), layout);
                }
            }

            #[test]
            fn any_thread_frees() {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                super::any_thread_frees(&$create(&arena));
            }

            #[test]
            fn boxes_free_what_they_drop() {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                super::boxes_free_what_they_drop(&$create(&arena));
            }

            #[test]
            fn objects_without_size_take_no_memory() {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                super::objects_without_size_take_no_memory(&$create(&arena));
            }

            #[test]
            fn layouts_it_does_not_serve_are_refused() {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let pool = $create(&arena);
                for layout in $refuses {
                    refuses(&pool, layout);
                }
            }

            #[test]
            fn the_check_finds_damage() {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                super::the_check_finds_damage(&$create(&arena), $serves[0]);
            }

            #[test]
            fn describes_itself() {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                super::describes_itself(&$create(&arena), $serves[0]);
            }

            #[test]
            fn dropping_a_pool_returns_its_tracts() {
                let mut memory = memory(24);
                let arena = arena(&mut memory);
                let before = arena.sizes();
                let pool = $create(&arena);
                Oracle::default().alloc(&pool, $serves[0]).unwrap();
                assert!(arena.sizes().spare < before.spare);
                drop(pool);
                assert_eq!(arena.sizes(), before);
                arena.check(CheckLevel::Deep).unwrap();
            }
        }
    };
}

const HUGE: usize = isize::MAX as usize;

conformance!(mvff, common::mvff,
    serves: [layout(40, 8), layout(0, 1), layout(16, 16), layout(1000, 4), layout(100, 64),
        layout(24, GRAIN), layout(5000, 2 * GRAIN)],
    refuses: [layout(HUGE, 1)]);

conformance!(mvff_giving_back, common::mvff_giving_back,
    serves: [layout(40, 8), layout(600, 8), layout(16, 1), layout(3 * GRAIN, 16), layout(64, 256)],
    refuses: [layout(HUGE - 1, 1)]);

conformance!(mfs_of, common::mfs_of,
    serves: [layout(96, 8), layout(0, 1), layout(50, 2 * size_of::<usize>())],
    refuses: [layout(97, 8), layout(96, 32), layout(HUGE, 1)]);

conformance!(mfs_layout, common::mfs_layout,
    serves: [layout(192, 64), layout(1, 1)],
    refuses: [layout(193, 1), layout(64, 128)]);
