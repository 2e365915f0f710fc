//! Memory that is cut into objects from its start to its end, and that is returned all at once: blocks of a store, each
//! larger than the one before (design/adaptors.md `.own.chunks`).

use core::alloc::Layout;
use core::cell::Cell;
use core::mem;
use core::ptr::NonNull;

use tripoint_core::internal::Defer;
use tripoint_core::{Error, Result, Store};

use crate::padding::padding;

/// The first chunk, in bytes, if more is not needed.
const FIRST: usize = 1 << 10;
/// The largest chunk, in bytes, if more is not needed.
const MOST: usize = 1 << 20;

const TOO_LARGE: Error = Error::Parameter("the objects together are above isize::MAX bytes");

/// Where nothing lies: the place of the next object while there is no current chunk. Objects of size zero count from here.
const NOWHERE: NonNull<u8> = NonNull::dangling();

/// Drops the objects in this many bytes from an address on. If objects have no size, each counts as a byte.
///
/// # Safety
/// - There is a whole number of objects, initialised, of the type that the function is for. Nothing else uses them, and
///   they are not used again.
pub(crate) type DropObjects = unsafe fn(NonNull<u8>, usize);

/// The start of a chunk. Its objects lie behind it.
struct Head {
    /// Of the whole chunk.
    layout: Layout,
    /// Where its objects end, if it comes before the current chunk.
    filled: Cell<NonNull<u8>>,
    later: Cell<Option<Chunk>>,
}

/// The address of a chunk, which reaches all of it. The value exists as long as the chunk does.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Chunk(NonNull<Head>);

impl Chunk {
    /// Makes a head.
    ///
    /// # Safety
    /// - The memory has this layout, is larger than a head and aligned for it, and is the chunk's.
    unsafe fn new(memory: NonNull<u8>, layout: Layout) -> Self {
        let chunk = memory.cast();
        // SAFETY: large and aligned enough, and used by nothing else.
        unsafe { chunk.write(Head { layout, filled: Cell::new(NOWHERE), later: Cell::new(None) }) };
        Self(chunk)
    }

    fn head(&self) -> &Head {
        // SAFETY: a chunk begins with its head, of which there are only shared references.
        unsafe { self.0.as_ref() }
    }

    /// Where the objects begin.
    fn start(self) -> NonNull<u8> {
        let head = size_of::<Head>() + padding(size_of::<Head>(), self.head().layout.align());
        // SAFETY: objects begin within the chunk, whose memory the address reaches.
        unsafe { self.0.cast::<u8>().add(head) }
    }

    /// The bytes from there to the end of the chunk.
    fn room(self) -> usize {
        self.head().layout.size() - (self.start().addr().get() - self.0.addr().get())
    }

    /// Whether there is room for `needed` in the chunk while it is empty.
    fn has_room(self, needed: Layout) -> bool {
        let padding = padding(self.start().addr().get(), needed.align());
        padding.checked_add(needed.size()).is_some_and(|size| size <= self.room())
    }
}

/// Chunks of a store. Objects are cut from the current one. Those before it are full, and those after it empty. If there
/// are any, one is current.
pub(crate) struct Chunks<S: Store> {
    /// Where the next object begins.
    next: Cell<NonNull<u8>>,
    /// Where the last object ends at the latest: a whole number of steps from the first.
    limit: Cell<NonNull<u8>>,
    current: Cell<Option<Chunk>>,
    first: Cell<Option<Chunk>>,
    /// Objects take whole steps, in bytes.
    step: usize,
    /// What drops the objects, if that does anything.
    drop_objects: Option<DropObjects>,
    store: S,
}

// SAFETY: all that the addresses lead to is this value's own, and goes with it; so does the store, which may be sent. The
// objects are those of the type that has the chunks, which says whether they may be sent.
unsafe impl<S: Store + Send> Send for Chunks<S> {}

impl<S: Store> Chunks<S> {
    /// No chunks yet.
    pub(crate) const fn new(store: S, step: usize, drop_objects: Option<DropObjects>) -> Self {
        Self {
            next: Cell::new(NOWHERE),
            limit: Cell::new(NOWHERE),
            current: Cell::new(None),
            first: Cell::new(None),
            step: if step == 0 { 1 } else { step },
            drop_objects,
            store,
        }
    }

    pub(crate) const fn store(&self) -> &S {
        &self.store
    }

    /// Where the next object begins.
    #[inline(always)]
    pub(crate) fn next(&self) -> NonNull<u8> {
        self.next.get()
    }

    /// Has the next object begin somewhere else in the current chunk.
    #[inline(always)]
    pub(crate) fn set_next(&self, next: NonNull<u8>) {
        self.next.set(next);
    }

    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.next.get() == self.limit.get()
    }

    /// The bytes from where the next object begins to the end of the chunk.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        distance(self.next.get(), self.limit.get())
    }

    /// Counts one more object of size zero.
    pub(crate) fn count_zero_sized(&self) {
        if let Some(next) = NonNull::new(self.next.get().as_ptr().wrapping_add(1)) {
            self.next.set(next);
        }
    }

    /// Makes the next chunk with room for `needed` the current one. It is the one after the current chunk, or a new
    /// one.
    ///
    /// # Errors
    /// [`TOO_LARGE`], and those of the store. Nothing changed then.
    #[cold]
    #[inline(never)]
    pub(crate) fn grow(&self, needed: Layout) -> Result<()> {
        let mut current = self.current.get();
        let later = self.later(&current).get();
        let chunk = match later.filter(|later| later.has_room(needed)) {
            Some(later) => later,
            None => {
                let chunk = self.make(needed, current)?;
                // The store may have called what allocates here.
                current = self.current.get();
                chunk.head().later.set(self.later(&current).replace(Some(chunk)));
                chunk
            }
        };
        if let Some(current) = current {
            current.head().filled.set(self.next.get());
        }
        self.enter(chunk);
        Ok(())
    }

    /// Makes a chunk without objects the current one.
    fn enter(&self, chunk: Chunk) {
        let (start, size) = (chunk.start(), self.whole_steps(chunk.room()));
        self.current.set(Some(chunk));
        self.next.set(start);
        // SAFETY: no further than the end of the chunk.
        self.limit.set(unsafe { start.add(size) });
    }

    /// The bytes of the whole steps in this many. Most steps are powers of two, for which no division is needed.
    fn whole_steps(&self, size: usize) -> usize {
        let rest = if self.step.is_power_of_two() { size & (self.step - 1) } else { size % self.step };
        size - rest
    }

    /// What leads to the chunk after this one, or to the first.
    fn later<'c>(&'c self, current: &'c Option<Chunk>) -> &'c Cell<Option<Chunk>> {
        current.as_ref().map_or(&self.first, |current| &current.head().later)
    }

    /// Allocates a chunk with room for `needed`, if possible twice as large as the one before.
    fn make(&self, needed: Layout, before: Option<Chunk>) -> Result<Chunk> {
        let usual = before.map_or(FIRST, |before| before.head().layout.size().saturating_mul(2).min(MOST));
        let (least, _) = Layout::new::<Head>().extend(needed).map_err(|_| TOO_LARGE)?;
        let layout =
            Layout::from_size_align(least.size().max(usual), least.align()).map_err(|_| TOO_LARGE)?;
        let layout = layout.pad_to_align();
        let memory = self.store.alloc(layout)?;
        // SAFETY: new memory with this layout, that of a head with what is needed behind it.
        Ok(unsafe { Chunk::new(memory, layout) })
    }

    /// The bytes of all chunks.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.chunks().map(|chunk| chunk.head().layout.size()).sum()
    }

    fn chunks(&self) -> impl Iterator<Item = Chunk> {
        core::iter::successors(self.first.get(), |chunk| chunk.head().later.get())
    }

    /// The objects, in the order of their allocation: addresses, and how many bytes of objects follow each. Objects of size zero
    /// count as a byte each.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (NonNull<u8>, usize)> {
        let current = self.current.get();
        let row = move |chunk: Chunk| {
            let end = if current == Some(chunk) { self.next.get() } else { chunk.head().filled.get() };
            (chunk.start(), distance(chunk.start(), end))
        };
        let zero_sized = if current.is_none() { distance(NOWHERE, self.next.get()) } else { 0 };
        let zero_sized = (zero_sized != 0).then_some((NOWHERE, zero_sized));
        let empty = current.and_then(|current| current.head().later.get());
        zero_sized.into_iter().chain(self.chunks().take_while(move |chunk| Some(*chunk) != empty).map(row))
    }

    /// Drops all objects, and keeps the chunks. If an object panics, those that are left are dropped while the panic
    /// unwinds.
    pub(crate) fn clear(&mut self) {
        // SAFETY: no object is borrowed while the chunks are borrowed mutably.
        unsafe { self.drop_all() };
    }

    /// Forgets all objects, and keeps the chunks.
    pub(crate) fn forget(&mut self) {
        self.drop_objects = None;
        self.clear();
    }

    /// As [`clear`](Self::clear).
    ///
    /// # Safety
    /// - Nothing uses the objects.
    unsafe fn drop_all(&self) {
        let (end, last) = (self.next.replace(NOWHERE), self.current.get());
        let first = self.first.get();
        if let Some(first) = first {
            self.enter(first);
        }
        let Some(drop_objects) = self.drop_objects else { return };
        let mut rest = Rest { zero_sized: 0, chunks: first.zip(last), drop_objects };
        match last {
            Some(last) => last.head().filled.set(end),
            None => rest.zero_sized = distance(NOWHERE, end),
        }
        // SAFETY: they were the objects of this list, which is empty from here on, and nothing uses them.
        unsafe { rest.drop_them() };
    }

    /// Frees all chunks.
    ///
    /// # Safety
    /// - There are no objects any more.
    unsafe fn free_all(&self) {
        let mut left = self.first.take();
        while let Some(chunk) = left {
            left = chunk.head().later.get();
            let layout = chunk.head().layout;
            // SAFETY: allocated in this store with this layout. It is out of the list, so it is freed once, and nothing uses it.
            unsafe { self.store.free(chunk.0.cast(), layout) };
        }
    }
}

impl<S: Store> Drop for Chunks<S> {
    fn drop(&mut self) {
        let this = &*self;
        // SAFETY: all objects are dropped by then.
        let _free = Defer::new(|| unsafe { this.free_all() });
        if this.drop_objects.is_some() {
            // SAFETY: no object is borrowed once the list is dropped.
            unsafe { this.drop_all() };
        }
    }
}

/// Objects that are still to be dropped.
struct Rest {
    zero_sized: usize,
    /// From this chunk on, up to that one.
    chunks: Option<(Chunk, Chunk)>,
    drop_objects: DropObjects,
}

impl Rest {
    /// Drops them, each once, whether or not one panics.
    ///
    /// # Safety
    /// - The objects are of the type that the function is for, and nothing uses them.
    unsafe fn drop_them(&mut self) {
        let drop_objects = self.drop_objects;
        let drop_row = |start, size| {
            if size != 0 {
                // SAFETY: objects of that type, which nothing uses. They were taken out of what is left, so they are not used
                // again.
                unsafe { drop_objects(start, size) };
            }
        };
        drop_row(NOWHERE, mem::take(&mut self.zero_sized));
        while let Some((chunk, last)) = self.chunks {
            self.chunks = chunk.head().later.get().filter(|_| chunk != last).map(|later| (later, last));
            drop_row(chunk.start(), distance(chunk.start(), chunk.head().filled.get()));
        }
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        // SAFETY: what is left are objects of that type, which nothing uses.
        unsafe { self.drop_them() };
    }
}

/// The bytes from one address to another, which is not below it.
fn distance(from: NonNull<u8>, to: NonNull<u8>) -> usize {
    to.addr().get() - from.addr().get()
}

/// Objects that are made one after the other, in a row, while whatever makes them may allocate in the same chunks.
///
/// It takes the rest of the current chunk, which is full for all others, and returns what it does not need when it is dropped.
/// The objects that it has then become the list's. They have a size.
pub(crate) struct Row<'c, T, S: Store> {
    chunks: &'c Chunks<S>,
    place: Place<T>,
    len: usize,
}

/// The rest of a chunk.
struct Place<T> {
    chunk: Option<Chunk>,
    start: NonNull<T>,
    /// The most objects.
    room: usize,
    limit: NonNull<u8>,
}

impl<'c, T, S: Store> Row<'c, T, S> {
    /// An empty row with room for `least` objects.
    ///
    /// # Errors
    /// Those of [`Chunks::grow`].
    pub(crate) fn begin(chunks: &'c Chunks<S>, least: usize) -> Result<Self> {
        let needed = Layout::array::<T>(least).map_err(|_| TOO_LARGE)?;
        let padding = padding(chunks.next().addr().get(), needed.align());
        if least != 0 && padding.saturating_add(needed.size()) > chunks.room() {
            chunks.grow(needed)?;
        }
        Ok(Self { chunks, place: Place::take(chunks), len: 0 })
    }

    /// Adds an object.
    ///
    /// # Errors
    /// Those of [`Chunks::grow`]; the object is dropped.
    pub(crate) fn push(&mut self, object: T) -> Result<()> {
        if self.len == self.place.room {
            self.move_on()?;
        }
        // SAFETY: below the room of the place, whose memory is this row's.
        unsafe { self.place.start.add(self.len).write(object) };
        self.len += 1;
        Ok(())
    }

    /// Ends the row.
    pub(crate) fn finish(self) -> NonNull<[T]> {
        NonNull::slice_from_raw_parts(self.place.start, self.len)
    }

    /// Moves the objects to where there is more room.
    #[cold]
    fn move_on(&mut self) -> Result<()> {
        let needed = Layout::array::<T>((self.len.saturating_mul(2)).max(4)).map_err(|_| TOO_LARGE)?;
        // What the row has of the chunk is not noted in it, and so becomes free.
        self.chunks.grow(needed)?;
        let place = Place::take(self.chunks);
        // SAFETY: the new place has room for twice as many objects, is aligned for them, and overlaps nothing. They are not used
        // where they were.
        unsafe { self.place.start.copy_to_nonoverlapping(place.start, self.len) };
        self.place = place;
        Ok(())
    }
}

impl<T> Place<T> {
    /// Takes the rest of the current chunk.
    fn take<S: Store>(chunks: &Chunks<S>) -> Self {
        let (next, limit) = (chunks.next(), chunks.limit.replace(chunks.next()));
        let room = distance(next, limit);
        let padding = padding(next.addr().get(), align_of::<T>());
        let (start, room) = match room.checked_sub(padding) {
            // SAFETY: no further than the limit, in the chunk.
            Some(room) if room != 0 => (unsafe { next.add(padding) }.cast(), room / size_of::<T>()),
            _ => (NonNull::dangling(), 0),
        };
        // A row within another that has the rest of the chunk has nothing of it.
        let chunk = chunks.current.get().filter(|_| next != limit);
        Self { chunk, start, room, limit }
    }
}

impl<T, S: Store> Drop for Row<'_, T, S> {
    fn drop(&mut self) {
        let Place { chunk: Some(chunk), start, limit, .. } = self.place else { return };
        let is_current = self.chunks.current.get() == Some(chunk);
        if is_current {
            self.chunks.limit.set(limit);
        }
        if self.len != 0 {
            let (size, step) = (self.len * size_of::<T>(), self.chunks.step);
            let size = if step == size_of::<T>() { size } else { size.next_multiple_of(step) };
            // SAFETY: whole steps that hold the objects, up to the limit at most, which is a whole number of steps from here.
            let end = unsafe { start.cast::<u8>().add(size) };
            if is_current {
                self.chunks.next.set(end);
            } else {
                chunk.head().filled.set(end);
            }
        }
    }
}
