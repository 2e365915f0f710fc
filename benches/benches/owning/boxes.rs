//! Boxes as libraries have them, in many small containers: they share what is behind them.

use core::hint::black_box;

use allocator_api2::alloc::{Allocator, Global};
use allocator_api2::boxed::Box as BoxIn;
use benches::compare::{Contender, compare, print};
use benches::random::Random;
use mimalloc::MiMalloc;
use tripoint::ProcessPool;

use crate::{Amount, timed};

/// An entry of a cache: a key, a value and two links.
type Entry = [u64; 4];

/// mimalloc as an allocator of boxes.
#[derive(Clone, Copy)]
struct Mimalloc;

// SAFETY: a block is memory of mimalloc of this size, which any copy may free, and which stays valid until then.
unsafe impl Allocator for Mimalloc {
    #[inline]
    fn allocate(
        &self,
        layout: core::alloc::Layout,
    ) -> Result<core::ptr::NonNull<[u8]>, allocator_api2::alloc::AllocError> {
        // SAFETY: entries have a size.
        let block = unsafe { core::alloc::GlobalAlloc::alloc(&MiMalloc, layout) };
        let block = core::ptr::NonNull::new(block).ok_or(allocator_api2::alloc::AllocError)?;
        Ok(core::ptr::NonNull::slice_from_raw_parts(block, layout.size()))
    }

    #[inline]
    unsafe fn deallocate(&self, block: core::ptr::NonNull<u8>, layout: core::alloc::Layout) {
        // SAFETY: allocated above with this layout.
        unsafe { core::alloc::GlobalAlloc::dealloc(&MiMalloc, block.as_ptr(), layout) };
    }
}

/// Containers whose entries are replaced at random.
struct Containers<A: Allocator + Copy> {
    entries: Vec<Vec<Option<BoxIn<Entry, A>>>>,
    random: Random,
    allocator: A,
}

impl<A: Allocator + Copy> Containers<A> {
    fn new(containers: usize, entries: usize, allocator: A) -> Self {
        let container =
            || (0..entries).map(|number| Some(BoxIn::new_in([number as u64; 4], allocator))).collect();
        Self { entries: (0..containers).map(|_| container()).collect(), random: Random(1), allocator }
    }

    /// Takes an entry out somewhere, and puts one in somewhere else.
    fn churn(&mut self, times: usize) {
        let (containers, entries) = (self.entries.len(), self.entries[0].len());
        for number in 0..times as u64 {
            let (from, out) = (self.random.below(containers), self.random.below(entries));
            black_box(self.entries[from][out].take().map(|entry| entry[3]));
            let (to, into) = (self.random.below(containers), self.random.below(entries));
            if self.entries[to][into].is_none() {
                self.entries[to][into] = Some(BoxIn::new_in([number; 4], self.allocator));
            }
        }
    }
}

fn churn(amount: Amount, containers: usize, entries: usize) {
    let times = amount.objects / 4;
    let mut ours = Containers::new(containers, entries, ProcessPool);
    let mut system = Containers::new(containers, entries, Global);
    let mut mimalloc = Containers::new(containers, entries, Mimalloc);
    let mut contenders = [
        Contender::new("ProcessPool", || timed(|| ours.churn(times))),
        Contender::new("system (goal 1.43)", || timed(|| system.churn(times))),
        Contender::new("mimalloc", || timed(|| mimalloc.churn(times))),
    ];
    print(
        &format!("entries replaced in {containers} containers of {entries}"),
        &compare(&mut contenders, amount.rounds, times),
    );
}

fn made_and_dropped<A: Allocator + Copy>(containers: usize, entries: usize, allocator: A) {
    for _ in 0..containers {
        let list: Vec<_> = (0..entries as u64).map(|number| BoxIn::new_in([number; 4], allocator)).collect();
        black_box(&list);
    }
}

pub(crate) fn measure(amount: Amount) {
    churn(amount, 1, 50 * amount.small / 10);
    churn(amount, amount.small / 5, 8);
    for (containers, entries) in [(amount.small, 8), (1, amount.objects / 10)] {
        let mut contenders = [
            Contender::new("ProcessPool", || timed(|| made_and_dropped(containers, entries, ProcessPool))),
            Contender::new("system", || timed(|| made_and_dropped(containers, entries, Global))),
            Contender::new("mimalloc", || timed(|| made_and_dropped(containers, entries, Mimalloc))),
        ];
        print(
            &format!("{containers} containers of {entries} made and dropped, one by one"),
            &compare(&mut contenders, amount.rounds, containers * entries),
        );
    }
}
