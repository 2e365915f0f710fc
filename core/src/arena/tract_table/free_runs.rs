//! The free runs of one kind, in lists by length.

use core::fmt;

use super::entry::{NONE, PageState, Tract, entry, range, set_free};
use super::run_bins::{BINS, bin_of, sure};
use crate::primitive::Ordering;
use crate::values::check::{CheckError, ensure};
use crate::values::describe::line;

/// The name of the structure in check results.
pub(super) const TABLE: &str = "TractTable";

/// The free runs of one kind: a list for each power of two, and a bit for each list
/// that is not empty.
#[derive(Debug)]
pub(super) struct FreeRuns {
    kind: PageState,
    pub(super) heads: [u32; BINS],
    pub(super) mask: u32,
    /// The number of runs.
    runs: u32,
}

impl FreeRuns {
    pub(super) const fn new(kind: PageState) -> Self {
        Self { kind, heads: [NONE; BINS], mask: 0, runs: 0 }
    }

    /// The number of runs.
    pub(super) const fn count(&self) -> u32 {
        self.runs
    }

    /// The runs of a list, by the index of their first grain.
    fn list<'entries>(&self, entries: &'entries [Tract], bin: usize) -> impl Iterator<Item = u32> + 'entries {
        let link = |index: u32| (index != NONE).then_some(index);
        core::iter::successors(link(self.heads[bin]), move |&index| link(entry(entries, index).next()))
    }

    /// One of the longest runs, by power of two.
    pub(super) fn longest(&self) -> Option<u32> {
        self.mask.checked_ilog2().map(|bin| self.heads[bin as usize])
    }

    /// All runs, from the list of the longest to that of the shortest.
    pub(super) fn longest_first<'a>(&'a self, entries: &'a [Tract]) -> impl Iterator<Item = u32> + 'a {
        (0..BINS).rev().flat_map(|bin| self.list(entries, bin))
    }

    /// A run of at least `count` grains. Takes constant time, unless only the
    /// request's own list can have one, which is then searched to its end.
    fn find(&self, entries: &[Tract], count: u32) -> Option<u32> {
        let sure = sure(self.mask, count);
        if sure != 0 {
            return Some(self.heads[sure.trailing_zeros() as usize]);
        }
        self.list(entries, bin_of(count)).find(|&index| entry(entries, index).run() >= count)
    }

    /// Puts a run into its list. Its grains are marked already.
    pub(super) fn push(&mut self, entries: &[Tract], index: u32, count: u32) {
        let bin = bin_of(count);
        let first = entry(entries, index);
        first.run.store(count, Ordering::Relaxed);
        entry(entries, index + count - 1).run.store(count, Ordering::Relaxed);
        first.prev.store(NONE, Ordering::Relaxed);
        first.next.store(self.heads[bin], Ordering::Relaxed);
        if self.heads[bin] != NONE {
            entry(entries, self.heads[bin]).prev.store(index, Ordering::Relaxed);
        }
        self.heads[bin] = index;
        self.mask |= 1 << bin;
        self.runs += 1;
    }

    /// Takes a run out of its list and returns its length.
    pub(super) fn unlink(&mut self, entries: &[Tract], index: u32) -> u32 {
        let first = entry(entries, index);
        let (count, prev, next) = (first.run(), first.prev(), first.next());
        self.runs -= 1;
        if next != NONE {
            entry(entries, next).prev.store(prev, Ordering::Relaxed);
        }
        if prev != NONE {
            entry(entries, prev).next.store(next, Ordering::Relaxed);
        } else {
            let bin = bin_of(count);
            self.heads[bin] = next;
            if next == NONE {
                self.mask &= !(1 << bin);
            }
        }
        count
    }

    /// Finds a run, returns the index of its first `count` grains and keeps the rest.
    pub(super) fn take(&mut self, entries: &[Tract], count: u32) -> Option<u32> {
        let index = self.find(entries, count)?;
        let rest = self.unlink(entries, index) - count;
        if rest > 0 {
            self.push(entries, index + count, rest);
        }
        Some(index)
    }

    /// Takes the neighbours of a run out of their lists if they are of this kind, and
    /// returns the run that they make together with it.
    pub(super) fn coalesce(&mut self, entries: &[Tract], index: u32, count: u32, top: u32) -> (u32, u32) {
        let (mut first, mut limit) = (index, index + count);
        if first > 0 && entry(entries, first - 1).state() == self.kind {
            first -= entry(entries, first - 1).run();
            self.unlink(entries, first);
        }
        if limit < top && entry(entries, limit).state() == self.kind {
            limit += self.unlink(entries, limit);
        }
        (first, limit - first)
    }

    /// Marks grains as free of this kind, whatever they were.
    pub(super) fn mark(&self, entries: &[Tract], index: u32, count: u32) {
        set_free(entries, index, count, self.kind);
    }

    /// Checks every list, and returns the number of runs and of grains in them. A list
    /// that runs in a cycle is found, because each run has only one link back.
    pub(super) fn check(&self, entries: &[Tract], top: u32) -> Result<FreeCounts, CheckError> {
        let mut found = FreeCounts::default();
        for (bin, &head) in self.heads.iter().enumerate() {
            let (mut prev, mut index) = (NONE, head);
            while index != NONE {
                let tract = listed(entries, index, top)?;
                ensure(TABLE, tract.state() == self.kind, "a list holds runs of its kind")?;
                ensure(TABLE, tract.prev() == prev, "links of free runs agree")?;
                let count = tract.run();
                ensure(TABLE, count > 0 && bin_of(count) == bin, "a free run is in the list of its length")?;
                ensure(TABLE, count <= top - index, "free runs lie below the top")?;
                found.add(count);
                (prev, index) = (index, tract.next());
            }
        }
        ensure(TABLE, found.runs == self.runs, "the free runs are counted")?;
        Ok(found)
    }

    /// Checks that the mask shows which lists are empty.
    pub(super) fn check_mask(&self) -> Result<(), CheckError> {
        let agrees = |(bin, &head): (usize, &u32)| (head != NONE) == (self.mask >> bin & 1 == 1);
        ensure(TABLE, self.heads.iter().enumerate().all(agrees), "the mask tells which lists are empty")
    }

    /// Writes one line for each list that is not empty.
    pub(super) fn describe(
        &self,
        entries: &[Tract],
        out: &mut dyn fmt::Write,
        depth: usize,
        name: &str,
    ) -> fmt::Result {
        for bin in (0..BINS).filter(|bin| self.mask >> bin & 1 == 1) {
            let runs = self.list(entries, bin).count();
            line(out, depth, name, format_args!("{runs} of at least {} grains", 1u32 << bin))?;
        }
        Ok(())
    }
}

/// The number of free runs of one kind, and of the grains in them. Runs of a damaged table may
/// overlap, so their grains may be more than a `u32` can count.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FreeCounts {
    runs: u32,
    pub(super) grains: u64,
}

impl FreeCounts {
    /// Counts a run of `count` grains.
    pub(super) fn add(&mut self, count: u32) {
        self.runs += 1;
        self.grains += u64::from(count);
    }
}

/// The entry that a link leads to. For checks, which trust no link.
pub(super) fn listed(entries: &[Tract], index: u32, top: u32) -> Result<&Tract, CheckError> {
    let rule = "links lead to grains below the top";
    let tract = entries.get(index as usize).filter(|_| index < top);
    tract.ok_or(CheckError { structure: TABLE, rule })
}

/// Checks the entries of the free run at `index`, and returns its length.
pub(super) fn check_run(
    entries: &[Tract],
    index: u32,
    state: PageState,
    top: u32,
) -> Result<u32, CheckError> {
    let count = entry(entries, index).run();
    ensure(TABLE, count > 0 && count <= top - index, "free runs lie below the top")?;
    let run = range(entries, index, count);
    let same = run.iter().all(|tract| tract.state() == state && tract.owner().is_none());
    ensure(TABLE, same, "a free run is all of one kind")?;
    ensure(TABLE, run.last().is_some_and(|last| last.run() == count), "both ends tell a run's length")?;
    Ok(count)
}
