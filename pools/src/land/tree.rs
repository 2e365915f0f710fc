//! An AVL tree of free blocks, keyed by address.
//!
//! Each operation goes down once, noting its path, and comes up only as far as
//! heights or largest sizes change. Nothing recurses but the check.

use core::mem::MaybeUninit;

use tripoint_core::Block;

use super::node::{HEIGHT_MAX, Node, Side};

/// The nodes from the root to somewhere.
///
/// Invariant: the first `depth` nodes are written; [`Position`] keeps depths up
/// to that which its path once had.
pub(super) struct Path<const SIZED: bool> {
    nodes: [MaybeUninit<Node<SIZED>>; HEIGHT_MAX],
    depth: usize,
}

impl<const SIZED: bool> Path<SIZED> {
    /// The path that stops above the root.
    pub(super) const fn new() -> Self {
        Self { nodes: [const { MaybeUninit::uninit() }; HEIGHT_MAX], depth: 0 }
    }

    #[inline]
    fn push(&mut self, node: Node<SIZED>) {
        self.nodes[self.depth].write(node);
        self.depth += 1;
    }

    /// The node that `depth` nodes, itself included, lead to; none for zero.
    #[inline]
    fn node(&self, depth: usize) -> Option<Node<SIZED>> {
        debug_assert!(depth <= self.depth);
        let node = self.nodes.get(depth.wrapping_sub(1))?;
        // SAFETY: the invariant of the type; nobody asks for more than `depth`.
        Some(unsafe { node.assume_init() })
    }
}

/// Where an address falls among the nodes of a tree: the way down to it, which
/// passes both its neighbours.
pub(super) struct Position<const SIZED: bool> {
    path: Path<SIZED>,
    /// By side: how many nodes lead to the last one that was left on that side.
    turns: [usize; 2],
}

impl<const SIZED: bool> Position<SIZED> {
    /// Room for a position, to be located.
    pub(super) const fn new() -> Self {
        Self { path: Path::new(), turns: [0; 2] }
    }

    /// The last block that starts below the address.
    pub(super) fn before(&self) -> Option<Node<SIZED>> {
        self.path.node(self.turns[Side::Right as usize])
    }

    /// The first block that starts at or above the address.
    pub(super) fn after(&self) -> Option<Node<SIZED>> {
        self.path.node(self.turns[Side::Left as usize])
    }

    /// The path to [`Position::before`].
    pub(super) fn path_before(&mut self) -> &mut Path<SIZED> {
        self.path.depth = self.turns[Side::Right as usize];
        &mut self.path
    }

    /// The path to [`Position::after`].
    pub(super) fn path_after(&mut self) -> &mut Path<SIZED> {
        self.path.depth = self.turns[Side::Left as usize];
        &mut self.path
    }

    /// The path to where a node for the address belongs.
    pub(super) fn path(&mut self) -> &mut Path<SIZED> {
        &mut self.path
    }
}

/// A tree of free blocks that do not overlap.
#[derive(Debug)]
pub(super) struct Tree<const SIZED: bool> {
    root: Option<Node<SIZED>>,
    count: usize,
}

impl<const SIZED: bool> Tree<SIZED> {
    /// A tree without blocks.
    pub(super) const fn new() -> Self {
        Self { root: None, count: 0 }
    }

    /// The number of blocks.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// The node above all others.
    pub(super) const fn root(&self) -> Option<Node<SIZED>> {
        self.root
    }

    /// The size of the largest block, in bytes; zero where there is none.
    #[inline]
    pub(super) fn largest(&self) -> usize {
        self.root.map_or(0, Node::largest)
    }

    /// Finds where `addr` falls: fills in `position`, which is too large to move.
    #[inline]
    pub(super) fn locate<'p>(
        &self,
        addr: usize,
        position: &'p mut Position<SIZED>,
    ) -> &'p mut Position<SIZED> {
        let mut next = self.root;
        // Which way each turn goes cannot be predicted, so nothing branches on it.
        while let Some(node) = next {
            position.path.push(node);
            let side = node.side_of(addr);
            position.turns[side as usize] = position.path.depth;
            next = node.child(side);
        }
        position
    }

    /// The first block that starts at or above `addr`.
    pub(super) fn first_from(&self, addr: usize) -> Option<Node<SIZED>> {
        let (mut next, mut turns) = (self.root, [None; 2]);
        while let Some(node) = next {
            let side = node.side_of(addr);
            turns[side as usize] = Some(node);
            next = node.child(side);
        }
        turns[Side::Left as usize]
    }

    /// Finds the first block of at least `size` bytes and the path to it.
    #[inline]
    pub(super) fn first_fit(&self, size: usize, path: &mut Path<SIZED>) -> Option<Node<SIZED>> {
        let mut next = self.root.filter(|root| root.largest() >= size);
        path.depth = 0;
        while let Some(node) = next {
            path.push(node);
            next = match node.child(Side::Left) {
                Some(left) if left.largest() >= size => Some(left),
                _ if node.size() >= size => return Some(node),
                _ => node.child(Side::Right),
            };
        }
        None
    }

    /// Adds a block where [`Tree::locate`] of its address led.
    ///
    /// # Safety
    /// - As [`Node::create`].
    pub(super) unsafe fn insert(&mut self, path: &mut Path<SIZED>, block: Block) {
        // SAFETY: the caller's duties are `create`'s.
        let node = unsafe { Node::create(block) };
        match path.node(path.depth) {
            None => self.root = Some(node),
            Some(parent) => parent.set_child(parent.side_of(node.addr()), Some(node)),
        }
        self.count += 1;
        self.rise(path, path.depth);
    }

    /// Puts `block` in the place of the block at the end of the path. No other
    /// node may lie between the two, so that the order stays as it is.
    ///
    /// # Safety
    /// - As [`Node::create`]; `block` may share memory with the block it replaces.
    pub(super) unsafe fn replace(&mut self, path: &mut Path<SIZED>, block: Block) {
        let Some(old) = path.node(path.depth) else { return };
        let place = old.place();
        // SAFETY: the caller's duties are `create`'s; the old node's words were
        // read before they may be written over.
        let node = unsafe { Node::create(block) };
        node.set_place(place);
        self.put_in_place(path, path.depth, node);
        self.rise(path, path.depth);
    }

    /// Takes the block at the end of the path out of the tree.
    pub(super) fn remove(&mut self, path: &mut Path<SIZED>) {
        let depth = path.depth;
        let Some(node) = path.node(depth) else { return };
        match (node.child(Side::Left), node.child(Side::Right)) {
            (Some(_), Some(right)) => {
                // Two children: the next block up takes the place.
                let heir = Self::first_below(right, path);
                self.hang(path.node(path.depth - 1), heir, heir.child(Side::Right));
                path.depth -= 1;
                heir.set_place(node.place());
                self.put_in_place(path, depth, heir);
            }
            (child, None) | (None, child) => {
                self.hang(path.node(depth - 1), node, child);
                path.depth -= 1;
            }
        }
        self.count -= 1;
        self.rise(path, depth);
    }

    /// The first node of the tree below `top`, with the path extended to it.
    fn first_below(top: Node<SIZED>, path: &mut Path<SIZED>) -> Node<SIZED> {
        let mut first = top;
        path.push(first);
        while let Some(left) = first.child(Side::Left) {
            first = left;
            path.push(first);
        }
        first
    }

    /// Makes `node` the one that `depth` nodes lead to.
    fn put_in_place(&mut self, path: &mut Path<SIZED>, depth: usize, node: Node<SIZED>) {
        self.hang(path.node(depth - 1), node, Some(node));
        path.nodes[depth - 1].write(node);
    }

    /// Hangs `child` below `parent` on the side where `place` lies; without a
    /// parent, makes it the root.
    #[inline]
    fn hang(&mut self, parent: Option<Node<SIZED>>, place: Node<SIZED>, child: Option<Node<SIZED>>) {
        match parent {
            None => self.root = child,
            Some(parent) => parent.set_child(parent.side_of(place.addr()), child),
        }
    }

    /// Rebalances and refreshes from the end of the path upwards. The node that
    /// `stale` nodes lead to is not up to date itself; above it the rise ends as
    /// soon as a node comes out as it was.
    fn rise(&mut self, path: &Path<SIZED>, stale: usize) {
        for depth in (1..=path.depth).rev() {
            let Some(node) = path.node(depth) else { return };
            let before = (node.height(), node.largest());
            let top = balance(node);
            if top != node {
                self.hang(path.node(depth - 1), node, Some(top));
            }
            if depth <= stale && (top.height(), top.largest()) == before {
                return;
            }
        }
    }
}

/// Restores the AVL rule at `node`, whose children obey it and differ by at most
/// two in height; gives the node that now stands in its place.
#[inline]
fn balance<const SIZED: bool>(node: Node<SIZED>) -> Node<SIZED> {
    let [left, right] = node.refresh();
    if left > right + 1 {
        lean(node, Side::Left)
    } else if right > left + 1 {
        lean(node, Side::Right)
    } else {
        node
    }
}

/// Rotates a node that is too high on one side.
fn lean<const SIZED: bool>(node: Node<SIZED>, side: Side) -> Node<SIZED> {
    if let Some(child) = node.child(side)
        && height(child.child(side)) < height(child.child(side.other()))
    {
        node.set_child(side, Some(rotate(child, side.other())));
    }
    rotate(node, side)
}

/// The height of what hangs on a link.
fn height<const SIZED: bool>(node: Option<Node<SIZED>>) -> usize {
    node.map_or(0, Node::height)
}

/// Lifts the child on `side` above `node`; gives that child.
fn rotate<const SIZED: bool>(node: Node<SIZED>, side: Side) -> Node<SIZED> {
    let Some(child) = node.child(side) else { return node };
    node.set_child(side, child.child(side.other()));
    node.refresh();
    child.set_child(side.other(), Some(node));
    child.refresh();
    child
}
