//! Starting up: how long reserving takes, and what it commits.

use std::time::Instant;

use crate::compare::median;
use crate::table::Table;
use tripoint::{Arena, ArenaVm, ArenaVmOptions};

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    let mut sizes = Default::default();
    let times = (0..rounds).map(|_| {
        let start = Instant::now();
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let time = start.elapsed();
        sizes = arena.sizes();
        time.as_secs_f64() * 1e6
    });
    let microseconds = median(times);
    let mut table = Table::new("create an arena", &["us", "committed, bytes", "reserved, GiB"]);
    let gib = (sizes.reserved >> 30) as f64;
    table.add("median", &[Some(microseconds), Some(sizes.committed as f64), Some(gib)]);
    vec![table]
}
