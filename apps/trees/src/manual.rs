//! Trees that the program frees, node by node: in a pool of tripoint or in the system's allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use tripoint::{Error, Mfs, MfsOptions, Store, UnitOf};

use super::memory::arena;
use super::plan::Plan;

/// A node.
pub(crate) struct Tree {
    branches: Option<(NonNull<Tree>, NonNull<Tree>)>,
}

const TREE: Layout = Layout::new::<Tree>();

/// A global allocator as a store.
pub(crate) struct Global<G>(pub(crate) G);

// SAFETY: a global allocator returns memory as the layout says, or null, and takes back what it returned.
unsafe impl<G: GlobalAlloc> Store for Global<G> {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
        // SAFETY: trees have a size that is not zero.
        NonNull::new(unsafe { self.0.alloc(layout) }).ok_or(Error::Memory)
    }

    #[inline]
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that it came from this allocator, with this layout.
        unsafe { self.0.dealloc(object.as_ptr(), layout) };
    }
}

pub(crate) fn build(store: &impl Store, depth: u32) -> Result<NonNull<Tree>, Error> {
    let branches = match depth {
        0 => None,
        _ => Some((build(store, depth - 1)?, build(store, depth - 1)?)),
    };
    let tree = store.alloc(TREE)?.cast::<Tree>();
    // SAFETY: room for a node was just allocated.
    unsafe { tree.write(Tree { branches }) };
    Ok(tree)
}

/// # Safety
/// - `tree` was built and not freed.
pub(crate) unsafe fn count(tree: NonNull<Tree>) -> usize {
    // SAFETY: the caller promises a tree.
    let branches = unsafe { tree.as_ref() }.branches;
    // SAFETY: so its branches are trees.
    1 + branches.map_or(0, |(left, right)| unsafe { count(left) + count(right) })
}

/// # Safety
/// - `tree` was built with this store and not freed, and is not used afterwards.
unsafe fn free(store: &impl Store, tree: NonNull<Tree>) {
    // SAFETY: the caller promises a tree.
    let branches = unsafe { tree.as_ref() }.branches;
    if let Some((left, right)) = branches {
        // SAFETY: each branch is a tree of the same store, to which only this node led.
        unsafe { free(store, left) };
        // SAFETY: the same holds for the other one.
        unsafe { free(store, right) };
    }
    // SAFETY: the node came from this store, with this layout, and nothing uses it any more.
    unsafe { store.free(tree.cast(), TREE) };
}

/// Builds a tree, counts its nodes, and frees it.
fn build_and_free(store: &impl Store, depth: u32) -> Result<usize, Error> {
    let tree = build(store, depth)?;
    // SAFETY: it was just built.
    let nodes = unsafe { count(tree) };
    // SAFETY: it was just built in this store, and is not used afterwards.
    unsafe { free(store, tree) };
    Ok(nodes)
}

/// Builds the trees of a plan in a store, and calls `counted` with the depth and the nodes of each.
pub(crate) fn grow(plan: Plan, store: &impl Store, mut counted: impl FnMut(u32, usize)) -> Result<(), Error> {
    counted(plan.stretch(), build_and_free(store, plan.stretch())?);
    let lasting = build(store, plan.lasting())?;
    for depth in plan.short_lived() {
        counted(depth, build_and_free(store, depth)?);
    }
    // SAFETY: it was built above.
    counted(plan.lasting(), unsafe { count(lasting) });
    // SAFETY: it was built in this store, and is not used afterwards.
    unsafe { free(store, lasting) };
    Ok(())
}

/// Builds the trees of a plan in a pool of objects of one size.
pub(crate) fn grow_in_pool(plan: Plan, counted: impl FnMut(u32, usize)) -> Result<(), Error> {
    let arena = arena()?;
    let pool = Mfs::create(&arena, UnitOf::<Tree>::new(), MfsOptions::default())?;
    grow(plan, &pool.cache(), counted)
}
