//! The objects of a transform, and which takes whose place.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::slice;

use tripoint_core::{Addr, Block, Lock};

use crate::scans::scan::Scan;

/// An object, and the one that takes its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) old: *mut u8,
    pub(crate) new: *mut u8,
}

/// Pairs in a row, in memory that there is for them.
#[derive(Debug)]
pub(crate) struct Pairs {
    first: NonNull<Pair>,
    count: usize,
    room: usize,
}

// SAFETY: the pairs are in memory that only this value uses, and their pointers are passed on and compared.
unsafe impl Send for Pairs {}

impl Pairs {
    /// The layout of a lock with pairs, and of memory for `room` of them behind it, and where that begins.
    fn layout(room: usize) -> Option<(Layout, usize)> {
        let pairs = Layout::array::<Pair>(room).ok()?;
        Layout::new::<Lock<Self>>().extend(pairs).ok()
    }

    /// The bytes that `room` pairs take.
    pub(crate) fn size_for(room: usize) -> Option<usize> {
        Some(Self::layout(room)?.0.size())
    }

    /// Makes no pairs, in a block with room for `room`.
    ///
    /// # Safety
    /// - The block has [as many bytes](Pairs::size_for), is aligned to two words, and only the result uses it.
    pub(crate) unsafe fn create(block: Block, room: usize) -> NonNull<Lock<Self>> {
        let behind = Self::layout(room).map_or(0, |(_, behind)| behind);
        // SAFETY: the caller promises a block in which that is.
        let first = unsafe { block.base().byte_add(behind) }.cast();
        let pairs = block.base().cast();
        // SAFETY: the caller promises room for the lock, which nothing uses yet.
        unsafe { pairs.write(Lock::new(Self { first, count: 0, room })) };
        pairs
    }

    /// Adds a pair. Returns whether there was room.
    pub(crate) fn push(&mut self, pair: Pair) -> bool {
        let has_room = self.count < self.room;
        if has_room {
            // SAFETY: there is room for one more pair behind the others.
            unsafe { self.first.add(self.count).write(pair) };
            self.count += 1;
        }
        has_room
    }

    pub(crate) const fn as_slice(&self) -> &[Pair] {
        // SAFETY: that many pairs were written there, and only this value uses them (`create`).
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }

    const fn as_mut_slice(&mut self) -> &mut [Pair] {
        // SAFETY: that many pairs were written there, and only this value uses them (`create`), which is borrowed
        // exclusively.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.count) }
    }

    /// Forgets all pairs.
    pub(crate) const fn clear(&mut self) {
        self.count = 0;
    }

    /// Forgets the pairs that have an object of which `is_gone` is true.
    pub(crate) fn forget_all(&mut self, is_gone: impl Fn(*mut u8) -> bool) {
        let pairs = self.as_mut_slice();
        let mut kept = 0;
        for index in 0..pairs.len() {
            let pair = pairs[index];
            if !is_gone(pair.old) && !is_gone(pair.new) {
                pairs[kept] = pair;
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// As a root: keeps all objects, and follows those that move.
    pub(crate) fn scan(&mut self, scan: &mut Scan<'_>) {
        for pair in self.as_mut_slice() {
            scan.fix(&mut pair.old);
            scan.fix(&mut pair.new);
        }
    }

    /// Sorts the pairs by the addresses of old objects, for [`Pairs::new_of`].
    pub(crate) fn sort(&mut self) {
        self.as_mut_slice().sort_unstable_by_key(|pair| pair.old.addr());
    }

    /// What takes the place of the object that references know by `old`, if one does. The pairs are sorted.
    pub(crate) fn new_of(&self, old: Addr) -> Option<*mut u8> {
        let pairs = self.as_slice();
        let found = pairs.binary_search_by_key(&old.get(), |pair| pair.old.addr()).ok()?;
        Some(pairs[found].new)
    }
}
