//! Reads the tables of counters, without any event ([design/telemetry.md `.counters`](crate::design::telemetry)).

use core::fmt;
use std::io;

use tripoint_core::internal::Json;

use crate::format::{ArenaWord, ExtentWord, PhaseWord, PointWord, PoolWord, SectionKind};
use crate::reader::file::Reader;
use crate::reader::heaps::{HeapCounters, heaps};
use crate::reader::sums::{SampleCounters, samples};
use crate::reader::table::{Entry, Table, is_live, table, text};
use crate::reader::tallies::{ContractThread, TallyCounters, of_contract};
use crate::reader::values::Text;

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
        /// How often a heap of the arena was stopped.
        stops: Stops,
        /// How often a stop of a heap was postponed.
        stops_postponed: StopsPostponed,
        /// How often a mutator waited for the end of a stop.
        pauses: Pauses,
        /// How many collections ended.
        collections: Collections,
        /// The bytes that they freed.
        freed: Freed,
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
        /// The bytes that it had when the program noted them last; zero before.
        total: Total,
        /// Those of them that were in no object and no buffer then.
        free: Free,
    }
}

counters! {
    /// An extent: addresses that a pool has, and that follow each other.
    ExtentCounters, ExtentWord {
        /// The number of the arena in the file.
        arena: Arena,
        /// The number of the pool.
        pool: Pool,
        /// The first address.
        base: Base,
        /// The bytes from there on.
        bytes: Bytes,
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// The counters of each arena.
    pub arenas: Table<ArenaCounters>,
    /// The counters of each pool.
    pub pools: Table<PoolCounters>,
    /// The addresses that pools have now; none if addresses are left out.
    pub extents: Table<ExtentCounters>,
    /// The counters of each allocation point and other buffer.
    pub points: Table<PointCounters>,
    /// The counters of each heap of automatic pools, from its first stop on.
    pub heaps: Table<HeapCounters>,
    /// The counters of the contract: one entry, or none before the contract reports its first phase.
    pub phase: Table<PhaseCounters>,
    /// The threads of the contract, if the file is of version 2 of the format.
    pub contract_threads: Table<ContractThread>,
    /// What the contract counted of each thread and class of events, if it counted anything.
    pub tallies: Table<TallyCounters>,
    /// The sums of each pool's samples.
    pub samples: Table<SampleCounters>,
}

impl Reader {
    /// The counters of arenas and pools as they are now. All other tables are empty, and are not read: they may be large, and
    /// sizes over time need a look often.
    ///
    /// # Errors
    /// If the file cannot be read any more.
    pub fn counters_of_memory(&self) -> io::Result<Counters> {
        Ok(Counters {
            arenas: table(self, SectionKind::Arenas, ArenaCounters::from_entry)?,
            pools: table(self, SectionKind::Pools, |entry| PoolCounters {
                class: text(entry, PoolWord::Class as usize),
                numbers: PoolNumbers::from_entry(entry),
            })?,
            ..Counters::default()
        })
    }

    /// The counters as they are now.
    ///
    /// # Errors
    /// If the file cannot be read any more.
    pub fn counters(&self) -> io::Result<Counters> {
        let contract = of_contract(self)?;
        let unsteady = usize::from(contract.is_none());
        let contract = contract.unwrap_or_default();
        Ok(Counters {
            extents: extents(self)?,
            points: table(self, SectionKind::Points, PointCounters::from_entry)?,
            heaps: heaps(self)?,
            phase: table(self, SectionKind::Phase, |entry| PhaseCounters {
                phase: text(entry, PhaseWord::Phase as usize),
                numbers: PhaseNumbers::from_entry(entry),
            })?,
            contract_threads: Table { entries: contract.threads, ..Table::default() },
            tallies: Table { entries: contract.tallies, left_out: 0, unsteady },
            samples: samples(self)?,
            ..self.counters_of_memory()?
        })
    }
}

/// The extents that pools have. Those that they had say nothing.
fn extents(reader: &Reader) -> io::Result<Table<ExtentCounters>> {
    let mut extents = table(reader, SectionKind::Extents, ExtentCounters::from_entry)?;
    extents.entries.retain(|extent| extent.is_live);
    Ok(extents)
}

/// An entry, for people and for JSON: its texts, its numbers, and whether its subject still exists.
trait Listed {
    fn texts(&self) -> impl Iterator<Item = (&'static str, Text)>;
    fn is_live(&self) -> bool;
    fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)>;

    fn sets(&self) -> impl Iterator<Item = (&'static str, &[Text])> {
        core::iter::empty()
    }
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
    ArenaCounters, ExtentCounters, PointCounters;
    PoolCounters { class }
    PhaseCounters { phase }
}

impl Listed for HeapCounters {
    fn texts(&self) -> impl Iterator<Item = (&'static str, Text)> {
        core::iter::empty()
    }

    /// It is not known when a heap is dropped.
    fn is_live(&self) -> bool {
        true
    }

    fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.known_numbers()
    }
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

/// Sets are written after the numbers, and what a thread is as numbers that are 0 or 1.
impl Listed for ContractThread {
    fn texts(&self) -> impl Iterator<Item = (&'static str, Text)> {
        [("name", self.name)].into_iter()
    }

    fn is_live(&self) -> bool {
        !self.has_left
    }

    fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("thread", self.thread),
            ("is_hot", self.is_hot.into()),
            ("was_armed", self.was_armed.into()),
            ("left_unarmed", self.left_unarmed.into()),
            ("records_lost", self.records_lost),
            ("overlapped", self.overlapped),
        ]
        .into_iter()
    }

    fn sets(&self) -> impl Iterator<Item = (&'static str, &[Text])> {
        [("held", &self.held), ("wanted", &self.wanted), ("live", &self.live)]
            .into_iter()
            .map(|(name, set)| (name, &set[..]))
    }
}

/// Estimates are shown in whole bytes and objects.
impl Listed for SampleCounters {
    fn texts(&self) -> impl Iterator<Item = (&'static str, Text)> {
        core::iter::once(("class", self.class))
    }

    /// Its sums stay.
    fn is_live(&self) -> bool {
        true
    }

    fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Self { arena, pool, ref estimate, .. } = *self;
        // These casts saturate.
        let rounded = [estimate.bytes(), estimate.objects(), estimate.standard_error()];
        let [bytes, objects, standard_error] = rounded.map(|sum| libm::round(sum) as u64);
        [
            ("arena", arena),
            ("pool", pool),
            ("samples", estimate.samples()),
            ("bytes", bytes),
            ("objects", objects),
            ("standard_error", standard_error),
        ]
        .into_iter()
    }
}

fn show_table<T: Listed>(table: &Table<T>, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for entry in &table.entries {
        f.write_str(name)?;
        entry.texts().try_for_each(|(name, text)| write!(f, " {name}=\"{text}\""))?;
        entry.numbers().try_for_each(|(name, number)| match name {
            "base" | "buffer" | "heap" => write!(f, " {name}={number:#x}"),
            _ => write!(f, " {name}={number}"),
        })?;
        for (name, set) in entry.sets() {
            write!(f, " {name}=")?;
            for (index, of_set) in set.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { "," })?;
                write!(f, "{of_set}")?;
            }
        }
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
                    "base" | "buffer" | "heap" => json.text(name, format_args!("{number:#x}")),
                    _ => json.number(name, number),
                })?;
                entry.sets().try_for_each(|(name, set)| {
                    json.name(name)?;
                    json.array(&mut set.iter(), |json, of_set| json.value_text(of_set.lossy()))
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
            table_json(&self.extents, "extents", json)?;
            table_json(&self.points, "points", json)?;
            table_json(&self.heaps, "heaps", json)?;
            table_json(&self.phase, "phase", json)?;
            table_json(&self.contract_threads, "contract_threads", json)?;
            table_json(&self.tallies, "tallies", json)?;
            table_json(&self.samples, "samples", json)
        })
    }
}

/// One line for each entry.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_table(&self.arenas, "arena", f)?;
        show_table(&self.pools, "pool", f)?;
        show_table(&self.extents, "extent", f)?;
        show_table(&self.points, "point", f)?;
        show_table(&self.heaps, "heap", f)?;
        show_table(&self.phase, "contract", f)?;
        show_table(&self.contract_threads, "thread", f)?;
        show_table(&self.tallies, "tally", f)?;
        show_table(&self.samples, "samples", f)
    }
}
