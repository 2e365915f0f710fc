//! What it costs an allocation point to be tripped that many times a second, by its own processor time.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use tripoint::{AllocationPoint, ArenaVm, ArenaVmOptions, Mfs, MfsOptions, UnitOf};

use crate::processor::thread_time;
use crate::standing::Spread;
use crate::table::Table;

const OBJECTS: usize = 1_000_000;
const RATES: [u64; 4] = [0, 100, 1_000, 10_000];

/// Objects are made and freed at once. Returns the processor time, and how many trips were observed.
fn run(rate: u64) -> (Duration, u64) {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = Mfs::create(&arena, UnitOf::<[u64; 4]>::new(), MfsOptions::default()).unwrap();
    let mut point = AllocationPoint::create(&pool).unwrap();
    let (tripper, stop) = (point.tripper(), AtomicBool::new(false));
    let time = thread::scope(|scope| {
        if rate != 0 {
            scope.spawn(|| {
                let between = Duration::from_secs(1) / rate as u32;
                let mut next = Instant::now();
                while !stop.load(Ordering::Relaxed) {
                    tripper.trip();
                    next += between;
                    thread::sleep(next.saturating_duration_since(Instant::now()));
                }
            });
        }
        let start = thread_time();
        for index in 0..OBJECTS as u64 {
            drop(black_box(point.boxed([index; 4]).unwrap()));
        }
        let time = thread_time() - start;
        stop.store(true, Ordering::Relaxed);
        time
    });
    (time, tripoint::Arena::counts(&arena).trips.get())
}

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    let title = "an object of 32 bytes made and freed, tripped so many times a second";
    let mut table = Table::new(title, &["ns", "of untripped", "quartiles", "", "trips observed a second"]);
    let all: Vec<Vec<(Duration, u64)>> =
        (0..rounds).map(|_| RATES.iter().map(|&rate| run(rate)).collect()).collect();
    for (index, rate) in RATES.iter().enumerate() {
        let seconds = |round: &Vec<(Duration, u64)>, index: usize| round[index].0.as_secs_f64();
        let time = Spread::of(all.iter().map(|round| seconds(round, index) * 1e9 / OBJECTS as f64));
        let ratio = Spread::of(all.iter().map(|round| seconds(round, index) / seconds(round, 0)));
        let trips = Spread::of(all.iter().map(|round| round[index].1 as f64 / seconds(round, index)));
        let numbers = [time.median, ratio.median, ratio.low, ratio.high, trips.median];
        table.add(format!("{rate} asked"), &numbers.map(Some));
    }
    vec![table]
}
