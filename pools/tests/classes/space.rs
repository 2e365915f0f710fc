//! How much of an arena the classes for objects of any size fill with objects.
//!
//! The churn is that of the measurements of peers: 8 MiB, objects of 16 to 512 bytes
//! at random, filled until a request is refused; then 20,000 times one object is freed
//! at random and the arena filled again. No clock, one sequence: the figures repeat
//! exactly.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::common::{GRAIN, Sequence, arena, layout, memory};
use tripoint_core::{Arena, CheckLevel, ManualPool};
use tripoint_pools::{Mfs, MfsOptions, Mvff, MvffOptions, Tlsf, TlsfOptions, UnitLayout};

const TOTAL: usize = 8 << 20;
const CHURNS: usize = 20_000;

/// The objects of a pool, and the bytes that were asked for.
struct Churn<'p, P> {
    pool: &'p P,
    objects: Vec<(NonNull<u8>, Layout)>,
    live: usize,
    sequence: Sequence,
}

impl<'p, P: ManualPool> Churn<'p, P> {
    fn new(pool: &'p P) -> Self {
        Self { pool, objects: Vec::new(), live: 0, sequence: Sequence(42) }
    }

    /// Allocates until a request is refused.
    fn fill(&mut self) {
        loop {
            let layout = layout(16 + self.sequence.below(497), 8);
            let Ok(object) = self.pool.alloc(layout) else { return };
            self.objects.push((object, layout));
            self.live += layout.size();
        }
    }

    fn free_one(&mut self) {
        let (object, layout) = self.objects.swap_remove(self.sequence.below(self.objects.len()));
        self.live -= layout.size();
        // SAFETY: allocated from this pool with this layout, and forgotten.
        unsafe { self.pool.free(object, layout) };
    }

    /// The part of `total` in objects, in thousandths, when first full and after
    /// the churn.
    fn run(mut self, total: usize) -> (usize, usize) {
        self.fill();
        let first = self.live;
        for _ in 0..CHURNS {
            self.free_one();
            self.fill();
        }
        let churned = self.live;
        while !self.objects.is_empty() {
            self.free_one();
        }
        self.pool.check(CheckLevel::Deep).unwrap();
        assert_eq!(self.pool.sizes().free, self.pool.sizes().total);
        // Eight million times a thousand is more than 32 bits hold.
        let thousandths = |live: usize| (live as u64 * 1000 / total as u64) as usize;
        (thousandths(first), thousandths(churned))
    }
}

/// Runs the churn in a pool of its own. All that a pool could have counts, whatever it
/// and its tables in the arena's descriptor memory make of it.
fn churn<P: ManualPool>(pool: &P) -> (usize, usize) {
    let total = pool.header().arena().sizes().spare;
    assert!(total > TOTAL - 64 * GRAIN && total <= TOTAL);
    Churn::new(pool).run(total)
}

/// (design/pool-tlsf.md `.req.space`)
#[test]
fn tlsf_keeps_nine_tenths_in_objects() {
    let mut memory = memory(TOTAL / GRAIN);
    let arena = arena(&mut memory);
    let (first, churned) = churn(&Tlsf::create(&arena, TlsfOptions::default()).unwrap());
    println!("TLSF: {first} thousandths when first full, {churned} after the churn");
    assert!(first >= 900 && churned >= 900, "{first}, {churned}");
}

#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn mvff_keeps_nine_tenths_in_objects() {
    let mut memory = memory(TOTAL / GRAIN);
    let arena = arena(&mut memory);
    let (first, churned) = churn(&Mvff::create(&arena, MvffOptions::default()).unwrap());
    println!("MVFF: {first} thousandths when first full, {churned} after the churn");
    assert!(first >= 900 && churned >= 900, "{first}, {churned}");
}

/// Negative control: the measure distinguishes a wasteful pool from a dense
/// one.
#[test]
#[cfg_attr(feature = "hardening", ignore = "units with a seal do not divide an extent")]
fn a_pool_of_one_size_keeps_less_in_objects() {
    let unit = UnitLayout::new(layout(512, 16)).unwrap();
    let mut memory = memory(TOTAL / GRAIN);
    let arena = arena(&mut memory);
    let (first, churned) = churn(&Mfs::create(&arena, unit, MfsOptions::default()).unwrap());
    assert!(first < 600 && churned < 600, "{first}, {churned}");
}

/// For sizes from one unit to n, this sequence makes every class that does not move objects
/// need (log2 n) / 2 + 1 times what is live (J. M. Robson, "An estimate of the store size
/// necessary for dynamic storage allocation", 1971): it cuts free memory into pieces that
/// are each too small for the next size. Returns the pool's memory, in hundredths of the
/// most that is live.
fn cut_up<P: ManualPool>(pool: &P, units: usize) -> usize {
    const UNIT: usize = 16;
    const LIVE: usize = 1 << 20;
    let mut objects: Vec<(NonNull<u8>, usize)> = Vec::new();
    let (mut offset, mut size) = (0, UNIT);
    while size <= units * UNIT {
        let live: usize = objects.iter().map(|(_, size)| size).sum();
        for _ in 0..(LIVE - live) / size {
            objects.push((pool.alloc(layout(size, 8)).unwrap(), size));
        }
        size *= 2;
        // An object stays if it keeps the next size out of the place that it lies in.
        let stays = |&(object, taken): &(NonNull<u8>, usize), offset: usize| {
            let from = object.addr().get().wrapping_sub(offset) % size;
            from == 0 || from + taken > size
        };
        let kept_out = |offset| {
            objects.iter().filter(|object| stays(object, offset)).map(|object| size - object.1).sum::<usize>()
        };
        if kept_out(offset + size / 2) > kept_out(offset) {
            offset += size / 2;
        }
        let (stay, go): (Vec<_>, Vec<_>) = objects.iter().partition(|object| stays(object, offset));
        objects = stay;
        for (object, size) in go {
            // SAFETY: allocated above with this layout, and forgotten.
            unsafe { pool.free(object, layout(size, 8)) };
        }
    }
    pool.sizes().high_water * 100 / LIVE
}

/// No class does better; neither of these does much worse
/// (design/pool-tlsf.md `.tlsf.worst`).
#[test]
#[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
fn cutting_free_memory_up_makes_every_pool_large() {
    const UNITS: usize = 4096;
    let bound = (UNITS.ilog2() as usize * 100) / 2 + 100;
    let mut memory = memory(TOTAL / GRAIN);
    {
        let arena = arena(&mut memory);
        let tlsf = cut_up(&Tlsf::create(&arena, TlsfOptions::default()).unwrap(), UNITS);
        println!("TLSF: {tlsf} hundredths of what is live; the bound is {bound}");
        assert!((bound * 9 / 10..bound * 11 / 10).contains(&tlsf), "{tlsf}");
    }
    let arena = arena(&mut memory);
    let mvff = cut_up(&Mvff::create(&arena, MvffOptions::default()).unwrap(), UNITS);
    println!("MVFF: {mvff} hundredths of what is live; the bound is {bound}");
    assert!((bound * 9 / 10..bound * 11 / 10).contains(&mvff), "{mvff}");
}
