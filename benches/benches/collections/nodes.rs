//! Objects of 32 bytes, typed and by a format of their own, and arenas for them.

use core::ptr::NonNull;

use tripoint::author::Block;
use tripoint::gc::{Format, Inside, Link, Scan, object_types};
use tripoint::{ArenaVm, ArenaVmOptions, Result};

object_types! {
    /// 32 bytes with its header, no references.
    pub(crate) struct Leaf {
        pub(crate) words: [u64; 3],
    }

    /// 32 bytes with its header, two references.
    pub(crate) struct Node<'g> {
        pub(crate) left: Link<'g, Node<'g>>,
        pub(crate) right: Link<'g, Node<'g>>,
        pub(crate) word: u64,
    }
}

pub(crate) type Vm<'a> = &'a ArenaVm;
pub(crate) type NodeRef<'g> = tripoint::gc::Gc<'g, Node<'g>>;

/// An arena that keeps what it has committed.
pub(crate) fn arena() -> ArenaVm {
    arena_with(ArenaVmOptions::default())
}

/// An arena with these options, except that it keeps what it has committed.
pub(crate) fn arena_with(options: ArenaVmOptions) -> ArenaVm {
    ArenaVm::create(ArenaVmOptions { spare_share: 100, ..options }).unwrap()
}

/// A complete tree: `2^(depth + 1) - 1` nodes, allocated from the leaves up.
pub(crate) fn tree<'g>(inside: &Inside<'g, Vm<'_>>, depth: u32) -> Result<NodeRef<'g>> {
    let branch = || (depth > 0).then(|| tree(inside, depth - 1)).transpose();
    let (left, right) = (branch()?, branch()?);
    inside.alloc(Node { left: Link::new(left), right: Link::new(right), word: u64::from(depth) })
}

/// The words of an object of [`Cells`].
pub(crate) const CELL: usize = 4;

/// Objects of four words, the first two of which are references.
#[derive(Debug)]
pub(crate) struct Cells;

// SAFETY: all objects have four words, and both references are passed on.
unsafe impl Format for Cells {
    unsafe fn skip(&self, _cell: NonNull<u8>) -> usize {
        size_of::<[usize; CELL]>()
    }

    unsafe fn scan(&self, cells: Block, scan: &mut Scan<'_>) {
        for index in 0..cells.size() / size_of::<[usize; CELL]>() {
            let cell = cells.base().cast::<[*mut u8; CELL]>();
            // SAFETY: the caller promises that many whole cells, which no thread uses meanwhile.
            let cell = unsafe { cell.add(index).as_mut() };
            scan.fix(&mut cell[0]);
            scan.fix(&mut cell[1]);
        }
    }
}
