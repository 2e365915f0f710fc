//! Weak tables, whose values depend on keys (design/gc.md `.weak.dependent`).

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use crate::common::{Slots, WORD, make, point, pool, reference, set_reference, with_heap};
use tripoint_core::Block;
use tripoint_gc::{Awl, Format, Mutator, Scan, Swept, SweptOptions, Tag, Traced};

const ALL: Duration = Duration::MAX;

/// The keys of a table: its size, the table of values, and weak references. A value belongs to each, at the same
/// index; when a key is cleared, its value is.
struct Keys {
    /// Whether it says that no values depend on keys: a flaw to be found.
    is_independent: AtomicBool,
    /// Whether values died before their keys.
    are_lost: Arc<AtomicBool>,
}

// SAFETY: `make` writes the size before the commit, and nothing writes it after; all other words but the name are
// references, and are passed on.
unsafe impl Format for Keys {
    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises an object, which begins with its size.
        unsafe { object.cast::<usize>().read() }
    }

    unsafe fn dependent(&self, object: NonNull<u8>) -> *mut u8 {
        if self.is_independent.load(Ordering::Relaxed) {
            return ptr::null_mut();
        }
        // SAFETY: the first reference of keys is that to their values.
        unsafe { reference(object.as_ptr(), 0) }
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        let mut at = 0;
        while at < objects.size() {
            // SAFETY: the caller promises whole objects in a row.
            let keys = unsafe { objects.base().add(at) };
            // SAFETY: the caller promises whole objects in a row.
            let size = unsafe { self.skip(keys) };
            // SAFETY: the word is in the object, and no thread uses it meanwhile.
            let values = unsafe { keys.cast::<*mut u8>().add(2).as_mut() };
            scan.fix(values);
            // A format must not unwind in a collection, so this is judged afterwards.
            self.are_lost.fetch_or(values.is_null(), Ordering::Relaxed);
            for word in 3..size / WORD {
                // SAFETY: the word is in the object, and no thread uses it meanwhile.
                let key = unsafe { keys.cast::<*mut u8>().add(word).as_mut() };
                let was_there = !key.is_null();
                scan.fix(key);
                if was_there && key.is_null() && !values.is_null() {
                    // SAFETY: values are kept by their keys, and have as many references as there are keys.
                    unsafe { set_reference(*values, word - 3, ptr::null_mut()) };
                }
            }
            at += size;
        }
    }
}

fn with_table(is_independent: bool) {
    with_heap(256 << 10, |heap| {
        let values = pool::<Traced>(heap, 0);
        let are_lost = Arc::new(AtomicBool::new(false));
        let format = Keys { is_independent: AtomicBool::new(is_independent), are_lost: are_lost.clone() };
        let options = SweptOptions { segment_size: 4 << 10 };
        let keys: Awl<'_, _, _, _> = Swept::create(heap, format, options).unwrap();
        let mut mutator: Mutator<'_, _, _> = heap.register().unwrap();
        let mut value_point = point(&values, &mutator);
        // SAFETY: this thread has both, and uses the point while the mutator is running.
        let adjust = |buffer: &tripoint_gc::MutatorBuffer| unsafe { buffer.attend(&mutator) };
        let kind = tripoint_core::BufferKind::Mutator;
        let mut key_point = tripoint_ap::AllocationPoint::create_in(&keys, kind, (), adjust).unwrap();
        let slots = Slots::<4>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 4, Tag::default()) }.unwrap();
        for slot in 0..3 {
            slots.set(slot, make(&mut value_point, slot, &[]).unwrap());
        }
        // The values refer to leaves of their own.
        let of_keys = [10, 11, 12].map(|name| make(&mut value_point, name, &[]).unwrap());
        let table = make(&mut value_point, 20, &of_keys).unwrap();
        slots.set(3, table);
        let words = [table, slots.get(0), slots.get(1), slots.get(2)];
        let layout = crate::common::layout(0, words.len());
        let reservation = key_point.reserve(layout).unwrap();
        // SAFETY: that many words were reserved.
        unsafe { crate::common::write(reservation.as_ptr().cast(), reservation.size(), 30, &words) };
        // SAFETY: the object was just made, in full.
        let made = unsafe { reservation.commit() };
        slots.set(3, made.map_or(ptr::null_mut(), NonNull::as_ptr));
        slots.set(1, ptr::null_mut());
        value_point.empty();
        key_point.empty();
        let found = mutator.collect(ALL).unwrap();
        assert!(!are_lost.load(Ordering::Relaxed), "values live as long as their keys");
        // The second key died; its value dies in the next collection.
        assert_eq!((found.kept, found.freed), ((2 * 2 + 5 + 6 + 3 * 2) * WORD, 2 * WORD));
        // SAFETY: keys and values are kept.
        let after = [0, 1, 2]
            .map(|index| unsafe { (reference(made.unwrap().as_ptr(), index + 1), reference(table, index)) });
        assert_eq!(after[1], (ptr::null_mut(), ptr::null_mut()));
        assert_eq!((after[0], after[2]), ((slots.get(0), of_keys[0]), (slots.get(2), of_keys[2])));
        assert_eq!(mutator.collect(ALL).unwrap().freed, 2 * WORD);
        slots.set(3, ptr::null_mut());
        let last = mutator.collect(ALL).unwrap();
        assert_eq!(last.kept, 2 * 2 * WORD, "the two keys that slots have");
    });
}

#[test]
fn a_weak_table_loses_the_value_with_the_key() {
    with_table(false);
}

/// The twin: without dependent objects the values are only weakly referred to.
#[test]
#[should_panic(expected = "values live as long as their keys")]
fn values_that_do_not_depend_on_keys_are_lost() {
    with_table(true);
}
