//! Memory that a collection uses for itself, and returns before it ends.

use tripoint_core::{Arena, Block, Lock, PoolId};

/// As whose the arena knows that memory. It is registered when memory is first needed.
#[derive(Debug)]
pub(crate) struct Workspace(Lock<Option<PoolId>>);

/// Memory of the workspace, in whole grains.
#[derive(Debug)]
pub(crate) struct Loan {
    pub(crate) block: Block,
    owner: PoolId,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        Self(Lock::new(None))
    }

    /// Takes at least `size` bytes, which nothing else uses; `None` if the arena refuses them.
    pub(crate) fn lend<A: Arena>(&self, arena: &A, size: usize) -> Option<Loan> {
        let mut registered = self.0.lock();
        let owner = match *registered {
            Some(owner) => owner,
            None => *registered.insert(arena.register().ok()?),
        };
        drop(registered);
        let block = arena.alloc_tracts(size, owner).ok()?;
        Some(Loan { block, owner })
    }

    /// Ends the registration: the heap is dropped.
    pub(crate) fn end<A: Arena>(&mut self, arena: &A) {
        if let Some(owner) = self.0.get_mut().take() {
            // SAFETY: this came from `register` of this arena, and was just taken out. All memory was given back.
            unsafe { arena.unregister(owner) };
        }
    }
}

impl Loan {
    /// Gives the memory back.
    ///
    /// # Safety
    /// - It was lent with this arena, and nothing uses it any more.
    pub(crate) unsafe fn give_back<A: Arena>(self, arena: &A) {
        // SAFETY: `lend` allocated the whole block for this owner, and it is freed once, because it is consumed. The
        // caller promises that nothing uses it.
        unsafe { arena.free_tracts(self.block, self.owner) };
    }
}
