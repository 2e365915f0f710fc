//! Words in which the steady-state contract counts, for readers to see
//! ([design/telemetry.md `.tallies`](crate::design::telemetry)).

use tripoint_core::internal::{AtomicU64, AtomicUsize, Ordering};

use crate::file::table::table_text;
use crate::format::{EntryState, MAX_TALLY_CLASSES, TABLE_TEXT_WORDS, TallyWord};
use crate::recorder::telemetry::Telemetry;

impl Telemetry {
    /// Words for the tallies of a steady-state contract whose classes of events have these names: pass them to its
    /// `Contract::place_tallies`. The contract counts in them itself, so readers find the very numbers by which
    /// it judges: every event, not only those that are recorded.
    ///
    /// The contract goes on counting in these words when this telemetry is dropped. So if it is
    /// [in memory](Self::in_memory), use that memory for nothing else afterwards.
    ///
    /// `None` if the file has no [room](crate::Room::tallies), if a contract has the words already, in a forked
    /// child, if there are more than [`MAX_TALLY_CLASSES`] names or none, and on targets whose pointers do
    /// not have 64 bits, where the contract cannot count in words of a file.
    #[must_use]
    pub fn tally_words(&self, classes: &[&str]) -> Option<&'static [AtomicUsize]> {
        let (head, words) = self.image().tallies.split_at_checked(TallyWord::Numbers as usize)?;
        let words = as_counters(words)?;
        if words.is_empty() || !(1..=MAX_TALLY_CLASSES).contains(&classes.len()) || !self.may_write() {
            return None;
        }
        let state = &head[TallyWord::State as usize];
        let [free, making, live] =
            [EntryState::Free, EntryState::Making, EntryState::Live].map(|state| state as u64);
        state.compare_exchange(free, making, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        head[TallyWord::Classes as usize].store(classes.len() as u64, Ordering::Relaxed);
        let (places, _) = head[TallyWord::Names as usize..].as_chunks::<TABLE_TEXT_WORDS>();
        for (places, name) in places.iter().zip(classes) {
            for (place, word) in places.iter().zip(table_text(name)) {
                place.store(word, Ordering::Relaxed);
            }
        }
        state.store(live, Ordering::Release);
        Some(words)
    }
}

/// The words as the contract counts in them.
#[cfg(target_pointer_width = "64")]
fn as_counters(words: &'static [AtomicU64]) -> Option<&'static [AtomicUsize]> {
    let (base, count) = (words.as_ptr().cast::<AtomicUsize>(), words.len());
    // SAFETY: both types have the size, the alignment and the values of a `u64` here, and the slice has as
    // many elements as there are words. They are valid and shared forever, and all access to them is atomic and of whole
    // words, through either type.
    Some(unsafe { core::slice::from_raw_parts(base, count) })
}

/// Words of 64 bits are not words of the contract.
#[cfg(not(target_pointer_width = "64"))]
fn as_counters(_: &'static [AtomicU64]) -> Option<&'static [AtomicUsize]> {
    None
}
