//! How much of an arena the classes for objects of any size fill with objects.
//!
//! The churn is that of the measurements of peers: 8 MiB, objects of 16 to 512 bytes
//! at random, filled until a request is refused; then 20,000 times one object is freed
//! at random and the arena filled again. No clock, one sequence: the figures repeat
//! exactly.

mod common;

use core::alloc::Layout;
use core::ptr::NonNull;

use common::{GRAIN, Sequence, arena, layout, memory};
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
/// and its tables in the arena's control memory make of it.
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
fn mvff_keeps_nine_tenths_in_objects() {
    let mut memory = memory(TOTAL / GRAIN);
    let arena = arena(&mut memory);
    let (first, churned) = churn(&Mvff::create(&arena, MvffOptions::default()).unwrap());
    println!("MVFF: {first} thousandths when first full, {churned} after the churn");
    assert!(first >= 900 && churned >= 900, "{first}, {churned}");
}

/// Negative control: the measure tells a wasteful pool from a dense one.
#[test]
fn a_pool_of_one_size_does_not() {
    let unit = UnitLayout::new(layout(512, 16)).unwrap();
    let mut memory = memory(TOTAL / GRAIN);
    let arena = arena(&mut memory);
    let (first, churned) = churn(&Mfs::create(&arena, unit, MfsOptions::default()).unwrap());
    assert!(first < 600 && churned < 600, "{first}, {churned}");
}
