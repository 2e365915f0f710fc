//! A land of free blocks against a row of granules, each free or not.

use core::alloc::Layout;

use tripoint::author::{Align, Block, GRANULE, Land, PoolHeader};
use tripoint_oracle::Choices;

use crate::memory::with_arena;

/// The number of granules of the ground: each is one bit.
const GRANULES: usize = 64;

const SIZE: usize = GRANULES * GRANULE;

/// The byte that fills memory outside the land.
const KEPT: u8 = 0xa5;

/// Takes and inserts as the bytes say: the land returns the memory of the first
/// run of free granules that is large enough, coalesces, counts, and leaves
/// alone what was taken out (design/land.md `.req.first`, `.req.coalesce`,
/// `.req.largest`).
///
/// # Panics
/// If any of that does not hold.
pub fn land_ops(data: &[u8]) {
    with_arena(8 << 10, 1024, |arena| {
        let header = PoolHeader::create(arena, "land").unwrap();
        let ground = header.extend(SIZE).unwrap().split_at(SIZE).unwrap().0;
        let mut row = Row { ground, land: Land::new(&header), free: 0 };
        row.fill(ground);
        let mut choices = Choices::new(data);
        while let Some(()) = row.step(&mut choices) {
            row.assert_sums();
        }
        row.insert_all();
        row.assert_same();
        assert_eq!((row.land.count(), row.land.size()), (1, SIZE), "all coalesces in the end");
    });
}

/// A land, and which granules are free in it.
struct Row {
    ground: Block,
    land: Land,
    /// One bit for each granule.
    free: u64,
}

/// Some granules in a row: the first, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Granules(usize, usize);

impl Granules {
    fn bits(self) -> u64 {
        let Self(first, count) = self;
        (u64::MAX >> (GRANULES - count)) << first
    }
}

impl Row {
    fn step(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        match choices.byte()? % 8 {
            0..=2 => self.take_first(choices)?,
            3 => self.take_bounded(choices)?,
            4 => self.take_range(choices)?,
            5..=6 => self.insert_some(choices)?,
            _ => self.assert_same(),
        }
        Some(())
    }

    fn take_first(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let (size, align) = (choices.below(20 * GRANULE)?, 1 << choices.below(10)?);
        let size = if size % 3 == 0 { size } else { size % (3 * GRANULE) };
        let want = Land::granules(size).unwrap();
        let taken = self.land.take_first(Layout::from_size_align(size, align).unwrap());
        self.take(taken, want, want, align);
        Some(())
    }

    fn take_bounded(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let (min, more) = (1 + choices.below(12)?, choices.below(12)?);
        let (min, max) = (min * GRANULE, (min + more) * GRANULE);
        let align = Align::new(1 << choices.below(10)?).unwrap();
        let found = self.land.find_first(min, align);
        let taken = self.land.take_first_bounded(min, max, align);
        assert_eq!(found.is_some(), taken.is_some(), "found as it is taken");
        let from = found.zip(taken).is_none_or(|(found, taken)| found.range().covers(taken.range()));
        assert!(from, "taken from where it was found");
        self.take(taken, min, max, align.get());
        Some(())
    }

    fn take_range(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let first = choices.below(GRANULES)?;
        let wanted = Granules(first, (1 + choices.below(8)?).min(GRANULES - first));
        let taken = self.land.take_range(self.part(wanted).range());
        let around = self.runs().find(|run| run.bits() & wanted.bits() == wanted.bits());
        let served = around.is_some_and(|Granules(_, count)| count > 1);
        assert_eq!(taken, served.then(|| self.part(wanted)));
        self.note_taken(taken);
        Some(())
    }

    fn insert_some(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let (from, most) = (choices.below(GRANULES)?, 1 + choices.below(12)?);
        let out = |&granule: &usize| self.free >> granule & 1 == 0;
        let first = (from..GRANULES).chain(0..from).find(out);
        if let Some(first) = first {
            let count = (first..GRANULES).take(most).take_while(out).count();
            self.insert(Granules(first, count));
        }
        Some(())
    }

    fn insert_all(&mut self) {
        while let Some(first) = (0..GRANULES).find(|granule| self.free >> granule & 1 == 0) {
            self.insert(Granules(first, 1));
        }
    }

    fn insert(&mut self, granules: Granules) {
        let block = self.part(granules);
        // SAFETY: the granules are of the ground, were taken out, and were
        // filled.
        let bytes = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), block.size()) };
        // All bytes are the same if each equals the next.
        assert!(bytes[0] == KEPT && bytes[1..] == bytes[..bytes.len() - 1], "what is out is left alone");
        // SAFETY: whole granules of the ground that were taken out, and that no
        // code uses.
        let merged = unsafe { self.land.insert(block) };
        self.free |= granules.bits();
        let run = self.runs().find(|run| run.bits() & granules.bits() != 0).unwrap();
        assert_eq!(merged, self.part(run), "neighbours coalesce");
    }

    /// Checks what the land returned for a request, and notes it.
    fn take(&mut self, taken: Option<Block>, min: usize, max: usize, align: usize) {
        let sure = min + align.saturating_sub(GRANULE);
        let first_of = |size: usize| self.runs().find(|Granules(_, count)| count * GRANULE >= size);
        match taken {
            None => assert_eq!(first_of(sure), None, "what is sure to serve is not passed over"),
            Some(block) => {
                let Granules(first, count) = self.granules_of(block);
                assert!(block.range().base().get().is_multiple_of(align), "aligned");
                assert!(min <= block.size() && block.size() <= max, "as large as asked");
                let run = self.runs().find(|run| run.bits() >> first & 1 == 1).expect("it was free");
                let room = (run.0 + run.1 - first) * GRANULE;
                assert_eq!(count * GRANULE, max.min(room), "as much as there is");
                assert!(align > GRANULE || first_of(min) == Some(run) && first == run.0, "first fit");
            }
        }
        self.note_taken(taken);
    }

    fn note_taken(&mut self, taken: Option<Block>) {
        if let Some(block) = taken {
            self.free &= !self.granules_of(block).bits();
            self.fill(block);
        }
    }

    fn fill(&self, block: Block) {
        // SAFETY: the block is the ground, or was taken out of the land.
        unsafe { block.base().write_bytes(KEPT, block.size()) };
    }

    /// The longest runs of free granules, in order.
    fn runs(&self) -> impl Iterator<Item = Granules> {
        let free = self.free;
        let mut from = 0;
        core::iter::from_fn(move || {
            let rest = free.checked_shr(from)?;
            let skipped = rest.trailing_zeros();
            let count = rest.checked_shr(skipped)?.trailing_ones();
            let first = from + skipped;
            from = first + count;
            Some(Granules(first as usize, count as usize))
        })
    }

    fn part(&self, Granules(first, count): Granules) -> Block {
        let (_, rest) = self.ground.split_at(first * GRANULE).unwrap();
        rest.split_at(count * GRANULE).unwrap().0
    }

    fn granules_of(&self, block: Block) -> Granules {
        let offset = block.range().base().get() - self.ground.range().base().get();
        assert!(offset.is_multiple_of(GRANULE) && block.size().is_multiple_of(GRANULE), "whole granules");
        Granules(offset / GRANULE, block.size() / GRANULE)
    }

    fn assert_sums(&self) {
        assert_eq!(self.land.size(), self.free.count_ones() as usize * GRANULE);
        let (count, largest) =
            self.runs().fold((0, 0), |(count, largest), run| (count + 1, run.1.max(largest)));
        assert_eq!((self.land.count(), self.land.largest()), (count, largest * GRANULE));
    }

    fn assert_same(&self) {
        let range = self.ground.range();
        self.land.check(&|addr| range.contains(addr)).unwrap();
        let mut runs = self.runs();
        self.land.walk(&mut |block| assert_eq!(runs.next(), Some(self.granules_of(block))));
        assert_eq!(runs.next(), None);
    }
}
