//! The entry of one grain in the tract table, and runs of entries.

use bitflags::bitflags;

use crate::aver;
use crate::primitive::{AtomicU32, Ordering};
use crate::values::pool_id::PoolId;

/// The link of an entry that has no neighbour in its list.
pub(super) const NONE: u32 = u32::MAX;

bitflags! {
    /// The state of a grain below the top of the table. Exactly one flag is set; an
    /// entry that was never used has none.
    ///
    /// The flags are the high 8 bits of a word whose low 24 bits are the owner.
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
        /// Not committed, and never to be committed while the grain before it has an owner.
        const GUARD = 1 << 28;
        /// Others have its addresses ([`TractTable::skip_gap`](super::TractTable::skip_gap)).
        const GAP = 1 << 29;
    }
}

/// The entry of one grain in the table: 16 bytes. Zero bytes are an entry that was never used.
///
/// The fields are atomic so that owners can be looked up without a lock. Everything
/// else is read and written under the lock of the arena.
#[derive(Debug)]
#[repr(C)]
pub struct Tract {
    /// [`PoolId`] in the low 24 bits, [`PageState`] above.
    owner_state: AtomicU32,
    /// In the first and the last entry of a free run: its length in grains. In the entry of a
    /// joined grain: one more than how many grains it lies above the first. In that of any other grain
    /// that a pool owns: zero.
    pub(super) run: AtomicU32,
    /// In the first entry of a free run: the previous run in its list.
    pub(super) prev: AtomicU32,
    /// In the first entry of a free run: the next run in its list.
    pub(super) next: AtomicU32,
}

impl Default for Tract {
    fn default() -> Self {
        Self::new()
    }
}

impl Tract {
    /// An entry that was never used.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU32::new(0);
        Self { owner_state: zero(), run: zero(), prev: zero(), next: zero() }
    }

    /// The pool that owns the grain.
    #[inline]
    pub(super) fn owner(&self) -> Option<PoolId> {
        PoolId::new(self.owner_state.load(Ordering::Relaxed) & PoolId::MAX)
    }

    pub(super) fn state(&self) -> PageState {
        PageState::from_bits_retain(self.owner_state.load(Ordering::Relaxed) & !PoolId::MAX)
    }

    fn set_owner(&self, owner: PoolId) {
        self.run.store(0, Ordering::Relaxed);
        // A thread that finds this owner finds nothing that the entry said before (`TractTable::first_shared`).
        self.owner_state.store(owner.get() | PageState::ALLOCATED.bits(), Ordering::Release);
    }

    fn set_free(&self, state: PageState) {
        self.owner_state.store(state.bits(), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn run(&self) -> u32 {
        self.run.load(Ordering::Relaxed)
    }

    pub(super) fn prev(&self) -> u32 {
        self.prev.load(Ordering::Relaxed)
    }

    pub(super) fn next(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }
}

/// The entries of `count` grains from `index`.
pub(super) fn range(entries: &[Tract], index: u32, count: u32) -> &[Tract] {
    &entries[index as usize..][..count as usize]
}

/// The entry of grain `index`.
pub(super) fn entry(entries: &[Tract], index: u32) -> &Tract {
    &entries[index as usize]
}

/// Marks grains as allocated to `owner`.
pub(super) fn set_owner(entries: &[Tract], index: u32, count: u32, owner: PoolId) {
    for tract in range(entries, index, count) {
        tract.set_owner(owner);
    }
}

/// Joins grains that a pool owns.
pub(super) fn join(entries: &[Tract], index: u32, count: u32) {
    for (tract, above) in range(entries, index, count).iter().zip(1..) {
        tract.run.store(above, Ordering::Relaxed);
    }
}

/// Marks grains as free and in this state, whatever they were.
pub(super) fn set_free(entries: &[Tract], index: u32, count: u32, state: PageState) {
    for tract in range(entries, index, count) {
        tract.set_free(state);
    }
}

/// The first wanted entries in a row at or after `from`, at most `most`: index and count.
pub(super) fn next_where(
    entries: &[Tract],
    from: u32,
    most: u32,
    wanted: impl Fn(&Tract) -> bool,
) -> Option<(u32, u32)> {
    let rest = entries.get(from as usize..)?;
    let skipped = rest.iter().position(&wanted)?;
    let run = rest[skipped..].iter().take(most as usize).take_while(|&tract| wanted(tract)).count();
    Some((from + grains(skipped), grains(run)))
}

/// A number of entries as a number of grains: tables have at most `u32::MAX` of either.
fn grains(entries: usize) -> u32 {
    aver!(u32::try_from(entries).is_ok(), "{entries} entries are more than a table has");
    entries as u32
}
