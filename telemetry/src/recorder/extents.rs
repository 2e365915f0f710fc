//! Which addresses pools have ([design/telemetry.md `.extents`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use core::ops::Range;

use tripoint_core::internal::{AtomicU64, Ordering, Update, fence};

use crate::file::image::Image;
use crate::file::table::{Entry, Table};
use crate::format::{ExtentWord, PoolWord};

/// In place of the address of the last extent: which addresses the pool has is not known, and it has no extents in the table,
/// until it has returned all of them.
const UNKNOWN: u64 = u64::MAX;

/// The extents of a pool: of all addresses that it has, or none. Its threads may change them at the same moment, since a pool
/// reports what it returns without a lock. Each change of an extent's size is one compare-exchange, so none is lost; but a
/// thread may look for an extent that another has cut, and not yet entered again. So a reader compares the extents of a pool
/// with the bytes that it counts.
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

    /// The first address of the extent that changed last.
    fn last_word(&self) -> &'w AtomicU64 {
        self.entry.word(PoolWord::LastExtent as usize)
    }

    /// Returns false if the pool's addresses are not known.
    fn set_last(&self, base: u64) -> bool {
        // Pairs with the swap of `forget`: a thread that comes there after this finds the extent.
        fence(Ordering::Release);
        self.last_word().update_by(|last: u64| (last != UNKNOWN).then_some(base)).is_ok()
    }

    /// The extent that changed last.
    fn last_extent(&self) -> Option<Entry<'w>> {
        self.at(self.last_word().load(Ordering::Relaxed))
    }

    fn is_known(&self) -> bool {
        self.last_word().load(Ordering::Relaxed) != UNKNOWN
    }

    /// The bytes that it has, those of the present event included.
    fn held(&self) -> u64 {
        let [extended, retracted] =
            [PoolWord::Extended, PoolWord::Retracted].map(|word| self.entry.get(word as usize));
        extended.wrapping_sub(retracted)
    }

    /// The pool gets these addresses, which its entry counts by now. If they follow the extent that changed last, that becomes
    /// larger.
    pub(super) fn extend(&self, base: u64, bytes: u64) {
        if self.held() == bytes {
            // It has no others, so that from here on its addresses are known.
            let _ = self.last_word().compare_exchange(UNKNOWN, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        if !self.is_known() {
            return;
        }
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
        match self.table.take_entry(&self.keys(base), fill) {
            None => self.forget(),
            Some(extent) => {
                if !self.set_last(base) {
                    // Another thread found no entry meanwhile.
                    extent.erase();
                }
            }
        }
    }

    /// The pool returns these addresses, which may be a part of an extent, or lie in several. Entries are looked at, until all
    /// of the addresses are found, only if they are neither the beginning of an extent nor in the one that changed last.
    pub(super) fn retract(&self, base: u64, bytes: u64) {
        if !self.is_known() {
            return;
        }
        let returned = base..base.wrapping_add(bytes);
        let contains = |extent: &Entry<'_>| {
            let Range { start, end } = addresses(*extent);
            start <= returned.start && returned.end <= end
        };
        match [self.at(base), self.last_extent()].into_iter().flatten().find(contains) {
            Some(extent) => _ = self.cut(extent, &returned),
            None => self.cut_all(&returned),
        }
    }

    /// Takes addresses out of extents, wherever these are.
    fn cut_all(&self, returned: &Range<u64>) {
        let mut rest = returned.end.wrapping_sub(returned.start);
        for extent in self.all() {
            rest = rest.saturating_sub(self.cut(extent, returned));
            if rest == 0 {
                break;
            }
        }
    }

    /// Takes addresses out of an extent, and returns how many it had of them. Those before and after them stay.
    fn cut(&self, extent: Entry<'w>, returned: &Range<u64>) -> u64 {
        let start = addresses(extent).start;
        let rest = returned.start.saturating_sub(start);
        let end = |had: u64| start.saturating_add(had);
        let overlaps = |had: u64| end(had) > returned.start && returned.end > start;
        let cut = |had: u64| overlaps(had).then_some(rest);
        let Ok(had) = extent.word(ExtentWord::Bytes as usize).update_by(cut) else { return 0 };
        if rest == 0 {
            extent.erase();
        } else {
            self.set_last(start);
        }
        if returned.end < end(had) {
            self.take(returned.end, end(had) - returned.end);
        }
        end(had).min(returned.end) - start.max(returned.start)
    }

    /// Forgets all extents, if the pool is destroyed, or if not all of its addresses can be known: they are left out from now
    /// on, or one found no entry.
    pub(super) fn forget(&self) {
        if ![0, UNKNOWN].contains(&self.last_word().swap(UNKNOWN, Ordering::Acquire)) {
            self.all().for_each(Entry::erase);
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
    use std::collections::{BTreeMap, BTreeSet};
    use std::vec::Vec;

    use proptest::prelude::*;
    use tripoint_oracle::{cases, effort};

    use super::*;
    use crate::file::plan::{Plan, Room};

    /// Which pool has each of few addresses: its naive account.
    type Owners = BTreeMap<u64, u64>;

    /// The addresses that the table has, each once.
    fn known(image: &Image<'_>) -> Owners {
        let mut owners = Owners::new();
        for extent in image.extents.entries() {
            if !extent.is_live() {
                let words = [ExtentWord::Base, ExtentWord::Bytes].map(|word| extent.get(word as usize));
                assert_eq!(words, [0; 2], "an address is kept that no pool has");
                continue;
            }
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

    /// What the pool does is counted first, as it is of events.
    fn extents<'w>(image: &Image<'w>, pool: u64, counted: PoolWord, bytes: u64) -> PoolExtents<'w> {
        let keys = [(PoolWord::Arena as usize, 1), (PoolWord::Pool as usize, pool)];
        let entry = image.pools.entry_for(&keys).unwrap();
        entry.add(counted as usize, bytes);
        PoolExtents::new(image, entry, 1, pool)
    }

    fn image_of<'w>(words: &'w mut Vec<AtomicU64>, room: usize) -> Image<'w> {
        let plan = Plan::new(&Room { pools: 4, extents: room, ..Room::LEAST }).unwrap();
        words.extend((0..plan.words).map(|_| AtomicU64::new(0)));
        Image::make(words, None, &plan).unwrap()
    }

    /// Otherwise each return would take as long as the table is large.
    #[test]
    fn a_pool_whose_addresses_are_not_known_looks_at_no_entry() {
        let mut words = Vec::new();
        let image = image_of(&mut words, 16);
        extents(&image, 1, PoolWord::Extended, 8).extend(64, 8);
        extents(&image, 1, PoolWord::Extended, 0).forget();
        // What a look at all entries would find.
        let of_pool = extents(&image, 1, PoolWord::Retracted, 4);
        let planted =
            image.extents.take_entry(&of_pool.keys(96), |entry| entry.set(ExtentWord::Bytes as usize, 8));
        of_pool.retract(100, 4);
        assert_eq!(addresses(planted.unwrap()), 96..104);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(128), failure_persistence: None, ..ProptestConfig::default() })]

        /// With much room, and with so little that extents find no entry: the addresses of a pool are known, all or none.
        #[test]
        fn each_address_is_known_to_be_the_pools_that_has_it(
            room in prop_oneof![Just(512_usize), Just(16)],
            steps in proptest::collection::vec(step(), 0..effort(150) as usize),
        ) {
            let mut words = Vec::new();
            let image = image_of(&mut words, room);
            let mut owners = Owners::new();
            let mut unknown = BTreeSet::new();
            let mut left_out = 0;
            for step in steps {
                let pool = match step {
                    Step::Extend { pool, base, bytes } => {
                        // The arena gives what no pool has.
                        let bytes = (base..base + bytes).take_while(|at| !owners.contains_key(at)).count() as u64;
                        if bytes == 0 {
                            continue;
                        }
                        if !owners.values().any(|owner| *owner == pool) {
                            unknown.remove(&pool);
                        }
                        extents(&image, pool, PoolWord::Extended, bytes).extend(base, bytes);
                        owners.extend((base..base + bytes).map(|at| (at, pool)));
                        pool
                    }
                    Step::Retract { base, bytes } => {
                        // A pool returns what it has.
                        let Some(&pool) = owners.get(&base) else { continue };
                        let is_its = |at: &u64| owners.get(at) == Some(&pool);
                        let bytes = (base..base + bytes).take_while(is_its).count() as u64;
                        extents(&image, pool, PoolWord::Retracted, bytes).retract(base, bytes);
                        owners.retain(|at, _| !(base..base + bytes).contains(at));
                        pool
                    }
                    Step::Forget { pool } => {
                        extents(&image, pool, PoolWord::Extended, 0).forget();
                        unknown.insert(pool);
                        pool
                    }
                };
                let now = image.extents.left_out();
                if now > left_out {
                    prop_assert_eq!(now, left_out + 1, "a pool that became unknown is counted once");
                    prop_assert!(unknown.insert(pool), "a pool that was unknown is counted again");
                    left_out = now;
                }
                let mut expected = owners.clone();
                expected.retain(|_, owner| !unknown.contains(owner));
                prop_assert_eq!(known(&image), expected);
            }
            prop_assert!(room == 16 || left_out == 0);
        }
    }
}
