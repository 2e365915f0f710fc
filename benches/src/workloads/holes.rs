//! First fit behind many holes that are too small.

use core::alloc::Layout;
use core::time::Duration;
use std::time::Instant;

use crate::compare::{Contender, compare};
use crate::table::Table;
use tripoint::{ArenaVm, ArenaVmOptions, ManualPool, Mvff, MvffOptions};

const PAIRS: usize = 2_000;
const HOLE: Layout = Layout::new::<[u64; 8]>();
const OBJECT: Layout = Layout::new::<[u64; 24]>();

/// Frees every second of a row of objects, so that the holes do not touch.
fn make_holes<P: ManualPool>(pool: &P, count: usize) {
    let objects: Vec<_> = (0..2 * count).map(|_| pool.alloc(HOLE).unwrap()).collect();
    for object in objects.into_iter().step_by(2) {
        // SAFETY: allocated above, freed once.
        unsafe { pool.free(object, HOLE) };
    }
}

fn pairs<P: ManualPool>(pool: &P) -> impl FnMut() -> Duration {
    move || {
        let start = Instant::now();
        for _ in 0..PAIRS {
            let object = pool.alloc(OBJECT).unwrap();
            // SAFETY: allocated just now, freed once.
            unsafe { pool.free(object, OBJECT) };
        }
        start.elapsed()
    }
}

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = |holes| {
        let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
        make_holes(&pool, holes);
        pool
    };
    let (few, many) = (pool(1_000), pool(10_000));
    let mut contenders = [
        Contender::new("Mvff, 1,000 holes", pairs(&few)),
        Contender::new("Mvff, 10,000 holes (goal: at most 3)", pairs(&many)),
    ];
    vec![Table::of("192 bytes behind holes of 64", &compare(&mut contenders, rounds, PAIRS))]
}
