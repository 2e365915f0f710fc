//! From one thread to two, each with an allocation point or a cache of its own.
//!
//! Measured in processor time of the threads: other programs on the machine do not
//! count, but what the threads do to each other does.

use core::hint::black_box;
use core::time::Duration;
use std::sync::Barrier;
use std::thread;

use crate::compare::Spread;
use crate::table::Table;
use tripoint::{
    AllocationPoint, Arena, ArenaVm, ArenaVmOptions, ManualPool, Mfs, MfsOptions, Mvff, MvffOptions, PoolBox,
    PoolClass, UnitOf,
};

use super::objects::{Object, Objects, keep};
use crate::processor::thread_time;

const OBJECTS: usize = 100_000;

/// The mean processor time of `count` threads that do the work at once. They meet
/// before the timed part and after it.
fn threads(count: usize, work: &(impl Fn(&Barrier) -> Duration + Sync)) -> f64 {
    let meet = Barrier::new(count);
    let run = || {
        meet.wait();
        work(&meet).as_secs_f64()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<f64>() / count as f64
    })
}

/// Allocates from an allocation point; only that is timed, not the frees that
/// follow.
fn reserving<P: ManualPool>(pool: &P, meet: &Barrier) -> Duration {
    let mut point = AllocationPoint::create(pool).unwrap();
    let mut boxes = Vec::with_capacity(OBJECTS);
    let start = thread_time();
    for index in 0..OBJECTS {
        boxes.push(point.boxed([index as u64; 8]).unwrap());
    }
    let time = thread_time() - start;
    meet.wait();
    drop(black_box(boxes));
    time
}

fn caching<A: Arena>(pool: &Mfs<A, UnitOf<Object>>) -> Duration {
    let cache = pool.cache();
    let mut objects = &cache;
    let start = thread_time();
    for index in 0..10 * OBJECTS {
        let object = objects.make([index as u64; 8]);
        keep(object);
        objects.take_back(object);
    }
    thread_time() - start
}

fn scale(table: &mut Table, name: &str, rounds: usize, work: impl Fn(&Barrier) -> Duration + Sync) {
    threads(2, &work);
    let scalings = (0..rounds).map(|_| 2.0 * threads(1, &work) / threads(2, &work));
    let Spread { low, median, high } = Spread::of(scalings);
    table.add(name, &[Some(median), Some(low), Some(high)]);
}

/// How many fills `count` points make for the same number of objects in all.
fn fills(count: usize) -> u64 {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let mut points: Vec<_> = (0..count).map(|_| AllocationPoint::create(&pool).unwrap()).collect();
    for index in 0..OBJECTS {
        let object: Object = [index as u64; 8];
        black_box(PoolBox::into_raw(points[index % count].boxed(object).unwrap()));
    }
    drop(points);
    pool.header().arena().counts().fills.get()
}

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let fixed = Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let cached = Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let variable = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let title = "from one thread to two, by processor time (goal: at least 1.95)";
    let mut table = Table::new(title, &["times", "quartiles", ""]);
    scale(&mut table, "Mvff, allocation points", rounds, |meet| reserving(&variable, meet));
    scale(&mut table, "Mfs, allocation points", rounds, |meet| reserving(&fixed, meet));
    scale(&mut table, "Mfs, caches", rounds, |_| caching(&cached));
    let mut fills_table = Table::new("fills for 100,000 objects", &["fills"]);
    fills_table.add("one Mvff point", &[Some(fills(1) as f64)]);
    fills_table.add("two (goal: at most 1.1 times)", &[Some(fills(2) as f64)]);
    vec![table, fills_table]
}
