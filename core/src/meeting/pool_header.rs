//! What every pool has, whatever its class: an arena, a number, buffers, tracts.

use core::alloc::Layout;
use core::fmt;
use core::num::NonZeroUsize;
use core::ptr::NonNull;

use crate::meeting::arena::Arena;
use crate::meeting::block::Block;
use crate::primitive::{AtomicUsize, Ordering};
use crate::words::check::{Check, CheckError, CheckLevel, ensure};
use crate::words::describe::{Describe, line};
use crate::words::error::Result;
use crate::words::pool_id::PoolId;
use crate::words::registry::Registry;
use crate::words::signature::Signature;

const SIGNATURE: u32 = 0x7290_0001;

/// The common part of a pool. Dropping it gives every tract back to the arena,
/// so a pool class keeps it in its last field, or keeps no destructor of its own.
#[derive(Debug)]
pub struct PoolHeader<A: Arena> {
    signature: Signature,
    id: PoolId,
    class: &'static str,
    registry: Registry,
    total: AtomicUsize,
    high_water: AtomicUsize,
    /// An empty block, whose pointer has the provenance of the arena's range.
    reach: Block,
    arena: A,
}

impl<A: Arena> PoolHeader<A> {
    /// Registers a pool of the named class with its arena.
    ///
    /// # Errors
    /// Those of [`Arena::register`].
    pub fn create(arena: A, class: &'static str) -> Result<Self> {
        // SAFETY: any pointer is valid for no bytes.
        let reach = unsafe { Block::new(arena.provenance(), 0) };
        Ok(Self {
            signature: Signature::new(SIGNATURE),
            id: arena.register()?,
            class,
            registry: Registry::new(),
            total: AtomicUsize::new(0),
            high_water: AtomicUsize::new(0),
            reach,
            arena,
        })
    }

    /// The arena the pool lives in.
    pub const fn arena(&self) -> &A {
        &self.arena
    }

    /// The pool's serial number.
    pub const fn id(&self) -> PoolId {
        self.id
    }

    /// The name of the pool's class.
    pub const fn class(&self) -> &'static str {
        self.class
    }

    /// Returns a pointer to `addr` with the provenance of the arena's range.
    ///
    /// A client's pointer to an object may have lost part of its provenance, for example
    /// if it passed through a reference to a part of the object. So a pool uses this
    /// pointer to reach what is freed. For a processor it is the same number
    /// (design/core.md `.pool.reach`).
    #[inline(always)]
    pub fn reach(&self, addr: NonZeroUsize) -> NonNull<u8> {
        self.reach.base().with_addr(addr)
    }

    /// The descriptors of the pool's buffers.
    #[doc(hidden)]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Memory the pool has from its arena, in bytes.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// The most that [`PoolHeader::total`] ever was, in bytes.
    pub fn high_water(&self) -> usize {
        self.high_water.load(Ordering::Relaxed)
    }

    /// Gets tracts of at least `size` bytes from the arena.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_tracts`].
    pub fn extend(&self, size: usize) -> Result<Block> {
        let block = self.arena.alloc_tracts(size, self.id)?;
        let total = self.total.fetch_add(block.size(), Ordering::Relaxed) + block.size();
        self.high_water.fetch_max(total, Ordering::Relaxed);
        Ok(block)
    }

    /// Gives tracts back to the arena.
    ///
    /// # Safety
    /// - `block` is made of whole grains from [`PoolHeader::extend`] of this
    ///   pool, not given back since, and nobody uses it any more.
    pub unsafe fn retract(&self, block: Block) {
        self.total.fetch_sub(block.size(), Ordering::Relaxed);
        // SAFETY: the caller's duties are the arena's.
        unsafe { self.arena.free_tracts(block, self.id) };
    }

    /// Memory for a descriptor of one of the pool's buffers.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    pub fn alloc_descriptor(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.arena.alloc_descriptor(layout)
    }

    fn free_descriptors(&self) {
        // The walk reads a node's link before it yields the node, so each may be
        // freed as it comes.
        for node in self.registry.iter() {
            // SAFETY: nodes in the list are valid until freed below, each once.
            let layout = unsafe { node.as_ref() }.layout();
            // SAFETY: descriptors come from `alloc_descriptor`, with the layout their node keeps.
            // What could use one borrows the pool, which is being dropped; one whose owner was
            // forgotten stays claimed, but nothing uses it any more.
            unsafe { self.arena.free_descriptor(node.cast(), layout) };
        }
    }
}

impl<A: Arena> Drop for PoolHeader<A> {
    fn drop(&mut self) {
        self.signature.clear();
        self.free_descriptors();
        // Tracts allocated for `id` belong to the pool until here (`Arena::alloc_tracts`).
        //
        // SAFETY: `id` came from `register` and is dismissed only here. What the pool handed out
        // is valid until it is dropped (`PoolClass::fill`): users borrow the pool, or promise in
        // an unsafe call not to use it for longer.
        unsafe { self.arena.unregister(self.id) };
    }
}

impl<A: Arena> Check for PoolHeader<A> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.signature.check("PoolHeader", SIGNATURE)?;
        if level >= CheckLevel::Shallow {
            ensure("PoolHeader", self.total() <= self.high_water(), "total <= high water")?;
            self.arena.check(CheckLevel::Cheap)?;
        }
        Ok(())
    }
}

impl<A: Arena> Describe for PoolHeader<A> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        line(out, depth, "pool", format_args!("{} #{}", self.class, self.id.get()))?;
        line(out, depth + 1, "total", format_args!("{} bytes", self.total()))?;
        line(out, depth + 1, "high water", format_args!("{} bytes", self.high_water()))?;
        line(out, depth + 1, "descriptors", format_args!("{}", self.registry.iter().count()))
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::arena::client_arena::{ClientArena, ClientArenaOptions};
    use crate::words::registry::RegistryNode;

    /// Runs `test` with an arena of its own.
    fn with_arena(test: impl FnOnce(&ClientArena<'_>)) {
        let mut memory = std::boxed::Box::new_uninit_slice(16 << 10);
        test(&ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap());
    }

    #[test]
    fn checks_name_the_rule_that_was_broken() {
        with_arena(|arena| {
            let header = PoolHeader::create(arena, "Test").unwrap();
            let found = |level| header.check(level).map_err(|error| error.rule);
            assert_eq!(found(CheckLevel::Deep), Ok(()));
            header.total.store(1, Ordering::Relaxed);
            assert_eq!(found(CheckLevel::Cheap), Ok(()));
            assert_eq!(found(CheckLevel::Shallow), Err("total <= high water"));
            header.high_water.store(1, Ordering::Relaxed);
            assert_eq!(found(CheckLevel::Deep), Ok(()));
            header.signature.clear();
            assert_eq!(found(CheckLevel::Cheap), Err("the signature is set"));
        });
    }

    /// (design/core.md `.pool.drop`)
    #[test]
    fn a_pool_that_is_dropped_gives_its_descriptors_back() {
        with_arena(|arena| {
            let layout = Layout::new::<RegistryNode>();
            let header = PoolHeader::create(arena, "Test").unwrap();
            let descriptors = [(); 3].map(|()| header.alloc_descriptor(layout).unwrap());
            for descriptor in descriptors {
                let node = descriptor.cast::<RegistryNode>();
                // SAFETY: fresh memory of this layout.
                unsafe { node.write(RegistryNode::new(layout)) };
                // SAFETY: just made, in no list, and freed with the header.
                unsafe { header.registry().push(node) };
            }
            drop(header);
            for _ in 0..3 {
                let again = arena.alloc_descriptor(layout).unwrap();
                assert!(descriptors.contains(&again), "its memory serves again");
            }
        });
    }
}
