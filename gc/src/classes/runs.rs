//! Free runs by size. Each begins with its size and the next run of about that size.

use core::ptr::NonNull;

use tripoint_core::Block;

/// What a free run begins with.
#[derive(Clone, Copy)]
struct Run {
    next: Option<NonNull<Run>>,
    size: usize,
}

/// The number of lists: one for each power of two from [`Runs::LEAST`] on, and the last for all that is longer. So
/// they fit in a descriptor once for each generation.
const LISTS: usize = 20;

/// Free runs in lists: list `n` has those of `LEAST * 2^n` bytes up to the next power of two.
#[derive(Debug)]
pub(crate) struct Runs {
    lists: [Option<NonNull<Run>>; LISTS],
    /// The lists that are not empty.
    mask: usize,
}

// SAFETY: the pointers lead to free memory that only this value uses (`push`), on any thread.
unsafe impl Send for Runs {}

impl Runs {
    /// The least size of a run. What is smaller is not kept.
    pub(crate) const LEAST: usize = size_of::<Run>();

    pub(crate) const fn new() -> Self {
        Self { lists: [None; LISTS], mask: 0 }
    }

    /// Adds a run, unless it is smaller than [`Runs::LEAST`]. Constant time.
    ///
    /// # Safety
    /// - The run is aligned to a word, and nothing else uses it before it is taken or this value forgets it.
    pub(crate) unsafe fn push(&mut self, run: Block) {
        if run.size() < Self::LEAST {
            return;
        }
        let list = Self::list_of(run.size());
        let pointer = run.base().cast::<Run>();
        // SAFETY: the run is aligned, has room for its beginning, and only this value uses it.
        unsafe { pointer.write(Run { next: self.lists[list], size: run.size() }) };
        self.lists[list] = Some(pointer);
        self.mask |= 1 << list;
    }

    /// Takes a run of at least `size` bytes from a list in which every run is long enough. Constant time.
    /// A run that is long enough may be left if the list that it is in has shorter ones too.
    pub(crate) fn take_fit(&mut self, size: usize) -> Option<Block> {
        let list = (size.max(Self::LEAST).checked_next_power_of_two()? / Self::LEAST).ilog2() as usize;
        let longer = if list < LISTS { self.mask & (usize::MAX << list) } else { 0 };
        (longer != 0).then(|| longer.trailing_zeros() as usize).and_then(|list| self.pop(list))
    }

    /// Takes any run of at least `size` bytes, if there is one: looks at each run of the list that has shorter ones too.
    pub(crate) fn search(&mut self, size: usize) -> Option<Block> {
        let list = Self::list_of(size.max(Self::LEAST));
        let mut before: Option<NonNull<Run>> = None;
        let mut next = self.lists[list];
        while let Some(found) = next {
            // SAFETY: runs in the lists begin with this, and only this value uses them (`push`).
            let run = unsafe { found.read() };
            if run.size >= size {
                match before {
                    // SAFETY: the run before is in the list too.
                    Some(before) => unsafe { (*before.as_ptr()).next = run.next },
                    None => self.set_first(list, run.next),
                }
                return Some(block(found, run));
            }
            (before, next) = (Some(found), run.next);
        }
        None
    }

    /// The size of the largest run: looks at each in the list that has the longest.
    pub(crate) fn largest(&self) -> usize {
        let Some(list) = self.mask.checked_ilog2() else { return 0 };
        let (mut largest, mut next) = (0, self.lists[list as usize]);
        while let Some(found) = next {
            // SAFETY: runs in the lists begin with this, and only this value uses them (`push`).
            let run = unsafe { found.read() };
            largest = largest.max(run.size);
            next = run.next;
        }
        largest
    }

    /// The list of runs of this many bytes, which are at least [`Runs::LEAST`].
    fn list_of(size: usize) -> usize {
        ((size / Self::LEAST).ilog2() as usize).min(LISTS - 1)
    }

    fn pop(&mut self, list: usize) -> Option<Block> {
        let found = self.lists[list]?;
        // SAFETY: runs in the lists begin with this, and only this value uses them (`push`).
        let run = unsafe { found.read() };
        self.set_first(list, run.next);
        Some(block(found, run))
    }

    fn set_first(&mut self, list: usize, first: Option<NonNull<Run>>) {
        self.lists[list] = first;
        if first.is_none() {
            self.mask &= !(1 << list);
        }
    }
}

/// The memory of a run.
fn block(pointer: NonNull<Run>, run: Run) -> Block {
    // SAFETY: this is the block that was passed to `push`.
    unsafe { Block::new(pointer.cast(), run.size) }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_run_that_is_long_enough_is_taken() {
        let mut memory = [0_usize; 512];
        let start = NonNull::from(&mut memory).cast::<u8>();
        let mut base = start;
        let mut runs = Runs::new();
        assert_eq!((runs.take_fit(1), runs.search(1), runs.largest()), (None, None, 0));
        for words in [1, 2, 9, 12, 64, 100] {
            let size = words * size_of::<usize>();
            // SAFETY: parts of the array that do not overlap.
            unsafe { runs.push(Block::new(base, size)) };
            // SAFETY: the parts are 188 words together.
            base = unsafe { base.add(size) };
        }
        let word = size_of::<usize>();
        assert_eq!(runs.largest(), 100 * word);
        let mut take = |words: usize| runs.take_fit(words * word).map(|run| run.size() / word);
        // 9 and 12 are in the list of 8 to 15: nine words are asked of the next list.
        assert_eq!([take(9), take(9), take(9)], [Some(100), Some(64), None]);
        assert_eq!([take(8), take(2), take(1)], [Some(12), Some(2), Some(9)], "not one of a word");
        for size in [9, 12, 10] {
            // SAFETY: parts of the array that do not overlap, all of which were taken.
            unsafe { runs.push(Block::new(start.add(size * 16 * word), size * word)) };
        }
        let found: Vec<_> = [12, 9, 11, 9].map(|words| runs.search(words * word).map(Block::size)).into();
        assert_eq!(found, [Some(12 * word), Some(10 * word), None, Some(9 * word)]);
    }

    /// What is longer than lists tell apart is in the last one, and found by a search.
    #[test]
    fn long_runs_are_in_the_last_list() {
        let longest = Runs::LEAST << (LISTS - 1);
        let memory = std::vec![0_usize; 4 * longest / size_of::<usize>()];
        let base = NonNull::from(memory.as_slice()).cast::<u8>();
        let mut runs = Runs::new();
        for (at, size) in [(0, longest), (longest, 2 * longest)] {
            // SAFETY: parts of the memory that do not overlap.
            unsafe { runs.push(Block::new(base.add(at), size)) };
        }
        assert_eq!((runs.largest(), runs.take_fit(2 * longest)), (2 * longest, None));
        let sizes = [runs.search(longest + 1), runs.search(longest + 1), runs.take_fit(longest)];
        assert_eq!(sizes.map(|run| run.map(Block::size)), [Some(2 * longest), None, Some(longest)]);
    }
}
