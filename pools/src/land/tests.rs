//! The land against a naive oracle: a map from address to size, which is first fit
//! and coalesces (design/land.md `.req.first`, `.req.coalesce`).

#[cfg(feature = "hardening")]
mod links;

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use core::alloc::Layout;
use core::ptr::NonNull;

use proptest::prelude::*;

use tripoint_core::PoolId;
use tripoint_oracle::{cases, effort};

use super::*;

/// Memory to make blocks of, aligned to a page.
struct Ground {
    _words: Vec<u128>,
    block: Block,
}

impl Ground {
    fn new(granules: usize) -> Self {
        let mut words = vec![0_u128; (granules * GRANULE + 4096) / 16];
        let start = words.as_mut_ptr().cast::<u8>();
        let base = NonNull::new(start.wrapping_add(start.align_offset(4096))).unwrap();
        // SAFETY: the vector has a page to spare for the alignment; it lives as
        // long as the block.
        let block = unsafe { Block::new(base, granules * GRANULE) };
        Self { _words: words, block }
    }

    fn land(&self) -> Land {
        Land::with_key(LinkKey::new(self.block.range(), PoolId::new(7).unwrap()))
    }

    fn part(&self, granule: usize, granules: usize) -> Block {
        let (_, rest) = self.block.split_at(granule * GRANULE).unwrap();
        rest.split_at(granules * GRANULE).unwrap().0
    }
}

/// The same set of blocks, kept naively.
#[derive(Default)]
struct Oracle(BTreeMap<usize, usize>);

impl Oracle {
    fn insert(&mut self, block: Block) {
        let (mut base, mut size) = (base_of(block), block.size());
        if let Some((&left, &left_size)) = self.0.range(..base).next_back()
            && left + left_size == base
        {
            (base, size) = (left, left_size + size);
        }
        if let Some(right_size) = self.0.remove(&(base + size)) {
            size += right_size;
        }
        self.0.insert(base, size);
    }

    fn take(&mut self, block: Block) {
        let (base, limit) = (base_of(block), limit_of(block));
        let (&at, &size) = self.0.range(..=base).next_back().expect("taken from a free block");
        assert!(limit <= at + size, "taken from one free block");
        self.0.remove(&at);
        if at < base {
            self.0.insert(at, base - at);
        }
        if limit < at + size {
            self.0.insert(limit, at + size - limit);
        }
    }

    /// The first block of at least `size` bytes.
    fn first_fit(&self, size: usize) -> Option<usize> {
        self.0.iter().find(|&(_, &have)| have >= size).map(|(&base, _)| base)
    }

    /// The first address in the first 64 runs of `size` bytes from which that many lie aligned.
    fn first_lucky(&self, size: usize, align: usize) -> Option<usize> {
        let runs = self.0.iter().filter(|&(_, &have)| have >= size && have > GRANULE).take(64);
        let aligned = runs.map(|(base, have)| (base.next_multiple_of(align), base + have));
        aligned.filter(|(base, limit)| base + size <= *limit).map(|(base, _)| base).next()
    }

    fn agree(&self, land: &Land) {
        land.check(&|_| true).unwrap();
        let mut walked = BTreeMap::new();
        land.walk(&mut |block| assert!(walked.insert(base_of(block), block.size()).is_none()));
        assert_eq!(walked, self.0);
        assert_eq!(land.count(), self.0.len());
        assert_eq!(land.size(), self.0.values().sum::<usize>());
        assert_eq!(land.largest(), self.0.values().copied().max().unwrap_or(0));
    }
}

/// Heights stay below the bound of AVL trees: 1.4405 log2(n + 2) (design/land.md
/// `.req.log`).
fn assert_low<const SIZED: bool>(tree: &Tree<SIZED>, land: &Land) {
    let height = tree.root().map_or(0, |root| root.height(land.watch()));
    #[allow(clippy::cast_precision_loss)]
    let bound = 1.4405 * ((tree.count() + 2) as f64).log2();
    assert!((height as f64) <= bound, "{height} > {bound} for {} blocks", tree.count());
}

#[derive(Clone, Debug)]
enum Step {
    Take { size: usize, align: u32 },
    TakeBounded { min: usize, more: usize, align: u32 },
    TakeRange { granule: usize, granules: usize },
    Return { which: usize, front: usize },
}

const GRANULES: usize = effort(640) as usize;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![3 => 0..=2 * GRANULE, 2 => 0..=12 * GRANULE, 1 => 0..GRANULES * GRANULE / 2];
    let align = prop_oneof![6 => Just(0_u32), 2 => 0..=8_u32, 1 => Just(12_u32)];
    let step = prop_oneof![
        4 => (size.clone(), align.clone()).prop_map(|(size, align)| Step::Take { size, align }),
        1 => (size.clone(), size, align).prop_map(|(min, more, align)| Step::TakeBounded { min, more, align }),
        1 => (0..GRANULES, 1..8_usize).prop_map(|(granule, granules)| Step::TakeRange { granule, granules }),
        5 => (any::<usize>(), 0..6_usize).prop_map(|(which, front)| Step::Return { which, front }),
    ];
    prop::collection::vec(step, 1..effort(120) as usize)
}

/// Runs the steps on a land and on the oracle, comparing after each.
fn run(steps: &[Step]) {
    let ground = Ground::new(GRANULES);
    let (mut land, mut oracle, mut taken) = (ground.land(), Oracle::default(), Vec::new());
    // SAFETY: the ground is ours, granule-aligned, and outlives the land.
    unsafe { land.insert(ground.block) };
    oracle.insert(ground.block);
    for step in steps {
        match *step {
            Step::Take { size, align } => {
                let layout = Layout::from_size_align(size, 1 << align).unwrap();
                let want = Land::granules(size).unwrap();
                let block = land.take_first(layout);
                check_taken(&oracle, block, want, want, layout.align());
                taken.extend(block);
                block.into_iter().for_each(|block| oracle.take(block));
            }
            Step::TakeBounded { min, more, align } => {
                let (min, max) = (Land::granules(min).unwrap(), Land::granules(min + more).unwrap());
                let align = Align::new(1 << align).unwrap();
                let found = land.find_first(min, align);
                let block = land.take_first_bounded(min, max, align);
                assert_eq!(found.is_some(), block.is_some(), "found as it is taken");
                let taken_from =
                    found.zip(block).is_none_or(|(from, block)| from.range().covers(block.range()));
                assert!(taken_from, "taken from where it was found");
                check_taken(&oracle, block, min, max, align.get());
                taken.extend(block);
                block.into_iter().for_each(|block| oracle.take(block));
            }
            Step::TakeRange { granule, granules } => {
                let part = ground.part(granule, granules.min(GRANULES - granule));
                let block = land.take_range(part.range());
                let around = oracle.0.range(..=base_of(part)).next_back();
                let free = around.is_some_and(|(&base, &size)| {
                    size > GRANULE && base_of(part) + part.size() <= base + size
                });
                assert_eq!(block, free.then_some(part));
                taken.extend(block);
                block.into_iter().for_each(|block| oracle.take(block));
            }
            Step::Return { which, front } => {
                if taken.is_empty() {
                    continue;
                }
                // Return a part and go on holding the rest.
                let block: Block = taken.swap_remove(which % taken.len());
                let kept = (front * GRANULE).min(block.size() - GRANULE);
                let (kept, block) = block.split_at(kept).unwrap();
                taken.extend(Some(kept).filter(|kept| kept.size() != 0));
                // SAFETY: taken from the land before, whole granules, not used.
                let merged = unsafe { land.insert(block) };
                oracle.insert(block);
                assert_eq!(oracle.0.get(&base_of(merged)), Some(&merged.size()));
                assert!(merged.range().covers(block.range()));
            }
        }
        oracle.agree(&land);
        assert_low(&land.granules, &land);
        assert_low(&land.runs, &land);
    }
    for block in taken {
        // SAFETY: taken from the land before, whole granules, not used.
        unsafe { land.insert(block) };
        oracle.insert(block);
    }
    oracle.agree(&land);
    assert_eq!((land.count(), land.size()), (1, GRANULES * GRANULE));
}

/// Checks what a land took out before the oracle takes it too.
fn check_taken(oracle: &Oracle, block: Option<Block>, min: usize, max: usize, align: usize) {
    let lucky = oracle.first_lucky(min, align);
    let Some(block) = block else {
        let sure = min + align.saturating_sub(GRANULE);
        assert_eq!(oracle.first_fit(sure), None, "a block that was sure to serve was passed over");
        assert_eq!(lucky, None, "a block that lies well was passed over");
        return;
    };
    assert!(lucky.is_none_or(|lucky| base_of(block) <= lucky), "the first that lies well");
    assert!(min <= block.size() && block.size() <= max);
    assert!(base_of(block).is_multiple_of(align.max(GRANULE)));
    let (&base, &size) = oracle.0.range(..=base_of(block)).next_back().unwrap();
    assert_eq!(block.size(), max.min(base + size - base_of(block)), "as much as there is");
    if align <= GRANULE {
        assert_eq!(Some(base_of(block)), oracle.first_fit(min), "first fit");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_oracle(steps in steps()) {
        run(&steps);
    }
}

/// Every other `part` granules free: as many blocks as there can be.
fn checkerboard(ground: &Ground, land: &mut Land, oracle: &mut Oracle, granules: usize, part: usize) {
    // Starting from both ends makes rotations of both hands.
    let count = granules / (2 * part);
    for index in (0..count).map(|index| if index % 2 == 0 { index / 2 } else { count - 1 - index / 2 }) {
        let block = ground.part(2 * part * index, part);
        // SAFETY: the ground is ours; the parts are apart from each other.
        unsafe { land.insert(block) };
        oracle.insert(block);
    }
}

#[test]
fn a_checkerboard_stays_low_and_coalesces_into_one() {
    for part in [1, 2, 3] {
        let granules = if cfg!(miri) { 48 } else { 12_000 };
        let ground = Ground::new(granules);
        let (mut land, mut oracle) = (ground.land(), Oracle::default());
        checkerboard(&ground, &mut land, &mut oracle, granules, part);
        oracle.agree(&land);
        assert_low(&land.granules, &land);
        assert_low(&land.runs, &land);
        assert_eq!(land.largest(), part * GRANULE);
        assert_eq!(land.take_first_bounded((part + 1) * GRANULE, usize::MAX, Align::WORD), None);

        // Fill the gaps in an order that jumps about.
        let count = granules / (2 * part);
        for index in 0..count {
            let index = index * 7 % count;
            let block = ground.part(2 * part * index + part, part);
            // SAFETY: the ground is ours, and this gap was never inserted.
            unsafe { land.insert(block) };
            oracle.insert(block);
            if index.is_multiple_of(64) {
                oracle.agree(&land);
                assert_low(&land.granules, &land);
                assert_low(&land.runs, &land);
            }
        }
        oracle.agree(&land);
        assert_eq!(land.count(), 1);
    }
}

#[test]
fn ascending_and_descending_insertions_stay_low() {
    let granules = if cfg!(miri) { 64 } else { 16_384 };
    for descending in [false, true] {
        let ground = Ground::new(granules);
        let (mut land, mut oracle) = (ground.land(), Oracle::default());
        for index in 0..granules / 4 {
            let index = if descending { granules / 4 - 1 - index } else { index };
            let block = ground.part(4 * index, 2);
            // SAFETY: the ground is ours; the parts are apart from each other.
            unsafe { land.insert(block) };
            oracle.insert(block);
        }
        oracle.agree(&land);
        assert_low(&land.runs, &land);
        // Emptied from one end, it stays low too.
        while let Some(block) = land.take_first_bounded(2 * GRANULE, 2 * GRANULE, Align::WORD) {
            oracle.take(block);
            if land.count().is_multiple_of(256) {
                oracle.agree(&land);
                assert_low(&land.runs, &land);
            }
        }
        assert_eq!((land.count(), land.size(), land.largest()), (0, 0, 0));
    }
}

/// The numbers below `count`, in an order that looks random.
fn shuffled(count: usize, seed: usize) -> impl Iterator<Item = usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = seed;
    for last in (1..count).rev() {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff;
        order.swap(last, (state >> 8) % (last + 1));
    }
    order.into_iter()
}

#[test]
fn inner_nodes_are_removed_as_well_as_leaves() {
    const BLOCKS: usize = effort(300) as usize;
    for seed in 0..effort(4) as usize {
        let ground = Ground::new(8 * BLOCKS);
        let (mut land, mut oracle) = (ground.land(), Oracle::default());
        let part = |index: usize| ground.part(8 * index, 2 + index * 31 % 6);
        for index in shuffled(BLOCKS, seed) {
            // SAFETY: the ground is ours; the parts are apart from each other.
            unsafe { land.insert(part(index)) };
            oracle.insert(part(index));
        }
        for index in shuffled(BLOCKS, seed + 100) {
            assert_eq!(land.take_range(part(index).range()), Some(part(index)));
            oracle.take(part(index));
            oracle.agree(&land);
            assert_low(&land.runs, &land);
        }
    }
}

#[test]
fn nothing_is_free_in_an_empty_land() {
    let mut land = Ground::new(8).land();
    assert_eq!(land.take_first(Layout::new::<u8>()), None);
    assert_eq!(land.take_range(AddrRange::default()), None);
    assert_eq!((land.size(), land.count(), land.largest()), (0, 0, 0));
    land.check(&|_| false).unwrap();
}

#[test]
fn sizes_round_up_to_granules() {
    assert_eq!(Land::granules(0), Some(GRANULE));
    assert_eq!(Land::granules(GRANULE), Some(GRANULE));
    assert_eq!(Land::granules(GRANULE + 1), Some(2 * GRANULE));
    assert_eq!(Land::granules(isize::MAX as usize), None);
    assert_eq!(Land::granules(usize::MAX), None);
}

/// Of blocks that lie badly 63 are passed over, and one that lies behind them is found; behind more it is not.
#[test]
fn a_few_blocks_are_looked_at_for_one_that_lies_well() {
    let at = |bad: usize| {
        let ground = Ground::new(4 * bad + 4);
        let mut land = ground.land();
        for index in 0..bad {
            // SAFETY: the ground is ours and outlives the land; each part is inserted once.
            unsafe { land.insert(ground.part(4 * index + 1, 2)) };
        }
        // SAFETY: another part of the ground.
        unsafe { land.insert(ground.part(4 * bad, 2)) };
        let align = Align::new(4 * GRANULE).unwrap();
        let found = land.take_first_bounded(2 * GRANULE, 2 * GRANULE, align);
        land.check(&|_| true).unwrap();
        found.map(|block| block == ground.part(4 * bad, 2))
    };
    assert_eq!([0, 1, 2, 62, 63].map(at), [Some(true); 5]);
    assert_eq!([64, 100].map(at), [None; 2]);
}

#[test]
fn requests_near_the_end_of_the_address_space_are_refused() {
    let ground = Ground::new(8);
    let mut land = ground.land();
    // SAFETY: the ground is ours and outlives the land.
    unsafe { land.insert(ground.block) };
    let huge = Align::new(1 << (usize::BITS - 1)).unwrap();
    assert_eq!(land.take_first_bounded(usize::MAX, usize::MAX, huge), None);
    assert_eq!(land.take_first_bounded(GRANULE, GRANULE, huge), None);
    assert_eq!(land.size(), 8 * GRANULE);
}

/// A land of several blocks of both kinds, and its ground.
fn damaged_by(damage: impl FnOnce(&Ground)) -> Result<(), tripoint_core::CheckError> {
    let ground = Ground::new(64);
    let mut land = ground.land();
    for index in 0..8 {
        // SAFETY: the ground is ours; the parts are apart from each other.
        unsafe { land.insert(ground.part(8 * index, 1 + index % 3)) };
    }
    let range = ground.block.range();
    land.check(&|addr| range.contains(addr)).unwrap();
    damage(&ground);
    land.check(&|addr| range.contains(addr))
}

/// Changes one word of the ground.
fn scribble(ground: &Ground, granule: usize, word: usize, change: impl FnOnce(usize) -> usize) {
    let words = ground.part(granule, 1).base().cast::<*mut u8>();
    // SAFETY: within the ground or one granule after, aligned; no other thread
    // runs.
    unsafe { words.add(word).write(words.add(word).read().map_addr(change)) };
}

/// The words, all of which the check looks at (design/land.md `.req.check`), that
/// the structure keeps in the damaged land's free blocks.
fn damageable() -> impl Iterator<Item = (usize, usize)> {
    (0..8_usize)
        .flat_map(|index| (0..if index.is_multiple_of(3) { 2 } else { 4 }).map(move |word| (index, word)))
        .step_by((26 / effort(26)) as usize)
}

#[test]
fn the_check_finds_overwritten_words() {
    assert_eq!(damaged_by(|_| ()), Ok(()));
    for (index, word) in damageable() {
        for value in [usize::MAX, 0x5151_5151, 9] {
            let found = damaged_by(|ground| scribble(ground, 8 * index, word, |_| value));
            assert!(found.is_err(), "word {word} of block {index} overwritten with {value:#x}");
        }
    }
}

#[test]
fn the_check_finds_single_bits_changed() {
    for (index, word) in damageable() {
        for bit in (0..usize::BITS).step_by((usize::BITS / effort(usize::BITS)) as usize) {
            let found = damaged_by(|ground| scribble(ground, 8 * index, word, |value| value ^ 1 << bit));
            assert!(found.is_err(), "bit {bit} of word {word} of block {index} changed");
        }
    }
}

#[test]
fn the_check_follows_no_link_out_of_the_pool() {
    let ground = Ground::new(64);
    let mut land = ground.land();
    // SAFETY: the ground is ours and outlives the land.
    unsafe { land.insert(ground.part(4, 4)) };
    let error = land.check(&|_| false).unwrap_err();
    assert_eq!(error.rule, "links lead to memory of the pool");
}

/// Blocks of different trees are held apart only by a walk over both, which passes
/// over one of two that overlap.
#[cfg(not(feature = "hardening"))]
#[test]
fn the_check_finds_blocks_that_touch_or_overlap() {
    let apart = "between two free blocks there is memory in use";
    let whole = "the free blocks add up to the size";
    for (granules, rule) in [(3, apart), (4, whole), (5, apart)] {
        let ground = Ground::new(8);
        let mut land = ground.land();
        for part in [ground.part(0, 2), ground.part(3, 1), ground.part(5, 1)] {
            // SAFETY: the ground is ours; the parts are apart from each other.
            unsafe { land.insert(part) };
        }
        let longer = |word| if word == 2 * GRANULE { granules * GRANULE } else { word };
        for word in 0..4 {
            scribble(&ground, 0, word, longer);
        }
        let range = ground.block.range();
        let error = land.check(&|addr| range.contains(addr)).unwrap_err();
        assert_eq!(error.rule, rule, "{granules}");
    }
}
