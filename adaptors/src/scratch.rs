//! Objects of any type that are never dropped, and whose memory is taken back all at once.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;
use core::slice;

use std::alloc::handle_alloc_error;

use tripoint_core::{Error, Result, Store};

use crate::allocator::dangling;
use crate::blocks::Blocks;
use crate::chunks::{Chunks, Row};
use crate::padding::{WORD, padding, words};
use crate::process_pool::ProcessPool;

/// Memory for objects of any type that are needed for a while: they are allocated by a few instructions, never dropped, and
/// their memory is used again after a [`reset`](Self::reset).
///
/// `alloc` takes `&self`, so objects may refer to each other. The scratch owns its memory: it is a field like a `Vec`, with
/// no lifetime in its type.
///
/// ```
/// use tripoint_adaptors::Scratch;
///
/// let mut scratch = Scratch::new();
/// for line in ["bid 61659", "ask 61660"] {
///     let words = scratch.alloc_slice_fill_iter(line.split(' '));
///     let side = scratch.alloc_str(words[0]);
///     side.make_ascii_uppercase();
///     assert!(["BID", "ASK"].contains(&&*side));
///     scratch.reset(); // nothing allocated before is borrowed any more
/// }
/// ```
///
/// Memory comes from the [`ProcessPool`], or from a store that is passed to [`new_in`](Self::new_in), in chunks of 1 KiB to
/// 1 MiB, or as large as one object needs. A scratch without objects takes none.
///
/// **Without memory** the methods end the program, as `Box::new` does; those that begin with `try_` return the error.
///
/// A reference to a scratch is an allocator of `allocator_api2`. The object that was allocated last grows in place, and is freed
/// when it is dropped; other memory is only taken back by a reset.
///
/// ```
/// # use tripoint_adaptors::Scratch;
/// let scratch = Scratch::new();
/// let mut prices = hashbrown::HashMap::<_, _, hashbrown::DefaultHashBuilder, _>::new_in(&scratch);
/// prices.insert("BTC", 61_659);
/// assert_eq!(prices["BTC"], 61_659);
/// ```
///
/// What is in a scratch cannot be used after a reset:
///
/// ```compile_fail,E0502
/// # use tripoint_adaptors::Scratch;
/// let mut scratch = Scratch::new();
/// let number = scratch.alloc(1);
/// scratch.reset();
/// assert_eq!(*number, 1);
/// ```
#[doc(alias("bump", "bumpalo", "arena", "region"))]
pub struct Scratch<S: Store = ProcessPool> {
    chunks: Chunks<S>,
}

impl Scratch {
    /// A scratch without objects, in the pool of the process.
    #[must_use]
    pub const fn new() -> Self {
        Self::new_in(ProcessPool)
    }

    /// As [`new`](Self::new), with room for this many bytes. Ends the program if there is no memory.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let scratch = Self::new();
        if bytes != 0 {
            let needed = Layout::array::<usize>(bytes.div_ceil(WORD)).unwrap_or(Layout::new::<usize>());
            if needed.size() < bytes || scratch.chunks.grow(needed).is_err() {
                out_of_memory(needed);
            }
        }
        scratch
    }
}

#[expect(clippy::mut_from_ref, reason = "each call returns another object")]
impl<S: Store> Scratch<S> {
    /// A scratch without objects, in a store: such as a [`PoolAllocator`](crate::PoolAllocator) of a pool of your own.
    #[must_use]
    pub const fn new_in(store: S) -> Self {
        Self { chunks: Chunks::new(store, WORD, None) }
    }

    /// Moves an object into the scratch. It is never dropped.
    #[inline(always)]
    pub fn alloc<T>(&self, object: T) -> &mut T {
        self.alloc_with(|| object)
    }

    /// As [`alloc`](Self::alloc), but returns the error if there is no memory.
    ///
    /// # Errors
    /// Those of the store, such as [`Error::Limit`] and [`Error::Memory`]. The object is dropped.
    #[inline(always)]
    pub fn try_alloc<T>(&self, object: T) -> Result<&mut T> {
        let place = self.try_alloc_layout(Layout::new::<T>())?;
        // SAFETY: new memory with the layout of an object.
        Ok(unsafe { written(place, object) })
    }

    /// Allocates the object that `make` makes, which may allocate in this scratch as well.
    #[inline(always)]
    pub fn alloc_with<T>(&self, make: impl FnOnce() -> T) -> &mut T {
        let place = self.alloc_layout(Layout::new::<T>());
        // SAFETY: new memory with the layout of an object.
        unsafe { written(place, make()) }
    }

    /// Copies a text.
    pub fn alloc_str(&self, text: &str) -> &mut str {
        let copy = self.alloc_slice_copy(text.as_bytes());
        // SAFETY: the bytes of a text, which are UTF-8.
        unsafe { core::str::from_utf8_unchecked_mut(copy) }
    }

    /// Copies a slice.
    #[inline]
    pub fn alloc_slice_copy<T: Copy>(&self, slice: &[T]) -> &mut [T] {
        let place = self.alloc_layout(Layout::for_value(slice)).cast::<T>();
        // SAFETY: new memory with the layout of the slice, so it does not overlap it. Objects that are `Copy` may be copied.
        // Nothing else leads to the copies.
        unsafe {
            place.copy_from_nonoverlapping(NonNull::from(slice).cast(), slice.len());
            slice::from_raw_parts_mut(place.as_ptr(), slice.len())
        }
    }

    /// Moves all that an iterator yields into the scratch, where it lies in a row. It is never dropped.
    ///
    /// The iterator may itself allocate in this scratch.
    pub fn alloc_slice_fill_iter<T>(&self, objects: impl IntoIterator<Item = T>) -> &mut [T] {
        match self.fill(objects.into_iter()) {
            Ok(row) => row,
            Err(_) => out_of_memory(Layout::new::<T>()),
        }
    }

    /// Allocates memory, which is not initialised. Ends the program if there is none.
    #[inline(always)]
    pub fn alloc_layout(&self, layout: Layout) -> NonNull<u8> {
        match self.take(layout) {
            Some(memory) => memory,
            None => self.grow_or_end(layout),
        }
    }

    /// Allocates memory, which is not initialised.
    ///
    /// # Errors
    /// Those of [`try_alloc`](Self::try_alloc).
    #[inline(always)]
    pub fn try_alloc_layout(&self, layout: Layout) -> Result<NonNull<u8>> {
        match self.take(layout) {
            Some(memory) => Ok(memory),
            None => self.grow(layout),
        }
    }

    /// Takes back the memory of all objects, and keeps it for the next ones. The same objects again take no more memory.
    pub fn reset(&mut self) {
        self.chunks.clear();
    }

    /// The bytes that the scratch has from its store.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.chunks.allocated_bytes()
    }

    /// The store that the memory comes from.
    #[must_use]
    pub const fn store(&self) -> &S {
        self.chunks.store()
    }

    /// Takes memory from the current chunk, if it has room.
    #[inline(always)]
    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        let next = self.chunks.next();
        let padding = if layout.align() > WORD { padding(next.addr().get(), layout.align()) } else { 0 };
        let size = words(layout);
        // Both are below half of all addresses.
        if padding + size > self.chunks.room() {
            return None;
        }
        // SAFETY: no further than the limit, in the chunk.
        unsafe {
            let memory = next.add(padding);
            self.chunks.set_next(memory.add(size));
            Some(memory)
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&self, layout: Layout) -> Result<NonNull<u8>> {
        // With whole words, because objects take them.
        let needed = Layout::from_size_align(words(layout), layout.align().max(WORD));
        self.chunks.grow(
            needed.map_err(|_| Error::Parameter("the size, rounded up to words, is above isize::MAX"))?,
        )?;
        self.take(layout).ok_or(Error::Limit)
    }

    #[cold]
    #[inline(never)]
    fn grow_or_end(&self, layout: Layout) -> NonNull<u8> {
        self.grow(layout).unwrap_or_else(|_| out_of_memory(layout))
    }

    /// As [`alloc_slice_fill_iter`](Self::alloc_slice_fill_iter).
    fn fill<T>(&self, objects: impl Iterator<Item = T>) -> Result<&mut [T]> {
        if size_of::<T>() == 0 {
            let count = objects.map(core::mem::forget).count();
            // SAFETY: objects of size zero lie anywhere; there are that many, and these are lent by this alone.
            return Ok(unsafe { slice::from_raw_parts_mut(NonNull::dangling().as_ptr(), count) });
        }
        let mut row = Row::begin(&self.chunks, objects.size_hint().0)?;
        for object in objects {
            row.push(object)?;
        }
        // SAFETY: initialised objects, which stay in place until the scratch is borrowed mutably. Nothing else leads to them.
        Ok(unsafe { row.finish().as_mut() })
    }

    /// Whether a block ends where the next object begins. A chunk begins with its head, so then it lies in the current chunk.
    fn is_last(&self, block: NonNull<u8>, layout: Layout) -> bool {
        layout.size() != 0 && block.addr().get() + words(layout) == self.chunks.next().addr().get()
    }

    /// Changes the layout of the last block. Returns a pointer that reaches all of it.
    ///
    /// # Safety
    /// - `block` is the last one, and has room for `layout`.
    unsafe fn set_last(&self, block: NonNull<u8>, layout: Layout) -> NonNull<[u8]> {
        let block = self.chunks.next().with_addr(block.addr());
        // SAFETY: an address in the current chunk, no further than the limit, by a pointer that reaches all of the chunk.
        self.chunks.set_next(unsafe { block.add(words(layout)) });
        NonNull::slice_from_raw_parts(block, layout.size())
    }
}

/// Writes an object.
///
/// # Safety
/// - `place` has the layout of an object, and nothing else uses it as long as the result is borrowed.
#[inline(always)]
unsafe fn written<'a, T>(place: NonNull<u8>, object: T) -> &'a mut T {
    let mut place = place.cast::<T>();
    // SAFETY: large and aligned enough, and used by nothing else.
    unsafe {
        place.write(object);
        place.as_mut()
    }
}

/// Ends the program as the standard library does without memory.
#[cold]
fn out_of_memory(layout: Layout) -> ! {
    handle_alloc_error(layout)
}

// SAFETY: a block is memory of a chunk, which stays in place until the scratch is reset or dropped: neither happens while a
// reference to it exists, and all copies of this allocator are that. Memory is handed out again only if the block that has it
// was freed, or shrank. A block has exactly the size of its layout, so that is the layout that fits it.
unsafe impl<S: Store> Blocks for &Scratch<S> {
    #[inline]
    fn take(&self, layout: Layout) -> Option<NonNull<[u8]>> {
        let block = self.try_alloc_layout(layout).ok()?;
        Some(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    #[inline]
    unsafe fn give_back(&self, block: NonNull<u8>, layout: Layout) {
        if self.is_last(block, layout) {
            // SAFETY: the last block, of which nothing is left.
            unsafe { self.set_last(block, Layout::new::<()>()) };
        }
    }

    unsafe fn grow(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>> {
        let added = words(to) - words(from);
        if self.is_last(block, from)
            && added <= self.chunks.room()
            && padding(block.addr().get(), to.align()) == 0
        {
            // SAFETY: the last block, which has that much more room behind it.
            return Some(unsafe { self.set_last(block, to) });
        }
        let moved = self.take(to)?;
        // SAFETY: the new block is no smaller, as the caller promises, and overlaps no other; the old one has this size.
        unsafe { block.copy_to_nonoverlapping(moved.cast(), from.size()) };
        Some(moved)
    }

    unsafe fn shrink(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>> {
        if padding(block.addr().get(), to.align()) != 0 {
            let moved = self.take(to)?;
            // SAFETY: the new block has this size and overlaps no other; the old one is no smaller, as the caller promises.
            unsafe { block.copy_to_nonoverlapping(moved.cast(), to.size()) };
            return Some(moved);
        }
        if self.is_last(block, from) {
            // SAFETY: the last block, which is no smaller than the new layout.
            return Some(unsafe { self.set_last(block, to) });
        }
        Some(NonNull::slice_from_raw_parts(block, to.size()))
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Store> fmt::Debug for Scratch<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").field("allocated_bytes", &self.allocated_bytes()).finish()
    }
}
