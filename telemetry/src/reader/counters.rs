//! Reads the tables of counters, without any event ([design/telemetry.md `.counters`](crate::design::telemetry)).

use core::fmt;
use std::io;
use std::vec::Vec;

use tripoint_core::internal::{Json, Ordering, fence};

use crate::format::{
    ArenaWord, EntryState, PhaseWord, PointWord, PoolWord, SectionKind, TABLE_ENTRY_WORDS, TABLE_TEXT_WORDS,
};
use crate::reader::file::Reader;
use crate::reader::tallies::{TallyCounters, tallies};
use crate::reader::values::Text;
use crate::reader::words::word;

/// The words of one entry.
type Entry = [u64; TABLE_ENTRY_WORDS];

/// How often an entry that is being taken is read before it is left out.
const TRIES: usize = 8;

/// The entries of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table<T> {
    /// The entries in use, and those whose subject no longer exists.
    pub entries: Vec<T>,
    /// How often no entry was left for something new.
    pub left_out: u64,
    /// How many entries were left out because they changed whenever they were read.
    pub unsteady: usize,
}

macro_rules! counters {
    ($(#[$about:meta])* $name:ident, $word:ident { $($(#[$doc:meta])* $field:ident: $at:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            /// Whether the subject of the entry still exists. If not, these are its last counts.
            pub is_live: bool,
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $name {
            /// Its numbers with their names, in order.
            fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            fn from_entry(entry: &Entry) -> Self {
                Self { is_live: is_live(entry), $($field: entry[$word::$at as usize],)* }
            }
        }
    };
}

counters! {
    /// The counters of an arena.
    ArenaCounters, ArenaWord {
        /// Its number in the file.
        arena: Arena,
        /// Its first address; zero if addresses are left out.
        base: Base,
        /// The bytes of its range.
        bytes: Bytes,
        /// The bytes that it committed.
        grown: Grown,
        /// The bytes that it decommitted.
        shrunk: Shrunk,
        /// How often it refused to grow.
        refused: Refused,
        /// How many pools were created.
        pools_created: PoolsCreated,
        /// How many pools were destroyed.
        pools_destroyed: PoolsDestroyed,
    }
}

counters! {
    /// The numbers of a pool.
    PoolNumbers, PoolWord {
        /// The number of its arena in the file.
        arena: Arena,
        /// Its number in the arena.
        pool: Pool,
        /// The bytes that it took from its arena.
        extended: Extended,
        /// The bytes that it returned to its arena.
        retracted: Retracted,
        /// How often it filled a buffer.
        fills: Fills,
        /// The bytes of these fills.
        filled: Filled,
        /// How often it emptied a buffer.
        empties: Empties,
        /// The bytes that were returned then.
        emptied: Emptied,
    }
}

counters! {
    /// The counters of an allocation point or another buffer.
    PointCounters, PointWord {
        /// The number of its arena in the file.
        arena: Arena,
        /// The number of its pool.
        pool: Pool,
        /// The number by which events name the buffer.
        buffer: Buffer,
        /// How often it was filled.
        fills: Fills,
        /// The bytes of these fills.
        filled: Filled,
        /// How often it was emptied.
        empties: Empties,
        /// The bytes that were returned then.
        emptied: Emptied,
        /// The bytes of the last fill: the room that it had then.
        room: Room,
        /// Trips that its owner observed.
        trips: Trips,
        /// How often it was flipped.
        flips: Flips,
        /// Commits that failed.
        commits_failed: CommitsFailed,
        /// Frames pushed.
        frames_pushed: FramesPushed,
        /// Frames popped.
        frames_popped: FramesPopped,
    }
}

counters! {
    /// The numbers of the steady-state contract.
    PhaseNumbers, PhaseWord {
        /// How often the phase changed.
        changes: Changes,
        /// When it changed last, in ticks of the file's clock.
        ticks: Time,
        /// Amnesties that began.
        amnesties_begun: AmnestiesBegun,
        /// Amnesties that ended.
        amnesties_ended: AmnestiesEnded,
    }
}

/// The counters of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolCounters {
    /// The name of its class.
    pub class: Text,
    /// Its numbers.
    pub numbers: PoolNumbers,
}

/// The counters of the steady-state contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseCounters {
    /// The name of the phase.
    pub phase: Text,
    /// Its numbers.
    pub numbers: PhaseNumbers,
}

/// All counters of a file.
///
/// Each number is the one that was there at some moment while the entry was read. All numbers of an entry
/// belong to the same subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// The counters of each arena.
    pub arenas: Table<ArenaCounters>,
    /// The counters of each pool.
    pub pools: Table<PoolCounters>,
    /// The counters of each allocation point and other buffer.
    pub points: Table<PointCounters>,
    /// The counters of the contract: one entry, or none before the contract reports its first phase.
    pub phase: Table<PhaseCounters>,
    /// What the contract counted of each thread and class of events, if it counted anything.
    pub tallies: Table<TallyCounters>,
}

impl Reader {
    /// The counters as they are now.
    ///
    /// # Errors
    /// If the file cannot be read any more.
    pub fn counters(&self) -> io::Result<Counters> {
        Ok(Counters {
            arenas: table(self, SectionKind::Arenas, ArenaCounters::from_entry)?,
            pools: table(self, SectionKind::Pools, |entry| PoolCounters {
                class: text(entry, PoolWord::Class as usize),
                numbers: PoolNumbers::from_entry(entry),
            })?,
            points: table(self, SectionKind::Points, PointCounters::from_entry)?,
            phase: table(self, SectionKind::Phase, |entry| PhaseCounters {
                phase: text(entry, PhaseWord::Phase as usize),
                numbers: PhaseNumbers::from_entry(entry),
            })?,
            tallies: {
                let found = tallies(self)?;
                let unsteady = usize::from(found.is_none());
                Table { entries: found.unwrap_or_default(), left_out: 0, unsteady }
            },
        })
    }
}

/// An entry, for people and for JSON: its texts, its numbers, and whether its subject still exists.
trait Listed {
    fn texts(&self) -> impl Iterator<Item = (&'static str, Text)>;
    fn is_live(&self) -> bool;
    fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)>;
}

/// Implements [`Listed`] for entries whose words are all numbers, and for entries that also have texts.
macro_rules! listed {
    ($($name:ident),*; $($with_texts:ident { $($text:ident),* })*) => {
        $(impl Listed for $name {
            fn texts(&self) -> impl Iterator<Item = (&'static str, Text)> {
                core::iter::empty()
            }

            fn is_live(&self) -> bool {
                self.is_live
            }

            fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
                self.numbers()
            }
        })*
        $(impl Listed for $with_texts {
            fn texts(&self) -> impl Iterator<Item = (&'static str, Text)> {
                [$((stringify!($text), self.$text)),*].into_iter()
            }

            fn is_live(&self) -> bool {
                self.numbers.is_live
            }

            fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
                self.numbers.numbers()
            }
        })*
    };
}

listed! {
    ArenaCounters, PointCounters;
    PoolCounters { class }
    PhaseCounters { phase }
}

impl Listed for TallyCounters {
    fn texts(&self) -> impl Iterator<Item = (&'static str, Text)> {
        [("class", self.class)].into_iter()
    }

    fn is_live(&self) -> bool {
        true
    }

    fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.numbers()
    }
}

fn show_table<T: Listed>(table: &Table<T>, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for entry in &table.entries {
        f.write_str(name)?;
        entry.texts().try_for_each(|(name, text)| write!(f, " {name}=\"{text}\""))?;
        entry.numbers().try_for_each(|(name, number)| match name {
            "base" | "buffer" => write!(f, " {name}={number:#x}"),
            _ => write!(f, " {name}={number}"),
        })?;
        f.write_str(if entry.is_live() { "\n" } else { ", gone\n" })?;
    }
    if table.left_out > 0 {
        writeln!(f, "{name}: {} found no entry", table.left_out)?;
    }
    Ok(())
}

fn table_json<T: Listed>(table: &Table<T>, name: &str, out: &mut Json<'_>) -> fmt::Result {
    out.name(name)?;
    out.object(|json| {
        json.name("entries")?;
        json.array(&mut table.entries.iter(), |json, entry| {
            json.object(|json| {
                json.number("is_live", entry.is_live())?;
                entry.texts().try_for_each(|(name, text)| json.text(name, text.lossy()))?;
                entry.numbers().try_for_each(|(name, number)| match name {
                    "base" | "buffer" => json.text(name, format_args!("{number:#x}")),
                    _ => json.number(name, number),
                })
            })
        })?;
        json.number("left_out", table.left_out)?;
        json.number("unsteady", table.unsteady)
    })
}

impl Counters {
    /// Writes the counters as one line of JSON, without the end of the line.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        Json::new(out).object(|json| {
            table_json(&self.arenas, "arenas", json)?;
            table_json(&self.pools, "pools", json)?;
            table_json(&self.points, "points", json)?;
            table_json(&self.phase, "phase", json)?;
            table_json(&self.tallies, "tallies", json)
        })
    }
}

/// One line for each entry.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_table(&self.arenas, "arena", f)?;
        show_table(&self.pools, "pool", f)?;
        show_table(&self.points, "point", f)?;
        show_table(&self.phase, "contract", f)?;
        show_table(&self.tallies, "tally", f)
    }
}

/// An entry as it was read.
enum Found {
    Nothing,
    Unsteady,
    Entry(Entry),
}

fn table<T>(reader: &Reader, kind: SectionKind, make: impl Fn(&Entry) -> T) -> io::Result<Table<T>> {
    let section = reader.section(kind);
    let left_out = section.left_out_at.map_or(Ok(0), |at| word(reader.words(), at))?;
    let mut table = Table { entries: Vec::new(), left_out, unsteady: 0 };
    for index in 0..section.entries {
        match entry(reader, section.entry(index))? {
            Found::Nothing => {}
            Found::Unsteady => table.unsteady += 1,
            Found::Entry(entry) => table.entries.push(make(&entry)),
        }
    }
    Ok(table)
}

/// Reads an entry until its first word is the same before and after, so that all words are of one entry.
fn entry(reader: &Reader, at: u64) -> io::Result<Found> {
    let mut entry = [0; TABLE_ENTRY_WORDS];
    for _ in 0..TRIES {
        let before = word(reader.words(), at)?;
        if state(before) == EntryState::Free as u64 {
            return Ok(Found::Nothing);
        }
        fence(Ordering::Acquire);
        reader.words().read(at, &mut entry)?;
        fence(Ordering::Acquire);
        let after = word(reader.words(), at)?;
        let whole = [EntryState::Live as u64, EntryState::Gone as u64];
        if before == after && before == entry[0] && whole.contains(&state(before)) {
            return Ok(Found::Entry(entry));
        }
    }
    Ok(Found::Unsteady)
}

fn state(word: u64) -> u64 {
    word & 0xff
}

fn is_live(entry: &Entry) -> bool {
    state(entry[0]) == EntryState::Live as u64
}

/// The text at a word of an entry; none if it does not fit there.
fn text(entry: &Entry, at: usize) -> Text {
    let words = entry.get(at..at + TABLE_TEXT_WORDS).unwrap_or_default();
    Text::from_words(words).map_or(Text::EMPTY, |(text, _)| text)
}
