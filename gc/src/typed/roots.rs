//! The memory of roots: slots in chunks, of which each is one root's or free.
//!
//! It is in the descriptor memory of the arena, so that it stays in place. A slot is found and returned in
//! constant time, and a collection looks at as many slots as there ever were roots at the same time, in whole chunks.

use core::alloc::Layout;
use core::array;
use core::cell::Cell;
use core::ptr::{self, NonNull};

use tripoint_core::{Arena, Lock, Result};

use crate::references::scan::Scan;

/// A place for one reference.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The reference; null while the slot is free. It is used by the owner of the root while that is inside the heap, by
    /// the thread that stops the heap, and under the lock while the slot has no owner. The owner of a pinned root reads it
    /// at any time: nothing writes it meanwhile.
    object: Cell<*mut u8>,
    /// The next free slot, if this one is free.
    next: Cell<Option<NonNull<Self>>>,
}

/// As many slots as a descriptor has room for, beside the link.
const SLOTS: usize = 31;

#[derive(Debug)]
struct Chunk {
    next: Option<NonNull<Self>>,
    slots: [Slot; SLOTS],
}

#[derive(Debug)]
struct State {
    chunks: Option<NonNull<Chunk>>,
    free: Option<NonNull<Slot>>,
}

// SAFETY: the pointers lead to chunks, which are used as `Slot` says.
unsafe impl Send for State {}

/// Slots in chunks.
#[derive(Debug)]
pub(crate) struct Slots(Lock<State>);

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
}

impl Slot {
    /// The reference. The caller owns the slot and is inside the heap. It is null if it is weak and its object is dead.
    #[inline(always)]
    pub(crate) fn object(&self) -> *mut u8 {
        self.object.get()
    }

    /// Changes the reference. The caller owns the slot, exclusively, and is inside the heap.
    #[inline(always)]
    pub(crate) fn refer_to(&self, object: NonNull<u8>) {
        self.object.set(object.as_ptr());
    }
}

impl Roots {
    pub(crate) fn new() -> Self {
        Self { strong: Slots::new(), pinned: Slots::new(), weak: Slots::new(), short: Slots::new() }
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
        Self(Lock::new(State { chunks: None, free: None }))
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
        Ok(free)
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

    /// Passes on the references in all slots.
    ///
    /// # Safety
    /// - The heap is stopped.
    pub(crate) unsafe fn scan_slots(&self, scan: &mut Scan<'_>) {
        // SAFETY: the caller promises that the heap is stopped.
        unsafe {
            self.for_each_reference(|slot, mut object| {
                scan.fix(&mut object);
                slot.object.set(object);
            });
        }
    }

    /// Passes on the references in all slots as ambiguous ones, so that their objects stay where they are.
    ///
    /// # Safety
    /// - The heap is stopped.
    pub(crate) unsafe fn scan_pinned(&self, scan: &mut Scan<'_>) {
        // SAFETY: the caller promises that the heap is stopped.
        unsafe { self.for_each_reference(|_, object| scan.fix_ambiguous(object.addr())) };
    }

    /// Calls `visit` with each slot that has a reference.
    ///
    /// # Safety
    /// - The heap is stopped.
    unsafe fn for_each_reference(&self, mut visit: impl FnMut(&Slot, *mut u8)) {
        let state = self.0.lock();
        let mut next = state.chunks;
        while let Some(chunk) = next {
            // SAFETY: chunks stay in place as long as this value, and are only ever borrowed shared.
            let chunk = unsafe { chunk.as_ref() };
            for slot in &chunk.slots {
                let object = slot.object.get();
                if !object.is_null() {
                    visit(slot, object);
                }
            }
            next = chunk.next;
        }
    }

    /// Returns the chunks to their arena.
    ///
    /// # Safety
    /// - It is the arena that slots were taken with, and no slot is used afterwards.
    pub(crate) unsafe fn free_all<A: Arena>(&self, arena: &A) {
        let mut state = self.0.lock();
        state.free = None;
        while let Some(chunk) = state.chunks {
            // SAFETY: chunks are in place until they are freed below.
            state.chunks = unsafe { chunk.as_ref() }.next;
            // SAFETY: it came from `alloc_descriptor` of this arena with this layout (`extend`), and the caller
            // promises that no slot of it is used.
            unsafe { arena.free_descriptor(chunk.cast(), Layout::new::<Chunk>()) };
        }
    }
}

impl State {
    fn extend<A: Arena>(&mut self, arena: &A) -> Result<()> {
        let chunk = arena.alloc_descriptor(Layout::new::<Chunk>())?.cast::<Chunk>();
        let free = || Slot { object: Cell::new(ptr::null_mut()), next: Cell::new(None) };
        // SAFETY: this is fresh memory with the layout of a chunk.
        unsafe { chunk.write(Chunk { next: self.chunks, slots: array::from_fn(|_| free()) }) };
        self.chunks = Some(chunk);
        // SAFETY: the chunk was just written, and is only ever borrowed shared from here on.
        for slot in &unsafe { chunk.as_ref() }.slots {
            slot.next.set(self.free.replace(NonNull::from(slot)));
        }
        Ok(())
    }
}
