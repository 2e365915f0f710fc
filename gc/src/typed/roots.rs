//! The memory of roots: slots in chunks, of which each is one root's or free.
//!
//! It is in the descriptor memory of the arena, so that it stays in place. A slot is found and returned in
//! constant time. A collection looks at whole chunks: those in which a root was written since the last look, or may refer
//! to an object of the generations that it collects (design/gc-typed.md `.typed.roots.generation`).

use core::alloc::Layout;
use core::array;
use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicU8, Ordering};
use tripoint_core::{Arena, Lock, Result};

use crate::scans::scan::Scan;
use crate::segments::generation::{GENERATIONS, Generation};

/// A place for one reference.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The reference; null while the slot is free. It is used by the owner of the root while that is inside the heap, by
    /// the thread that stops the heap, and under the lock while the slot has no owner. The owner of a pinned root reads it
    /// at any time: nothing writes it meanwhile.
    object: Cell<*mut u8>,
    /// The next free slot, if this one is free.
    next: Cell<Option<NonNull<Self>>>,
    /// Which one of its chunk it is.
    number: usize,
}

/// As many slots as a descriptor has room for, beside the rest.
const SLOTS: usize = 20;

#[derive(Debug)]
struct Chunk {
    /// The neighbours in its list, which are used under the lock.
    next: Cell<Option<NonNull<Self>>>,
    previous: Cell<Option<NonNull<Self>>>,
    /// Which list it is in: no slot refers to an object of a younger generation. It is read without the lock by a thread
    /// that is inside the heap, and then stays as it is or becomes the youngest.
    generation: AtomicU8,
    slots: [Slot; SLOTS],
}

#[derive(Debug)]
struct State {
    /// The chunks by generation.
    chunks: [Option<NonNull<Chunk>>; GENERATIONS],
    free: Option<NonNull<Slot>>,
}

// SAFETY: the pointers lead to chunks, which are used as `Slot` says.
unsafe impl Send for State {}

/// Slots in chunks.
#[derive(Debug)]
pub(crate) struct Slots(Lock<State>);

/// Where readers outside of the process find the slots of roots that keep objects.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RootsOutline {
    /// The words with the first chunk of the youngest generation, of roots that keep objects, and of pinned ones. Those of
    /// the other generations follow.
    strong: usize,
    pinned: usize,
    generations: usize,
    /// Where in a chunk the next one is, and its first slot; how many slots it has, and how far they are apart.
    next: usize,
    slots: usize,
    slot_count: usize,
    slot_size: usize,
    /// Where in a slot the reference is.
    object: usize,
}

/// The slots of the roots of typed objects.
#[derive(Debug)]
pub(crate) struct Roots {
    /// Of those that keep objects.
    pub(crate) strong: Slots,
    /// Of those that keep objects where they are.
    pub(crate) pinned: Slots,
    /// Of weak ones.
    pub(crate) weak: Slots,
    /// Of weak ones that end before finalization.
    pub(crate) short: Slots,
    outline: RootsOutline,
}

impl Slot {
    /// The reference. The caller owns the slot and is inside the heap. It is null if it is weak and its object is dead.
    #[inline(always)]
    pub(crate) fn object(&self) -> *mut u8 {
        self.object.get()
    }

    /// Passes on the reference, if there is one. Returns which generation its object is of; `before` if that is not known
    /// and it has not changed.
    fn scan(&self, before: Generation, scan: &mut Scan<'_>) -> Generation {
        let mut object = self.object.get();
        if object.is_null() {
            scan.pass_by();
            return Generation::LAST;
        }
        let generation = scan.fix_root(&mut object);
        let is_changed = self.object.replace(object) != object;
        generation.unwrap_or(if is_changed { Generation::YOUNGEST } else { before })
    }
}

/// The chunk of a slot.
///
/// # Safety
/// - `slot` is one of a chunk, and has the provenance of all of it, as those that [`State::extend`] makes.
unsafe fn chunk_of(slot: NonNull<Slot>) -> NonNull<Chunk> {
    // SAFETY: the caller promises a slot, which says how far it is from the first one.
    let first = unsafe { slot.sub(slot.as_ref().number) };
    // SAFETY: the first slot of a chunk lies so far behind its base.
    unsafe { first.byte_sub(offset_of!(Chunk, slots)) }.cast()
}

impl Roots {
    pub(crate) fn new() -> Self {
        let outline = RootsOutline {
            strong: 0,
            pinned: 0,
            generations: GENERATIONS,
            next: offset_of!(Chunk, next),
            slots: offset_of!(Chunk, slots),
            slot_count: SLOTS,
            slot_size: size_of::<Slot>(),
            object: offset_of!(Slot, object),
        };
        Self { strong: Slots::new(), pinned: Slots::new(), weak: Slots::new(), short: Slots::new(), outline }
    }

    /// The roots stay where they are from here on, and their outline says so.
    pub(crate) fn settle(&mut self) {
        self.outline.strong = self.strong.lists_address();
        self.outline.pinned = self.pinned.lists_address();
    }

    /// Where the outline is.
    pub(crate) fn outline_address(&self) -> usize {
        ptr::from_ref(&self.outline).addr()
    }

    /// Returns all chunks to their arena.
    ///
    /// # Safety
    /// - That of [`Slots::free_all`], for all slots.
    pub(crate) unsafe fn free_all<A: Arena>(&self, arena: &A) {
        for slots in [&self.strong, &self.pinned, &self.weak, &self.short] {
            // SAFETY: the caller promises that the slots were taken with this arena, and that none is used afterwards.
            unsafe { slots.free_all(arena) };
        }
    }
}

impl Slots {
    fn new() -> Self {
        Self(Lock::new(State { chunks: [None; GENERATIONS], free: None }))
    }

    /// Where the lists of chunks are, the youngest generation first.
    fn lists_address(&self) -> usize {
        self.0.value_address() + offset_of!(State, chunks)
    }

    /// Takes a slot for a root that refers to `object`. The caller is inside the heap.
    pub(crate) fn take_slot<A: Arena>(&self, arena: &A, object: NonNull<u8>) -> Result<NonNull<Slot>> {
        let mut state = self.0.lock();
        if state.free.is_none() {
            state.extend(arena)?;
        }
        let Some(free) = state.free else { return Err(tripoint_core::Error::Memory) };
        // SAFETY: slots stay in place as long as this value (`free_all`), and are only ever borrowed shared. Free ones
        // are used under the lock.
        let slot = unsafe { free.as_ref() };
        state.free = slot.next.take();
        slot.object.set(object.as_ptr());
        // SAFETY: it is one of these slots, made by `extend`.
        state.put(unsafe { chunk_of(free) }, Generation::YOUNGEST);
        Ok(free)
    }

    /// Changes the reference of a slot. The caller is inside the heap.
    ///
    /// # Safety
    /// - It is one of these, and the caller owns it, exclusively.
    #[inline]
    pub(crate) unsafe fn refer_to(&self, slot: NonNull<Slot>, object: NonNull<u8>) {
        // SAFETY: the caller promises one of these slots, which stay in place as long as this value.
        unsafe { slot.as_ref() }.object.set(object.as_ptr());
        // SAFETY: the caller promises one of these slots, which were made by `extend`.
        let chunk = unsafe { chunk_of(slot) };
        // SAFETY: chunks stay in place as long as this value, and are only ever borrowed shared.
        if unsafe { chunk.as_ref() }.generation.load(Ordering::Relaxed) != Generation::YOUNGEST.number() {
            self.0.lock().put(chunk, Generation::YOUNGEST);
        }
    }

    /// Takes back a slot.
    ///
    /// # Safety
    /// - It is one of these, and the caller, who owned it, does not use it afterwards.
    pub(crate) unsafe fn return_slot(&self, slot: NonNull<Slot>) {
        let mut state = self.0.lock();
        // SAFETY: the caller promises one of these slots, which stay in place as long as this value.
        let free = unsafe { slot.as_ref() };
        free.object.set(ptr::null_mut());
        free.next.set(state.free.replace(slot));
    }

    /// Passes on the references in all slots that may refer to objects of the generations that are collected.
    pub(crate) fn scan_slots(&self, scan: &mut Scan<'_>) {
        let mut state = self.0.lock();
        let (first, oldest) = (state.chunks, scan.oldest());
        for generation in Generation::all().filter(|generation| *generation <= oldest) {
            // From here: what the scan of a chunk puts at the beginning of a list was looked at.
            let mut next = first[generation.index()];
            while let Some(found) = next {
                // SAFETY: chunks stay in place as long as this value, and are only ever borrowed shared.
                let chunk = unsafe { found.as_ref() };
                next = chunk.next.get();
                let youngest = chunk.slots.iter().map(|slot| slot.scan(generation, scan)).min();
                let youngest = youngest.unwrap_or(Generation::LAST);
                // A walk that finds only free slots leaves the order of the chunks as it is.
                if scan.keeps() || youngest < generation {
                    state.put(found, youngest);
                }
            }
        }
    }

    /// Passes on the references in all slots as ambiguous ones, so that their objects stay where they are.
    pub(crate) fn scan_pinned(&self, scan: &mut Scan<'_>) {
        let state = self.0.lock();
        for first in state.chunks {
            let mut next = first;
            while let Some(chunk) = next {
                // SAFETY: chunks stay in place as long as this value, and are only ever borrowed shared.
                let chunk = unsafe { chunk.as_ref() };
                for object in chunk.slots.iter().map(|slot| slot.object.get()) {
                    if object.is_null() {
                        scan.pass_by();
                    } else {
                        scan.fix_ambiguous(object.addr());
                    }
                }
                next = chunk.next.get();
            }
        }
    }

    /// Returns the chunks to their arena.
    ///
    /// # Safety
    /// - It is the arena that slots were taken with, and no slot is used afterwards.
    pub(crate) unsafe fn free_all<A: Arena>(&self, arena: &A) {
        let mut state = self.0.lock();
        state.free = None;
        while let Some(chunk) = state.chunks.iter().flatten().next().copied() {
            state.leave_list(chunk);
            // SAFETY: it came from `alloc_descriptor` of this arena with this layout (`extend`), and the caller
            // promises that no slot of it is used.
            unsafe { arena.free_descriptor(chunk.cast(), Layout::new::<Chunk>()) };
        }
    }
}

impl State {
    fn extend<A: Arena>(&mut self, arena: &A) -> Result<()> {
        let chunk = arena.alloc_descriptor(Layout::new::<Chunk>())?.cast::<Chunk>();
        let free = |number| Slot { object: Cell::new(ptr::null_mut()), next: Cell::new(None), number };
        let (next, previous) = (Cell::new(None), Cell::new(None));
        let generation = AtomicU8::new(Generation::LAST.number());
        // SAFETY: this is fresh memory with the layout of a chunk.
        unsafe { chunk.write(Chunk { next, previous, generation, slots: array::from_fn(free) }) };
        self.enter_list(chunk, Generation::LAST);
        // SAFETY: the slots lie in the chunk, which was just written.
        let first = unsafe { chunk.byte_add(offset_of!(Chunk, slots)) }.cast::<Slot>();
        for number in 0..SLOTS {
            // SAFETY: the chunk has that many slots. The pointer has the provenance of the whole chunk.
            let slot = unsafe { first.add(number) };
            // SAFETY: the chunk was just written, and is only ever borrowed shared from here on.
            unsafe { slot.as_ref() }.next.set(self.free.replace(slot));
        }
        Ok(())
    }

    /// Puts a chunk in the list of a generation, if it is in another.
    fn put(&mut self, chunk: NonNull<Chunk>, generation: Generation) {
        // SAFETY: chunks stay in place as long as these slots, and are only ever borrowed shared.
        if unsafe { chunk.as_ref() }.generation.load(Ordering::Relaxed) != generation.number() {
            self.leave_list(chunk);
            self.enter_list(chunk, generation);
        }
    }

    /// Puts a chunk that is in no list in that of a generation.
    fn enter_list(&mut self, found: NonNull<Chunk>, generation: Generation) {
        let list = &mut self.chunks[generation.index()];
        // SAFETY: chunks stay in place as long as these slots, and are only ever borrowed shared.
        let chunk = unsafe { found.as_ref() };
        chunk.generation.store(generation.number(), Ordering::Relaxed);
        chunk.previous.set(None);
        chunk.next.set(list.replace(found));
        if let Some(next) = chunk.next.get() {
            // SAFETY: what is in a list is a chunk of these slots.
            unsafe { next.as_ref() }.previous.set(Some(found));
        }
    }

    /// Takes a chunk out of its list.
    fn leave_list(&mut self, found: NonNull<Chunk>) {
        // SAFETY: chunks stay in place as long as these slots, and are only ever borrowed shared.
        let chunk = unsafe { found.as_ref() };
        let (previous, next) = (chunk.previous.get(), chunk.next.get());
        if let Some(next) = next {
            // SAFETY: what is in a list is a chunk of these slots.
            unsafe { next.as_ref() }.previous.set(previous);
        }
        match previous {
            // SAFETY: what is in a list is a chunk of these slots.
            Some(previous) => unsafe { previous.as_ref() }.next.set(next),
            None => {
                let generation = Generation::at_most(chunk.generation.load(Ordering::Relaxed).into());
                self.chunks[generation.index()] = next;
            }
        }
    }
}
