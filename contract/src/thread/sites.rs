//! Where events happened, and how many at each place: a table of a fixed size, in which threads enter events without a
//! lock, also in signal handlers (design/contract.md `.sites`).

use std::vec::Vec;

use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_stack::Site;

use crate::thread::observation::Observation;
use crate::thread::ring::RING_RECORDS;
use crate::words::atomics::zeros;
use crate::words::class::{ViolationClass, ViolationSet};

/// The events of one class at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteEvents {
    /// Their class.
    pub class: ViolationClass,
    /// Number of events.
    pub count: usize,
    /// Bytes concerned.
    pub bytes: usize,
    /// The code that caused them.
    pub site: Site,
}

/// Nothing is in a cell.
const FREE: usize = 0;
/// A thread is writing class and site.
const BEING_WRITTEN: usize = 1;
/// Class and site stay as they are.
const WRITTEN: usize = 2;

/// A place, and its events.
struct SiteCell {
    state: AtomicUsize,
    class: AtomicUsize,
    count: AtomicUsize,
    bytes: AtomicUsize,
    frames: [AtomicUsize; Site::FRAMES],
}

impl SiteCell {
    const fn new() -> Self {
        Self {
            state: AtomicUsize::new(FREE),
            class: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            frames: zeros(),
        }
    }

    /// Adds events, if the cell is of their class and site, or free.
    fn add(&self, seen: &Observation, site: &Site) -> bool {
        let is_ours =
            match self.state.compare_exchange(FREE, BEING_WRITTEN, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    self.class.store(seen.class.index(), Ordering::Relaxed);
                    for (to, &frame) in self.frames.iter().zip(site.words()) {
                        to.store(frame, Ordering::Relaxed);
                    }
                    self.state.store(WRITTEN, Ordering::Release);
                    true
                }
                Err(WRITTEN) => self.is_of(seen.class, site),
                // Of another thread, or of the one that a signal handler interrupted: perhaps of the same site, which
                // then has two cells.
                Err(_) => false,
            };
        if is_ours {
            self.count.fetch_add(seen.count, Ordering::Relaxed);
            self.bytes.fetch_add(seen.bytes, Ordering::Relaxed);
        }
        is_ours
    }

    fn is_of(&self, class: ViolationClass, site: &Site) -> bool {
        let is_frame = |(word, &frame): (&AtomicUsize, &usize)| word.load(Ordering::Relaxed) == frame;
        self.class.load(Ordering::Relaxed) == class.index()
            && self.frames.iter().zip(site.words()).all(is_frame)
    }

    fn get(&self) -> Option<SiteEvents> {
        if self.state.load(Ordering::Acquire) != WRITTEN {
            return None;
        }
        Some(SiteEvents {
            class: ViolationClass::from_index(self.class.load(Ordering::Relaxed))?,
            count: self.count.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            site: Site::new(self.frames.iter().map(|frame| frame.load(Ordering::Relaxed))),
        })
    }
}

/// The events of some classes, and the places where they happened. Events for which there is no cell left, or whose
/// place is not known, are not in it.
pub(crate) struct Sites {
    classes: ViolationSet,
    cells: [SiteCell; RING_RECORDS],
}

impl Sites {
    /// An empty table for all events of these classes.
    pub(crate) const fn new(classes: ViolationSet) -> Self {
        Self { classes, cells: [const { SiteCell::new() }; RING_RECORDS] }
    }

    /// Whether events of a class are entered.
    pub(crate) fn takes(&self, class: ViolationClass) -> bool {
        self.classes.contains(ViolationSet::of(class))
    }

    /// Enters events. Allocates nothing and waits for no thread.
    pub(crate) fn enter(&self, seen: &Observation, site: &Site) {
        if *site != Site::UNKNOWN {
            // If there is no cell, it is counted elsewhere.
            let _ = self.cells.iter().any(|cell| cell.add(seen, site));
        }
    }

    /// Empties the table, and writes every page of it. Called while no thread enters events.
    pub(crate) fn reset(&self) {
        for cell in &self.cells {
            cell.count.store(0, Ordering::Relaxed);
            cell.bytes.store(0, Ordering::Relaxed);
            cell.state.store(FREE, Ordering::Relaxed);
        }
    }

    /// What is in the table, in the order in which it was entered.
    pub(crate) fn list(&self) -> Vec<SiteEvents> {
        self.cells.iter().filter_map(SiteCell::get).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn seen(class: ViolationClass, bytes: usize) -> Observation {
        Observation::new(class, bytes)
    }

    fn totals(sites: &Sites, class: ViolationClass) -> (usize, usize) {
        let of_class = sites.list().into_iter().filter(|site| site.class == class);
        of_class.fold((0, 0), |(count, bytes), site| (count + site.count, bytes + site.bytes))
    }

    #[test]
    fn each_class_at_each_site_is_counted() {
        let sites = Sites::new(ViolationSet::all());
        for (class, site, bytes) in [
            (ViolationClass::Alloc, [7, 8], 1),
            (ViolationClass::Alloc, [7, 9], 2),
            (ViolationClass::Growth, [7, 8], 4),
            (ViolationClass::Alloc, [7, 8], 8),
        ] {
            sites.enter(&seen(class, bytes), &Site::new(site));
        }
        let entry = |class, count, bytes, site| SiteEvents { class, count, bytes, site: Site::new(site) };
        let expected = [
            entry(ViolationClass::Alloc, 2, 9, [7, 8]),
            entry(ViolationClass::Alloc, 1, 2, [7, 9]),
            entry(ViolationClass::Growth, 1, 4, [7, 8]),
        ];
        assert_eq!(sites.list(), expected);
        sites.enter(&seen(ViolationClass::Alloc, 1), &Site::UNKNOWN);
        assert_eq!(sites.list(), expected, "it has no place");
        sites.reset();
        assert_eq!(sites.list(), []);
    }

    /// Threads that come upon a site together may give it two cells, and lose no event.
    #[test]
    fn threads_enter_events_at_the_same_time_and_lose_none() {
        const THREADS: usize = 4;
        const EVENTS: usize = 200;
        let sites = Sites::new(ViolationSet::all());
        let (class, few) = (ViolationClass::Alloc, RING_RECORDS / THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for event in 0..EVENTS {
                        sites.enter(&seen(class, 3), &Site::new([1 + event % few]));
                    }
                });
            }
        });
        assert_eq!(totals(&sites, class), (THREADS * EVENTS, 3 * THREADS * EVENTS));
        let found = sites
            .list()
            .into_iter()
            .map(|site| site.site.frames()[0])
            .collect::<std::collections::BTreeSet<_>>();
        assert!(found.into_iter().eq(1..=few));
    }
}
