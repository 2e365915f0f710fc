//! Bytes over time, from events that say only how many more or fewer there are.

use std::collections::BTreeMap;

use crate::source::Event;
use crate::source::counters::{Arena, Pool};

/// What has bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Arena(u64),
    /// The arena's number and the pool's.
    Pool(u64, u64),
}

impl Owner {
    fn label(self) -> String {
        match self {
            Self::Arena(arena) => format!("arena {arena}, committed"),
            Self::Pool(arena, pool) => format!("arena {arena}, pool {pool}, held"),
        }
    }

    /// What it has at the end, according to the counters.
    fn last(self, arenas: &[Arena], pools: &[Pool]) -> Option<u64> {
        match self {
            Self::Arena(number) => arenas.iter().find(|arena| arena.arena == number).map(Arena::committed),
            Self::Pool(arena, number) => {
                pools.iter().find(|pool| (pool.arena, pool.pool) == (arena, number)).map(Pool::held)
            }
        }
    }
}

/// The bytes of one thing over time.
pub(super) struct Curve {
    pub(super) label: String,
    /// Times in ns, and bytes from then on.
    pub(super) steps: Vec<(u64, i64)>,
}

/// Changes of bytes, which are rare: memory that arenas commit and pools take.
#[derive(Clone, Debug, Default)]
pub(super) struct Balance {
    changes: BTreeMap<Owner, Vec<(u64, i64)>>,
}

impl Balance {
    pub(super) fn add(&mut self, event: &Event, ns: u64) {
        let (owner, sign) = match event.event.as_str() {
            "grow" => (Owner::Arena(event.arena), 1),
            "shrink" => (Owner::Arena(event.arena), -1),
            "extend" => (Owner::Pool(event.arena, event.pool), 1),
            "retract" => (Owner::Pool(event.arena, event.pool), -1),
            _ => return,
        };
        let bytes = i64::try_from(event.size).unwrap_or(i64::MAX);
        self.changes.entry(owner).or_default().push((ns, sign * bytes));
    }

    /// The curves. They end with what the counters have, so they are right also if early events were missed; without
    /// counters they begin with nothing.
    pub(super) fn curves(self, arenas: &[Arena], pools: &[Pool]) -> impl Iterator<Item = Curve> {
        self.changes.into_iter().map(|(owner, mut steps)| {
            let sum = steps.iter().fold(0_i64, |sum, (_, change)| sum.saturating_add(*change));
            let last = owner.last(arenas, pools).and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(sum);
            let mut bytes = last.saturating_sub(sum);
            for (_, step) in &mut steps {
                bytes = bytes.saturating_add(*step);
                *step = bytes;
            }
            Curve { label: owner.label(), steps }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, size: u64) -> Event {
        Event { event: kind.to_owned(), arena: 1, pool: 2, size, ..Event::default() }
    }

    fn arena(committed: u64) -> Arena {
        let arena = format!(
            r#"{{"is_live":true,"arena":1,"bytes":0,"grown":{committed},"shrunk":0,"refused":0,"pools_created":0,
            "pools_destroyed":0,"stops":0,"stops_postponed":0,"pauses":0,"collections":0,"freed":0}}"#
        );
        serde_json::from_str(&arena).unwrap()
    }

    #[test]
    fn curves_end_with_what_counters_have() {
        let mut balance = Balance::default();
        for (ns, kind, size) in [(1, "grow", 100), (2, "shrink", 30), (3, "fill", 7), (4, "extend", 64)] {
            balance.add(&event(kind, size), ns);
        }
        let curves: Vec<_> = balance.curves(&[arena(1070)], &[]).collect();
        assert_eq!(curves[0].label, "arena 1, committed");
        assert_eq!(curves[0].steps, [(1, 1100), (2, 1070)], "1000 bytes were committed before");
        assert_eq!(curves[1].label, "arena 1, pool 2, held");
        assert_eq!(curves[1].steps, [(4, 64)], "counters do not have the pool");
    }

    #[test]
    fn sizes_that_no_memory_has_do_not_overflow() {
        let mut balance = Balance::default();
        (0..3).for_each(|ns| balance.add(&event("grow", u64::MAX), ns));
        (3..9).for_each(|ns| balance.add(&event("shrink", u64::MAX), ns));
        assert_eq!(balance.curves(&[arena(0)], &[]).next().unwrap().steps.len(), 9);
    }
}
