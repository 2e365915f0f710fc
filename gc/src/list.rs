//! A list of items that stay in place, and are removed from it before they are freed.

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::NonNull;

/// Something that can be in a list.
pub(crate) trait Linked: Sized {
    /// The link to the next one.
    fn next(&self) -> &Cell<Option<NonNull<Self>>>;
}

/// A list of pointers, newest first. It is used by one thread at a time.
///
/// A walk may go from item to item, while others are put on the list and taken off it in between: the list knows where it
/// is. There is one such walk at a time.
#[derive(Debug)]
pub(crate) struct List<T> {
    first: Cell<Option<NonNull<T>>>,
    /// The item that the walk is at; `None` if it is over.
    at: Cell<Option<NonNull<T>>>,
    /// How many items were ever put on the list.
    pushed: Cell<usize>,
}

// SAFETY: the list is a pointer; what it leads to may be reached from another thread, because it
// may be sent.
unsafe impl<T: Send> Send for List<T> {}

impl<T: Linked> List<T> {
    /// Where in a list its newest item is, for readers outside of the process.
    pub(crate) const FIRST: usize = offset_of!(Self, first);

    pub(crate) const fn new() -> Self {
        Self { first: Cell::new(None), at: Cell::new(None), pushed: Cell::new(0) }
    }

    /// Puts `item` on the list.
    ///
    /// # Safety
    /// - It is in no list, and stays valid and in place until it is removed from this one.
    pub(crate) unsafe fn push(&self, item: NonNull<T>) {
        // SAFETY: the caller promises that it is valid.
        unsafe { item.as_ref() }.next().set(self.first.replace(Some(item)));
        self.pushed.set(self.pushed.get().wrapping_add(1));
    }

    /// How many items were ever put on the list: another number says that there are new ones.
    pub(crate) fn pushed(&self) -> usize {
        self.pushed.get()
    }

    /// Takes the newest item off the list.
    pub(crate) fn pop(&self) -> Option<NonNull<T>> {
        let item = self.first.get()?;
        self.remove(item);
        Some(item)
    }

    /// Takes `item` off the list. A walk that is at it goes on to the next.
    pub(crate) fn remove(&self, item: NonNull<T>) {
        if self.at.get() == Some(item) {
            self.go_on();
        }
        let mut link = &self.first;
        while let Some(found) = link.get() {
            // SAFETY: items are valid while they are in the list (`push`).
            let next = unsafe { found.as_ref() }.next();
            if found == item {
                link.set(next.take());
                return;
            }
            link = next;
        }
    }

    /// Begins a walk, which is at the newest item.
    pub(crate) fn begin_walk(&self) {
        self.at.set(self.first.get());
    }

    /// The item that the walk is at. It must not be removed while it is borrowed.
    pub(crate) fn at(&self) -> Option<&T> {
        // SAFETY: items are valid while they are in the list (`push`), and the walk is at none that was removed.
        self.at.get().map(|item| unsafe { item.as_ref() })
    }

    /// The walk goes on to the next item. Those that were put on the list since it began are not walked.
    pub(crate) fn go_on(&self) {
        self.at.set(self.at().and_then(|item| item.next().get()));
    }

    /// Shows every item to `visit`.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&T)) {
        self.any(|item| {
            visit(item);
            false
        });
    }

    /// Whether `is_wanted` is true of an item: shows it one after the other until it is.
    pub(crate) fn any(&self, is_wanted: impl FnMut(&T) -> bool) -> bool {
        self.find(is_wanted).is_some()
    }

    /// The first item of which `is_wanted` is true. It must not be removed while it is borrowed.
    pub(crate) fn find(&self, mut is_wanted: impl FnMut(&T) -> bool) -> Option<&T> {
        let mut next = self.first.get();
        while let Some(item) = next {
            // SAFETY: items are valid while they are in the list (`push`).
            let item = unsafe { item.as_ref() };
            if is_wanted(item) {
                return Some(item);
            }
            next = item.next().get();
        }
        None
    }
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

    #[test]
    fn items_are_shown_newest_first_until_they_are_removed() {
        let items = [1, 2, 3].map(|number| Item(number, Cell::new(None)));
        let list = List::new();
        let shown = || {
            let mut numbers = Vec::new();
            list.for_each(|item: &Item| numbers.push(item.0));
            numbers
        };
        for item in &items {
            // SAFETY: the array outlives the list's use, and each is pushed once.
            unsafe { list.push(NonNull::from(item)) };
        }
        assert_eq!(shown(), [3, 2, 1]);
        list.remove(NonNull::from(&items[1]));
        assert_eq!(shown(), [3, 1]);
        list.remove(NonNull::from(&items[2]));
        list.remove(NonNull::from(&items[1]));
        assert_eq!(shown(), [1]);
        list.remove(NonNull::from(&items[0]));
        assert_eq!(shown(), [0; 0]);
    }

    /// What is removed in front of the walk, where it is, and behind.
    #[test]
    fn a_walk_knows_where_it_is_while_the_list_changes() {
        let items = [0, 1, 2, 3, 4, 5].map(|number| Item(number, Cell::new(None)));
        let (list, item) = (List::new(), |index: usize| NonNull::from(&items[index]));
        let at = || list.at().map(|item: &Item| item.0);
        // SAFETY: the array outlives the list's use, and each is pushed once.
        (0..5).for_each(|index| unsafe { list.push(item(index)) });
        list.begin_walk();
        list.go_on();
        list.go_on();
        // SAFETY: the array outlives the list's use, and each is pushed once.
        unsafe { list.push(item(5)) };
        list.remove(item(4));
        assert_eq!(at(), Some(2));
        list.remove(item(2));
        assert_eq!(at(), Some(1));
        list.remove(item(0));
        list.go_on();
        assert_eq!(at(), None);
        list.go_on();
        list.begin_walk();
        assert_eq!(at(), Some(5));
        assert_eq!([list.pop(), list.pop()], [5, 3].map(|index| Some(item(index))));
        assert_eq!(at(), Some(1));
    }
}
