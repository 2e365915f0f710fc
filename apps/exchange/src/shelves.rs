//! The sorted lists of all sides of all books, in one array that is taken beforehand (design/exchange.md `.book.levels`).
//!
//! A list that is full moves to a run of twice the size. The run that it leaves serves another list of that size.

use crate::wide::table;

/// The entries of the smallest run.
const SMALLEST: usize = 4;

/// Sizes of runs: each is twice the one before.
const SIZES: usize = 28;

/// No run.
const NONE: u32 = u32::MAX;

/// A level in the list of its side: the higher the rank, the better the price.
#[derive(Clone, Copy, Debug)]
pub struct Entry<N> {
    pub rank: u32,
    pub level: Option<N>,
}

/// The list of a side. Its last entry is the best.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    start: u32,
    len: u32,
    /// Which size it has; the list has no run if the start is [`NONE`].
    size: u8,
}

impl Run {
    /// A list without entries, and without a run.
    pub const EMPTY: Self = Self { start: NONE, len: 0, size: 0 };

    const fn capacity(self) -> usize {
        if self.start == NONE { 0 } else { SMALLEST << self.size }
    }
}

/// There is no run of the size that a list needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRun;

/// All lists.
pub struct Shelves<N> {
    entries: Vec<Entry<N>>,
    /// Where no run has been yet.
    fresh: usize,
    /// Free runs of each size: the first, whose first entry has the start of the next.
    free: [u32; SIZES],
}

impl<N: Copy> Shelves<N> {
    /// Memory for that many entries, all of which has been written to.
    pub fn new(entries: usize) -> Self {
        let entries = table(Entry { rank: NONE, level: None }, entries.min(NONE as usize));
        Self { entries, fresh: 0, free: [NONE; SIZES] }
    }

    /// The bytes of the array.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.entries)
    }

    /// The entries of a list, the best last.
    #[inline]
    pub fn list(&self, run: Run) -> &[Entry<N>] {
        if run.len == 0 { &[] } else { &self.entries[run.start as usize..][..run.len as usize] }
    }

    /// Where a rank is, or where it would be. Most are near the end.
    #[inline]
    pub fn find(&self, run: Run, rank: u32) -> Result<usize, usize> {
        const NEAR: usize = 8;
        let list = self.list(run);
        let near = list.len().saturating_sub(NEAR);
        for (at, entry) in list.iter().enumerate().skip(near).rev() {
            if entry.rank <= rank {
                return if entry.rank == rank { Ok(at) } else { Err(at + 1) };
            }
        }
        list[..near].binary_search_by_key(&rank, |entry| entry.rank)
    }

    /// Makes room for one entry more.
    ///
    /// # Errors
    /// If there is no run that is large enough; nothing has changed then.
    #[inline]
    pub fn make_room(&mut self, run: &mut Run) -> Result<(), NoRun> {
        if (run.len as usize) < run.capacity() { Ok(()) } else { self.move_to_larger(run) }
    }

    #[cold]
    fn move_to_larger(&mut self, run: &mut Run) -> Result<(), NoRun> {
        let size = if run.start == NONE { 0 } else { run.size + 1 };
        let start = self.take(size)?;
        let old = *run;
        *run = Run { start: start as u32, len: old.len, size };
        if old.start != NONE {
            self.entries.copy_within(old.start as usize..(old.start + old.len) as usize, start);
            self.entries[old.start as usize].rank =
                core::mem::replace(&mut self.free[usize::from(old.size)], old.start);
        }
        Ok(())
    }

    fn take(&mut self, size: u8) -> Result<usize, NoRun> {
        let first = self.free.get_mut(usize::from(size)).ok_or(NoRun)?;
        if *first != NONE {
            let start = *first as usize;
            *first = self.entries[start].rank;
            return Ok(start);
        }
        let start = self.fresh;
        let end = start + (SMALLEST << size);
        if end > self.entries.len() {
            return Err(NoRun);
        }
        self.fresh = end;
        Ok(start)
    }

    /// Inserts an entry into a list for which room was made.
    #[inline]
    pub fn insert(&mut self, run: &mut Run, at: usize, entry: Entry<N>) {
        debug_assert!((run.len as usize) < run.capacity());
        run.len += 1;
        let list = &mut self.entries[run.start as usize..][..run.len as usize];
        list.copy_within(at..list.len() - 1, at + 1);
        list[at] = entry;
    }

    /// Removes an entry.
    #[inline]
    pub fn remove(&mut self, run: &mut Run, at: usize) {
        let list = &mut self.entries[run.start as usize..][..run.len as usize];
        list.copy_within(at + 1.., at);
        run.len -= 1;
    }

    /// Forgets all lists.
    pub fn clear(&mut self) {
        self.fresh = 0;
        self.free = [NONE; SIZES];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn lists_are_what_sorted_vectors_are() {
        let mut shelves = Shelves::new(4_000);
        let mut runs = [Run::EMPTY; 20];
        let mut vectors = vec![Vec::new(); 20];
        let (mut random, mut refused) = (Random::new(1), 0);
        for _ in 0..100_000 {
            let which = random.below(20) as usize;
            let rank = random.below(1 << (which + 2).min(12)) as u32;
            let found = shelves.find(runs[which], rank);
            assert_eq!(found, vectors[which].binary_search(&rank));
            match found {
                Ok(at) if random.below(2) == 0 => {
                    shelves.remove(&mut runs[which], at);
                    vectors[which].remove(at);
                }
                Ok(_) => {}
                Err(at) => match shelves.make_room(&mut runs[which]) {
                    Ok(()) => {
                        shelves.insert(&mut runs[which], at, Entry { rank, level: Some(rank) });
                        vectors[which].insert(at, rank);
                    }
                    Err(NoRun) => refused += 1,
                },
            }
            let list: Vec<_> = shelves.list(runs[which]).iter().map(|entry| entry.rank).collect();
            assert_eq!(list, vectors[which]);
        }
        assert!(refused > 0);
    }
}
