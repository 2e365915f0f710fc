//! Which addresses pools have ([design/telemetry.md `.extents`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use core::ops::Range;

use tripoint_core::internal::Update;

use crate::file::image::Image;
use crate::file::table::{Entry, Table};
use crate::format::{ExtentWord, PoolWord};

/// The extents of a pool. Its threads may change them at the same moment, since a pool reports what it returns without a lock.
/// Each change of an extent's size is one compare-exchange, so none is lost; but a thread may look for an extent that another
/// has cut, and not yet entered again. So a reader compares the extents of a pool with the bytes that it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolExtents<'w> {
    table: Table<'w>,
    /// The entry of the pool.
    entry: Entry<'w>,
    arena: u64,
    pool: u64,
}

impl<'w> PoolExtents<'w> {
    /// The extents of the pool that has this entry.
    pub(super) const fn new(image: &Image<'w>, entry: Entry<'w>, arena: u64, pool: u64) -> Self {
        Self { table: image.extents, entry, arena, pool }
    }

    const fn keys(&self, base: u64) -> [(usize, u64); 3] {
        [
            (ExtentWord::Arena as usize, self.arena),
            (ExtentWord::Pool as usize, self.pool),
            (ExtentWord::Base as usize, base),
        ]
    }

    /// The extent that begins here.
    fn at(&self, base: u64) -> Option<Entry<'w>> {
        self.table.entry_of(self.keys(base))
    }

    /// The extent that changed last.
    fn last_extent(&self) -> Option<Entry<'w>> {
        self.at(self.entry.get(PoolWord::LastExtent as usize))
    }

    fn set_last_extent(&self, base: u64) {
        self.entry.set(PoolWord::LastExtent as usize, base);
    }

    /// The pool gets these addresses. If they follow the extent that changed last, that becomes larger.
    pub(super) fn extend(&self, base: u64, bytes: u64) {
        let grown = self.last_extent().is_some_and(|last| {
            let start = addresses(last).start;
            let follows = |had: u64| (start.wrapping_add(had) == base).then(|| had.wrapping_add(bytes));
            last.word(ExtentWord::Bytes as usize).update_by(follows).is_ok()
        });
        if !grown {
            self.take(base, bytes);
        }
    }

    fn take(&self, base: u64, bytes: u64) {
        let fill = |entry: Entry<'_>| entry.set(ExtentWord::Bytes as usize, bytes);
        if self.table.take_entry(&self.keys(base), fill).is_some() {
            self.set_last_extent(base);
        }
    }

    /// The pool returns these addresses, which may be a part of an extent, or lie in several. All entries are looked at
    /// only if they are neither the beginning of an extent nor in the one that changed last.
    pub(super) fn retract(&self, base: u64, bytes: u64) {
        let returned = base..base.wrapping_add(bytes);
        let contains = |extent: &Entry<'_>| {
            let Range { start, end } = addresses(*extent);
            start <= returned.start && returned.end <= end
        };
        match [self.at(base), self.last_extent()].into_iter().flatten().find(contains) {
            Some(extent) => self.cut(extent, &returned),
            None => self.all().for_each(|extent| self.cut(extent, &returned)),
        }
    }

    /// Takes addresses out of an extent. Those before and after them stay.
    fn cut(&self, extent: Entry<'_>, returned: &Range<u64>) {
        let start = addresses(extent).start;
        let rest = returned.start.saturating_sub(start);
        let end = |had: u64| start.saturating_add(had);
        let overlaps = |had: u64| end(had) > returned.start && returned.end > start;
        let cut = |had: u64| overlaps(had).then_some(rest);
        let Ok(had) = extent.word(ExtentWord::Bytes as usize).update_by(cut) else { return };
        if rest > 0 {
            self.set_last_extent(start);
        } else {
            extent.retire();
        }
        if returned.end < end(had) {
            self.take(returned.end, end(had) - returned.end);
        }
    }

    /// Forgets all extents: the pool is destroyed, or addresses are left out from now on.
    pub(super) fn forget(&self) {
        if self.entry.get(PoolWord::LastExtent as usize) != 0 {
            self.all().for_each(Entry::retire);
            self.set_last_extent(0);
        }
    }

    /// All extents of the pool.
    fn all(&self) -> impl Iterator<Item = Entry<'w>> {
        let keys = [(ExtentWord::Arena as usize, self.arena), (ExtentWord::Pool as usize, self.pool)];
        self.table.entries().filter(move |entry| entry.is_live() && entry.has(&keys))
    }
}

/// The addresses of an extent.
fn addresses(extent: Entry<'_>) -> Range<u64> {
    let [base, bytes] = [ExtentWord::Base, ExtentWord::Bytes].map(|word| extent.get(word as usize));
    base..base.wrapping_add(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use proptest::prelude::*;
    use tripoint_core::internal::AtomicU64;
    use tripoint_oracle::{cases, effort};

    use super::*;
    use crate::file::plan::{Plan, Room};

    /// Which pool has each of few addresses: its naive account.
    type Owners = BTreeMap<u64, u64>;

    /// The addresses that the table has, each once.
    fn known(image: &Image<'_>) -> Owners {
        let mut owners = Owners::new();
        for extent in image.extents.entries().filter(|extent| extent.is_live()) {
            for at in addresses(extent) {
                let before = owners.insert(at, extent.get(ExtentWord::Pool as usize));
                assert_eq!(before, None, "an address is in two extents");
            }
        }
        owners
    }

    #[derive(Clone, Debug)]
    enum Step {
        Extend { pool: u64, base: u64, bytes: u64 },
        Retract { base: u64, bytes: u64 },
        Forget { pool: u64 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (1..4_u64, 1..200_u64, 1..40_u64).prop_map(|(pool, base, bytes)| Step::Extend { pool, base, bytes }),
            5 => (1..200_u64, 1..40_u64).prop_map(|(base, bytes)| Step::Retract { base, bytes }),
            1 => (1..4_u64).prop_map(|pool| Step::Forget { pool }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(128), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_address_is_known_to_be_the_pools_that_has_it(
            steps in proptest::collection::vec(step(), 0..effort(150) as usize),
        ) {
            let room = Room { pools: 4, extents: 512, ..Room::LEAST };
            let plan = Plan::new(&room).unwrap();
            let words: Vec<_> = (0..plan.words).map(|_| AtomicU64::new(0)).collect();
            let image = Image::make(&words, None, &plan).unwrap();
            let extents = |pool: u64| {
                let keys = [(PoolWord::Arena as usize, 1), (PoolWord::Pool as usize, pool)];
                PoolExtents::new(&image, image.pools.entry_for(&keys).unwrap(), 1, pool)
            };
            let mut owners = Owners::new();
            for step in steps {
                match step {
                    Step::Extend { pool, base, bytes } => {
                        // The arena gives what no pool has.
                        let bytes = (base..base + bytes).take_while(|at| !owners.contains_key(at)).count() as u64;
                        if bytes > 0 {
                            extents(pool).extend(base, bytes);
                            owners.extend((base..base + bytes).map(|at| (at, pool)));
                        }
                    }
                    Step::Retract { base, bytes } => {
                        // A pool returns what it has.
                        let Some(&pool) = owners.get(&base) else { continue };
                        let is_its = |at: &u64| owners.get(at) == Some(&pool);
                        let bytes = (base..base + bytes).take_while(is_its).count() as u64;
                        extents(pool).retract(base, bytes);
                        owners.retain(|at, _| !(base..base + bytes).contains(at));
                    }
                    Step::Forget { pool } => {
                        extents(pool).forget();
                        owners.retain(|_, owner| *owner != pool);
                    }
                }
                prop_assert_eq!(&known(&image), &owners);
            }
        }
    }
}
