//! Slabs: blocks of a pool that a depot cuts into blocks of one class (design/cache.md `.slab`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Addr, Arena, CheckError, Lock, Magazine, PoolHeader, ensure};

use super::classes::{CLASSES_MAX, CacheClass};
use super::sums::{
    LARGEST_IN_SLAB, SLAB_SIZE, SLAB_WORDS, blocks_in_slab, header_in_slab, index_in_slab, offset_in_slab,
    place_in_slab, reciprocal,
};

/// What a slab is to its pool.
pub(super) const SLAB: Layout = match Layout::from_size_align(SLAB_SIZE, SLAB_SIZE) {
    Ok(slab) => slab,
    Err(_) => panic!("a power of two"),
};

/// The bits of a word.
const BITS: usize = usize::BITS as usize;

/// The header of a slab, and a bit for each of its blocks.
///
/// ```text
/// free == the bits that are set == the free blocks
/// no bit is set in a word before `first`
/// ```
#[repr(C)]
struct Header {
    /// The slabs of the class before and after it that have free blocks.
    next: Option<Slab>,
    previous: Option<Slab>,
    free: usize,
    first: usize,
    /// Those of large blocks, which are few, are on the same line as what is before them.
    bits: [usize; SLAB_WORDS],
}

/// The number of words that have a bit for each block.
const fn words_for(blocks: usize) -> usize {
    blocks.div_ceil(BITS)
}

/// A slab.
///
/// Invariant: the base of a block of [`SLAB`], which is the depot's until [`SlabClass::give_many`] or [`SlabClass::take_unused`]
/// returns it, and has its header. Who has the lock of its class may use the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slab(NonNull<u8>);

impl Slab {
    fn front(self) -> NonNull<Header> {
        // SAFETY: a slab has room for the header at that offset.
        unsafe { self.0.add(header_in_slab(self.0.addr().get())) }.cast()
    }

    /// # Safety
    /// - The caller has the lock of the slab's class, and uses no other reference to this header.
    unsafe fn header_mut<'a>(self) -> &'a mut Header {
        // SAFETY: the invariant of the type, and what the caller promises.
        unsafe { self.front().as_mut() }
    }

    /// The block at an index.
    ///
    /// # Safety
    /// - `index` is below [`blocks_in_slab`] of this size.
    unsafe fn block(self, size: usize, index: usize) -> NonNull<u8> {
        // SAFETY: blocks up to that number lie in the slab.
        unsafe { self.0.add(place_in_slab(size, index)) }
    }
}

/// The slabs of a class that have free blocks, on a cache line of their own.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct SlabClass(Lock<Partial>);

/// The slabs that have free blocks. A slab of which no block is in use is the only one.
#[derive(Debug)]
struct Partial {
    first: Option<Slab>,
    /// How many blocks are free in all of them.
    free: usize,
}

// SAFETY: slabs are the depot's, on whichever thread it is used; their headers are used under this lock.
unsafe impl Send for Partial {}

impl Partial {
    /// Adds a slab, which is in no list.
    ///
    /// # Safety
    /// - It is a slab of this class.
    unsafe fn push(&mut self, slab: Slab) {
        // SAFETY: this is what the lock guards; no other reference to a header is used meanwhile.
        unsafe {
            let header = slab.header_mut();
            (header.next, header.previous) = (self.first, None);
            if let Some(next) = self.first {
                next.header_mut().previous = Some(slab);
            }
        }
        self.first = Some(slab);
    }

    /// Whether there is another slab in the list.
    ///
    /// # Safety
    /// - This one is in the list.
    unsafe fn has_others(&self, slab: Slab) -> bool {
        // SAFETY: this is what the lock guards; no other reference to a header is used meanwhile.
        self.first != Some(slab) || unsafe { slab.header_mut() }.next.is_some()
    }

    /// Takes the first slab out if it has none of its `most` blocks in use, and so is the only one.
    fn take_unused(&mut self, most: usize) -> Option<Slab> {
        // SAFETY: this is what the lock guards; no other reference to a header is used meanwhile.
        let slab = self.first.filter(|slab| unsafe { slab.header_mut() }.free == most)?;
        // SAFETY: it is in the list.
        unsafe { self.remove(slab) };
        self.free -= most;
        Some(slab)
    }

    /// Takes a slab out.
    ///
    /// # Safety
    /// - It is in the list of this class.
    unsafe fn remove(&mut self, slab: Slab) {
        // SAFETY: this is what the lock guards; no other reference to a header is used meanwhile.
        unsafe {
            let &mut Header { next, previous, .. } = slab.header_mut();
            match previous {
                Some(previous) => previous.header_mut().next = next,
                None => self.first = next,
            }
            if let Some(next) = next {
                next.header_mut().previous = previous;
            }
        }
    }
}

impl SlabClass {
    fn new() -> Self {
        Self(Lock::new(Partial { first: None, free: 0 }))
    }

    /// Adds a slab that was just allocated, of blocks of `size` bytes. Returns one of them: so no flush finds the slab unused before it
    /// is used.
    ///
    /// # Safety
    /// - `memory` is a block of [`SLAB`] that nothing uses. It stays valid as long as this is used, or until it is returned.
    /// - It is the size of the class.
    pub(super) unsafe fn add(&self, memory: NonNull<u8>, size: usize) -> NonNull<u8> {
        let (slab, free) = (Slab(memory), blocks_in_slab(size));
        let mut bits = [0; SLAB_WORDS];
        for (word, left) in bits.iter_mut().zip((1..=free).rev().step_by(BITS)) {
            *word = if left < BITS { (1 << left) - 1 } else { usize::MAX };
        }
        let free = free - 1;
        if let Some(word) = bits.first_mut() {
            *word &= !1;
        }
        // SAFETY: aligned for the header, with room for it; nothing uses the memory.
        unsafe { slab.front().write(Header { next: None, previous: None, free, first: 0, bits }) };
        let partial = &mut *self.0.lock();
        partial.free += free;
        // SAFETY: a slab, of this class from now on.
        unsafe { partial.push(slab) };
        // SAFETY: a slab has more than one block.
        unsafe { slab.block(size, 0) }
    }

    /// Takes free blocks of `size` bytes, until the magazine is full or no slab has any: of a slab, those that lie lowest.
    ///
    /// # Safety
    /// - It is the size of the class.
    pub(super) unsafe fn take_many(&self, size: usize, blocks: &mut Magazine) {
        let words = words_for(blocks_in_slab(size));
        let partial = &mut *self.0.lock();
        while blocks.room() != 0
            && let Some(slab) = partial.first
        {
            // SAFETY: the lock is held, and this is the only header in use until it has no free block.
            let header = unsafe { slab.header_mut() };
            let bits = header.bits.get_mut(..words).unwrap_or_default();
            for (index, word) in bits.iter_mut().enumerate().skip(header.first) {
                let (before, mut rest) = (blocks.len(), *word);
                blocks.extend(core::iter::from_fn(|| {
                    let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                    rest &= rest - 1;
                    // SAFETY: bits are set of blocks of the slab only.
                    Some(unsafe { slab.block(size, index * BITS + bit) })
                }));
                *word = rest;
                header.free -= blocks.len() - before;
                partial.free -= blocks.len() - before;
                header.first = index;
                if blocks.room() == 0 {
                    break;
                }
            }
            if header.free != 0 {
                return;
            }
            // SAFETY: the first of the list.
            unsafe { partial.remove(slab) };
        }
    }

    /// Frees the blocks of a magazine. Those that are free already stay in it: the program has freed them twice. Returns the slabs
    /// that have no block in use any more; one of them stays if no other slab of the class has free blocks.
    ///
    /// # Safety
    /// - They are blocks of this size, which is that of the class. They came from slabs of the class, nothing uses them, and the
    ///   pointers reach all of their slabs.
    pub(super) unsafe fn give_many(&self, size: usize, blocks: &mut Magazine) -> Magazine {
        let (most, reciprocal) = (blocks_in_slab(size), reciprocal(size));
        let [mut unused, mut twice] = [Magazine::up_to(Magazine::MAX), Magazine::up_to(Magazine::MAX)];
        let partial = &mut *self.0.lock();
        while let Some(block) = blocks.pop() {
            let place = offset_in_slab(block.addr().get());
            // SAFETY: the pointer reaches the slab, in which the block is.
            let slab = Slab(unsafe { block.sub(place) });
            // SAFETY: the lock is held, and this is the only header in use until it is put into or out of the list.
            let header = unsafe { slab.header_mut() };
            let index = index_in_slab(reciprocal, place);
            let bit = 1 << (index % BITS);
            let Some(word) = header.bits.get_mut(index / BITS).filter(|word| **word & bit == 0) else {
                let _ = twice.push(block);
                continue;
            };
            *word |= bit;
            header.first = header.first.min(index / BITS);
            header.free += 1;
            partial.free += 1;
            let (was_full, is_unused) = (header.free == 1, header.free == most);
            if was_full {
                // Now another slab has free blocks.
                if let Some(other) = partial.take_unused(most) {
                    let _ = unused.push(other.0);
                }
                // SAFETY: a slab of the class, which was in no list.
                unsafe { partial.push(slab) };
            }
            // SAFETY: in the list, as it has free blocks.
            if is_unused && unsafe { partial.has_others(slab) } {
                // SAFETY: it is in the list.
                unsafe { partial.remove(slab) };
                partial.free -= most;
                let _ = unused.push(slab.0);
            }
        }
        *blocks = twice;
        unused
    }

    /// Takes the slab out that has no block of `size` bytes in use, if there is one.
    ///
    /// # Safety
    /// - It is the size of the class.
    pub(super) unsafe fn take_unused(&self, size: usize) -> Option<NonNull<u8>> {
        self.0.lock().take_unused(blocks_in_slab(size)).map(|slab| slab.0)
    }

    /// How many blocks are free in its slabs.
    pub(super) fn free(&self) -> usize {
        self.0.lock().free
    }

    /// Checks the slabs that have free blocks of this size, that of the class.
    pub(super) fn check<A: Arena>(
        &self,
        owner: &'static str,
        header: &PoolHeader<A>,
        size: usize,
    ) -> Result<(), CheckError> {
        let (most, partial) = (blocks_in_slab(size), self.0.lock());
        let (mut next, mut previous, mut free) = (partial.first, None, 0);
        while let Some(slab) = next {
            let place = slab.0.addr().get();
            let is_of_pool = header.arena().pool_of(Addr::of(slab.0.as_ptr())) == Some(header.id());
            ensure(owner, is_of_pool && place.is_multiple_of(SLAB_SIZE), "slabs lie in the pool")?;
            // SAFETY: the lock is held, and no other reference to a header is used meanwhile.
            let header = unsafe { slab.header_mut() };
            let bits = &header.bits;
            let count: usize = bits.iter().map(|word| word.count_ones() as usize).sum();
            ensure(
                owner,
                count == header.free && count != 0,
                "a slab has as many free blocks as were counted",
            )?;
            let last = bits.iter().rposition(|word| *word != 0).unwrap_or_default();
            let limit = bits.get(last).map_or(0, |word| (last + 1) * BITS - word.leading_zeros() as usize);
            ensure(owner, limit <= most, "free blocks of a slab lie in it")?;
            let is_found = bits.iter().take(header.first).all(|word| *word == 0);
            ensure(owner, is_found, "free blocks of a slab are not passed over")?;
            ensure(owner, header.previous == previous, "slabs that have free blocks are in one list")?;
            let is_alone = previous.is_none() && header.next.is_none();
            ensure(owner, count != most || is_alone, "a slab that has no block in use is the only one")?;
            free += count;
            (next, previous) = (header.next, Some(slab));
        }
        ensure(owner, free == partial.free, "a class has as many free blocks as were counted")
    }
}

/// The slabs of a depot, by class.
#[derive(Debug)]
pub(super) struct Slabs([SlabClass; CLASSES_MAX]);

impl Slabs {
    pub(super) fn new() -> Self {
        Self(core::array::from_fn(|_| SlabClass::new()))
    }

    /// The slabs that blocks of a class are cut from; none if these are large.
    pub(super) fn of(&self, index: usize, class: &CacheClass) -> Option<&SlabClass> {
        self.0.get(index).filter(|_| class.size <= LARGEST_IN_SLAB)
    }
}

#[cfg(test)]
mod tests {
    use super::super::classes::BLOCK_ALIGN;
    use super::*;

    /// Of every size, all blocks lie in the slab behind what is in front, side by side, and are found by their places.
    #[test]
    fn blocks_of_every_size_are_found_by_their_places() {
        for size in (BLOCK_ALIGN..=LARGEST_IN_SLAB).step_by(BLOCK_ALIGN) {
            let most = blocks_in_slab(size);
            assert!(most > 1 && words_for(most) <= SLAB_WORDS);
            let mut limit =
                (0..100).map(|slab| header_in_slab(slab * SLAB_SIZE)).max().unwrap() + size_of::<Header>();
            for index in 0..most {
                let place = place_in_slab(size, index);
                assert!(
                    place == limit || index == 0 && place >= limit,
                    "block {index} of {size} bytes at {place}"
                );
                assert!(place.is_multiple_of(BLOCK_ALIGN));
                assert_eq!(index_in_slab(reciprocal(size), offset_in_slab(5 * SLAB_SIZE + place)), index);
                limit = place + size;
            }
            assert!(limit <= SLAB_SIZE && limit + size > SLAB_SIZE, "no room for another");
        }
    }
}
