//! A cache that forgets what was not used for longest: a map into a list of boxes.

use std::collections::VecDeque;

use tripoint_adaptors::PoolAllocator;
use tripoint_core::{ManualPool, PoolBox};

use super::{Numbers, PoolMap, PoolVec};

const CAPACITY: usize = if cfg!(miri) { 8 } else { 50 };
const LOOKUPS: u64 = if cfg!(miri) { 36 } else { 3000 };

/// What a lookup that finds nothing computes and keeps.
fn page(key: u64) -> [u64; 6] {
    core::array::from_fn(|index| key * 100 + index as u64)
}

fn lookups() -> impl Iterator<Item = u64> {
    let mut numbers = Numbers::new(4);
    // Small keys are looked up more often.
    (0..LOOKUPS).map(move |_| numbers.below(20) * numbers.below(10))
}

struct Entry<'p, P: ManualPool> {
    key: u64,
    value: PoolBox<'p, [u64; 6], P>,
    newer: usize,
    older: usize,
}

/// Entry zero ends the list both ways.
struct Cache<'p, P: ManualPool> {
    entries: PoolVec<'p, Entry<'p, P>, P>,
    places: PoolMap<'p, u64, usize, P>,
    pool: &'p P,
}

impl<'p, P: ManualPool> Cache<'p, P> {
    fn new(pool: &'p P) -> Self {
        let memory = PoolAllocator::new(pool);
        let mut cache = Self { entries: PoolVec::new_in(memory), places: PoolMap::new_in(memory), pool };
        cache.entries.push(Entry { key: u64::MAX, value: cache.boxed(0), newer: 0, older: 0 });
        cache
    }

    fn boxed(&self, key: u64) -> PoolBox<'p, [u64; 6], P> {
        PoolBox::new_in(page(key), self.pool).unwrap()
    }

    fn unlink(&mut self, at: usize) {
        let Entry { newer, older, .. } = self.entries[at];
        self.entries[newer].older = older;
        self.entries[older].newer = newer;
    }

    fn link_newest(&mut self, at: usize) {
        let older = self.entries[0].older;
        (self.entries[at].newer, self.entries[at].older) = (0, older);
        self.entries[older].newer = at;
        self.entries[0].older = at;
    }

    /// The value, and whether it was there.
    fn get(&mut self, key: u64) -> ([u64; 6], bool) {
        let found = self.places.get(&key).copied();
        let at = found.unwrap_or_else(|| self.place_for(key));
        if found.is_some() {
            self.unlink(at);
        }
        self.link_newest(at);
        (*self.entries[at].value, found.is_some())
    }

    fn place_for(&mut self, key: u64) -> usize {
        let entry = Entry { key, value: self.boxed(key), newer: 0, older: 0 };
        let at = if self.places.len() < CAPACITY { self.entries.len() } else { self.entries[0].newer };
        if at == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.unlink(at);
            self.places.remove(&self.entries[at].key);
            self.entries[at] = entry;
        }
        self.places.insert(key, at);
        at
    }
}

pub(crate) fn run<P: ManualPool>(pool: &P) {
    let mut cache = Cache::new(pool);
    let mut expected = VecDeque::new();
    let mut hits = 0;
    for key in lookups() {
        let place = expected.iter().position(|&known| known == key);
        match place {
            Some(place) => drop(expected.remove(place)),
            None => expected.truncate(CAPACITY - 1),
        }
        expected.push_front(key);
        assert_eq!(cache.get(key), (page(key), place.is_some()));
        hits += u32::from(place.is_some());
    }
    assert!((LOOKUPS / 12..LOOKUPS - LOOKUPS / 6).contains(&u64::from(hits)));
}
