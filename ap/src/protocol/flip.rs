//! Flip and commit. A flip fixes, while the owner runs, which objects are whole.
//!
//! The two are Dekker's algorithm (design/ap.md `.flip.order`):
//!
//! ```text
//!   commit (owner)                flip (any other thread)
//!   init := end of object         limit := 0
//!   light barrier                 heavy barrier
//!   if limit = 0: was it seen?    init at flip := init
//! ```
//!
//! At least one side sees the other's store. The flip saw every object below
//! `init_at_flip`. A commit that finds the buffer tripped, and its object not seen, fails.
//! Neither side ever waits for the other: an owner that finds a flip under way sets
//! `init_at_flip` itself.

use core::ptr;

use tripoint_core::internal::Ordering;
use tripoint_core::{Addr, AddrRange, BarrierPair};

use crate::protocol::buffer::{Buffer, UNDECIDED};
use crate::protocol::owner::Owner;

impl Buffer {
    /// Flips the buffer, from any thread. Returns the memory of the objects that the flip
    /// fixed, from the buffer's base up to where the flip saw objects. These objects are
    /// whole, and no commit takes one of them back.
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
    /// [`flip_buffers`](crate::flip_buffers) is the safe form.
    ///
    /// # Safety
    /// - `barrier` is the pair that the buffer's owner commits with: for a buffer
    ///   of a pool, [`PoolClass::barrier`](tripoint_core::PoolClass::barrier).
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
            // This needs no order: a flip that lasts was acquired by `decide` or by the exchange above; after one that does
            // not, this flip begins anew by an exchange, or its caller asks `scan_limit`, which acquires.
            let lasts = self.init_at_flip.load(Ordering::Relaxed) == seen;
            // If the owner went on meanwhile from the flip before this one, this begins anew: that flip was not
            // marked here, so what the owner does next need not follow what the caller did (design/ap.md
            // `.flip.still`).
            if lasts || begun.is_ok() {
                return AddrRange::new(base, Addr::of(seen)).filter(|_| lasts && !seen.is_null());
            }
        }
    }

    /// Decides an undecided flip, after its heavy barrier, unless the owner has decided it.
    /// Returns up to where objects were seen, or null if there is nothing to fix.
    fn decide(&self) -> *mut u8 {
        // While the owner changes the buffer's memory it is between objects, and observes the
        // flip before it begins another object.
        let is_changing = !self.transitions.load(Ordering::Acquire).is_multiple_of(2);
        let init = if is_changing { ptr::null_mut() } else { self.fields.init.load(Ordering::Acquire) };
        match self.replace_init_at_flip(UNDECIDED, init) {
            Ok(()) => init,
            Err(decided) => decided,
        }
    }

    /// Returns up to where the last flip saw objects, until the owner goes on from that flip;
    /// otherwise up to where objects are declared (MPS: BufferScanLimit). Any thread may ask.
    ///
    /// In a buffer that is never flipped, objects below it are whole. In a buffer that is
    /// flipped, they are whole only for the thread that flips it, after its flip, and only
    /// if no other thread flips it. To other threads it may show an object whose commit is
    /// about to fail: the owner takes that object back, and writes over its memory. These
    /// threads may display the address, but must not read objects by it ([design/ap.md
    /// `.commit.observed`](crate::design::ap)).
    #[must_use]
    pub fn scan_limit(&self) -> *mut u8 {
        let seen = self.init_at_flip.load(Ordering::Acquire);
        if seen.is_null() || seen == UNDECIDED { self.fields.init.load(Ordering::Acquire) } else { seen }
    }

    pub(crate) fn replace_init_at_flip(&self, from: *mut u8, to: *mut u8) -> Result<(), *mut u8> {
        self.init_at_flip.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }

    /// The owner's fast half of a commit: declares everything below `end` whole. Returns false
    /// if the buffer is tripped: then [`Owner::commit_tripped`] decides.
    #[inline(always)]
    pub(crate) fn declare_untripped<B: BarrierPair>(&self, end: *mut u8, barrier: B) -> bool {
        self.declare(end);
        barrier.light();
        !self.limit().is_null()
    }
}

impl Owner<'_> {
    /// Commits the object from `object` to `end`: declares it, and returns whether it
    /// stands. The order of the two accesses, with the barrier between them, is the whole of
    /// the protocol (design/ap.md `.flip.order`).
    #[inline(always)]
    #[must_use]
    pub fn commit<B: BarrierPair>(&mut self, object: *mut u8, end: *mut u8, barrier: B) -> bool {
        self.buffer.declare_untripped(end, barrier) || self.commit_tripped(object, end)
    }

    /// The slow half of a commit, which has declared `end` and found `limit` zero: returns
    /// whether the object from `object` to `end` stands. If not, the declaration is taken back.
    #[cold]
    #[inline(never)]
    pub fn commit_tripped(&mut self, object: *mut u8, end: *mut u8) -> bool {
        // `limit` was read without acquiring, so this may miss a flip that zeroed
        // it. Then the barrier pair, which covers (`init`, `init_at_flip`) as it
        // covers (`init`, `limit`), made the flip see the object.
        // What the owner begins next follows the flip because it re-arms, so this acquires nothing.
        let mut seen = self.buffer.init_at_flip.load(Ordering::Relaxed);
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
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use tripoint_core::{BufferKind, RankSet};

    /// (design/ap.md `.flip.order`)
    #[test]
    fn a_commit_during_a_flip_decides_it() {
        let addr = ptr::without_provenance_mut::<u8>;
        let buffer = Buffer::new(BufferKind::Mutator, RankSet::EXACT);
        // SAFETY: the buffer has no other owner.
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
