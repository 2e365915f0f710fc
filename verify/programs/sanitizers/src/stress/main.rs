//! Many threads at once over every word that threads share, for as long as asked.
//!
//! Every scene makes its own arena and pools, races, and then checks that contents
//! of objects and counts are right. The sanitizer judges the order of accesses.
//!
//! ```text
//! stress [seconds] [seed]
//! ```

mod allocation_points;
mod arena;
mod caches;
mod contract;
mod flips;
mod random;
mod units;

use std::time::{Duration, Instant};

use random::Random;

/// A race of some thousand operations. Returns their number.
type Scene = fn(&mut Random) -> u64;

const SCENES: [(&str, Scene); 6] = [
    ("allocation points, trips, walks", allocation_points::race),
    ("commits against flips", flips::race),
    ("units that go home", units::race),
    ("caches, tripped", caches::race),
    ("tracts, descriptor memory, pools", arena::race),
    ("phases, checks, violation rings", contract::race),
];

fn argument(place: usize, default: u64) -> u64 {
    std::env::args().nth(place).map_or(default, |text| text.parse().expect("a number"))
}

fn main() {
    let (seconds, seed) = (argument(1, 10), argument(2, 1));
    println!("stress: {seconds} s at least, seed {seed}");
    let mut random = Random::new(seed);
    let mut operations = [0; SCENES.len()];
    let (begin, mut turns) = (Instant::now(), 0);
    while turns == 0 || begin.elapsed() < Duration::from_secs(seconds) {
        for ((_, race), sum) in SCENES.iter().zip(&mut operations) {
            *sum += race(&mut random);
        }
        turns += 1;
    }
    for ((scene, _), sum) in SCENES.iter().zip(operations) {
        println!("{sum:>12} operations: {scene}");
    }
    println!("stress: {turns} turns in {} s, nothing wrong", begin.elapsed().as_secs());
}
