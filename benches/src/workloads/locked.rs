//! Pools without a cache: objects of 16 to 512 bytes, of which a thousand at random are freed, and then as many made. The two are timed apart.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{ArenaVm, ArenaVmOptions, Mvff, MvffOptions, Tlsf, TlsfOptions};

use super::by_layout::{Allocator, Memory, SamePlace, Stored, layout, rlsf, talc};
use crate::compare::{Contender, NULL, compare};
use crate::random::Random;
use crate::table::Table;

/// Objects that are freed at once, and then made.
const BATCH: usize = 1_000;

/// Batches of a round.
const BATCHES: usize = 20;

/// What is timed.
#[derive(Clone, Copy)]
enum Timed {
    Free,
    Alloc,
}

/// Replaces objects, in a round; returns what the frees took, or the allocations.
fn replacing(memory: impl Memory, live: usize, timed: Timed) -> impl FnMut() -> Duration {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let layouts: Vec<Layout> = (0..live).map(|_| layout(&mut random)).collect();
    let mut objects: Vec<_> = layouts.into_iter().map(|layout| (memory.get(layout), layout)).collect();
    let mut layouts = Vec::with_capacity(BATCH);
    move || {
        let (mut freeing, mut allocating) = (Duration::ZERO, Duration::ZERO);
        for batch in 0..BATCHES {
            // Drawn before the clock runs.
            (live - BATCH..live).for_each(|place| objects.swap(place, random.below(live)));
            layouts.extend((0..BATCH).map(|_| layout(&mut random)));
            let start = Instant::now();
            for (object, layout) in objects.drain(live - BATCH..) {
                memory.put(object, layout);
            }
            let between = Instant::now();
            for layout in layouts.drain(..) {
                let object = memory.get(layout);
                // SAFETY: fresh memory of at least two words.
                unsafe { object.cast().write([batch; 2]) };
                objects.push((object, layout));
            }
            allocating += between.elapsed();
            freeing += between - start;
        }
        match timed {
            Timed::Free => freeing,
            Timed::Alloc => allocating,
        }
    }
}

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    let cases = [2_000, 50_000].into_iter().flat_map(|live| [(live, Timed::Free), (live, Timed::Alloc)]);
    cases.map(|(live, timed)| measure_case(live, timed, rounds)).collect()
}

fn measure_case(live: usize, timed: Timed, rounds: usize) -> Table {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let mvff = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let tlsf = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
    let with_bins = TlsfOptions { bin_blocks: MvffOptions::default().bin_blocks, ..TlsfOptions::default() };
    let binned = Tlsf::create(&arena, with_bins).unwrap();
    let joining = Mvff::create(&arena, MvffOptions { bin_blocks: 0, ..MvffOptions::default() }).unwrap();
    let owned_tlsf = Tlsf::create_owned(&arena, TlsfOptions::default()).unwrap();
    let owned_mvff = Mvff::create_owned(&arena, MvffOptions::default()).unwrap();
    let (talc, rlsf) = (talc(), rlsf());
    let mut place = [0_usize; 64];
    let mut contenders = [
        Contender::new("Tlsf, lock", replacing(Stored(tlsf), live, timed)),
        Contender::new(NULL, replacing(SamePlace(NonNull::from(&mut place).cast()), live, timed)),
        Contender::new("Mvff, lock", replacing(Stored(mvff), live, timed)),
        Contender::new("Tlsf, lock, with bins", replacing(Stored(binned), live, timed)),
        Contender::new("Mvff, lock, without bins", replacing(Stored(joining), live, timed)),
        Contender::new("Tlsf, one owner", replacing(Stored(owned_tlsf), live, timed)),
        Contender::new("Mvff, one owner", replacing(Stored(owned_mvff), live, timed)),
        Contender::new("talc", replacing(&talc, live, timed)),
        Contender::new("rlsf", replacing(&rlsf, live, timed)),
        Contender::new("mimalloc", replacing(Allocator(MiMalloc), live, timed)),
        Contender::new("rusty_alloc", replacing(Allocator(RustyAlloc), live, timed)),
        Contender::new("snmalloc", replacing(Allocator(SnMalloc), live, timed)),
        Contender::new("jemalloc", replacing(Allocator(Jemalloc), live, timed)),
        Contender::new("system malloc", replacing(Allocator(System), live, timed)),
    ];
    let verb = match timed {
        Timed::Free => "free",
        Timed::Alloc => "allocate",
    };
    let title =
        format!("{verb} 16 to 512 bytes in a pool without a cache, {live} live (goals: Mvff 60 ns, Tlsf 40)");
    Table::of(title, &compare(&mut contenders, rounds, BATCHES * BATCH))
}
