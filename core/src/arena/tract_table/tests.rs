//! Tests of the tract table from inside.

use super::*;
use crate::primitive::Ordering;
use crate::values::check::CheckLevel;
use std::vec::Vec;

const POOL: PoolId = PoolId::new(2).unwrap();

/// Twelve grains: 2..4 and 6..8 spare, 9..10 void, the others allocated.
fn table() -> (TractTable, Vec<Tract>) {
    let entries: Vec<Tract> = (0..16).map(|_| Tract::new()).collect();
    let mut table = TractTable::new(16);
    assert_eq!(table.pop_void(&entries, 12), Ok(0));
    table.allot(&entries, 0, 12, POOL);
    table.give_spare(&entries, 2, 2);
    table.give_spare(&entries, 6, 2);
    table.give_void(&entries, 9, 1);
    (table, entries)
}

/// What a deep check finds after `damage`.
fn found(damage: impl FnOnce(&mut TractTable, &[Tract])) -> &'static str {
    let (mut table, entries) = table();
    damage(&mut table, &entries);
    table.check(&entries, CheckLevel::Deep).map_or_else(|error| error.rule, |()| "whole")
}

#[test]
fn guards_have_no_owner_and_come_back() {
    let (mut table, entries) = table();
    let index = table.pop_void(&entries, 1).unwrap();
    assert!(!table.is_guard(&entries, index));
    table.set_guard(&entries, index);
    assert!(table.is_guard(&entries, index) && !table.is_guard(&entries, 16));
    assert_eq!(TractTable::owner_of(&entries, index), None);
    assert_eq!(table.check(&entries, CheckLevel::Deep), Ok(()));
    assert_ne!(table.pop_void(&entries, 1), Ok(index));
    table.give_void(&entries, index, 1);
    assert!(!table.is_guard(&entries, index));
    assert_eq!(table.pop_void(&entries, 1), Ok(index));
}

/// (design/arena-vm.md `.gaps`)
#[test]
fn grains_of_a_gap_stay_out_and_those_below_it_are_void() {
    let (mut table, entries) = table();
    assert_eq!(table.skip_gap(&entries, 1, 20), Err(17), "as many entries are needed");
    assert_eq!((table.top(), table.capacity(), TractTable::next_gap(&entries, 0)), (12, 16, None));
    let entries: Vec<Tract> = entries.into_iter().chain((16..32).map(|_| Tract::new())).collect();
    assert_eq!(table.skip_gap(&entries, 3, 24), Ok(()));
    assert_eq!(table.check(&entries, CheckLevel::Deep), Ok(()));
    assert_eq!((table.top(), table.capacity()), (19, 24));
    assert_eq!(TractTable::next_gap(&entries, 0), Some((16, 3)));
    assert_eq!(TractTable::next_gap(&entries, 19), None);
    // 9 and 12..16 are void, 19..24 is wilderness: no run goes over the gap.
    assert_eq!(table.pop_void(&entries, 6), Err(TakeError::Limit));
    assert_eq!(table.pop_void(&entries, 5), Ok(19));
    assert_eq!(table.pop_void(&entries, 4), Ok(12));
    assert_eq!(table.pop_void(&entries, 1), Ok(9));
    assert_eq!(table.pop_void(&entries, 1), Err(TakeError::Limit));
    assert!((16..19).all(|grain| TractTable::owner_of(&entries, grain).is_none()));
    table.give_void(&entries, 12, 4);
    table.give_spare(&entries, 19, 5);
    assert_eq!(table.check(&entries, CheckLevel::Deep), Ok(()));
    assert_eq!(table.top(), 24);
    // A gap right at the end of what is in use, and one behind a gap with nothing between that is in use.
    assert_eq!(table.skip_gap(&entries, 1, 26), Ok(()));
    assert_eq!(table.skip_gap(&entries, 2, 30), Ok(()));
    assert_eq!(table.check(&entries, CheckLevel::Deep), Ok(()));
    assert_eq!(TractTable::next_gap(&entries, 19), Some((24, 1)));
    assert_eq!(TractTable::next_gap(&entries, 25), Some((26, 2)));
}

#[test]
fn checks_name_the_rule_that_was_broken() {
    assert_eq!(found(|_, _| ()), "whole");
    assert_eq!(found(|table, _| table.top = 17), "top <= capacity");
    assert_eq!(found(|table, _| table.spare = 13), "spare <= top");
    assert_eq!(found(|table, _| table.spare = 5), "the spare runs add up to the spare count");
    assert_eq!(found(|table, _| table.spare_runs.mask = 1), "the mask tells which lists are empty");
    assert_eq!(found(|table, _| table.void_runs.mask = 0), "the mask tells which lists are empty");
    assert_eq!(found(|table, _| table.spare_runs.heads[1] = 16), "links lead to grains below the top");
    assert_eq!(found(|table, _| table.spare_runs.heads[1] = 9), "a list holds runs of its kind");
    assert_eq!(found(|table, _| table.top = 10), "no void run ends at the top");
}

#[test]
fn checks_find_runs_that_are_lost_or_torn() {
    let lost = |table: &mut TractTable, entries: &[Tract]| {
        table.spare_runs.unlink(entries, 2);
        table.spare -= 2;
    };
    assert_eq!(found(lost), "every spare run is in a list");
    let lost_void = |table: &mut TractTable, entries: &[Tract]| {
        table.void_runs.unlink(entries, 9);
    };
    assert_eq!(found(lost_void), "every void run is in a list");
    let torn = |table: &mut TractTable, entries: &[Tract]| {
        table.spare_runs.unlink(entries, 2);
        table.spare_runs.push(entries, 2, 1);
        table.spare_runs.push(entries, 3, 1);
    };
    assert_eq!(found(torn), "free runs of one kind do not touch");
    let circle = |_: &mut TractTable, entries: &[Tract]| entry(entries, 2).next.store(6, Ordering::Relaxed);
    assert_eq!(found(circle), "links of free runs agree");
}

#[test]
fn runs_are_split_at_the_low_end_and_popped_at_the_high_end() {
    let entries: Vec<Tract> = (0..16).map(|_| Tract::new()).collect();
    let mut table = TractTable::new(16);
    assert_eq!(table.pop_void(&entries, 16), Ok(0));
    table.allot(&entries, 0, 16, POOL);
    table.give_spare(&entries, 4, 8);
    assert_eq!(table.take_spare(&entries, 2, POOL), Some(4));
    assert_eq!(table.pop_spare(&entries, 2, true), Some((10, 2)));
    assert_eq!(table.pop_spare(&entries, u32::MAX, true), Some((6, 4)));
    assert_eq!(table.pop_spare(&entries, 1, true), None);
}

/// (design/arena.md `.tract.fit`)
#[test]
fn a_run_that_is_just_long_enough_is_taken_before_longer_ones() {
    let entries: Vec<Tract> = (0..64).map(|_| Tract::new()).collect();
    let mut table = TractTable::new(64);
    assert_eq!(table.pop_void(&entries, 64), Ok(0));
    table.allot(&entries, 0, 64, POOL);
    table.give_spare(&entries, 2, 4);
    table.give_spare(&entries, 8, 8);
    table.give_spare(&entries, 20, 16);
    assert_eq!(table.take_spare(&entries, 4, POOL), Some(2));
    assert_eq!(table.take_spare(&entries, 9, POOL), Some(20));
    assert_eq!(table.take_spare(&entries, 8, POOL), Some(8));
}

#[test]
fn checks_find_runs_and_links_that_reach_the_top() {
    assert_eq!(found(|table, _| table.spare_runs.heads[1] = 12), "links lead to grains below the top");
    let below = "free runs lie below the top";
    let last = |table: &mut TractTable, entries: &[Tract]| {
        table.give_spare(entries, 10, 2);
        entry(entries, 10).run.store(3, Ordering::Relaxed);
    };
    assert_eq!(found(last), below);
    // Out of its list, and of no length or of too much.
    for count in [0, 11] {
        let unlisted = |table: &mut TractTable, entries: &[Tract]| {
            table.spare_runs.unlink(entries, 2);
            table.spare -= 2;
            entry(entries, 2).run.store(count, Ordering::Relaxed);
        };
        assert_eq!(found(unlisted), below, "{count}");
    }
}

#[test]
fn beyond_the_top_there_are_no_guards() {
    let (table, entries) = table();
    assert!(!table.is_guard(&entries[..12], 12));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic = "free already"]
fn giving_spare_grains_again_is_found() {
    let (mut table, entries) = table();
    table.give_spare(&entries, 2, 2);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic = "free already"]
fn giving_void_grains_again_is_found() {
    let (mut table, entries) = table();
    table.give_void(&entries, 9, 1);
}

#[test]
fn it_describes_the_lists_that_hold_something() {
    let (mut table, entries) = table();
    table.give_spare(&entries, 11, 1);
    let mut text = std::string::String::new();
    table.describe(&entries, &mut text, 1).unwrap();
    let expected = "  tracts: 12 of 16 grains used\n    spare: 5 grains\n    \
        spare runs: 1 of at least 1 grains\n    spare runs: 2 of at least 2 grains\n    \
        void runs: 1 of at least 1 grains\n";
    assert_eq!(text, expected);
}

/// (design/arena.md `.tract.join`)
#[test]
fn joined_grains_know_the_first_until_they_are_allocated_again() {
    let entries: std::vec::Vec<_> = (0..16).map(|_| Tract::new()).collect();
    let mut table = TractTable::new(16);
    assert_eq!(table.pop_void(&entries, 12), Ok(0));
    table.give_spare(&entries, 0, 12);
    assert_eq!(table.take_spare(&entries, 8, POOL), Some(0));
    let first = |index| TractTable::first_joined(&entries, index).map(|(pool, first)| (pool == POOL, first));
    assert_eq!((0..16).filter_map(first).count(), 0, "no grain is joined by being allocated");
    TractTable::join(&entries, 1, 3);
    TractTable::join(&entries, 4, 1);
    let expected = [None, Some((true, 1)), Some((true, 1)), Some((true, 1)), Some((true, 4)), None];
    assert_eq!([0, 1, 2, 3, 4, 5].map(first), expected);
    assert_eq!(table.check(&entries, CheckLevel::Deep), Ok(()));
    table.give_spare(&entries, 1, 4);
    assert_eq!((0..16).filter_map(first).count(), 0, "free grains are not joined");
    assert_eq!(table.take_spare(&entries, 4, POOL), Some(1));
    assert_eq!((0..16).filter_map(first).count(), 0, "nor are those that are allocated again");
    assert_eq!(first(u32::MAX), None);
}
