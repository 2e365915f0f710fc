//! The tract table: which grain belongs to which pool, and where grains are free.
//!
//! Both arenas keep one. The table knows indices of grains, not addresses: the
//! arena says where grain zero lies, commits and decommits, and holds the lock.
//! Only [`TractTable::owner_of`] is for anybody, at any time, without it.
//!
//! Design: `design/arena.md` `.tract`.

#![forbid(unsafe_code)]

use core::fmt;

use bitflags::bitflags;

use crate::primitive::{AtomicU32, Ordering};
use crate::words::check::{CheckError, CheckLevel, ensure};
use crate::words::describe::line;
use crate::words::pool_id::PoolId;

/// The link of an entry that has no neighbour in its list.
const NONE: u32 = u32::MAX;

/// One list for each power of two that a `u32` can hold.
const BINS: usize = 32;

/// How many spare runs are searched for one that lies next to a hole.
const LOOKS: usize = 16;

/// Which end of a run is taken.
#[derive(Clone, Copy, Debug)]
enum End {
    Low,
    High,
}

/// The name of the structure in what a check finds.
const TABLE: &str = "TractTable";

bitflags! {
    /// What a grain below the top of the table is. Exactly one flag is set; an
    /// entry that was never used has none.
    ///
    /// The flags lie in the high 8 bits of a word whose low 24 are the owner's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct PageState: u32 {
        /// A pool owns it.
        const ALLOCATED = 1 << 24;
        /// Free and committed, in a run of the table.
        const SPARE = 1 << 25;
        /// Free and not committed, in a run of the table.
        const VOID = 1 << 26;
        /// Free, and out of the table while the arena decommits it.
        const POPPED = 1 << 27;
        /// Not committed, and not to be, as long as the grain before it is owned.
        const GUARD = 1 << 28;
    }
}

/// One grain's entry in the table: 16 bytes. Zero bytes are an entry never used.
///
/// The fields are atomic so that owners can be looked up without a lock; all
/// else is read and written under the lock of the arena.
#[derive(Debug)]
#[repr(C)]
pub struct Tract {
    /// [`PoolId`] in the low 24 bits, [`PageState`] above.
    owner_state: AtomicU32,
    /// In the first and the last entry of a free run: its length in grains.
    run: AtomicU32,
    /// In the first entry of a free run: the run before it in its list.
    prev: AtomicU32,
    /// In the first entry of a free run: the run after it in its list.
    next: AtomicU32,
}

impl Default for Tract {
    fn default() -> Self {
        Self::new()
    }
}

impl Tract {
    /// An entry never used.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU32::new(0);
        Self { owner_state: zero(), run: zero(), prev: zero(), next: zero() }
    }

    /// The pool that owns the grain.
    fn owner(&self) -> Option<PoolId> {
        PoolId::new(self.owner_state.load(Ordering::Relaxed) & PoolId::MAX)
    }

    fn state(&self) -> PageState {
        PageState::from_bits_retain(self.owner_state.load(Ordering::Relaxed) & !PoolId::MAX)
    }

    fn set_owner(&self, owner: PoolId) {
        self.owner_state.store(owner.get() | PageState::ALLOCATED.bits(), Ordering::Relaxed);
    }

    fn set_free(&self, state: PageState) {
        self.owner_state.store(state.bits(), Ordering::Relaxed);
    }

    fn run(&self) -> u32 {
        self.run.load(Ordering::Relaxed)
    }

    fn prev(&self) -> u32 {
        self.prev.load(Ordering::Relaxed)
    }

    fn next(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }
}

/// The entries of `count` grains from `index`.
fn range(entries: &[Tract], index: u32, count: u32) -> &[Tract] {
    &entries[index as usize..][..count as usize]
}

/// The entry of grain `index`.
fn entry(entries: &[Tract], index: u32) -> &Tract {
    &entries[index as usize]
}

/// The free runs of one kind: a list per power of two, and a bit for each list
/// that holds something.
#[derive(Debug)]
struct FreeRuns {
    kind: PageState,
    heads: [u32; BINS],
    mask: u32,
    /// The number of runs.
    runs: u32,
}

impl FreeRuns {
    const fn new(kind: PageState) -> Self {
        Self { kind, heads: [NONE; BINS], mask: 0, runs: 0 }
    }

    /// The list for runs of `count` grains, which is not zero.
    const fn bin(count: u32) -> usize {
        count.ilog2() as usize
    }

    /// The first list in which every run has at least `count` grains.
    const fn sure_bin(count: u32) -> u32 {
        u32::BITS - (count - 1).leading_zeros()
    }

    /// The runs of a list, by the index of their first grain.
    fn list<'entries>(&self, entries: &'entries [Tract], bin: usize) -> impl Iterator<Item = u32> + 'entries {
        let link = |index: u32| (index != NONE).then_some(index);
        core::iter::successors(link(self.heads[bin]), move |&index| link(entry(entries, index).next()))
    }

    /// A run of at least `count` grains. Takes constant time, unless only the
    /// request's own list can have one, which is then searched to its end.
    fn find(&self, entries: &[Tract], count: u32) -> Option<u32> {
        let sure = self.mask & u32::MAX.checked_shl(Self::sure_bin(count)).unwrap_or(0);
        if sure != 0 {
            return Some(self.heads[sure.trailing_zeros() as usize]);
        }
        self.list(entries, Self::bin(count)).find(|&index| entry(entries, index).run() >= count)
    }

    /// Puts a run into its list. Its grains are marked already.
    fn push(&mut self, entries: &[Tract], index: u32, count: u32) {
        let bin = Self::bin(count);
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

    /// Takes a run out of its list; gives its length.
    fn unlink(&mut self, entries: &[Tract], index: u32) -> u32 {
        let first = entry(entries, index);
        let (count, prev, next) = (first.run(), first.prev(), first.next());
        self.runs -= 1;
        if next != NONE {
            entry(entries, next).prev.store(prev, Ordering::Relaxed);
        }
        if prev != NONE {
            entry(entries, prev).next.store(next, Ordering::Relaxed);
        } else {
            let bin = Self::bin(count);
            self.heads[bin] = next;
            if next == NONE {
                self.mask &= !(1 << bin);
            }
        }
        count
    }

    /// Finds a run, gives its first `count` grains and keeps the rest.
    fn take(&mut self, entries: &[Tract], count: u32) -> Option<u32> {
        let index = self.find(entries, count)?;
        let rest = self.unlink(entries, index) - count;
        if rest > 0 {
            self.push(entries, index + count, rest);
        }
        Some(index)
    }

    /// Takes the neighbours of a run out of their lists, where they are of this
    /// kind; gives the run that all of them make.
    fn coalesce(&mut self, entries: &[Tract], index: u32, count: u32, top: u32) -> (u32, u32) {
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
    fn mark(&self, entries: &[Tract], index: u32, count: u32) {
        for tract in range(entries, index, count) {
            tract.set_free(self.kind);
        }
    }

    /// Checks every list; gives the number of runs and of grains in them. Since a
    /// run has one link back, a list that runs in a circle breaks that rule.
    fn check(&self, entries: &[Tract], top: u32) -> Result<(u32, u32), CheckError> {
        let (mut runs, mut grains) = (0, 0);
        for (bin, &head) in self.heads.iter().enumerate() {
            let (mut prev, mut index) = (NONE, head);
            while index != NONE {
                let tract = listed(entries, index, top)?;
                ensure(TABLE, tract.state() == self.kind, "a list holds runs of its kind")?;
                ensure(TABLE, tract.prev() == prev, "links of free runs agree")?;
                let count = tract.run();
                ensure(
                    TABLE,
                    count > 0 && Self::bin(count) == bin,
                    "a free run is in the list of its length",
                )?;
                ensure(TABLE, count <= top - index, "free runs lie below the top")?;
                (runs, grains) = (runs + 1, grains + u64::from(count));
                (prev, index) = (index, tract.next());
            }
        }
        ensure(TABLE, runs == self.runs, "the free runs are counted")?;
        let grains = u32::try_from(grains).unwrap_or(u32::MAX);
        Ok((runs, grains))
    }

    /// Checks that the mask tells which lists hold something.
    fn check_mask(&self) -> Result<(), CheckError> {
        let agrees = |(bin, &head): (usize, &u32)| (head != NONE) == (self.mask >> bin & 1 == 1);
        ensure(TABLE, self.heads.iter().enumerate().all(agrees), "the mask tells which lists are empty")
    }

    /// Writes one line for each list that holds something.
    fn describe(&self, entries: &[Tract], out: &mut dyn fmt::Write, depth: usize, name: &str) -> fmt::Result {
        for bin in (0..BINS).filter(|bin| self.mask >> bin & 1 == 1) {
            let runs = self.list(entries, bin).count();
            line(out, depth, name, format_args!("{runs} of at least {} grains", 1u32 << bin))?;
        }
        Ok(())
    }
}

/// The entry that a link leads to, for checks, which trust none.
fn listed(entries: &[Tract], index: u32, top: u32) -> Result<&Tract, CheckError> {
    let rule = "links lead to grains below the top";
    let tract = entries.get(index as usize).filter(|_| index < top);
    tract.ok_or(CheckError { structure: TABLE, rule })
}

/// Why [`TractTable::pop_void`] took nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeError {
    /// No run of grains that are not committed is long enough.
    Limit,
    /// There are grains, but the table needs this many entries to take them.
    Entries(u32),
}

/// The owners and the free runs of an arena's grains.
///
/// Every grain below [`TractTable::top`] is allocated, spare, void, popped, or a
/// guard ([`PageState`]); from there to the capacity lies the wilderness, grains not
/// committed whose entries are neither read nor, as far as the table cares,
/// there. A free run is all spare or all void, and no two of one kind touch.
///
/// The entries are not the table's: the arena passes the same ones to every
/// method, at least `top` of them as of the moment it has the lock. Methods panic
/// where they are too few, or where links were overwritten and lead outside.
#[derive(Debug)]
pub struct TractTable {
    capacity: u32,
    top: u32,
    spare: u32,
    guards: u32,
    spare_runs: FreeRuns,
    void_runs: FreeRuns,
}

impl TractTable {
    /// The most grains that an arena changes under one hold of its lock, if no caller
    /// needs all of them changed at once (design/arena.md `.tract.piece`).
    pub const PIECE: u32 = 1024;

    /// A table for `capacity` grains, all of them wilderness.
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self {
            capacity,
            top: 0,
            spare: 0,
            guards: 0,
            spare_runs: FreeRuns::new(PageState::SPARE),
            void_runs: FreeRuns::new(PageState::VOID),
        }
    }

    /// The number of grains there can be.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// One past the last grain in use: from here on all is wilderness.
    #[must_use]
    pub const fn top(&self) -> u32 {
        self.top
    }

    /// The number of spare grains in the table.
    #[must_use]
    pub const fn spare(&self) -> u32 {
        self.spare
    }

    /// The most holes there may be below the top: runs that are not committed, and guards.
    /// Each hole splits the committed memory once more.
    #[must_use]
    pub const fn holes(&self) -> u32 {
        self.void_runs.runs + self.guards
    }

    /// Gives `count` spare grains in a row to `owner`: the index of the first.
    ///
    /// `None` where no run is long enough, or `count` is zero.
    #[must_use]
    pub fn take_spare(&mut self, entries: &[Tract], count: u32, owner: PoolId) -> Option<u32> {
        if count == 0 {
            return None;
        }
        let index = self.spare_runs.take(entries, count)?;
        self.spare -= count;
        set_owner(entries, index, count, owner);
        Some(index)
    }

    /// Takes `count` void grains in a row out of the table, from a freed run or
    /// else from the wilderness: the index of the first.
    ///
    /// The caller commits them and calls [`TractTable::allot`] (or
    /// [`TractTable::give_spare`]), or [`TractTable::give_void`] where that failed.
    /// Until then they belong to nobody and are not found: whoever finds an owner
    /// finds memory.
    ///
    /// # Errors
    /// - [`TakeError::Limit`] where no run is long enough, or `count` is zero; spare
    ///   grains that are popped, decommitted and given back may make one
    /// - [`TakeError::Entries`] where the table's part of the wilderness is too
    ///   small: come again with a longer slice
    pub fn pop_void(&mut self, entries: &[Tract], count: u32) -> Result<u32, TakeError> {
        if count == 0 {
            return Err(TakeError::Limit);
        }
        let index = match self.void_runs.take(entries, count) {
            Some(index) => index,
            None => self.take_wilderness(entries, count)?,
        };
        pop(entries, index, count);
        Ok(index)
    }

    /// Gives `count` popped grains from `index`, committed by now, to `owner`.
    pub fn allot(&mut self, entries: &[Tract], index: u32, count: u32, owner: PoolId) {
        debug_assert!(
            range(entries, index, count).iter().all(|tract| tract.state() == PageState::POPPED),
            "grains are popped before they are allotted"
        );
        set_owner(entries, index, count, owner);
    }

    /// Makes a popped grain, not committed, a guard. [`TractTable::give_void`] frees it.
    pub fn set_guard(&mut self, entries: &[Tract], index: u32) {
        debug_assert!(entry(entries, index).state() == PageState::POPPED, "guards are popped before");
        entry(entries, index).set_free(PageState::GUARD);
        self.guards += 1;
    }

    /// Whether grain `index` is a guard.
    #[must_use]
    pub fn is_guard(&self, entries: &[Tract], index: u32) -> bool {
        index < self.top && entry(entries, index).state() == PageState::GUARD
    }

    fn take_wilderness(&mut self, entries: &[Tract], count: u32) -> Result<u32, TakeError> {
        let index = self.top;
        if count > self.capacity - index {
            return Err(TakeError::Limit);
        }
        let top = index + count;
        if (entries.len() as u64) < u64::from(top) {
            return Err(TakeError::Entries(top));
        }
        self.top = top;
        Ok(index)
    }

    /// Frees `count` grains from `index` that are committed and stay so: they are
    /// spare from here on.
    ///
    /// The grains are allocated, any part of what one owner has, or popped.
    pub fn give_spare(&mut self, entries: &[Tract], index: u32, count: u32) {
        debug_assert!(self.are_out(entries, index, count), "grains are given once");
        if count == 0 {
            return;
        }
        self.spare += count;
        self.spare_runs.mark(entries, index, count);
        let (first, length) = self.spare_runs.coalesce(entries, index, count, self.top);
        self.spare_runs.push(entries, first, length);
    }

    /// Frees `count` grains from `index` that are not committed: they are void
    /// from here on, or wilderness where their run ends at the top.
    ///
    /// The grains are allocated, any part of what one owner has, or popped, or
    /// guards.
    pub fn give_void(&mut self, entries: &[Tract], index: u32, count: u32) {
        debug_assert!(self.are_out(entries, index, count), "grains are given once");
        if count == 0 {
            return;
        }
        let guards = range(entries, index, count).iter().filter(|tract| tract.state() == PageState::GUARD);
        self.guards -= u32::try_from(guards.count()).unwrap_or(u32::MAX);
        self.void_runs.mark(entries, index, count);
        let (first, length) = self.void_runs.coalesce(entries, index, count, self.top);
        if first + length == self.top {
            self.top = first;
        } else {
            self.void_runs.push(entries, first, length);
        }
    }

    /// Whether all of these grains are allocated, popped or guards.
    fn are_out(&self, entries: &[Tract], index: u32, count: u32) -> bool {
        let out = PageState::ALLOCATED | PageState::POPPED | PageState::GUARD;
        index <= self.top
            && count <= self.top - index
            && range(entries, index, count).iter().all(|tract| tract.state().intersects(out))
    }

    /// Takes a run of at most `max_count` spare grains out of the table, and returns its
    /// index and count. If `may_divide` is true, this is the high end of one of the longest
    /// runs. Otherwise it is an end next to a hole, so that the committed memory is not
    /// split once more.
    ///
    /// The caller decommits it and calls [`TractTable::give_void`], or calls
    /// [`TractTable::give_spare`] if decommitting failed. Until then the run belongs to
    /// nobody and is not found. Returns `None` if nothing is spare, if `max_count` is zero,
    /// or if none of the few runs that are searched lies next to a hole.
    #[must_use]
    pub fn pop_spare(&mut self, entries: &[Tract], max_count: u32, may_divide: bool) -> Option<(u32, u32)> {
        let longest = self.spare_runs.mask.checked_ilog2()?;
        if max_count == 0 {
            return None;
        }
        let (first, end) = match may_divide {
            true => (self.spare_runs.heads[longest as usize], End::High),
            false => self.spare_at_hole(entries)?,
        };
        let length = self.spare_runs.unlink(entries, first);
        let count = length.min(max_count);
        let (index, rest) = match end {
            End::High => (first + (length - count), first),
            End::Low => (first, first + count),
        };
        if length > count {
            self.spare_runs.push(entries, rest, length - count);
        }
        pop(entries, index, count);
        self.spare -= count;
        Some((index, count))
    }

    /// An end of a spare run that lies next to a hole, among the first few runs.
    fn spare_at_hole(&self, entries: &[Tract]) -> Option<(u32, End)> {
        let is_hole = |index: u32| {
            index >= self.top || entry(entries, index).state().intersects(PageState::VOID | PageState::GUARD)
        };
        let lists = (0..BINS).rev().flat_map(|bin| self.spare_runs.list(entries, bin));
        lists.take(LOOKS).find_map(|first| match first.checked_sub(1) {
            _ if is_hole(first + entry(entries, first).run()) => Some((first, End::High)),
            Some(before) if is_hole(before) => Some((first, End::Low)),
            _ => None,
        })
    }

    /// The pool that owns grain `index`; `None` also beyond the entries.
    ///
    /// Needs no lock. Who learned of a grain from its owner finds the owner; for
    /// grains that are being taken or given at this moment either answer comes.
    #[must_use]
    pub fn owner_of(entries: &[Tract], index: u32) -> Option<PoolId> {
        entries.get(index as usize)?.owner()
    }

    /// The first grains in a row at or after `from` that `owner` has: index and
    /// count. Looks at every entry on the way.
    ///
    /// Needs no lock, and neither do the walks below: the answer is exact for grains that
    /// are not taken or freed meanwhile.
    #[must_use]
    pub fn next_owned(entries: &[Tract], from: u32, owner: PoolId) -> Option<(u32, u32)> {
        next_where(entries, from, u32::MAX, |tract| tract.owner() == Some(owner))
    }

    /// All grains that `owner` has, in pieces of at most [`TractTable::PIECE`]: index
    /// and count. The caller may free each piece before it asks for the next.
    pub fn pieces_of(entries: &[Tract], owner: PoolId) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let is_owned = |tract: &Tract| tract.owner() == Some(owner);
            let (index, count) = next_where(entries, from, Self::PIECE, is_owned)?;
            from = index + count;
            Some((index, count))
        })
    }

    /// The first grains in a row at or after `from` that are in one of `states`:
    /// index and count. Looks at every entry on the way.
    #[must_use]
    pub fn next_run(entries: &[Tract], from: u32, states: PageState) -> Option<(u32, u32)> {
        next_where(entries, from, u32::MAX, |tract| tract.state().intersects(states))
    }

    /// Checks the table as far as `level` says. A deep check walks all entries.
    ///
    /// # Errors
    /// The first rule found broken.
    pub fn check(&self, entries: &[Tract], level: CheckLevel) -> Result<(), CheckError> {
        if level >= CheckLevel::Shallow {
            ensure(TABLE, self.top <= self.capacity, "top <= capacity")?;
            ensure(TABLE, self.spare <= self.top, "spare <= top")?;
            ensure(TABLE, entries.len() as u64 >= u64::from(self.top), "every grain has an entry")?;
            self.spare_runs.check_mask()?;
            self.void_runs.check_mask()?;
        }
        if level >= CheckLevel::Deep {
            let (spare_runs, spare) = self.spare_runs.check(entries, self.top)?;
            let (void_runs, void) = self.void_runs.check(entries, self.top)?;
            ensure(TABLE, spare == self.spare, "the spare runs add up to the spare count")?;
            self.check_entries(entries, (spare_runs, spare), (void_runs, void))?;
        }
        Ok(())
    }

    /// Checks every entry below the top, and that the free runs among them are
    /// as many, and as long, as the lists hold.
    fn check_entries(
        &self,
        entries: &[Tract],
        spare: (u32, u32),
        void: (u32, u32),
    ) -> Result<(), CheckError> {
        let (mut found_spare, mut found_void, mut guards) = ((0, 0), (0, 0), 0);
        let mut before = PageState::empty();
        let mut index = 0;
        while index < self.top {
            let tract = listed(entries, index, self.top)?;
            let state = tract.state();
            ensure(TABLE, state.bits().count_ones() == 1, "a grain has one state")?;
            let owned = state == PageState::ALLOCATED;
            ensure(
                TABLE,
                owned == tract.owner().is_some(),
                "allocated grains, and no others, have an owner",
            )?;
            let found = match state {
                PageState::SPARE => &mut found_spare,
                PageState::VOID => &mut found_void,
                _ => {
                    guards += u32::from(state == PageState::GUARD);
                    before = state;
                    index += 1;
                    continue;
                }
            };
            ensure(TABLE, state != before, "free runs of one kind do not touch")?;
            let count = self.check_run(entries, index, state)?;
            *found = (found.0 + 1, found.1 + count);
            before = state;
            index += count;
        }
        ensure(TABLE, before != PageState::VOID, "no void run ends at the top")?;
        ensure(TABLE, guards == self.guards, "guards are counted")?;
        ensure(TABLE, found_spare == spare, "every spare run is in a list")?;
        ensure(TABLE, found_void == void, "every void run is in a list")
    }

    /// Checks the entries of one free run; gives its length.
    fn check_run(&self, entries: &[Tract], index: u32, state: PageState) -> Result<u32, CheckError> {
        let count = entry(entries, index).run();
        ensure(TABLE, count > 0 && count <= self.top - index, "free runs lie below the top")?;
        let run = range(entries, index, count);
        let same = run.iter().all(|tract| tract.state() == state && tract.owner().is_none());
        ensure(TABLE, same, "a free run is all of one kind")?;
        ensure(TABLE, run.last().is_some_and(|last| last.run() == count), "both ends tell a run's length")?;
        Ok(count)
    }

    /// Writes the state, each line indented by `depth` steps of two spaces.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn describe(&self, entries: &[Tract], out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        line(out, depth, "tracts", format_args!("{} of {} grains used", self.top, self.capacity))?;
        line(out, depth + 1, "spare", format_args!("{} grains", self.spare))?;
        self.spare_runs.describe(entries, out, depth + 1, "spare runs")?;
        self.void_runs.describe(entries, out, depth + 1, "void runs")
    }
}

/// The first wanted entries in a row at or after `from`, at most `most`: index and count.
fn next_where(
    entries: &[Tract],
    from: u32,
    most: u32,
    wanted: impl Fn(&Tract) -> bool,
) -> Option<(u32, u32)> {
    let rest = entries.get(from as usize..)?;
    let skipped = rest.iter().position(&wanted)?;
    let run = rest[skipped..].iter().take(most as usize).take_while(|&tract| wanted(tract)).count();
    // There are at most as many entries as grains, whose number fits a `u32`.
    Some((from + u32::try_from(skipped).ok()?, u32::try_from(run).ok()?))
}

/// Marks grains that are out of the table and nobody's.
fn pop(entries: &[Tract], index: u32, count: u32) {
    for tract in range(entries, index, count) {
        tract.set_free(PageState::POPPED);
    }
}

/// Marks grains as allocated to `owner`.
fn set_owner(entries: &[Tract], index: u32, count: u32, owner: PoolId) {
    for tract in range(entries, index, count) {
        tract.set_owner(owner);
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests;
