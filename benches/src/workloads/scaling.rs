//! From one thread to two, on one pool.
//!
//! Measured twice: in processor time of the threads, where other programs on the machine do not count, but what the threads
//! do to each other does; and by the clock, where all counts.

use core::hint::black_box;
use core::time::Duration;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::standing::Spread;
use crate::table::Table;
use tripoint::{
    AllocationPoint, Arena, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Depot, ManualPool,
    Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, PoolBox, PoolClass, Store, Tlsf, TlsfOptions,
    UnitOf,
};

use super::objects::{LAYOUT, Object, keep};
use crate::processor::{pin, thread_time};

const OBJECTS: usize = 100_000;
/// The objects that a thread of a cache or of a lock has at once.
const LIVE: usize = 100;

/// How long the work of some threads took: processor time, and from when to when by the clock.
#[derive(Clone, Copy)]
struct Took {
    processor: Duration,
    begin: Instant,
    end: Instant,
}

impl Took {
    fn measure(work: impl FnOnce()) -> Self {
        let (processor, begin) = (thread_time(), Instant::now());
        work();
        Self { begin, end: Instant::now(), processor: thread_time() - processor }
    }

    fn and(self, other: Self) -> Self {
        Self {
            processor: self.processor + other.processor,
            begin: self.begin.min(other.begin),
            end: self.end.max(other.end),
        }
    }

    /// From the first that began to the last that ended.
    fn clock(&self) -> f64 {
        (self.end - self.begin).as_secs_f64()
    }
}

/// What `count` threads took that do the work at once. Each has a processor of its own. They meet before the
/// timed part and after it.
fn threads(count: usize, work: &(impl Fn(&Barrier) -> Took + Sync)) -> Took {
    let meet = Barrier::new(count);
    let run = |index| {
        pin(index);
        meet.wait();
        work(&meet)
    };
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|index| scope.spawn(move || run(index))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).reduce(Took::and).expect("a thread")
    })
}

/// Allocates from an allocation point; only that is timed, not the frees that
/// follow.
fn reserving<P: ManualPool>(pool: &P, meet: &Barrier) -> Took {
    let mut point = AllocationPoint::create(pool).unwrap();
    let mut boxes = Vec::with_capacity(OBJECTS);
    let took = Took::measure(|| {
        for index in 0..OBJECTS {
            boxes.push(point.boxed([index as u64; 8]).unwrap());
        }
    });
    meet.wait();
    drop(black_box(boxes));
    took
}

/// Allocates and frees in a store that only this thread uses, or that all threads lock.
fn replacing(store: &impl Store) -> Took {
    let make = |index: usize| {
        let place = store.alloc(LAYOUT).unwrap().cast::<Object>();
        // SAFETY: fresh memory of an object's layout.
        unsafe { place.write([index as u64; 8]) };
        keep(place);
        place
    };
    let mut live: Vec<_> = (0..LIVE).map(make).collect();
    let took = Took::measure(|| {
        for index in 0..10 * OBJECTS {
            let object = core::mem::replace(&mut live[index % LIVE], make(index));
            // SAFETY: made here, freed once.
            unsafe { store.free(object.cast(), LAYOUT) };
        }
    });
    for object in live {
        // SAFETY: made here, freed once.
        unsafe { store.free(object.cast(), LAYOUT) };
    }
    took
}

fn with_depot<P: ManualPool>(depot: &Depot<'_, P>) -> Took {
    let descriptor = CacheDescriptor::new(*depot.classes());
    replacing(&Cache::with_depot(depot, &descriptor).unwrap())
}

/// How many times as much two threads do: a row by processor time, and one by the clock.
fn scale(tables: &mut [Table; 2], name: &str, rounds: usize, work: impl Fn(&Barrier) -> Took + Sync) {
    threads(2, &work);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let (one, two) = (threads(1, &work), threads(2, &work));
        times[0].push(4.0 * one.processor.as_secs_f64() / two.processor.as_secs_f64());
        times[1].push(2.0 * one.clock() / two.clock());
    }
    for (table, times) in tables.iter_mut().zip(times) {
        let Spread { low, median, high } = Spread::of(times.into_iter());
        table.add(name, &[Some(median), Some(low), Some(high)]);
    }
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
    let mfs = || Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let (fixed, cached) = (mfs(), mfs());
    let mvff = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let tlsf = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    // The others keep what was freed; with its default reserve this one returns it to the arena. That row comes before
    // the one of the pool that keeps it, or the arena would have so much memory that it decommits none.
    let options =
        MvtOptions { mean_size: size_of::<Object>(), reserve_depth: 4 * OBJECTS, ..MvtOptions::default() };
    let mvt = Mvt::create(&arena, options).unwrap();
    let returning = Mvt::create(&arena, MvtOptions::default()).unwrap();
    let classes = CacheClasses::geometric(512, 128).unwrap();
    let (mvff_depot, tlsf_depot) = (Depot::new(&mvff, classes, 1 << 20), Depot::new(&tlsf, classes, 1 << 20));
    let mut tables = ["by processor time (goal: at least 1.95)", "by the clock (goal: at least 1.9)"]
        .map(|how| Table::new(format!("from one thread to two, {how}"), &["times", "quartiles", ""]));
    let all = &mut tables;
    scale(all, "Mvff, allocation points", rounds, |meet| reserving(&mvff, meet));
    scale(all, "Tlsf, allocation points", rounds, |meet| reserving(&tlsf, meet));
    scale(all, "Mvt with its default reserve, allocation points", rounds, |meet| reserving(&returning, meet));
    scale(all, "Mvt, allocation points", rounds, |meet| reserving(&mvt, meet));
    scale(all, "Mfs, allocation points", rounds, |meet| reserving(&fixed, meet));
    scale(all, "Mfs, caches", rounds, |_| replacing(&cached.cache()));
    scale(all, "Mvff, caches and depot", rounds, |_| with_depot(&mvff_depot));
    scale(all, "Tlsf, caches and depot", rounds, |_| with_depot(&tlsf_depot));
    scale(all, "Mfs, lock", rounds, |_| replacing(&cached));
    scale(all, "Mvff, lock", rounds, |_| replacing(&mvff));
    scale(all, "Tlsf, lock", rounds, |_| replacing(&tlsf));
    let mut fills_table = Table::new("fills for 100,000 objects", &["fills"]);
    fills_table.add("one Mvff point", &[Some(fills(1) as f64)]);
    fills_table.add("two (goal: at most 1.1 times)", &[Some(fills(2) as f64)]);
    tables.into_iter().chain([fills_table]).collect()
}
