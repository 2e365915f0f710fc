//! Weak pairs whose keys were not reached so far, found by their keys (design/gc-typed.md `.typed.pairs.waiting`).
//!
//! ```text
//!   first       entries
//!   | 2 | - |   | key, value, next | key, value, next | ...      first[hash(key)] --> entry --> entry
//! ```
//!
//! An entry is in the list of its key's hash, or in that of the pairs whose keys were reached, or in that of free ones.

use core::mem;
use core::ptr;
use core::slice;

use tripoint_core::Addr;

use crate::scans::keep::Segments;
use crate::scans::workspace::Loan;

/// How many pairs there is room for at first: a power of two, as all later numbers are.
const ROOM: usize = 64;

/// The end of a list.
const NONE: usize = usize::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Addr,
    value: *mut u8,
    next: usize,
}

/// Keys that were not reached, and values that wait for them.
pub(crate) struct Waiting<'s> {
    segments: &'s dyn Segments,
    loan: Option<Loan>,
    /// How many entries there are, and how many lists by hash.
    room: usize,
    /// How many of the entries were ever used.
    used: usize,
    free: usize,
    /// Whose keys were reached.
    ready: usize,
    /// Whether memory was refused.
    is_refused: bool,
}

impl<'s> Waiting<'s> {
    /// Nothing waits. Memory is taken by the first pair that does.
    pub(crate) const fn new(segments: &'s dyn Segments) -> Self {
        Self { segments, loan: None, room: 0, used: 0, free: NONE, ready: NONE, is_refused: false }
    }

    /// Has a value wait for its key. Does nothing if memory is refused: the next look at all pairs finds it again.
    pub(crate) fn wait(&mut self, key: Addr, value: *mut u8) {
        let Some(entry) = self.take_entry() else { return };
        let list = self.list_of(key);
        let (first, entries) = self.parts();
        entries[entry] = Entry { key, value, next: mem::replace(&mut first[list], entry) };
    }

    /// An object was reached: values that wait for it are ready.
    pub(crate) fn reach(&mut self, key: Addr) {
        if self.room == 0 {
            return;
        }
        let (list, mut ready) = (self.list_of(key), self.ready);
        let (first, entries) = self.parts();
        let (mut others, mut next) = (NONE, first[list]);
        while next != NONE {
            let entry = next;
            next = entries[entry].next;
            let into = if entries[entry].key == key { &mut ready } else { &mut others };
            entries[entry].next = mem::replace(into, entry);
        }
        first[list] = others;
        self.ready = ready;
    }

    /// Takes a value whose key was reached.
    pub(crate) fn take_ready(&mut self) -> Option<*mut u8> {
        let entry = self.ready;
        let free = self.free;
        let taken = self.parts().1.get_mut(entry)?;
        let (value, next) = (taken.value, mem::replace(&mut taken.next, free));
        (self.ready, self.free) = (next, entry);
        Some(value)
    }

    /// Nothing waits any more.
    pub(crate) fn forget_all(&mut self) {
        self.parts().0.iter_mut().for_each(|first| *first = NONE);
        (self.used, self.free, self.ready, self.is_refused) = (0, NONE, NONE, false);
    }

    /// Takes an entry that is in no list.
    fn take_entry(&mut self) -> Option<usize> {
        let free = self.free;
        if let Some(entry) = self.parts().1.get(free) {
            self.free = entry.next;
            return Some(free);
        }
        if self.used == self.room && !self.grow() {
            return None;
        }
        self.used += 1;
        Some(self.used - 1)
    }

    /// Makes room for twice as many. Returns whether there was memory.
    #[cold]
    fn grow(&mut self) -> bool {
        let room = if self.room == 0 { ROOM } else { self.room.saturating_mul(2) };
        let size = room.checked_mul(size_of::<usize>() + size_of::<Entry>());
        let Some(loan) = size.filter(|_| !self.is_refused).and_then(|size| self.segments.lend(size)) else {
            self.is_refused = true;
            return false;
        };
        let grown = Self { loan: Some(loan), room, ..Self::new(self.segments) };
        let mut before = mem::replace(self, grown);
        let (first, entries) = self.start();
        let (first_before, entries_before) = before.parts();
        entries[..entries_before.len()].copy_from_slice(entries_before);
        for &list in &*first_before {
            let mut next = list;
            while next != NONE {
                let entry = next;
                next = entries[entry].next;
                let list = list_of(entries[entry].key, room);
                entries[entry].next = mem::replace(&mut first[list], entry);
            }
        }
        (self.used, self.free, self.ready) = (before.used, before.free, before.ready);
        true
    }

    fn list_of(&self, key: Addr) -> usize {
        list_of(key, self.room)
    }

    /// Writes all of the memory that was just lent, and returns what is in it.
    fn start(&mut self) -> (&mut [usize], &mut [Entry]) {
        let (room, Some(loan)) = (self.room, &self.loan) else { return (&mut [], &mut []) };
        let first = loan.block.base().cast::<usize>();
        // SAFETY: the entries lie behind the lists, in memory that was lent for both (`grow`).
        let entries = unsafe { first.add(room) }.cast::<Entry>();
        for index in 0..room {
            // SAFETY: there is room for that many lists, and only this value uses the memory.
            unsafe { first.add(index).write(NONE) };
            let free = Entry { key: Addr::ZERO, value: ptr::null_mut(), next: NONE };
            // SAFETY: there is room for that many entries, and only this value uses the memory.
            unsafe { entries.add(index).write(free) };
        }
        self.parts()
    }

    /// The lists by hash, and all entries.
    fn parts(&mut self) -> (&mut [usize], &mut [Entry]) {
        let (room, Some(loan)) = (self.room, &self.loan) else { return (&mut [], &mut []) };
        let first = loan.block.base().cast::<usize>();
        // SAFETY: that many lists were written there (`start`). A block is aligned to a grain, and only this value, which
        // is borrowed exclusively, uses it.
        let lists = unsafe { slice::from_raw_parts_mut(first.as_ptr(), room) };
        // SAFETY: the entries lie behind the lists, in memory that was lent for both (`grow`).
        let entries = unsafe { first.add(room) }.cast::<Entry>();
        // SAFETY: that many entries were written there (`start`), which are aligned to a word. Only this value, which is
        // borrowed exclusively, uses them, and they do not overlap the lists.
        (lists, unsafe { slice::from_raw_parts_mut(entries.as_ptr(), room) })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(loan) = self.loan.take() {
            // SAFETY: these segments lent it, and this value, which is being dropped, was the only one to use it.
            unsafe { self.segments.give_back(loan) };
        }
    }
}

/// Which of `lists` lists, a power of two, has the entries of a key.
fn list_of(key: Addr, lists: usize) -> usize {
    // Fibonacci hashing: the upper bits of the product depend on all bits of the address.
    let hash = (key.get() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    hash as usize & lists.wrapping_sub(1)
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use std::boxed::Box;
    use std::collections::HashMap;
    use std::vec::Vec;

    use tripoint_core::{AddrRange, Arena, ClientArena, ClientArenaOptions};

    use super::*;
    use crate::scans::keep::Kept;
    use crate::scans::workspace::Workspace;
    use crate::segments::generation::Generation;
    use crate::segments::segment::SegmentPtr;

    /// It lends memory, and is asked nothing else.
    struct Lender<'a, 'm>(&'a ClientArena<'m>, &'a Workspace);

    impl Segments for Lender<'_, '_> {
        fn addresses(&self) -> AddrRange {
            unreachable!()
        }

        fn keep_exact(&self, _addr: Addr) -> Kept {
            unreachable!()
        }

        fn keep_ambiguous(&self, _addr: Addr, _may_have_moved: bool) -> Option<Generation> {
            unreachable!()
        }

        fn segment_of(&self, _addr: Addr) -> Option<SegmentPtr> {
            unreachable!()
        }

        fn is_white(&self, _addr: Addr) -> bool {
            unreachable!()
        }

        fn is_object(&self, _addr: Addr) -> bool {
            unreachable!()
        }

        fn lend(&self, size: usize) -> Option<Loan> {
            self.1.lend(self.0, size)
        }

        unsafe fn give_back(&self, loan: Loan) {
            // SAFETY: `lend` has lent it with this arena, and the caller promises that nothing uses it.
            unsafe { loan.give_back(self.0) };
        }
    }

    fn addr(value: *mut u8) -> usize {
        value.addr()
    }

    /// The same values are ready as in a map, in any order, also while memory is refused for some.
    fn compare(memory: usize, count: usize) -> usize {
        let mut memory = Box::new_uninit_slice(memory);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let (mut workspace, spare) = (Workspace::new(), arena.sizes().spare);
        let lender = Lender(&arena, &workspace);
        let mut waiting = Waiting::new(&lender);
        let mut model: HashMap<usize, Vec<usize>> = HashMap::new();
        let (mut seed, mut lost) = (7_u64, 0);
        for turn in 0..count {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = ((seed >> 33) as usize % (count / 4)) * 8;
            if turn % 3 == 2 {
                waiting.reach(Addr::new(key));
                let mut ready: Vec<usize> = core::iter::from_fn(|| waiting.take_ready()).map(addr).collect();
                ready.sort_unstable();
                let mut expected = model.remove(&key).unwrap_or_default();
                lost += expected.len() - ready.len();
                expected.retain(|value| ready.contains(value));
                assert_eq!(ready, expected, "turn {turn}");
            } else {
                waiting.wait(Addr::new(key), ptr::without_provenance_mut(turn));
                model.entry(key).or_default().push(turn);
            }
        }
        waiting.forget_all();
        for key in model.keys() {
            waiting.reach(Addr::new(*key));
        }
        assert_eq!(waiting.take_ready(), None, "all were forgotten");
        drop(waiting);
        assert_eq!(arena.sizes().spare, spare, "all memory was given back");
        workspace.end(&arena);
        lost
    }

    #[test]
    fn values_are_ready_when_their_keys_are_reached() {
        let (memory, count) = if cfg!(miri) { (64 << 10, 300) } else { (1 << 20, 9_000) };
        assert_eq!(compare(memory, count), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "that many pairs take long there")]
    fn what_finds_no_memory_does_not_wait() {
        assert!(compare(64 << 10, 9_000) > 0);
    }
}
