//! Starting up: how long reserving takes, and what it commits.

use std::time::Instant;

use benches::compare::median;
use tripoint::{Arena, ArenaVm, ArenaVmOptions};

pub(crate) fn measure(rounds: usize) {
    let mut sizes = Default::default();
    let times = (0..rounds).map(|_| {
        let start = Instant::now();
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let time = start.elapsed();
        sizes = arena.sizes();
        time.as_secs_f64() * 1e6
    });
    let microseconds = median(times);
    println!("\n| create an arena | |\n|---|---:|");
    println!("| reserved | {} GiB |", sizes.reserved >> 30);
    println!("| committed | {} bytes |", sizes.committed);
    println!("| median of {rounds} | {microseconds:.1} us |");
}
