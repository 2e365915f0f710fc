//! Reads what the steady-state contract counts ([design/telemetry.md `.tallies`](crate::design::telemetry)).

use std::io;
use std::vec::Vec;

use tripoint_core::internal::{Ordering, fence};

use crate::format::{
    EntryState, MAX_TALLY_CLASSES, MAX_TALLY_THREADS, SectionKind, TABLE_TEXT_WORDS, TALLY_NUMBERS,
    TallyNumber, TallyWord,
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

/// The words before the numbers.
const HEAD: usize = TallyWord::Numbers as usize;

/// The tallies of all threads that had any event, class by class; `None` if they make no sense.
pub(super) fn tallies(reader: &Reader) -> io::Result<Option<Vec<TallyCounters>>> {
    let mut found = Vec::new();
    let section = reader.section(SectionKind::Tallies);
    if section.entries == 0 {
        return Ok(Some(found));
    }
    let mut head = [0; HEAD];
    reader.words().read(section.offset, &mut head)?;
    if head[TallyWord::State as usize] != EntryState::Live as u64 {
        return Ok(Some(found));
    }
    // What was read before the state was found live is read again.
    fence(Ordering::Acquire);
    reader.words().read(section.offset, &mut head)?;
    let classes = match usize::try_from(head[TallyWord::Classes as usize]) {
        Ok(classes) if (1..=MAX_TALLY_CLASSES).contains(&classes) => classes,
        _ => return Ok(None),
    };
    let mut numbers = [0; MAX_TALLY_CLASSES * TALLY_NUMBERS];
    let numbers = &mut numbers[..classes * TALLY_NUMBERS];
    let thread_bytes = numbers.len() as u64 * WORD;
    let first = HEAD as u64 * WORD;
    let threads = (section.entry_bytes.saturating_sub(first) / thread_bytes).min(MAX_TALLY_THREADS as u64);
    for thread in 0..threads {
        reader.words().read(section.offset + first + thread * thread_bytes, numbers)?;
        for class in 0..classes {
            let number = |number: TallyNumber| numbers[number as usize * classes + class];
            let tally = TallyCounters {
                class: name(&head, class),
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
                found.push(tally);
            }
        }
    }
    Ok(Some(found))
}

/// The name of a class; none if its words are no text.
fn name(head: &[u64; HEAD], class: usize) -> Text {
    let words = head[TallyWord::Names as usize..].as_chunks::<TABLE_TEXT_WORDS>().0.get(class);
    Text::from_words(words.map_or(&[], |words| words)).map_or(Text::EMPTY, |(text, _)| text)
}
