//! How long a pool that is dismissed keeps the others of a large arena waiting
//! (design/arena.md `.tract.piece`, design/arena-vm.md `.limit.dismiss`).
//!
//! ```text
//! cargo run --release -p tripoint-arena-vm --example dismiss
//! ```
//!
//! An arena has 1000 GiB in use, in grains of 64 KiB; only the table takes memory, 250
//! MiB. Every second GiB is another pool's. Two pools are dismissed: one that has
//! nothing, and the one that has half of it. The times are of each hold of the table's
//! lock, and of the search, which holds none and was one hold once.

use core::time::Duration;
use std::time::Instant;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::internal::{Tract, TractTable};
use tripoint_core::{Arena, Error, PoolId};

const GIB: usize = 1 << 30;
const GRAIN: usize = 64 << 10;
const GIBS: usize = 1000;

fn main() -> Result<(), Error> {
    holds();
    whole_arena()
}

/// The holds one by one, over a table alone.
fn holds() {
    const RUN: u32 = (GIB / GRAIN) as u32;
    let grains = GIBS as u32 * RUN;
    let entries: Vec<Tract> = (0..grains).map(|_| Tract::new()).collect();
    let mut table = TractTable::new(grains);
    let pools = [2, 3].map(|serial| PoolId::new(serial).unwrap_or_else(|| unreachable!("small numbers")));
    for run in 0..GIBS {
        if let Ok(index) = table.pop_void(&entries, RUN) {
            table.allot(&entries, index, RUN, pools[run % 2]);
        }
    }
    let begin = Instant::now();
    let found = TractTable::next_owned(&entries, 0, PoolId::new(4).unwrap_or(pools[0]));
    println!("the search of {grains} entries, without the lock: {:?} ({found:?})", begin.elapsed());
    let mut times: Vec<Duration> = Vec::new();
    for (index, count) in TractTable::pieces_of(&entries, pools[0]) {
        let begin = Instant::now();
        table.give_spare(&entries, index, count);
        times.push(begin.elapsed());
    }
    times.sort();
    let at = |permille: usize| times[(times.len() - 1) * permille / 1000];
    println!(
        "{} holds of at most {} grains: median {:?}, 999 of 1000 {:?}, longest {:?}",
        times.len(),
        TractTable::PIECE,
        at(500),
        at(999),
        at(1000)
    );
}

/// A real arena, whose memory no thread touches.
fn whole_arena() -> Result<(), Error> {
    let options = ArenaVmOptions { reserve: 2 << 40, grain: GRAIN, spare_share: 100, ..Default::default() };
    let arena = ArenaVm::create(options)?;
    let pools = [arena.register()?, arena.register()?];
    for run in 0..GIBS {
        arena.alloc_tracts(GIB, pools[run % 2])?;
    }
    let empty = arena.register()?;
    for (name, pool) in [("nothing", empty), ("half of it", pools[0])] {
        let begin = Instant::now();
        // SAFETY: registered above, dismissed once, and nothing uses its memory.
        unsafe { arena.unregister(pool) };
        println!("dismissing a pool that has {name} of {GIBS} GiB in use: {:?}", begin.elapsed());
    }
    Ok(())
}
