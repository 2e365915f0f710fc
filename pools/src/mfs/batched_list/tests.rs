//! The list against a naive oracle: the addresses of what is listed (design/pool-mfs.md `.mfs.batches`).

use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use tripoint_core::PoolId;
use tripoint_oracle::{cases, effort};

use super::*;
use crate::link::Health;

const WORD: usize = size_of::<usize>();
const UNITS: usize = 200;

/// Memory that is units.
struct Ground {
    _words: Vec<usize>,
    units: Block,
    unit: usize,
    key: LinkKey,
}

impl Ground {
    fn new(unit: usize) -> Self {
        let mut words = vec![0_usize; UNITS * unit / WORD];
        let base = NonNull::from(words.as_mut_slice()).cast();
        // SAFETY: the words of the vector, which lives as long as the block.
        let units = unsafe { Block::new(base, UNITS * unit) };
        Self { _words: words, units, unit, key: LinkKey::new(units.range(), PoolId::new(7).unwrap()) }
    }

    fn unit(&self, index: usize) -> NonNull<u8> {
        self.units.split_at(index * self.unit).unwrap().1.base()
    }

    fn index_of(&self, unit: NonNull<u8>) -> usize {
        (unit.addr().get() - self.units.base().addr().get()) / self.unit
    }

    /// Puts units that do not touch into a list, one by one.
    fn push_scattered(&self, list: &mut BatchedList, count: usize) {
        for index in 0..count {
            // SAFETY: a unit of the ground that nothing uses, and that is in no list.
            unsafe { list.push(self.unit(index * 37 % UNITS)) };
        }
    }

    /// A chain of these units.
    fn chain(&self, indices: &[usize]) -> Option<Chain> {
        let (first, others) = indices.split_first()?;
        // SAFETY: a unit of the ground that nothing uses, and that is in no list.
        let mut chain = unsafe { Chain::of(self.unit(*first), self.key) };
        for &index in others {
            // SAFETY: a unit of the ground that nothing uses, and that is in no list.
            unsafe { chain.push(self.unit(index)) };
        }
        Some(chain)
    }

    /// The units of a chain, by their links.
    fn indices(&self, chain: &Chain) -> Vec<usize> {
        let health = Health::new();
        let (mut next, mut indices) = (Some(chain.first()), Vec::new());
        while let Some(unit) = next.filter(|_| indices.len() < chain.count()) {
            indices.push(self.index_of(unit.cast()));
            // SAFETY: a unit of the chain, which this test holds.
            next = unsafe { FreeBlock::next(unit, Watch::new(self.key, &health)) };
        }
        assert_eq!(indices.last(), Some(&self.index_of(chain.last().cast())));
        assert_eq!(indices.len(), chain.count());
        indices
    }

    /// Compares what is listed, and follows all batches.
    fn agree(&self, list: &BatchedList, listed: &BTreeSet<usize>) {
        assert_eq!(list.count(), listed.len());
        let (mut batches, mut next, mut seen) = (list.batches(), list.first(), BTreeSet::new());
        while let Some(unit) = next {
            assert!(seen.insert(self.index_of(unit.cast())), "a circle");
            // SAFETY: a unit of the list, which this test holds.
            assert!(unsafe { batches.step(unit) }, "unit {}", seen.len());
            // SAFETY: the unit is of the list, so it begins with its link.
            next = unsafe { FreeBlock::next(unit, list.watch()) };
        }
        assert_eq!(&seen, listed);
        list.ensure_sound().unwrap();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    PushChain(usize),
    Pop,
    Take(usize),
    TakeRun(usize),
    TakeBelow(usize),
    Sort,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..40_usize).prop_map(Step::Push),
        2 => (1..60_usize).prop_map(Step::PushChain),
        4 => Just(Step::Pop),
        3 => (1..40_usize).prop_map(Step::Take),
        2 => (1..40_usize).prop_map(Step::TakeRun),
        1 => (0..=UNITS).prop_map(Step::TakeBelow),
        1 => Just(Step::Sort),
    ]
}

/// `words` a unit; units that are not listed are used in an order that `stride` makes.
fn run(words: usize, batch: usize, stride: usize, steps: &[Step]) {
    let ground = Ground::new(words * WORD);
    let mut list = BatchedList::of(ground.key, ground.unit, batch);
    let mut listed = BTreeSet::new();
    let mut others: Vec<usize> = (0..UNITS).map(|index| index * stride % UNITS).collect();
    for step in steps {
        let taken = match *step {
            Step::Push(count) => {
                for index in others.split_off(others.len().saturating_sub(count)) {
                    // SAFETY: a unit of the ground that nothing uses, and that is in no list.
                    unsafe { list.push(ground.unit(index)) };
                    listed.insert(index);
                }
                Vec::new()
            }
            Step::PushChain(count) => {
                let indices = others.split_off(others.len().saturating_sub(count));
                if let Some(chain) = ground.chain(&indices) {
                    list.push_chain(chain);
                }
                listed.extend(indices);
                Vec::new()
            }
            Step::Pop => list.pop().unwrap().map(|unit| ground.index_of(unit)).into_iter().collect(),
            Step::Take(most) => {
                let taken = list.take(most).unwrap().map_or(Vec::new(), |chain| ground.indices(&chain));
                assert!(taken.len() <= most);
                taken
            }
            Step::TakeRun(most) => {
                let run = list.take_run(ground.unit, most * ground.unit).unwrap();
                let taken: Vec<usize> = run.map_or(Vec::new(), |run| {
                    let first = ground.index_of(run.base());
                    (first..first + run.size() / ground.unit).collect()
                });
                assert!(taken.len() <= most);
                taken
            }
            Step::TakeBelow(index) => {
                list.sort();
                let limit = ground.units.base().as_ptr().wrapping_add(index * ground.unit);
                let below = list.take_below(NonNull::new(limit).unwrap());
                let taken = below.map_or(Vec::new(), |chain| ground.indices(&chain));
                assert!(taken.iter().copied().eq(listed.range(..index).copied()), "all below, in order");
                taken
            }
            Step::Sort => {
                list.sort();
                Vec::new()
            }
        };
        assert!(
            !matches!(step, Step::Pop | Step::Take(_) | Step::TakeRun(_))
                || taken.is_empty() == listed.is_empty()
        );
        for index in taken {
            assert!(listed.remove(&index), "taken twice: {index}");
            others.push(index);
        }
        ground.agree(&list, &listed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_listed_is_taken_once(
        words in 1..6_usize,
        batch in prop_oneof![Just(1_usize), Just(2), Just(7), Just(16)],
        stride in prop_oneof![Just(1_usize), Just(199), Just(37)],
        steps in prop::collection::vec(step(), 1..effort(80) as usize),
    ) {
        run(words, batch, stride, &steps);
    }
}

/// Units pushed one by one are taken as whole batches, but for those that are left.
#[test]
fn batches_are_whole() {
    let ground = Ground::new(3 * WORD);
    let mut list = BatchedList::of(ground.key, ground.unit, 16);
    ground.push_scattered(&mut list, UNITS);
    let counts: Vec<_> = core::iter::from_fn(|| list.take(16).unwrap().map(|chain| chain.count())).collect();
    assert_eq!(counts, [vec![16; UNITS / 16], vec![UNITS % 16]].concat());
}

/// After one unit of a batch was taken, so is the rest of it, and not a part of the next.
#[test]
fn the_rest_of_a_batch_is_taken_in_one_step() {
    let ground = Ground::new(3 * WORD);
    let mut list = BatchedList::of(ground.key, ground.unit, 16);
    ground.push_scattered(&mut list, 48);
    assert_eq!(list.take_run(ground.unit, 100 * ground.unit).unwrap().unwrap().size(), ground.unit);
    assert_eq!(list.take(15).unwrap().unwrap().count(), 15);
    assert!(LinkKey::CHECKS || list.open.count == 0);
}

/// While one unit is freed for each that is used, batches stay whole.
#[test]
fn what_was_freed_since_is_not_the_next_batch() {
    for few in [1, 3, 9] {
        let ground = Ground::new(3 * WORD);
        let mut list = BatchedList::of(ground.key, ground.unit, 16);
        ground.push_scattered(&mut list, 160 + few);
        let (mut taken, mut takes) = (Vec::new(), 0);
        for _ in 0..320 {
            if taken.is_empty() {
                taken = ground.indices(&list.take(16).unwrap().unwrap());
                takes += 1;
            }
            // SAFETY: a unit that was taken, which nothing uses, and that is in no list.
            unsafe { list.push(ground.unit(taken.pop().unwrap())) };
        }
        assert_eq!(takes, 320 / 16, "{few}");
    }
}

/// Batches that are not whole do not pile up.
#[test]
fn small_batches_are_joined() {
    let ground = Ground::new(3 * WORD);
    let mut list = BatchedList::of(ground.key, ground.unit, 16);
    let mut others: Vec<usize> = (0..UNITS).map(|index| index * 37 % UNITS).collect();
    while others.len() >= 16 {
        list.push_chain(ground.chain(&others.split_off(others.len() - 16)).unwrap());
        for _ in 0..15 {
            others.push(ground.index_of(list.pop().unwrap().unwrap()));
        }
    }
    let count = list.count();
    let takes = core::iter::from_fn(|| list.take(16).unwrap()).count();
    assert_eq!(takes, count.div_ceil(16));
}

/// Whichever word of a batch's end is written over, a check finds it.
#[cfg(not(feature = "hardening"))]
#[test]
fn a_wrong_end_is_found() {
    let wrong = |words: &[usize], value: usize| {
        let ground = Ground::new(3 * WORD);
        let mut list = BatchedList::of(ground.key, ground.unit, 16);
        for index in 0..56 {
            // SAFETY: a unit of the ground that nothing uses, and that is in no list.
            unsafe { list.push(ground.unit(index)) };
        }
        for &word in words {
            // SAFETY: a word of the unit that the batch behind the open one begins with.
            let slot = unsafe { ground.unit(47).cast::<usize>().add(word) };
            // SAFETY: the slot is a word of that unit, which this test holds.
            unsafe { slot.write(value) };
        }
        let (mut batches, mut next) = (list.batches(), list.first());
        let mut is_found = false;
        while let Some(unit) = next.filter(|_| !is_found) {
            // SAFETY: a unit of the list, which this test holds.
            is_found = !unsafe { batches.step(unit) };
            // SAFETY: the unit is of the list, so it begins with its link.
            next = unsafe { FreeBlock::next(unit, list.watch()) };
        }
        is_found
    };
    assert!(!wrong(&[], 0));
    for words in [&[1][..], &[2], &[1, 2]] {
        for value in [0, 1, 15, 17, 33, 0x4141_4141, usize::MAX] {
            assert!(wrong(words, value), "{words:?}, {value:#x}");
        }
    }
}
