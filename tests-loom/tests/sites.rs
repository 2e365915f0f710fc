//! The table of sites: threads and signal handlers enter events without a lock, while others read
//! (design/contract.md `.sites`).
//!
//! Bound: none.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{model_unbounded, thread};
use tripoint_contract::internal::{SiteCell, Sites};
use tripoint_contract::{Observation, ViolationClass, ViolationSet};
use tripoint_stack::Site;

type Add = fn(&SiteCell, &Observation, &Site) -> bool;

/// The event of each thread: of its own class, so that a torn cell shows.
fn event(thread: usize) -> (Observation, Site) {
    let class = [ViolationClass::Realloc, ViolationClass::Growth][thread % 2];
    (Observation::new(class, 10 + thread), Site::new([7 + thread]))
}

/// Two cells, in which events are entered as in a table.
struct Cells([SiteCell; 2]);

impl Cells {
    fn new() -> Arc<Self> {
        Arc::new(Self([SiteCell::new(), SiteCell::new()]))
    }

    fn enter(&self, thread: usize, add: Add) {
        let (seen, site) = event(thread);
        assert!(
            self.0.iter().any(|cell| add(cell, &seen, &site)),
            "an event found no cell, and there was one"
        );
    }

    /// Reads each cell. Panics if one is of no event.
    fn read(&self) {
        for found in self.0.iter().filter_map(SiteCell::get) {
            let is = |thread| {
                let (seen, site) = event(thread);
                (seen.class, site) == (found.class, found.site)
            };
            assert!(is(0) || is(1), "a wrong place: torn, {found:?}");
        }
    }

    /// Panics if a thread's events are not as many as these.
    fn expect(&self, thread: usize, events: usize) {
        let (seen, site) = event(thread);
        let found = self.0.iter().filter_map(SiteCell::get).filter(|found| found.site == site);
        let sum = found.fold((0, 0), |(count, bytes), found| (count + found.count, bytes + found.bytes));
        assert_eq!(sum, (events, events * seen.bytes), "a wrong number of events");
    }
}

/// One thread enters an event, and the other reads twice: each on a thread of its own in turn, because loom remembers only the
/// last access to a word.
fn read_while_written(add: Add) {
    model_unbounded(move || {
        let cells = Cells::new();
        let reader = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || (0..2).for_each(|_| cells.read()))
        };
        cells.enter(0, add);
        reader.join().unwrap();
        cells.expect(0, 1);
    });
    model_unbounded(move || {
        let cells = Cells::new();
        let writer = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.enter(0, add))
        };
        (0..2).for_each(|_| cells.read());
        writer.join().unwrap();
        cells.expect(0, 1);
    });
}

/// Two threads enter an event each: of the same site, or of two.
fn enter_together(other: usize, add: Add) {
    model_unbounded(move || {
        let cells = Cells::new();
        let entering = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.enter(other, add))
        };
        cells.enter(0, add);
        entering.join().unwrap();
        cells.read();
        cells.expect(0, 2 - other);
        cells.expect(1, other);
    });
}

#[test]
fn a_place_is_read_whole_or_not_at_all() {
    read_while_written(SiteCell::add);
}

#[test]
fn events_of_two_sites_keep_to_their_cells() {
    enter_together(1, SiteCell::add);
}

#[test]
fn no_event_of_one_site_is_lost() {
    enter_together(0, SiteCell::add);
}

/// The numbers of the table are there when the event has been entered, whatever becomes of its place.
#[test]
fn a_table_counts_every_event() {
    model_unbounded(|| {
        let sites = Arc::new(Sites::new(ViolationSet::all()));
        let entering = {
            let sites = Arc::clone(&sites);
            thread::spawn(move || {
                let (seen, site) = event(0);
                sites.enter(&seen, || site);
            })
        };
        let (seen, site) = event(0);
        sites.enter(&seen, || site);
        entering.join().unwrap();
        assert_eq!(sites.counts()[seen.class.index()], 2);
        assert_eq!(sites.list().map(|found| found.count).sum::<usize>(), 2);
    });
}

/// The twin: a place is shown before it is written.
#[test]
#[should_panic(expected = "a wrong place")]
fn showing_before_writing_tears() {
    read_while_written(|cell, seen, site| {
        let is_claimed = cell.claim().is_ok();
        if is_claimed {
            cell.show();
            cell.write(seen.class, site);
            cell.count(seen);
        }
        is_claimed
    });
}

/// The twin: a thread takes a cell that it found free, and does not look whether another has taken it meanwhile.
#[test]
#[should_panic(expected = "a wrong")]
fn taking_what_was_free_mixes_two_sites() {
    enter_together(1, |cell, seen, site| {
        let was_free = cell.get().is_none();
        if was_free {
            cell.write(seen.class, site);
            cell.show();
            cell.count(seen);
        }
        was_free
    });
}

/// The twin: an event whose cell is being written is dropped.
#[test]
#[should_panic(expected = "a wrong number of events")]
fn leaving_a_cell_that_is_being_written_loses_events() {
    enter_together(0, |cell, seen, site| cell.add(seen, site) || cell.get().is_none());
}
