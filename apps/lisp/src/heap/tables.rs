//! Tables whose keys are weak: when nothing else refers to a key, its entry disappears.
//!
//! Keys are hashed by their addresses, which change when they move. So the address of each key is added to a *location
//! dependency* before it is hashed. If a key is not found and the dependency is stale, all keys are hashed anew, and the
//! search is repeated.
//!
//! The values are in the dependent object of the keys. A value that refers to its own key keeps it.

use super::keys::Keys;
use super::object::Kind;
use super::store::Store;
use super::value::Value;
use super::views::{Table, View};
use crate::failure::{Failure, Outcome};

/// The slots of a new table.
const LEAST: usize = 8;

/// A hash of an address or a number. Addresses differ in their middle bits.
fn hash_of(key: Value<'_>) -> usize {
    let bits = key.word().addr();
    (bits >> 3).wrapping_mul(0x9e37_79b1) ^ bits >> 16
}

impl<'s> Table<'s> {
    fn keys(self) -> Keys<'s> {
        Keys::of(self.0.value(0).object().expect("keys are an object"))
    }

    pub(crate) fn count(self) -> usize {
        self.keys().live().count()
    }

    /// Keys and values.
    pub(crate) fn entries(self) -> Vec<(Value<'s>, Value<'s>)> {
        let keys = self.keys();
        keys.live().map(|slot| (keys.key(slot), keys.value_of(slot))).collect()
    }
}

impl Store<'_, '_> {
    /// Puts an empty table on the stack.
    pub(crate) fn make_table(&mut self) -> Outcome {
        self.make_keys(LEAST, true)?;
        self.make(Kind::Table, 0)
    }

    /// The slot of a key. Numbers and constants are keys, too, and never die.
    fn find_key<'s>(&'s self, table: Table<'s>, key: Value<'s>) -> Option<usize> {
        let keys = table.keys();
        let find = || keys.find(hash_of(key), |found| found == key);
        find().or_else(|| {
            if !self.mutator.is_stale(keys.dependency()) {
                return None;
            }
            let entries = table.entries();
            keys.clear();
            self.enter_all(keys, &entries);
            find()
        })
    }

    /// Enters entries into keys that have none.
    fn enter_all(&self, keys: Keys<'_>, entries: &[(Value<'_>, Value<'_>)]) {
        keys.set_dependency(self.mutator.reset_dependency());
        for &(key, value) in entries {
            self.enter_key(keys, key, value);
        }
    }

    fn enter_key(&self, keys: Keys<'_>, key: Value<'_>, value: Value<'_>) {
        let mut dependency = keys.dependency();
        dependency.add(key.word());
        keys.set_dependency(dependency);
        let slot = keys.enter(hash_of(key), key);
        keys.set_value_of(slot, value);
    }

    pub(crate) fn table_get<'s>(&'s self, table: Table<'s>, key: Value<'s>) -> Option<Value<'s>> {
        self.find_key(table, key).map(|slot| table.keys().value_of(slot))
    }

    pub(crate) fn table_delete<'s>(&'s self, table: Table<'s>, key: Value<'s>) -> bool {
        let found = self.find_key(table, key);
        found.inspect(|slot| table.keys().delete(*slot)).is_some()
    }

    /// Enters a value into a table: they are at `place` of the stack, the key between them.
    pub(crate) fn table_set(&mut self, place: usize) -> Outcome {
        let (table, key) = (self.table_at(place)?, self.value(place + 1));
        if let Some(slot) = self.find_key(table, key) {
            table.keys().set_value_of(slot, self.value(place + 2));
            return Ok(());
        }
        if !table.keys().has_room() {
            let slots = (2 * (table.count() + 1)).next_power_of_two().max(LEAST);
            self.make_keys(slots, true)?;
            // Where the keys are now: the allocation may have moved or freed some.
            let table = self.table_at(place)?;
            self.enter_all(self.keys_at(self.depth() - 1), &table.entries());
            table.0.set_value(0, self.pop());
        }
        let table = self.table_at(place)?;
        self.enter_key(table.keys(), self.value(place + 1), self.value(place + 2));
        Ok(())
    }

    fn table_at(&self, place: usize) -> Outcome<Table<'_>> {
        match self.value(place).view() {
            View::Table(table) => Ok(table),
            _ => Err(Failure::wrong("not a table")),
        }
    }
}
