//! The tract table against a plain array of states.
//! (design/arena.md `.req.check`.)
#![cfg(not(tripoint_loom))]

use proptest::prelude::*;
use tripoint_core::internal::{AtomicU32, Ordering, PageState, TakeError, Tract, TractTable};
use tripoint_core::{CheckLevel, PoolId};
use tripoint_oracle::{cases, effort};

// Miri walks all entries whenever they are lent.
const CAPACITY: u32 = if cfg!(miri) { 24 } else { 96 };

fn pool(serial: u32) -> PoolId {
    PoolId::new(serial).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grain {
    Void,
    Spare,
    Popped,
    Owned(PoolId),
}

#[derive(Clone, Debug)]
enum Step {
    TakeSpare(u32, u32),
    TakeVoid(u32, u32),
    /// A run that is allocated, a part of it, and whether it stays committed.
    Give(prop::sample::Index, prop::sample::Index, prop::sample::Index, bool),
    Pop(u32, bool),
    GivePopped(prop::sample::Index, bool),
    Unregister(u32, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let count = prop_oneof![3 => 0..8u32, 1 => 8..CAPACITY + 2];
    let serial = 2..6u32;
    prop_oneof![
        4 => (count.clone(), serial.clone()).prop_map(|(count, serial)| Step::TakeSpare(count, serial)),
        4 => (count.clone(), serial.clone()).prop_map(|(count, serial)| Step::TakeVoid(count, serial)),
        6 => any::<(prop::sample::Index, prop::sample::Index, prop::sample::Index, bool)>()
            .prop_map(|(run, from, size, spare)| Step::Give(run, from, size, spare)),
        2 => (0..12u32, any::<bool>()).prop_map(|(count, may_divide)| Step::Pop(count, may_divide)),
        2 => any::<(prop::sample::Index, bool)>().prop_map(|(run, spare)| Step::GivePopped(run, spare)),
        1 => (serial, any::<bool>()).prop_map(|(serial, spare)| Step::Unregister(serial, spare)),
    ]
}

/// The table, the array, and the allocated runs.
struct Oracle {
    table: TractTable,
    entries: Vec<Tract>,
    grains: Vec<Grain>,
    allocated: Vec<(u32, u32)>,
    popped: Vec<(u32, u32)>,
}

impl Oracle {
    fn new() -> Self {
        Self {
            table: TractTable::new(CAPACITY),
            entries: Vec::new(),
            grains: vec![Grain::Void; CAPACITY as usize],
            allocated: Vec::new(),
            popped: Vec::new(),
        }
    }

    fn top(&self) -> u32 {
        self.grains.iter().rposition(|&grain| grain != Grain::Void).map_or(0, |last| last as u32 + 1)
    }

    /// The longest run of grains of one state in `from..to`.
    fn longest(&self, state: Grain, from: u32, to: u32) -> u32 {
        let mut longest = 0;
        let mut length = 0;
        for &grain in &self.grains[from as usize..to as usize] {
            length = if grain == state { length + 1 } else { 0 };
            longest = longest.max(length);
        }
        longest
    }

    /// Changes grains that must all have been `from`.
    fn change(&mut self, index: u32, count: u32, from: Grain, to: Grain) {
        for grain in &mut self.grains[index as usize..][..count as usize] {
            assert_eq!(*grain, from);
            *grain = to;
        }
    }

    fn take_spare(&mut self, count: u32, owner: PoolId) {
        let fits = count > 0 && self.longest(Grain::Spare, 0, CAPACITY) >= count;
        let taken = self.table.take_spare(&self.entries, count, owner);
        assert_eq!(taken.is_some(), fits);
        if let Some(index) = taken {
            self.change(index, count, Grain::Spare, Grain::Owned(owner));
            self.allocated.push((index, count));
        }
    }

    fn take_void(&mut self, count: u32, owner: PoolId) {
        let top = self.top();
        let below = count > 0 && self.longest(Grain::Void, 0, top) >= count;
        let above = count > 0 && count <= CAPACITY - top;
        let mut taken = self.table.pop_void(&self.entries, count);
        if let Err(TakeError::Entries(needed)) = taken {
            assert!(!below && above);
            assert_eq!(needed, top + count);
            assert!(needed as usize > self.entries.len());
            self.entries.resize_with(needed as usize, Tract::new);
            taken = self.table.pop_void(&self.entries, count);
        }
        match taken {
            Ok(index) => {
                assert!(if below { index + count <= top } else { index == top && above });
                let owned = |index| TractTable::owner_of(&self.entries, index).is_some();
                assert!(!(index..index + count).any(owned), "an owner before there is memory");
                self.table.allot(&self.entries, index, count, owner);
                self.change(index, count, Grain::Void, Grain::Owned(owner));
                self.allocated.push((index, count));
            }
            Err(error) => {
                assert_eq!(error, TakeError::Limit);
                assert!(!below && !above);
            }
        }
    }

    fn give(&mut self, index: u32, count: u32, spare: bool) {
        let (to, from) = (if spare { Grain::Spare } else { Grain::Void }, self.grains[index as usize]);
        self.change(index, count, from, to);
        if spare {
            self.table.give_spare(&self.entries, index, count);
        } else {
            self.table.give_void(&self.entries, index, count);
        }
    }

    fn give_part(
        &mut self,
        run: prop::sample::Index,
        from: prop::sample::Index,
        size: prop::sample::Index,
        spare: bool,
    ) {
        if self.allocated.is_empty() {
            return;
        }
        let (index, count) = self.allocated.swap_remove(run.index(self.allocated.len()));
        let skip = from.index(count as usize) as u32;
        let given = 1 + size.index((count - skip) as usize) as u32;
        let rest = [(index, skip), (index + skip + given, count - skip - given)];
        self.allocated.extend(rest.iter().filter(|(_, count)| *count > 0));
        self.give(index + skip, given, spare);
    }

    /// Whether a grain is neither committed nor about to be.
    fn is_hole(&self, index: u32) -> bool {
        self.grains.get(index as usize).is_none_or(|&grain| grain == Grain::Void)
    }

    /// Whether there are no more runs of committed memory after taking these grains.
    fn is_at_hole(&self, index: u32, count: u32) -> bool {
        self.is_hole(index + count) || index > 0 && self.is_hole(index - 1)
    }

    fn pop(&mut self, max_count: u32, may_divide: bool) {
        let most = self.longest(Grain::Spare, 0, CAPACITY);
        let spare = self.runs(|grain| grain == Grain::Spare);
        let possible = if may_divide {
            most > 0
        } else {
            spare.iter().any(|&(index, count)| self.is_at_hole(index, count))
        };
        let popped = self.table.pop_spare(&self.entries, max_count, may_divide);
        if let Some((index, count)) = popped {
            assert!(possible && count <= max_count && count <= most);
            if may_divide {
                // One of the longest runs by power of two: more than half the longest.
                assert!(count == max_count || count > most / 2);
            } else {
                assert!(self.is_at_hole(index, count), "no hole more than before");
            }
            self.change(index, count, Grain::Spare, Grain::Popped);
            self.popped.push((index, count));
        } else {
            // Only a few runs are searched for one that lies next to a hole.
            assert!(!possible || max_count == 0 || !may_divide && spare.len() > 16);
        }
    }

    fn unregister(&mut self, owner: PoolId, spare: bool) {
        let pieces: Vec<_> = TractTable::pieces_of(&self.entries, owner).collect();
        for (index, count) in pieces {
            self.give(index, count, spare);
        }
        assert!(!self.grains.contains(&Grain::Owned(owner)));
        let grains = &self.grains;
        self.allocated.retain(|&(index, _)| matches!(grains[index as usize], Grain::Owned(_)));
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::TakeSpare(count, serial) => self.take_spare(count, pool(serial)),
            Step::TakeVoid(count, serial) => self.take_void(count, pool(serial)),
            Step::Give(run, from, size, spare) => self.give_part(run, from, size, spare),
            Step::Pop(max_count, may_divide) => self.pop(max_count, may_divide),
            Step::GivePopped(run, spare) if !self.popped.is_empty() => {
                let (index, count) = self.popped.swap_remove(run.index(self.popped.len()));
                self.give(index, count, spare);
            }
            Step::GivePopped(..) => {}
            Step::Unregister(serial, spare) => self.unregister(pool(serial), spare),
        }
    }

    /// The runs of grains for which `wanted` holds, as the array has them.
    fn runs(&self, wanted: impl Fn(Grain) -> bool) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for (index, _) in self.grains.iter().enumerate().filter(|&(_, &grain)| wanted(grain)) {
            let index = index as u32;
            match runs.last_mut() {
                Some((first, count)) if *first + *count == index => *count += 1,
                _ => runs.push((index, 1)),
            }
        }
        runs
    }

    fn compare_runs(&self) {
        let walk = |next: &dyn Fn(u32) -> Option<(u32, u32)>| {
            let runs = core::iter::successors(next(0), |&(index, count)| next(index + count));
            runs.collect::<Vec<_>>()
        };
        for owner in (2..6).map(pool) {
            let found = walk(&|from| TractTable::next_owned(&self.entries, from, owner));
            assert_eq!(found, self.runs(|grain| grain == Grain::Owned(owner)));
        }
        let committed = PageState::ALLOCATED | PageState::SPARE;
        let found = walk(&|from| TractTable::next_run(&self.entries, from, committed));
        assert_eq!(found, self.runs(|grain| matches!(grain, Grain::Owned(_) | Grain::Spare)));
        let found = walk(&|from| TractTable::next_run(&self.entries, from, PageState::POPPED));
        assert_eq!(found, self.runs(|grain| grain == Grain::Popped));
    }

    fn compare(&self) {
        self.compare_runs();
        self.table.check(&self.entries, CheckLevel::Deep).unwrap();
        assert_eq!(self.table.top(), self.top());
        let spare = self.grains.iter().filter(|&&grain| grain == Grain::Spare).count();
        assert_eq!(self.table.spare() as usize, spare);
        let void = self.runs(|grain| grain == Grain::Void);
        let holes = void.iter().filter(|(index, _)| *index < self.top()).count();
        assert_eq!(self.table.holes() as usize, holes);
        for (index, &grain) in self.grains.iter().enumerate() {
            let owner = if let Grain::Owned(owner) = grain { Some(owner) } else { None };
            assert_eq!(TractTable::owner_of(&self.entries, index as u32), owner);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(192)))]

    #[test]
    fn agrees_with_an_array(steps in prop::collection::vec(step(), 1..effort(120) as usize)) {
        let mut oracle = Oracle::new();
        for step in &steps {
            oracle.apply(step);
            oracle.compare();
        }
    }
}

/// (design/arena.md `.tract.piece`)
#[test]
#[cfg_attr(miri, ignore = "a table of thousands of entries")]
fn a_pool_is_dismissed_in_pieces_of_bounded_size() {
    let grains = 4 * TractTable::PIECE + 3;
    let entries: Vec<Tract> = (0..grains).map(|_| Tract::new()).collect();
    let mut table = TractTable::new(grains);
    assert_eq!(table.pop_void(&entries, grains), Ok(0));
    let (split, rest) = (TractTable::PIECE + 7, 2 * TractTable::PIECE + 9);
    table.allot(&entries, 0, split, pool(2));
    table.allot(&entries, split, rest - split, pool(3));
    table.allot(&entries, rest, grains - rest, pool(2));
    let pieces: Vec<_> = TractTable::pieces_of(&entries, pool(2)).collect();
    let whole = TractTable::PIECE;
    assert_eq!(pieces, [(0, whole), (whole, 7), (rest, whole), (rest + whole, grains - rest - whole),]);
    assert_eq!(TractTable::pieces_of(&entries, pool(4)).count(), 0);
    for (index, count) in TractTable::pieces_of(&entries, pool(2)) {
        table.give_spare(&entries, index, count);
        table.check(&entries, CheckLevel::Deep).unwrap();
    }
    assert_eq!(table.spare(), grains - (rest - split));
}

/// (design/arena-vm.md `.mappings`)
#[test]
fn guards_count_as_holes_while_they_are_there() {
    let entries: Vec<Tract> = (0..8).map(|_| Tract::new()).collect();
    let mut table = TractTable::new(8);
    for index in [0, 4] {
        assert_eq!(table.pop_void(&entries, 4), Ok(index));
        table.allot(&entries, index, 3, pool(2));
        table.set_guard(&entries, index + 3);
    }
    assert_eq!(table.holes(), 2);
    table.check(&entries, CheckLevel::Deep).unwrap();
    table.give_void(&entries, 1, 3);
    assert_eq!(table.holes(), 2, "a void run in place of a guard");
    table.give_void(&entries, 4, 4);
    assert_eq!((table.holes(), table.top()), (0, 1));
    table.check(&entries, CheckLevel::Deep).unwrap();
}

/// A table with allocated, spare, void and popped grains, two runs in one list.
fn mixed() -> (TractTable, Vec<Tract>) {
    let entries: Vec<Tract> = (0..64).map(|_| Tract::new()).collect();
    let mut table = TractTable::new(64);
    assert_eq!(table.pop_void(&entries, 40), Ok(0));
    table.allot(&entries, 0, 40, pool(2));
    table.give_spare(&entries, 1, 3);
    table.give_spare(&entries, 6, 2);
    table.give_spare(&entries, 20, 1);
    table.give_spare(&entries, 30, 5);
    table.give_void(&entries, 10, 3);
    table.give_void(&entries, 15, 2);
    assert_eq!(table.pop_spare(&entries, 1, true), Some((34, 1)));
    (table, entries)
}

/// The words of an entry: owner and state, run, prev, next.
fn words(tract: &Tract) -> &[AtomicU32; 4] {
    assert_eq!(size_of::<Tract>(), 16);
    // SAFETY: a `Tract` is four `AtomicU32` in C order, so it has their size and
    // alignment, and shared references to atomics may write.
    unsafe { &*core::ptr::from_ref(tract).cast() }
}

#[test]
fn checks_find_every_damaged_bit_that_matters() {
    let (table, entries) = mixed();
    table.check(&entries, CheckLevel::Deep).unwrap();
    let first = [1, 6, 20, 30, 10, 15];
    let last = [3, 7, 20, 33, 12, 16];
    for (index, tract) in entries.iter().enumerate().take(table.top() as usize) {
        let mut bits: Vec<(usize, u32)> = (24..32).map(|bit| (0, bit)).collect();
        if first.contains(&index) || last.contains(&index) {
            bits.extend((0..32).map(|bit| (1, bit)));
        }
        if first.contains(&index) {
            bits.extend((0..32).flat_map(|bit| [(2, bit), (3, bit)]));
        }
        for (word, bit) in bits {
            words(tract)[word].fetch_xor(1 << bit, Ordering::Relaxed);
            assert!(table.check(&entries, CheckLevel::Deep).is_err(), "grain {index} word {word} bit {bit}");
            words(tract)[word].fetch_xor(1 << bit, Ordering::Relaxed);
        }
    }
    table.check(&entries, CheckLevel::Deep).unwrap();
}

#[test]
fn checks_find_too_few_entries_and_owners_of_free_grains() {
    let (table, entries) = mixed();
    assert!(table.check(&entries[..39], CheckLevel::Shallow).is_err());
    assert!(table.check(&entries[..39], CheckLevel::Cheap).is_ok());
    words(&entries[2])[0].fetch_or(7, Ordering::Relaxed);
    assert!(table.check(&entries, CheckLevel::Shallow).is_ok());
    assert!(table.check(&entries, CheckLevel::Deep).is_err());
}

#[test]
fn large_capacities_do_not_wrap() {
    let entries: Vec<Tract> = (0..4).map(|_| Tract::new()).collect();
    let mut table = TractTable::new(u32::MAX);
    assert_eq!(table.pop_void(&entries, 4), Ok(0));
    table.allot(&entries, 0, 4, pool(2));
    assert_eq!(table.pop_void(&entries, u32::MAX), Err(TakeError::Limit));
    assert_eq!(table.pop_void(&entries, u32::MAX - 4), Err(TakeError::Entries(u32::MAX)));
    table.give_spare(&entries, 0, 4);
    assert_eq!(table.take_spare(&entries, u32::MAX, pool(2)), None);
    assert_eq!(table.take_spare(&entries, (1 << 31) + 1, pool(2)), None);
    assert_eq!(table.take_spare(&entries, 4, pool(2)), Some(0));
}

#[test]
fn describes_its_runs() {
    let (table, entries) = mixed();
    let mut text = String::new();
    table.describe(&entries, &mut text, 0).unwrap();
    assert!(text.contains("40 of 64 grains used"), "{text}");
    assert!(text.contains("spare: 10 grains"), "{text}");
    assert!(text.contains("void runs: 2 of at least 2 grains"), "{text}");
}
