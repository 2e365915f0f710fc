//! Reads what the steady-state contract counts ([design/telemetry.md `.tallies`](crate::design::telemetry)).

use std::io;
use std::vec::Vec;

use tripoint_core::internal::{Ordering, fence};

use crate::format::{
    EntryState, MAX_TALLY_CLASSES, MAX_TALLY_DETECTORS, MAX_TALLY_THREADS, SectionKind, TABLE_TEXT_WORDS,
    TALLY_NUMBERS, TALLY_THREAD_WORDS, TallyNumber, TallyThreadWord, TallyWord,
};
use crate::reader::file::{Reader, WORD};
use crate::reader::values::Text;

/// How many events of one class one thread had, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TallyNumbers {
    /// The number of events.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The number of events that an amnesty excused; part of the count.
    pub excused: u64,
    /// Their bytes.
    pub excused_bytes: u64,
}

/// The tally of one class of events of one thread of the steady-state contract. These are the numbers by which the
/// contract judges: every event is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TallyCounters {
    /// The class of events.
    pub class: Text,
    /// The index of the thread's place in the contract, as in events of violations.
    pub thread: u64,
    /// All events since the thread registered.
    pub all: TallyNumbers,
    /// Those of them that happened while the thread was armed.
    pub armed: TallyNumbers,
}

impl TallyCounters {
    /// Its numbers with their names, in order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Self { thread, all, armed, .. } = *self;
        [
            ("thread", thread),
            ("count", all.count),
            ("bytes", all.bytes),
            ("excused", all.excused),
            ("excused_bytes", all.excused_bytes),
            ("armed_count", armed.count),
            ("armed_bytes", armed.bytes),
            ("armed_excused", armed.excused),
            ("armed_excused_bytes", armed.excused_bytes),
        ]
        .into_iter()
    }
}

/// A thread of the steady-state contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractThread {
    /// The index of its place in the contract, as in events of violations.
    pub thread: u64,
    /// Its name.
    pub name: Text,
    /// Whether it registered as a hot one.
    pub is_hot: bool,
    /// Whether it was ever armed.
    pub was_armed: bool,
    /// Whether it has left.
    pub has_left: bool,
    /// Whether it left in the steady state or later, as a hot one that was never armed.
    pub left_unarmed: bool,
    /// The names of the classes that it is held to.
    pub held: Vec<Text>,
    /// The names of the detectors that it asked for.
    pub wanted: Vec<Text>,
    /// The names of the detectors that are live for it.
    pub live: Vec<Text>,
    /// How many of its violations made no record, and so no event. They are counted.
    pub records_lost: u64,
    /// How many events came while another one was written down, and are not counted.
    pub overlapped: u64,
}

/// What there is of the contract.
#[derive(Debug, Default)]
pub(super) struct OfContract {
    /// The threads that registered; none in version 1 of the format.
    pub(super) threads: Vec<ContractThread>,
    /// The tallies of all threads that had any event, class by class.
    pub(super) tallies: Vec<TallyCounters>,
}

/// The words before the threads.
const HEAD: usize = TallyWord::Threads as usize;

/// How many of these there are, as the head says; `None` if it makes no sense.
fn number(head: &[u64; HEAD], word: TallyWord, possible: core::ops::RangeInclusive<usize>) -> Option<usize> {
    usize::try_from(head[word as usize]).ok().filter(|number| possible.contains(number))
}

/// What there is of the contract; `None` if it makes no sense.
pub(super) fn of_contract(reader: &Reader) -> io::Result<Option<OfContract>> {
    let mut found = OfContract::default();
    let section = reader.section(SectionKind::Tallies);
    if section.entries == 0 {
        return Ok(Some(found));
    }
    let mut head = [0; HEAD];
    // In version 1 it is shorter.
    let in_section = usize::try_from(section.entry_bytes / WORD).unwrap_or(HEAD).min(HEAD);
    reader.words().read(section.offset, &mut head[..in_section])?;
    if head[TallyWord::State as usize] != EntryState::Live as u64 {
        return Ok(Some(found));
    }
    // What was read before the state was found live is read again.
    fence(Ordering::Acquire);
    reader.words().read(section.offset, &mut head[..in_section])?;
    let Some(classes) = number(&head, TallyWord::Classes, 1..=MAX_TALLY_CLASSES) else { return Ok(None) };
    let (first, thread_words) = match head[TallyWord::ThreadWords as usize] {
        0 => (TallyWord::DetectorNames as u64 * WORD, 0),
        words if words == TALLY_THREAD_WORDS as u64 => (HEAD as u64 * WORD, TALLY_THREAD_WORDS),
        _ => return Ok(None),
    };
    let mut words = [0; TALLY_THREAD_WORDS + MAX_TALLY_CLASSES * TALLY_NUMBERS];
    let words = &mut words[..thread_words + classes * TALLY_NUMBERS];
    let thread_bytes = words.len() as u64 * WORD;
    let threads = (section.entry_bytes.saturating_sub(first) / thread_bytes).min(MAX_TALLY_THREADS as u64);
    for thread in 0..threads {
        reader.words().read(section.offset + first + thread * thread_bytes, words)?;
        let (described, numbers) = words.split_at(thread_words);
        found.threads.extend(contract_thread(&head, thread, described));
        for class in 0..classes {
            let number = |number: TallyNumber| numbers[number as usize * classes + class];
            let tally = TallyCounters {
                class: name(&head, TallyWord::Names, class),
                thread,
                all: TallyNumbers {
                    count: number(TallyNumber::Count),
                    bytes: number(TallyNumber::Bytes),
                    excused: number(TallyNumber::Excused),
                    excused_bytes: number(TallyNumber::ExcusedBytes),
                },
                armed: TallyNumbers {
                    count: number(TallyNumber::ArmedCount),
                    bytes: number(TallyNumber::ArmedBytes),
                    excused: number(TallyNumber::ArmedExcused),
                    excused_bytes: number(TallyNumber::ArmedExcusedBytes),
                },
            };
            if tally.all != TallyNumbers::default() {
                found.tallies.push(tally);
            }
        }
    }
    Ok(Some(found))
}

/// Who a thread is; none if no thread has registered there.
fn contract_thread(head: &[u64; HEAD], thread: u64, words: &[u64]) -> Option<ContractThread> {
    let word = |word: TallyThreadWord| words.get(word as usize).copied().unwrap_or(0);
    let state = word(TallyThreadWord::State);
    let is = |bit: u32| state & 1 << bit != 0;
    let names = |first: TallyWord, set: TallyThreadWord| {
        let bits = word(set);
        let most =
            if first as usize == TallyWord::Names as usize { MAX_TALLY_CLASSES } else { MAX_TALLY_DETECTORS };
        let is_in = move |bit: &usize| bits & 1 << bit != 0;
        (0..most).filter(is_in).map(|index| name(head, first, index)).collect()
    };
    is(0).then(|| ContractThread {
        thread,
        name: Text::from_words(&words[TallyThreadWord::Name as usize..])
            .map_or(Text::EMPTY, |(text, _)| text),
        is_hot: is(1),
        was_armed: is(2),
        has_left: is(3),
        left_unarmed: is(4),
        held: names(TallyWord::Names, TallyThreadWord::Held),
        wanted: names(TallyWord::DetectorNames, TallyThreadWord::Wanted),
        live: names(TallyWord::DetectorNames, TallyThreadWord::Live),
        records_lost: word(TallyThreadWord::RecordsLost),
        overlapped: word(TallyThreadWord::Overlapped),
    })
}

/// The name with this index, of a class or of a detector; none if its words are no text.
fn name(head: &[u64; HEAD], first: TallyWord, index: usize) -> Text {
    let words = head[first as usize..].as_chunks::<TABLE_TEXT_WORDS>().0.get(index);
    Text::from_words(words.map_or(&[], |words| words)).map_or(Text::EMPTY, |(text, _)| text)
}
