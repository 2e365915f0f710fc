//! Words in which the steady-state contract counts, for readers to see
//! ([design/telemetry.md `.tallies`](crate::design::telemetry)).

use tripoint_core::internal::{AtomicU64, AtomicUsize, Ordering};
use tripoint_core::{ContractWords, Error, Result};

use crate::file::table::table_text;
use crate::format::{
    EntryState, MAX_TALLY_CLASSES, MAX_TALLY_DETECTORS, TABLE_TEXT_WORDS, TALLY_NUMBERS, TALLY_THREAD_WORDS,
    TallyWord,
};
use crate::recorder::telemetry::Telemetry;

impl Telemetry {
    /// The words of a contract. It goes on counting in them when this telemetry is dropped: so if that is
    /// [in memory](Self::in_memory), its memory is used for nothing else afterwards.
    ///
    /// None if the file has no [room](crate::Room::tallies) for any, in a forked child, and on targets whose pointers do
    /// not have 64 bits, where the contract cannot count in words of a file.
    pub(super) fn words_of_contract(
        &self,
        contract: &ContractWords<'_>,
    ) -> Result<Option<&'static [AtomicUsize]>> {
        let Some((head, words)) = self.image().tallies.split_at_checked(TallyWord::Threads as usize) else {
            return Ok(None);
        };
        let Some(words) = as_counters(words).filter(|words| !words.is_empty() && self.may_write()) else {
            return Ok(None);
        };
        let is_known = (1..=MAX_TALLY_CLASSES).contains(&contract.classes.len())
            && contract.detectors.len() <= MAX_TALLY_DETECTORS
            && (contract.thread_words, contract.numbers) == (TALLY_THREAD_WORDS, TALLY_NUMBERS);
        if !is_known {
            return Err(Error::Parameter(
                "the format of telemetry has no words for what this contract counts",
            ));
        }
        if words.len() / contract.of_thread() < contract.threads {
            let why = "the telemetry has room for the tallies of fewer threads than the contract has places for: create it with \
                       Room::tallies of at least THREADS, or of 0 to do without";
            return Err(Error::Parameter(why));
        }
        let state = &head[TallyWord::State as usize];
        let [free, making, live] =
            [EntryState::Free, EntryState::Making, EntryState::Live].map(|state| state as u64);
        if state.compare_exchange(free, making, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Err(Error::Parameter(
                "another contract counts in this telemetry already: give this one a telemetry of its own",
            ));
        }
        let set = |word: TallyWord, value: usize| head[word as usize].store(value as u64, Ordering::Relaxed);
        set(TallyWord::Classes, contract.classes.len());
        set(TallyWord::Detectors, contract.detectors.len());
        set(TallyWord::ThreadWords, contract.thread_words);
        set(TallyWord::Places, contract.threads);
        set_names(&head[TallyWord::Names as usize..], contract.classes);
        set_names(&head[TallyWord::DetectorNames as usize..], contract.detectors);
        state.store(live, Ordering::Release);
        Ok(Some(words))
    }
}

fn set_names(words: &[AtomicU64], names: &[&str]) {
    for (places, name) in words.as_chunks::<TABLE_TEXT_WORDS>().0.iter().zip(names) {
        for (place, word) in places.iter().zip(table_text(name)) {
            place.store(word, Ordering::Relaxed);
        }
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
