//! Objects that free themselves: lists in an automatic pool, far more of them than its memory holds.

use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::time::Duration;

use tripoint::author::{Block, SingleCore, Spinning};
use tripoint::gc::{Ams, Format, Heap, HeapOptions, MutatorBuffer, Scan, SweptOptions, Tag};
use tripoint::{AllocationPoint, BufferKind, Check, CheckLevel, PoolClass};

use crate::memory;
use crate::{Failure, ensure};

/// A cell of a list: the rest of it, and a number.
type Cell = (*mut u8, usize);

const CELL: Layout = Layout::new::<Cell>();

/// The cells of a list.
const LENGTH: usize = 40;

/// How many lists are made, one after the other. Together they are many times as large as the arena.
const LISTS: usize = 400;

/// How many lists are made before the program asks for a collection. More than the arena holds, so other
/// collections begin because memory is refused.
const BETWEEN: usize = 100;

/// Tells the collector what cells look like.
struct Cells;

// SAFETY: every object is a cell, whose first word is its only reference.
unsafe impl Format for Cells {
    unsafe fn skip(&self, _cell: NonNull<u8>) -> usize {
        CELL.size()
    }

    unsafe fn scan(&self, cells: Block, scan: &mut Scan<'_>) {
        for index in 0..cells.size() / CELL.size() {
            // SAFETY: that many cells are in the block, each of which begins with a reference, and no code uses
            // them meanwhile.
            scan.fix(unsafe { &mut (*cells.base().cast::<Cell>().add(index).as_ptr()).0 });
        }
    }
}

/// Counts of what was done.
#[derive(Debug)]
#[allow(dead_code, reason = "the fields are read by Debug")]
pub(crate) struct Collected {
    /// Bytes allocated in all.
    allocated: usize,
    /// Collections in all.
    collections: u64,
    /// Those of them that began because memory was refused.
    by_refusal: u64,
}

pub(crate) fn run() -> Result<Collected, Failure> {
    let arena = memory::collected()?;
    // SAFETY: there is one core, and nothing flips a buffer of this arena but the collections below.
    let barrier = unsafe { SingleCore::new() };
    let heap = Heap::create(arena, HeapOptions { barrier, parking: Some(&Spinning) })?;
    let pool: Ams<'_, _, _, Cells> = Ams::create(&heap, Cells, SweptOptions { segment_size: 1 << 10 })?;
    let mut mutator = heap.register()?;
    // SAFETY: the point is used by this code alone, while the mutator is running.
    let attend = |buffer: &MutatorBuffer| unsafe { buffer.attend(&mutator) };
    let mut point = AllocationPoint::create_in(&pool, BufferKind::Mutator, (), attend)?;
    let mut first: *mut u8 = ptr::null_mut();
    let slot = NonNull::from(&mut first);
    // SAFETY: the variable outlives the root, and only this code uses it.
    let root = unsafe { heap.root_table(slot, 1, Tag::default()) }?;
    for list in 1..=LISTS {
        // SAFETY: the slot is the variable above. The list before this one is garbage now.
        unsafe { slot.write(ptr::null_mut()) };
        for number in 0..LENGTH {
            let cell = point.reserve(CELL)?;
            // SAFETY: the cell has room for one, and the slot is the variable above.
            unsafe { cell.as_ptr().cast::<Cell>().write((slot.read(), list + number)) };
            // SAFETY: the cell was just made.
            let cell = unsafe { cell.commit() };
            let Ok(cell) = cell else { return Err(Failure::Unmet("no collection comes before a commit")) };
            // SAFETY: the slot is the variable above.
            unsafe { slot.write(cell.as_ptr()) };
        }
        if list % BETWEEN == 0 {
            point.empty();
            let Ok(found) = mutator.collect(Duration::MAX) else {
                return Err(Failure::Unmet("the only mutator gives way"));
            };
            ensure(found.kept == LENGTH * CELL.size(), "one list is kept, and no byte more")?;
        }
        // SAFETY: the slot is the variable above, and keeps the list.
        ensure(unsafe { is_whole(slot.read(), list) }, "a list keeps what was written")?;
    }
    drop(root);
    point.empty();
    let last = mutator.collect(Duration::MAX);
    ensure(last.is_ok_and(|found| found.kept == 0), "without a root nothing is kept")?;
    ensure(pool.sizes().total == 0, "an empty pool gave everything back")?;
    let counts = heap.counts();
    let (collections, by_refusal) = (counts.collections.get(), counts.by_refusal.get());
    ensure(by_refusal > 0, "a full arena is collected")?;
    ensure(pool.check(CheckLevel::Deep).is_ok(), "the pool is sound")?;
    ensure(arena.check(CheckLevel::Deep).is_ok(), "its arena is sound")?;
    Ok(Collected { allocated: LISTS * LENGTH * CELL.size(), collections, by_refusal })
}

/// Whether a list has the numbers that were written.
///
/// # Safety
/// - `first` is the first cell of a list that is kept, or null.
unsafe fn is_whole(first: *mut u8, list: usize) -> bool {
    let (mut cell, mut left) = (first.cast::<Cell>(), LENGTH);
    // SAFETY: the caller promises cells that are kept.
    while let Some(&(rest, number)) = unsafe { cell.as_ref() } {
        left = left.wrapping_sub(1);
        if number != list + left {
            return false;
        }
        cell = rest.cast();
    }
    left == 0
}
