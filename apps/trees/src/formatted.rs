//! Trees of raw memory in a pool that frees them, with a format of the program's that says where references are.
//! The class of the pool decides whether nodes move.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};

use tripoint::author::{BarrierPair, Block};
use tripoint::gc::{Format, Heap, HeapOptions, Kind, MovableFormat, Scan, Swept, SweptOptions, Tag};
use tripoint::{AllocationPoint, BufferKind, Error};

use super::memory::arena;
use super::plan::Plan;

/// A node: its branches, both null in a leaf.
type Node = [*mut u8; 2];

const NODE: Layout = Layout::new::<Node>();

/// The format of nodes.
pub(crate) struct Nodes;

// SAFETY: every object is a node, which never changes its size, and both of its references are passed on.
unsafe impl Format for Nodes {
    /// Branches are written before their node is committed and not changed later, so there is no write to note.
    fn notes_writes(&self) -> bool {
        true
    }

    #[inline]
    unsafe fn skip(&self, _node: NonNull<u8>) -> usize {
        NODE.size()
    }

    #[inline]
    unsafe fn scan(&self, nodes: Block, scan: &mut Scan<'_>) {
        let references = nodes.base().cast::<*mut u8>();
        for index in 0..nodes.size() / size_of::<*mut u8>() {
            // SAFETY: the nodes have that many references, and no thread uses them meanwhile.
            scan.fix(unsafe { references.add(index).as_mut() });
        }
    }
}

// SAFETY: nothing leads to a node but other nodes and the root table below.
unsafe impl MovableFormat for Nodes {}

/// The roots: the branches of each node that is being built, by its depth, and the tree that is kept.
struct Roots {
    // Left and right ones are apart: a processor waits if it reads two words at once that it has just written one by one.
    left: [Cell<*mut u8>; 32],
    right: [Cell<*mut u8>; 32],
    lasting: Cell<*mut u8>,
}

/// What trees are built with.
struct Builder<'p, P: tripoint::PoolClass> {
    point: AllocationPoint<'p, P>,
    roots: &'p Roots,
}

impl<P: tripoint::PoolClass> Builder<'_, P> {
    /// Builds a tree. A reserve may collect and move nodes, so branches are in roots until their node is whole.
    fn build(&mut self, depth: u32) -> Result<*mut u8, Error> {
        if depth == 0 {
            return self.make(|| [ptr::null_mut(); 2]);
        }
        let (left, right) = (&self.roots.left[depth as usize], &self.roots.right[depth as usize]);
        left.set(self.build(depth - 1)?);
        right.set(self.build(depth - 1)?);
        let node = self.make(|| [left.get(), right.get()])?;
        left.set(ptr::null_mut());
        right.set(ptr::null_mut());
        Ok(node)
    }

    /// Makes a node of what `branches` returns when there is memory for it.
    #[inline(always)]
    fn make(&mut self, branches: impl Fn() -> Node) -> Result<*mut u8, Error> {
        loop {
            let reservation = self.point.reserve(NODE)?;
            // SAFETY: room for a node was reserved, aligned to a word.
            unsafe { reservation.as_ptr().cast().write(branches()) };
            // SAFETY: the node was just written.
            if let Ok(node) = unsafe { reservation.commit() } {
                return Ok(node.as_ptr());
            }
        }
    }
}

/// How many nodes a tree has.
///
/// # Safety
/// - `tree` is null or leads to a tree, and nothing is allocated meanwhile.
unsafe fn count(tree: *mut u8) -> usize {
    if tree.is_null() {
        return 0;
    }
    // SAFETY: the caller promises a tree, so a node is there.
    let [left, right] = unsafe { tree.cast::<Node>().read() };
    // SAFETY: the branches of a tree are trees or null; the caller promises the rest.
    1 + unsafe { count(left) + count(right) }
}

/// Builds the trees of a plan, and calls `counted` with the depth and the nodes of each.
pub(crate) fn grow<K: Kind<Nodes>, B: BarrierPair>(
    plan: Plan,
    options: HeapOptions<'_, B>,
    mut counted: impl FnMut(u32, usize),
) -> Result<(), Error> {
    let arena = arena()?;
    let heap = Heap::create(&arena, options)?;
    let pool = Swept::<_, _, _, K>::create(&heap, Nodes, SweptOptions::default())?;
    let mutator = heap.register()?;
    let roots = Roots { left: Default::default(), right: Default::default(), lasting: Cell::default() };
    let words = size_of::<Roots>() / size_of::<*mut u8>();
    // SAFETY: the roots outlive this root, and are words that only this thread uses.
    let _root = unsafe { heap.root_table(NonNull::from(&roots).cast(), words, Tag::default()) }?;
    // SAFETY: this thread has the mutator, which is running as long as the point is used.
    let point = AllocationPoint::create_in(&pool, BufferKind::Mutator, (), |buffer| unsafe {
        buffer.attend(&mutator)
    })?;
    let mut builder = Builder { point, roots: &roots };
    let tree = builder.build(plan.stretch())?;
    // SAFETY: it was just built, and nothing was allocated since.
    counted(plan.stretch(), unsafe { count(tree) });
    roots.lasting.set(builder.build(plan.lasting())?);
    for depth in plan.short_lived() {
        let tree = builder.build(depth)?;
        // SAFETY: it was just built, and nothing was allocated since.
        counted(depth, unsafe { count(tree) });
    }
    // SAFETY: the root has kept it.
    counted(plan.lasting(), unsafe { count(roots.lasting.get()) });
    Ok(())
}
