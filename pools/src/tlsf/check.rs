//! Checking the free memory without trusting what free blocks say.
//!
//! The bits of the edges lie in memory that clients never had, so they say what
//! may be read; no link of a block is followed (design/pool-tlsf.md `.tlsf.check`).

use core::num::NonZeroUsize;

use tripoint_core::{Addr, CheckError, ensure};

use super::class::{CLASSES, class_of};
use super::node::{Link, Node};
use super::segregated_fit::SegregatedFit;
use crate::land::GRANULE;
use crate::sparse_bits::Bit;

const TLSF: &str = "Tlsf";

/// What the blocks looked at so far amount to.
#[derive(Default)]
struct Found {
    /// A block of two granules or more whose last edge is still to come.
    open: Option<Node>,
    limit: Addr,
    edges: usize,
    blocks: usize,
    size: usize,
}

/// Checks every free block, list and bit. `owns` returns whether an address
/// lies in the pool's memory.
pub(super) fn check_heap(heap: &SegregatedFit, owns: &dyn Fn(Addr) -> bool) -> Result<(), CheckError> {
    let (mut found, mut outcome) = (Found::default(), Ok(()));
    heap.walk_edges(&mut |node| {
        found.edges += 1;
        if outcome.is_ok() {
            outcome = check_edge(heap, node, &mut found, owns);
        }
    });
    outcome?;
    ensure(TLSF, found.open.is_none(), "every block has its last edge")?;
    ensure(TLSF, found.edges == heap.edges.count(), "edges belong to blocks")?;
    ensure(TLSF, found.size == heap.size(), "the free blocks add up to the size")?;
    check_lists(heap, found.blocks)
}

fn check_edge(
    heap: &SegregatedFit,
    node: Node,
    found: &mut Found,
    owns: &dyn Fn(Addr) -> bool,
) -> Result<(), CheckError> {
    let key = heap.lists.key();
    ensure(TLSF, owns(node.addr()), "free blocks lie in the pool")?;
    if let Some(first) = found.open.take() {
        let size = node.addr().get() + GRANULE - first.addr().get();
        ensure(TLSF, first.says_size(size, key), "both ends of a block say its size")?;
        return check_block(heap, first, size, found);
    }
    let apart = found.blocks == 0 || found.limit < node.addr();
    ensure(TLSF, apart, "between two free blocks there is memory in use")?;
    if node.is_single(key) {
        return check_block(heap, node, GRANULE, found);
    }
    found.open = Some(node);
    Ok(())
}

/// Checks that the neighbours in the list lead back, and are free blocks.
fn check_block(heap: &SegregatedFit, node: Node, size: usize, found: &mut Found) -> Result<(), CheckError> {
    found.limit = Addr::new(node.addr().get() + size);
    found.blocks += 1;
    found.size += size;
    let class = class_of(size);
    for (link, back) in [(Link::Next, Link::Previous), (Link::Previous, Link::Next)] {
        let to = node.link_addr(link, heap.lists.key());
        let Some(addr) = NonZeroUsize::new(to) else { continue };
        let leads_to_block =
            to.is_multiple_of(GRANULE) && heap.edges.find_shared(to).is_some_and(Bit::is_set);
        ensure(TLSF, leads_to_block, "links lead to free blocks")?;
        let returns = node.with_addr(addr).link_addr(back, heap.lists.key()) == node.addr().get();
        ensure(TLSF, returns, "neighbours in a list name each other")?;
    }
    let first = node.link_addr(Link::Previous, heap.lists.key()) == 0;
    ensure(TLSF, first == (heap.lists.head(class) == Some(node)), "blocks are in the list for their size")
}

/// Checks that the lists have all blocks, whose links were checked already.
fn check_lists(heap: &SegregatedFit, blocks: usize) -> Result<(), CheckError> {
    let mut listed = 0;
    for class in 0..CLASSES {
        let mut next = heap.lists.head(class);
        ensure(TLSF, next.is_some() == heap.lists.bits().has(class), "bits tell which lists have blocks")?;
        while let Some(node) = next {
            ensure(TLSF, listed < blocks, "lists end")?;
            let block = node.block(heap.lists.key());
            let fits = block.is_ok_and(|block| class_of(block.size()) == class);
            ensure(TLSF, fits, "blocks are in the list for their size")?;
            listed += 1;
            // By the pointer that led here: the provenance of a damaged link is unknown.
            let link = NonZeroUsize::new(node.link_addr(Link::Next, heap.lists.key()));
            next = link.map(|addr| node.with_addr(addr));
        }
    }
    ensure(TLSF, heap.lists.bits().has_row_bits(), "bits tell which rows have lists")?;
    ensure(TLSF, listed == blocks, "every block is in a list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlsf::{Tlsf, TlsfOptions};
    use core::alloc::Layout;
    use core::mem::MaybeUninit;
    use tripoint_core::{Align, Check, CheckLevel, ClientArena, ClientArenaOptions, PoolClass, Store};

    /// Free blocks that touch, each with its edges and in its list. This is what a free would
    /// leave that did not coalesce.
    #[test]
    fn the_check_finds_blocks_that_touch() {
        let mut memory = std::vec![MaybeUninit::uninit(); 64 << 10];
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
        pool.alloc(Layout::new::<u64>()).unwrap();
        let size = 8 * GRANULE;
        {
            let mut free = pool.granules.free.lock();
            let heap = free.memory();
            let block = heap.take(size, size, Align::WORD).unwrap().unwrap();
            let (low, high) = block.split_at(size / 2).unwrap();
            for part in [low, high] {
                let (base, limit) = (part.range().base().get(), part.range().limit().get());
                heap.edges.insert(base);
                heap.edges.insert(limit - GRANULE);
                // SAFETY: granules of the pool's memory, which no client has.
                unsafe { heap.lists.insert(part) }.unwrap();
            }
        }
        assert_eq!(pool.sizes().free % GRANULE, 0);
        let found = pool.check(CheckLevel::Deep).unwrap_err();
        assert_eq!(found.rule, "between two free blocks there is memory in use");
    }
}
