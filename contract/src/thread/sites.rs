//! Where events happened, and how many at each place: a table of a fixed size, in which threads enter events without a
//! lock, also in signal handlers (design/contract.md `.sites`).

use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_stack::Site;

use crate::thread::observation::Observation;
use crate::thread::ring::RING_RECORDS;
use crate::words::atomics::{const_fn, zeros};
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
#[derive(Debug)]
pub struct SiteCell {
    state: AtomicUsize,
    class: AtomicUsize,
    count: AtomicUsize,
    bytes: AtomicUsize,
    frames: [AtomicUsize; Site::FRAMES],
}

impl Default for SiteCell {
    fn default() -> Self {
        Self::new()
    }
}

impl SiteCell {
    const_fn! {
        /// A cell that is free.
        #[must_use]
        pub fn new() -> Self {
            Self {
                state: AtomicUsize::new(FREE),
                class: AtomicUsize::new(0),
                count: AtomicUsize::new(0),
                bytes: AtomicUsize::new(0),
                frames: zeros(),
            }
        }
    }

    /// Adds events, if the cell is of their class and site, or free. Returns false if it is neither.
    pub fn add(&self, seen: &Observation, site: &Site) -> bool {
        let is_ours = match self.claim() {
            Ok(()) => {
                self.write(seen.class, site);
                self.show();
                true
            }
            Err(WRITTEN) => self.is_of(seen.class, site),
            // Of another thread, or of the one that a signal handler interrupted: perhaps of the same site, which
            // then has two cells.
            Err(_) => false,
        };
        if is_ours {
            self.count(seen);
        }
        is_ours
    }

    /// Claims a cell that is free, to be written.
    ///
    /// # Errors
    /// The state of a cell that is not.
    pub fn claim(&self) -> Result<(), usize> {
        let claimed = self.state.compare_exchange(FREE, BEING_WRITTEN, Ordering::Relaxed, Ordering::Acquire);
        claimed.map(drop)
    }

    /// Writes the class and site of a cell that the caller has claimed.
    pub fn write(&self, class: ViolationClass, site: &Site) {
        self.class.store(class.index(), Ordering::Relaxed);
        for (to, &frame) in self.frames.iter().zip(site.words()) {
            to.store(frame, Ordering::Relaxed);
        }
    }

    /// Shows class and site, which stay as they are from here on.
    pub fn show(&self) {
        self.state.store(WRITTEN, Ordering::Release);
    }

    /// Adds events of the cell's class and site.
    pub fn count(&self, seen: &Observation) {
        self.count.fetch_add(seen.count, Ordering::Relaxed);
        self.bytes.fetch_add(seen.bytes, Ordering::Relaxed);
    }

    fn is_of(&self, class: ViolationClass, site: &Site) -> bool {
        let is_frame = |(word, &frame): (&AtomicUsize, &usize)| word.load(Ordering::Relaxed) == frame;
        self.class.load(Ordering::Relaxed) == class.index()
            && self.frames.iter().zip(site.words()).all(is_frame)
    }

    /// What is in the cell, if that has been shown.
    #[must_use]
    pub fn get(&self) -> Option<SiteEvents> {
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

#[cfg(not(tripoint_loom))]
const fn cells() -> [SiteCell; RING_RECORDS] {
    [const { SiteCell::new() }; RING_RECORDS]
}

#[cfg(tripoint_loom)]
fn cells() -> [SiteCell; RING_RECORDS] {
    core::array::from_fn(|_| SiteCell::new())
}

/// The events of some classes, and the places where they happened. Events for which there is no cell left, or whose
/// place is not known, are counted and no more.
#[derive(Debug)]
pub struct Sites {
    /// The name of the scope that the table is of.
    name: &'static str,
    classes: ViolationSet,
    /// Whether what the contract forgives a registered thread is left out.
    is_forgiving: bool,
    /// The [`ViolationSet`] of which the places are of no interest any more.
    muted: AtomicUsize,
    counts: [AtomicUsize; ViolationClass::COUNT],
    bytes: [AtomicUsize; ViolationClass::COUNT],
    cells: [SiteCell; RING_RECORDS],
}

impl Sites {
    const_fn! {
        /// An empty table for all events of these classes.
        #[must_use]
        pub fn new(classes: ViolationSet) -> Self {
            Self::with("", classes, false)
        }
    }

    const_fn! {
        /// An empty table for a scope of this name, and those events of these classes that the contract does not forgive.
        #[must_use]
        pub fn of_scope(name: &'static str, classes: ViolationSet) -> Self {
            Self::with(name, classes, true)
        }
    }

    const_fn! {
        fn with(name: &'static str, classes: ViolationSet, is_forgiving: bool) -> Self {
            Self {
                name,
                classes,
                is_forgiving,
                muted: AtomicUsize::new(0),
                counts: zeros(),
                bytes: zeros(),
                cells: cells(),
            }
        }
    }

    /// The name of the scope, if there is one.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether what the contract forgives a registered thread is left out.
    pub const fn is_forgiving(&self) -> bool {
        self.is_forgiving
    }

    /// Whether events of a class are entered, if the contract forgives them or not.
    pub fn takes(&self, class: ViolationClass, is_forgiven: bool) -> bool {
        self.classes.contains(ViolationSet::of(class)) && !(self.is_forgiving && is_forgiven)
    }

    /// Enters events. Allocates nothing and waits for no thread. `site` is called only if there is a use for it.
    pub fn enter(&self, seen: &Observation, site: impl FnOnce() -> Site) {
        let index = seen.class.index();
        self.counts[index].fetch_add(seen.count, Ordering::Relaxed);
        self.bytes[index].fetch_add(seen.bytes, Ordering::Relaxed);
        let muted = ViolationSet::from_bits_truncate(self.muted.load(Ordering::Relaxed));
        if muted.contains(ViolationSet::of(seen.class)) {
            return;
        }
        let site = site();
        if site != Site::UNKNOWN {
            // Whether there was a cell shows in the counts.
            let _ = self.cells.iter().any(|cell| cell.add(seen, &site));
        }
    }

    /// Empties the table, and writes every page of it. Called while no thread enters events.
    pub fn reset(&self) {
        for cell in &self.cells {
            cell.count.store(0, Ordering::Relaxed);
            cell.bytes.store(0, Ordering::Relaxed);
            cell.state.store(FREE, Ordering::Relaxed);
        }
        self.counts.iter().chain(&self.bytes).for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Writes every page of a table that may be in use, so that none faults later.
    pub fn prefault(&self) {
        for cell in &self.cells {
            // Writes what is there, whether it is this or not.
            let _ = cell.state.compare_exchange(FREE, FREE, Ordering::Relaxed, Ordering::Relaxed);
        }
        for word in self.counts.iter().chain(&self.bytes) {
            word.fetch_add(0, Ordering::Relaxed);
        }
    }

    /// From now on counts events of these classes without looking for their places.
    pub fn mute(&self, classes: ViolationSet) {
        self.muted.fetch_or(classes.bits(), Ordering::Relaxed);
    }

    /// The number of all events, by the index of their class.
    pub fn counts(&self) -> [usize; ViolationClass::COUNT] {
        self.counts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// The bytes of the events of a class.
    pub fn bytes(&self, class: ViolationClass) -> usize {
        self.bytes[class.index()].load(Ordering::Relaxed)
    }

    /// The first place of a class in the table.
    pub fn first(&self, class: ViolationClass) -> Site {
        let mut sites = self.cells.iter().filter_map(SiteCell::get);
        sites.find(|site| site.class == class).map_or(Site::UNKNOWN, |site| site.site)
    }

    /// What is in the table, in the order in which it was entered.
    pub fn list(&self) -> impl Iterator<Item = SiteEvents> {
        self.cells.iter().filter_map(SiteCell::get)
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use std::thread;
    use std::vec::Vec;

    use super::*;

    fn seen(class: ViolationClass, bytes: usize) -> Observation {
        Observation::new(class, bytes)
    }

    fn totals(sites: &Sites, class: ViolationClass) -> (usize, usize) {
        let of_class = sites.list().filter(|site| site.class == class);
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
            sites.enter(&seen(class, bytes), || Site::new(site));
        }
        let entry = |class, count, bytes, site| SiteEvents { class, count, bytes, site: Site::new(site) };
        let expected = [
            entry(ViolationClass::Alloc, 2, 9, [7, 8]),
            entry(ViolationClass::Alloc, 1, 2, [7, 9]),
            entry(ViolationClass::Growth, 1, 4, [7, 8]),
        ];
        assert_eq!(sites.list().collect::<Vec<_>>(), expected);
        sites.enter(&seen(ViolationClass::Alloc, 1), || Site::UNKNOWN);
        assert_eq!(sites.list().collect::<Vec<_>>(), expected, "it has no place");
        sites.reset();
        assert_eq!(sites.list().count(), 0);
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
                        sites.enter(&seen(class, 3), || Site::new([1 + event % few]));
                    }
                });
            }
        });
        assert_eq!(totals(&sites, class), (THREADS * EVENTS, 3 * THREADS * EVENTS));
        let found = sites.list().map(|site| site.site.frames()[0]).collect::<std::collections::BTreeSet<_>>();
        assert!(found.into_iter().eq(1..=few));
    }
}
