//! A queue of items that stay in place: first in, first out, without memory of its own.

use core::array;
use core::cell::Cell;
use core::mem;
use core::ptr::NonNull;

use crate::list::Linked;

/// A queue of pointers. It is used by one thread at a time.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    first: Option<NonNull<T>>,
    last: Option<NonNull<T>>,
}

// SAFETY: the queue is two pointers; what they lead to may be reached from another thread, because it may be
// sent.
unsafe impl<T: Send> Send for Queue<T> {}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { first: None, last: None }
    }
}

impl<T: Linked> Queue<T> {
    /// Puts `item` at the end.
    ///
    /// # Safety
    /// - It is in no list or queue, and stays valid and in place until it is taken out of this one.
    pub(crate) unsafe fn append(&mut self, item: NonNull<T>) {
        link(item).set(None);
        match self.last.replace(item) {
            Some(last) => link(last).set(Some(item)),
            None => self.first = Some(item),
        }
    }

    /// Whether there is no item.
    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Takes the first item out.
    pub(crate) fn shift(&mut self) -> Option<NonNull<T>> {
        let item = self.first?;
        self.first = link(item).take();
        if self.first.is_none() {
            self.last = None;
        }
        Some(item)
    }

    /// Takes out all items of which `is_wanted` is true, and returns them in their order.
    pub(crate) fn separate(&mut self, mut is_wanted: impl FnMut(&T) -> bool) -> Self {
        let (mut wanted, mut rest) = (Self::default(), Self::default());
        while let Some(item) = self.shift() {
            // SAFETY: items are valid while they are in the queue (`append`), and this one was just taken out.
            let to = if is_wanted(unsafe { item.as_ref() }) { &mut wanted } else { &mut rest };
            // SAFETY: it is in no queue now. What was promised of it holds until it is taken out of the next.
            unsafe { to.append(item) };
        }
        *self = rest;
        wanted
    }

    /// Puts all items of `other` at the end.
    pub(crate) fn join(&mut self, other: Self) {
        match self.last {
            Some(last) => link(last).set(other.first),
            None => self.first = other.first,
        }
        self.last = other.last.or(self.last);
    }

    /// Puts the items in the order of their keys, without memory.
    pub(crate) fn sort_by_key(&mut self, key: impl Fn(&T) -> u64) {
        if self.first == self.last {
            return; // Most queues are empty, and the runs take a while to make.
        }
        // Each is in order: the one with the index n is empty, or has as many items as the nth power of two.
        let mut runs: [Self; usize::BITS as usize] = array::from_fn(|_| Self::default());
        while let Some(item) = self.shift() {
            let mut sorted = Self { first: Some(item), last: Some(item) };
            for run in &mut runs {
                if run.is_empty() {
                    *run = mem::take(&mut sorted);
                    break;
                }
                sorted = mem::take(run).merge(sorted, &key);
            }
        }
        *self = runs.into_iter().fold(Self::default(), |sorted, run| run.merge(sorted, &key));
    }

    /// All items of two queues that are in order.
    fn merge(mut self, mut other: Self, key: impl Fn(&T) -> u64) -> Self {
        let mut merged = Self::default();
        while let (Some(first), Some(second)) = (self.first, other.first) {
            // SAFETY: items are valid while they are in the queue (`append`).
            let is_in_order = unsafe { key(first.as_ref()) <= key(second.as_ref()) };
            let next = if is_in_order { self.shift() } else { other.shift() };
            if let Some(next) = next {
                // SAFETY: it is in no queue now. What was promised of it holds until it is taken out of this one.
                unsafe { merged.append(next) };
            }
        }
        merged.join(self);
        merged.join(other);
        merged
    }

    /// Shows every item to `visit`, in order.
    pub(crate) fn show_all(&self, mut visit: impl FnMut(&T)) {
        let mut next = self.first;
        while let Some(item) = next {
            // SAFETY: items are valid while they are in the queue (`append`).
            visit(unsafe { item.as_ref() });
            next = link(item).get();
        }
    }
}

/// The link of an item that is in a queue, or about to be.
fn link<'q, T: Linked + 'q>(item: NonNull<T>) -> &'q Cell<Option<NonNull<T>>> {
    // SAFETY: items are valid from `append` on until they are taken out, and only ever borrowed shared.
    unsafe { item.as_ref() }.next()
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    struct Item(u32, Cell<Option<NonNull<Self>>>);

    impl Linked for Item {
        fn next(&self) -> &Cell<Option<NonNull<Self>>> {
            &self.1
        }
    }

    fn shown(queue: &Queue<Item>) -> Vec<u32> {
        let mut numbers = Vec::new();
        queue.show_all(|item| numbers.push(item.0));
        numbers
    }

    #[test]
    fn items_come_out_as_they_went_in() {
        let items = [1, 2, 3, 4, 5].map(|number| Item(number, Cell::new(None)));
        let mut queue = Queue::default();
        assert!(queue.shift().is_none());
        for item in &items {
            // SAFETY: the array outlives the queue, and each is put in once.
            unsafe { queue.append(NonNull::from(item)) };
        }
        let even = queue.separate(|item| item.0 % 2 == 0);
        assert_eq!((shown(&queue), shown(&even)), ([1, 3, 5].into(), [2, 4].into()));
        assert_eq!(queue.shift(), Some(NonNull::from(&items[0])));
        queue.join(even);
        assert_eq!(shown(&queue), [3, 5, 2, 4]);
        assert_eq!(shown(&queue.separate(|_| true)), [3, 5, 2, 4]);
        assert!(queue.shift().is_none());
        // SAFETY: all were taken out.
        unsafe { queue.append(NonNull::from(&items[4])) };
        assert_eq!(shown(&queue), [5]);
    }

    #[test]
    fn items_are_sorted_by_their_keys() {
        for count in (0..20).chain([100]) {
            let items: Vec<_> = (0..count).map(|number| Item(number * 37 % 101, Cell::new(None))).collect();
            let mut queue = Queue::default();
            for item in &items {
                // SAFETY: the items outlive the queue, and each is put in once.
                unsafe { queue.append(NonNull::from(item)) };
            }
            queue.sort_by_key(|item| item.0.into());
            let mut sorted: Vec<_> = items.iter().map(|item| item.0).collect();
            sorted.sort_unstable();
            assert_eq!(shown(&queue), sorted);
            let last = Item(200, Cell::new(None));
            // SAFETY: the item outlives the queue, and is put in once.
            unsafe { queue.append(NonNull::from(&last)) };
            assert_eq!(shown(&queue).last(), Some(&200), "its end is known");
        }
    }
}
