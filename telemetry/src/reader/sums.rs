//! What samples add up to, read without any event ([design/telemetry.md `.samples`](crate::design::telemetry)).

use std::collections::BTreeMap;
use std::io;

use crate::estimators::estimate::{Estimate, Sums};
use crate::format::{SampleWord, SectionKind};
use crate::reader::file::Reader;
use crate::reader::table::{Entry, Table, table, text};
use crate::reader::values::Text;
use crate::sample::Mean;

/// What the samples of one pool add up to: all that were ever reported, also those whose events were
/// overwritten, dropped or switched off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleCounters {
    /// The name of the pool's class; empty if that is not known.
    pub class: Text,
    /// The number of the arena in the file, zero for none; [`OTHER_POOLS`](crate::format::OTHER_POOLS) for all
    /// pools that found no entry.
    pub arena: u64,
    /// The number of the pool; zero for the program's global allocator, or if the pool is not
    /// known. [`OTHER_POOLS`](crate::format::OTHER_POOLS) for all pools that found no entry.
    pub pool: u64,
    /// What they say of all that was allocated in the pool.
    pub estimate: Estimate,
}

/// What was made of an entry.
enum Made {
    /// No sample yet.
    Empty,
    /// Words that no writer writes.
    Damaged,
    Counters(SampleCounters),
}

impl Made {
    fn from_entry(entry: &Entry) -> Self {
        let word = |word: SampleWord| entry[word as usize];
        let sum = |word: SampleWord| {
            Some(f64::from_bits(entry[word as usize])).filter(|sum| sum.is_finite() && *sum >= 0.0)
        };
        if word(SampleWord::Samples) == 0 {
            return Self::Empty;
        }
        let estimate = || {
            let mean = Mean::new(u32::try_from(word(SampleWord::Mean)).ok()?)?;
            let sums = Sums {
                samples: word(SampleWord::Samples),
                sampled: word(SampleWord::Sampled),
                bytes: sum(SampleWord::Bytes)?,
                objects: sum(SampleWord::Objects)?,
                variance: sum(SampleWord::Variance)?,
                trials: word(SampleWord::Trials),
                rest: word(SampleWord::Rest),
            };
            Some(Estimate::of_sums(mean, sums, word(SampleWord::OtherMeans) != 0))
        };
        estimate().map_or(Self::Damaged, |estimate| {
            Self::Counters(SampleCounters {
                class: text(entry, SampleWord::Class as usize),
                arena: word(SampleWord::Arena),
                pool: word(SampleWord::Pool),
                estimate,
            })
        })
    }
}

/// The sums of each pool. Threads that report the first samples of a pool at once may take an entry each:
/// these are added up ([design/telemetry.md `.samples.words`](crate::design::telemetry)).
pub(super) fn samples(reader: &Reader) -> io::Result<Table<SampleCounters>> {
    let Table { entries, left_out, unsteady } = table(reader, SectionKind::Samples, Made::from_entry)?;
    let mut pools = BTreeMap::<(u64, u64), SampleCounters>::new();
    let mut damaged = 0;
    for made in entries {
        match made {
            Made::Empty => {}
            Made::Damaged => damaged += 1,
            Made::Counters(more) => {
                let known = pools.entry((more.arena, more.pool));
                known.and_modify(|known| known.estimate.merge(&more.estimate)).or_insert(more);
            }
        }
    }
    Ok(Table { entries: pools.into_values().collect(), left_out, unsteady: unsteady + damaged })
}

impl Table<SampleCounters> {
    /// What the samples of all pools say together; `None` if there are none. Pools that found no entry are
    /// included, so it is complete whatever became of events.
    #[must_use]
    pub fn total(&self) -> Option<Estimate> {
        let estimates = self.entries.iter().map(|pool| pool.estimate);
        estimates.reduce(|mut total, more| {
            total.merge(&more);
            total
        })
    }
}
