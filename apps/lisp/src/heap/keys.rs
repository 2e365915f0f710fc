//! Arrays of weak references that are found by hashes: those of symbols, and the keys of tables.
//!
//! A slot is empty, or deleted, or refers to a key. The collection that frees a key has the format mark its slot as
//! deleted, and forget the value that belongs to it ([`Keys::scan`]). So a search goes on over it.

use core::ptr::NonNull;

use tripoint::gc::{LocationDependency, Scan};

use super::object::{Kind, Object};
use super::value::{Constant, Value, Word, is_reference};

/// The field that refers to the values of the keys, or is null: their dependent object, which does not move.
const VALUES: usize = 0;
/// How many slots are not empty.
const USED: usize = 1;
/// The addresses of keys that were hashed, in two words.
const DEPENDENCY: usize = 2;
/// The first slot.
pub(super) const SLOTS: usize = 4;

const _: () = assert!(size_of::<LocationDependency>() <= (SLOTS - DEPENDENCY) * size_of::<Word>());

/// The words in front of the slots of new keys.
pub(super) fn front(field: usize, values: Word) -> Word {
    match field {
        VALUES => values,
        _ => core::ptr::null_mut(),
    }
}

/// Weak keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys<'s>(Object<'s>);

impl<'s> Keys<'s> {
    pub(super) fn of(object: Object<'s>) -> Self {
        assert_eq!(object.header().kind(), Kind::Keys);
        Self(object)
    }

    /// The number of slots: a power of two.
    pub(super) fn capacity(self) -> usize {
        self.0.header().detail()
    }

    fn used(self) -> usize {
        self.0.word(USED).addr()
    }

    /// Whether there is room for another key.
    pub(super) fn has_room(self) -> bool {
        4 * (self.used() + 1) <= 3 * self.capacity()
    }

    /// The key in a slot, or what the slot has instead.
    pub(super) fn key(self, slot: usize) -> Value<'s> {
        // SAFETY: a slot is a constant, or refers to an object that is kept, or would have been marked as deleted.
        unsafe { Value::of_word(self.0.word(SLOTS + slot)) }
    }

    fn set_key(self, slot: usize, key: Value<'_>) {
        self.0.set_word(SLOTS + slot, key.word());
    }

    /// The slots that have keys.
    pub(super) fn live(self) -> impl Iterator<Item = usize> {
        (0..self.capacity()).filter(move |slot| is_key(self.key(*slot).word()))
    }

    /// The slot of the key of which `is_wanted` is true, and which has this hash.
    pub(super) fn find(self, hash: usize, is_wanted: impl Fn(Value<'s>) -> bool) -> Option<usize> {
        for slot in self.slots(hash) {
            let key = self.key(slot);
            match key.as_constant() {
                Some(Constant::Empty) => return None,
                Some(Constant::Deleted) => {}
                _ if is_wanted(key) => return Some(slot),
                _ => {}
            }
        }
        None
    }

    /// Enters a key that is not there. Returns its slot. There is room for it.
    pub(super) fn enter(self, hash: usize, key: Value<'_>) -> usize {
        for slot in self.slots(hash) {
            let before = self.key(slot).as_constant();
            if before == Some(Constant::Empty) {
                self.0.set_word(USED, core::ptr::without_provenance_mut(self.used() + 1));
            }
            if matches!(before, Some(Constant::Empty | Constant::Deleted)) {
                self.set_key(slot, key);
                return slot;
            }
        }
        unreachable!("a quarter of the slots is free")
    }

    /// The slots that a key with this hash may be in, the likeliest first.
    fn slots(self, hash: usize) -> impl Iterator<Item = usize> {
        let mask = self.capacity() - 1;
        (0..self.capacity()).map(move |step| hash.wrapping_add(step) & mask)
    }

    pub(super) fn delete(self, slot: usize) {
        self.set_key(slot, Value::constant(Constant::Deleted));
        self.set_value_of(slot, Value::NIL);
    }

    /// Deletes all keys, and lets their slots be used again.
    pub(super) fn clear(self) {
        for slot in 0..self.capacity() {
            self.set_key(slot, Value::constant(Constant::Empty));
            self.set_value_of(slot, Value::NIL);
        }
        self.0.set_word(USED, core::ptr::null_mut());
    }

    fn values(self) -> Option<Object<'s>> {
        let values = NonNull::new(self.0.word(VALUES))?;
        // SAFETY: keys keep their values, and values do not move.
        Some(unsafe { Object::at(values) })
    }

    pub(super) fn value_of(self, slot: usize) -> Value<'s> {
        self.values().map_or(Value::NIL, |values| values.value(slot))
    }

    pub(super) fn set_value_of(self, slot: usize, value: Value<'_>) {
        if let Some(values) = self.values() {
            values.set_value(slot, value);
        }
    }

    /// The addresses that keys were hashed by.
    pub(super) fn dependency(self) -> LocationDependency {
        // SAFETY: keys of tables have a dependency from when they are made (`Store::make_keys`), and it fits.
        unsafe { self.0.place(DEPENDENCY).cast().read_unaligned() }
    }

    pub(super) fn set_dependency(self, dependency: LocationDependency) {
        // SAFETY: there is room for it in front of the slots.
        unsafe { self.0.place(DEPENDENCY).cast().write_unaligned(dependency) };
    }

    /// The values, or null: what keys keep.
    pub(super) fn dependent(self) -> Word {
        self.0.word(VALUES)
    }

    /// Passes all keys to a scan. A key that has died is deleted, and its value is forgotten.
    pub(super) fn scan(self, scan: &mut Scan<'_>) {
        for slot in 0..self.capacity() {
            let mut key = self.0.word(SLOTS + slot);
            if !is_reference(key) {
                continue;
            }
            scan.fix(&mut key);
            if key.is_null() {
                self.delete(slot);
            } else {
                self.0.set_word(SLOTS + slot, key);
            }
        }
    }
}

/// Whether a slot with this word has a key: a reference or a number.
fn is_key(word: Word) -> bool {
    // SAFETY: the value is only asked whether it is a constant.
    is_reference(word) || unsafe { Value::of_word(word) }.as_constant().is_none()
}
