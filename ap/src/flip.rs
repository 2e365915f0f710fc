//! Flipping a buffer: fixing, while its owner runs, which objects were whole.
//!
//! Commit and flip are Dekker's algorithm (design/ap.md `.flip.order`):
//!
//! ```text
//!   commit (owner)                flip (anyone)
//!   init := end of object         limit := 0
//!   light barrier                 heavy barrier
//!   if limit = 0: was it seen?    init at flip := init
//! ```
//!
//! At least one sees the other's store. An object below `init_at_flip` was seen;
//! a commit that finds itself tripped and its object not seen fails. Neither
//! side ever waits for the other: where the owner finds the flip under way, it
//! fixes `init_at_flip` itself.

use core::ptr::{self, NonNull};

use tripoint_core::internal::Ordering;
use tripoint_core::{Addr, AddrRange, Arena, BarrierPair, Event, PoolClass};

use crate::buffer::Buffer;
use crate::descriptor::PoolBuffer;
use crate::owner::Owner;

/// The value of `init_at_flip` between the start of a flip and its decision.
/// No object is at address 1.
pub(crate) const UNDECIDED: *mut u8 = ptr::without_provenance_mut(1);

impl Buffer {
    /// Anyone: flips the buffer. Returns the memory of the objects that the flip fixed, from
    /// the buffer's base up to where the flip saw objects. These objects are whole, and no
    /// commit takes one of them back.
    ///
    /// A reservation that the owner began before this call, and commits after it returns,
    /// fails. A reservation that the owner begins after it has observed the flip succeeds,
    /// and follows everything the caller did before the call.
    ///
    /// Returns `None` if the flip fixed nothing: the buffer has no memory; or it has no rank,
    /// and is therefore not flipped; or its owner had already gone on from the flip. In a
    /// buffer with a rank, whatever the owner begins afterwards follows what the caller did.
    /// What it had made before lies below [`Buffer::scan_limit`], or in memory that it gave
    /// up.
    ///
    /// Flips of one buffer wait for each other; they never wait for the owner. So a handler
    /// that may interrupt a flip must not flip the same buffer: with any pair of barriers it
    /// would wait forever for the flip that it interrupted. Mask the handler during a flip.
    ///
    /// [`flip_buffers`] is the safe form.
    ///
    /// # Safety
    /// - `barrier` is the pair that the buffer's owner commits with: for a buffer
    ///   of a pool, [`PoolClass::barrier`].
    pub unsafe fn flip<B: BarrierPair>(&self, barrier: B) -> Option<AddrRange> {
        if self.rank_set().is_empty() {
            return None;
        }
        let _other_flips_wait = self.flip_lock.lock();
        loop {
            let begun = self.replace_init_at_flip(ptr::null_mut(), UNDECIDED);
            self.trip();
            barrier.heavy();
            let seen = match begun {
                Ok(()) => self.decide(),
                // Still flipped from before: what was not seen then is not now.
                Err(seen) => seen,
            };
            // The owner ends a flip before it changes the base. So while this flip lasts,
            // `base` and `seen` are of the same memory.
            let base = Addr::of(self.base.load(Ordering::Acquire));
            let lasts = self.init_at_flip.load(Ordering::Acquire) == seen;
            if lasts || begun.is_ok() {
                return AddrRange::new(base, Addr::of(seen)).filter(|_| lasts && !seen.is_null());
            }
        }
    }

    /// Decides an undecided flip, after its heavy barrier, unless the owner has decided it.
    /// Returns up to where objects were seen, or null if there is nothing to fix.
    fn decide(&self) -> *mut u8 {
        // The owner is changing the buffer's memory. It is between objects, and observes the
        // flip before it begins another object.
        let is_changing = !self.transitions.load(Ordering::Acquire).is_multiple_of(2);
        let init = if is_changing { ptr::null_mut() } else { self.fields.init.load(Ordering::Acquire) };
        match self.replace_init_at_flip(UNDECIDED, init) {
            Ok(()) => init,
            Err(decided) => decided,
        }
    }

    /// Anyone: returns up to where the last flip saw objects, until the owner goes on from
    /// that flip; otherwise up to where objects are declared (MPS: BufferScanLimit).
    ///
    /// In a buffer that is never flipped, objects below it are whole. In a buffer that is
    /// flipped, they are whole only for the thread that flips it, after its flip, and only
    /// if no other thread flips it. To other threads it may show an object whose commit is
    /// about to fail: the owner takes that object back, and writes over its memory. These
    /// threads may display the address, but must not read objects by it (design/ap.md
    /// `.commit.observed`).
    #[must_use]
    pub fn scan_limit(&self) -> *mut u8 {
        let seen = self.init_at_flip.load(Ordering::Acquire);
        if seen.is_null() || seen == UNDECIDED { self.fields.init.load(Ordering::Acquire) } else { seen }
    }

    fn replace_init_at_flip(&self, from: *mut u8, to: *mut u8) -> Result<(), *mut u8> {
        self.init_at_flip.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }
}

impl Owner<'_> {
    /// Between declaring `end` and going on, having found `limit` zero:
    /// whether the object from `object` to `end` stands. If not, the declaration
    /// is taken back.
    #[cold]
    #[inline(never)]
    pub fn commit_tripped(&mut self, object: *mut u8, end: *mut u8) -> bool {
        // `limit` was read without acquiring, so this may miss a flip that zeroed
        // it. Then the barrier pair, which covers (`init`, `init_at_flip`) as it
        // covers (`init`, `limit`), made the flip see the object.
        let mut seen = self.buffer.init_at_flip.load(Ordering::Acquire);
        if seen == UNDECIDED {
            // Decide the flip here: the object is whole, so let it be seen.
            match self.buffer.replace_init_at_flip(UNDECIDED, end) {
                Ok(()) => return true,
                Err(decided) => seen = decided,
            }
        }
        let stands = seen.is_null() || seen == end;
        if !stands {
            self.declare(object);
        }
        stands
    }

    /// In the ready state: goes on from a flip. Deciding one that is under
    /// way is part of it: all objects so far are whole, and none is begun.
    pub(crate) fn unflip(&mut self) {
        let mut seen = self.buffer.init_at_flip.load(Ordering::Acquire);
        while !seen.is_null() {
            match self.buffer.replace_init_at_flip(seen, ptr::null_mut()) {
                Ok(()) => return,
                Err(now) => seen = now,
            }
        }
    }
}

/// Flips every buffer of a pool that has an owner. Calls `visit` for each, after its
/// flip, with the memory of the objects that the flip fixed, as [`Buffer::flip`] returns
/// it.
///
/// As with [`Buffer::flip`], a handler that may interrupt this must not flip the same
/// pool.
///
/// Does nothing for pools of manual classes: their buffers have no rank, and their
/// commits have no test (design/ap.md `.commit.manual`). This may miss a buffer that is
/// created, or gets a rank, while it runs. So a class that flips publishes its new phase
/// first, and checks the phase in its fills.
pub fn flip_buffers<P: PoolClass>(
    pool: &P,
    mut visit: impl FnMut(&PoolBuffer<P::Buffer>, Option<AddrRange>),
) {
    if !P::FLIPPABLE {
        return;
    }
    for_each_buffer(pool, |buffer| {
        // SAFETY: the pool's own pair, with which its allocation points commit.
        let objects = unsafe { buffer.flip(pool.barrier()) };
        visit(buffer, objects);
        if objects.is_some() {
            let header = pool.header();
            header.arena().counts().flips.add(1);
            header.arena().event(Event::Flip { pool: header.id() });
        }
    });
}

/// Hands every buffer of a pool that has an owner to `visit`. Takes no lock; a
/// buffer made or destroyed meanwhile may or may not be visited.
pub fn for_each_buffer<P: PoolClass>(pool: &P, mut visit: impl FnMut(&PoolBuffer<P::Buffer>)) {
    for node in pool.header().registry().iter() {
        // SAFETY: nodes of a pool's registry are valid while the pool is (`push`).
        if unsafe { node.as_ref() }.is_claimed() {
            let buffer: NonNull<PoolBuffer<P::Buffer>> = node.cast();
            // SAFETY: allocation points put only descriptors of their pool's buffer
            // class into registries, whose first field this is, the node first in
            // it; they stay valid while the pool is borrowed.
            visit(unsafe { buffer.as_ref() });
        }
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use tripoint_core::{BufferKind, RankSet};

    /// (design/ap.md `.flip.order`)
    #[test]
    fn who_commits_during_a_flip_decides_it() {
        let addr = ptr::without_provenance_mut::<u8>;
        let buffer = Buffer::new(BufferKind::Mutator, RankSet::EXACT);
        // SAFETY: nobody else owns the buffer.
        let mut owner = unsafe { Owner::new(&buffer) };
        owner.attach(addr(0x1000), addr(0x1000), addr(0x2000));
        owner.rearm(addr(0x2000), &mut |_| {});
        // A flip that has gone so far.
        buffer.init_at_flip.store(UNDECIDED, Ordering::Relaxed);
        buffer.trip();
        owner.declare(addr(0x1010));
        assert!(owner.commit_tripped(addr(0x1000), addr(0x1010)), "it is whole, so let it be seen");
        assert_eq!(buffer.scan_limit(), addr(0x1010));
        owner.declare(addr(0x1020));
        assert!(!owner.commit_tripped(addr(0x1010), addr(0x1020)), "and the next is not");
        assert_eq!(owner.init(), addr(0x1010));
    }
}
