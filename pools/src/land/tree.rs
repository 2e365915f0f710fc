//! An AVL tree of free blocks, keyed by address.
//!
//! Each operation goes down once, noting its path, and comes up only as far as
//! heights or largest sizes change. Nothing recurses but the check.

use core::mem::MaybeUninit;

use tripoint_core::Block;

use super::node::{HEIGHT_MAX, Node, Side};
use crate::link::Watch;

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

    /// Goes on to a node. Refuses if the path is as long as a tree can be high: then free
    /// memory was written over, and the links lead in a circle.
    #[inline]
    #[must_use]
    fn push(&mut self, node: Node<SIZED>) -> bool {
        let Some(place) = self.nodes.get_mut(self.depth) else { return false };
        place.write(node);
        self.depth += 1;
        true
    }

    /// The node that `depth` nodes, itself included, lead to; none for zero.
    #[inline]
    fn node(&self, depth: usize) -> Option<Node<SIZED>> {
        debug_assert!(depth <= self.depth);
        let node = self.nodes.get(depth.wrapping_sub(1))?;
        // SAFETY: the invariant of the type; no caller asks for more than `depth`.
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

    /// The size of the largest block, in bytes; zero if there is none.
    #[inline]
    pub(super) fn largest(&self, watch: Watch<'_>) -> usize {
        self.root.map_or(0, |root| root.largest(watch))
    }

    /// Finds where `addr` falls: fills in `position`, which is too large to move.
    #[inline]
    pub(super) fn locate<'p>(
        &self,
        addr: usize,
        position: &'p mut Position<SIZED>,
        watch: Watch<'_>,
    ) -> &'p mut Position<SIZED> {
        let mut next = self.root;
        // Which way each turn goes cannot be predicted, so nothing branches on it.
        while let Some(node) = next
            && position.path.push(node)
        {
            let side = node.side_of(addr);
            position.turns[side as usize] = position.path.depth;
            next = node.descend(side, position.path.depth, watch);
        }
        position
    }

    /// The first block that starts at or above `addr`.
    pub(super) fn first_from(&self, addr: usize, watch: Watch<'_>) -> Option<Node<SIZED>> {
        let (mut next, mut turns, mut depth) = (self.root, [None; 2], 0);
        while let Some(node) = next {
            let side = node.side_of(addr);
            turns[side as usize] = Some(node);
            depth += 1;
            next = node.descend(side, depth, watch);
        }
        turns[Side::Left as usize]
    }

    /// Finds the first block of at least `size` bytes and the path to it.
    #[inline]
    pub(super) fn first_fit(
        &self,
        size: usize,
        path: &mut Path<SIZED>,
        watch: Watch<'_>,
    ) -> Option<Node<SIZED>> {
        path.depth = 0;
        Self::first_fit_below(self.root.filter(|root| root.largest(watch) >= size), size, path, watch)
    }

    /// Finds the block of at least `size` bytes that comes after the one at the end of the path, and the path to it.
    #[cold]
    pub(super) fn next_fit(
        &self,
        size: usize,
        path: &mut Path<SIZED>,
        watch: Watch<'_>,
    ) -> Option<Node<SIZED>> {
        let mut node = path.node(path.depth)?;
        loop {
            let right = node.descend(Side::Right, path.depth, watch);
            if let Some(right) = right.filter(|right| right.largest(watch) >= size) {
                return Self::first_fit_below(Some(right), size, path, watch);
            }
            // Up to the first node that lies above this one.
            let from = node.addr();
            while node.addr() <= from {
                path.depth -= 1;
                node = path.node(path.depth)?;
            }
            if node.size(watch) >= size {
                return Some(node);
            }
        }
    }

    /// The first block of at least `size` bytes in what hangs on a node that has one, and the path to it, which so far leads to
    /// what the node hangs on.
    #[inline]
    fn first_fit_below(
        mut next: Option<Node<SIZED>>,
        size: usize,
        path: &mut Path<SIZED>,
        watch: Watch<'_>,
    ) -> Option<Node<SIZED>> {
        while let Some(node) = next
            && path.push(node)
        {
            next = match node.descend(Side::Left, path.depth, watch) {
                Some(left) if left.largest(watch) >= size => Some(left),
                _ if node.size(watch) >= size => return Some(node),
                _ => node.descend(Side::Right, path.depth, watch),
            };
        }
        None
    }

    /// Adds a block where [`Tree::locate`] of its address led.
    ///
    /// # Safety
    /// - As [`Node::create`].
    pub(super) unsafe fn insert(&mut self, path: &mut Path<SIZED>, block: Block, watch: Watch<'_>) {
        // SAFETY: `block` is as `create` requires, which the caller promised.
        let node = unsafe { Node::create(block, watch) };
        match path.node(path.depth) {
            None => self.root = Some(node),
            Some(parent) => parent.set_child(parent.side_of(node.addr()), Some(node), watch),
        }
        self.count += 1;
        self.rise(path, path.depth, watch);
    }

    /// Puts `block` in the place of the block at the end of the path. No other
    /// node may lie between the two, so that the order stays as it is.
    ///
    /// # Safety
    /// - As [`Node::create`]; `block` may share memory with the block it replaces.
    pub(super) unsafe fn replace(&mut self, path: &mut Path<SIZED>, block: Block, watch: Watch<'_>) {
        let Some(old) = path.node(path.depth) else { return };
        let place = old.place(watch);
        // SAFETY: `block` is as `create` requires, which the caller promised; the old node's words were
        // read before they may be written over.
        let node = unsafe { Node::create(block, watch) };
        node.set_place(place, watch);
        self.put_in_place(path, path.depth, node, watch);
        self.rise(path, path.depth, watch);
    }

    /// Takes the block at the end of the path out of the tree.
    pub(super) fn remove(&mut self, path: &mut Path<SIZED>, watch: Watch<'_>) {
        let depth = path.depth;
        let Some(node) = path.node(depth) else { return };
        match (node.child(Side::Left, watch), node.descend(Side::Right, depth, watch)) {
            (Some(_), Some(right)) => {
                // Two children: the next block up takes the place.
                let heir = Self::first_below(right, path, watch);
                self.hang(path.node(path.depth - 1), heir, heir.child(Side::Right, watch), watch);
                path.depth -= 1;
                heir.confirm(watch);
                heir.set_place(node.place(watch), watch);
                self.put_in_place(path, depth, heir, watch);
            }
            (child, None) | (None, child) => {
                self.hang(path.node(depth - 1), node, child, watch);
                path.depth -= 1;
            }
        }
        self.count -= 1;
        self.rise(path, depth, watch);
    }

    /// The first node of the tree below `top`, with the path extended to it.
    fn first_below(top: Node<SIZED>, path: &mut Path<SIZED>, watch: Watch<'_>) -> Node<SIZED> {
        let mut first = top;
        let mut next = Some(top);
        while let Some(node) = next
            && path.push(node)
        {
            first = node;
            next = node.descend(Side::Left, path.depth, watch);
        }
        first
    }

    /// Makes `node` the one that `depth` nodes lead to.
    fn put_in_place(&mut self, path: &mut Path<SIZED>, depth: usize, node: Node<SIZED>, watch: Watch<'_>) {
        self.hang(path.node(depth - 1), node, Some(node), watch);
        path.nodes[depth - 1].write(node);
    }

    /// Hangs `child` below `parent` on the side where `place` lies; without a
    /// parent, makes it the root.
    #[inline]
    fn hang(
        &mut self,
        parent: Option<Node<SIZED>>,
        place: Node<SIZED>,
        child: Option<Node<SIZED>>,
        watch: Watch<'_>,
    ) {
        match parent {
            None => self.root = child,
            Some(parent) => parent.set_child(parent.side_of(place.addr()), child, watch),
        }
    }

    /// Rebalances and refreshes from the end of the path upwards. The node that
    /// `stale` nodes lead to is not up to date itself; above it the rise ends as
    /// soon as a node comes out as it was.
    fn rise(&mut self, path: &Path<SIZED>, stale: usize, watch: Watch<'_>) {
        for depth in (1..=path.depth).rev() {
            let Some(node) = path.node(depth) else { return };
            let before = (node.height(watch), node.largest(watch));
            let top = balance(node, watch);
            if top != node {
                self.hang(path.node(depth - 1), node, Some(top), watch);
            }
            if depth <= stale && (top.height(watch), top.largest(watch)) == before {
                return;
            }
        }
    }
}

/// Restores the AVL rule at `node`, whose children obey it and differ by at most
/// two in height; returns the node that now stands in its place.
#[inline]
fn balance<const SIZED: bool>(node: Node<SIZED>, watch: Watch<'_>) -> Node<SIZED> {
    let [left, right] = node.refresh(watch);
    if left > right + 1 {
        lean(node, Side::Left, watch)
    } else if right > left + 1 {
        lean(node, Side::Right, watch)
    } else {
        node
    }
}

/// Rotates a node that is too high on one side.
fn lean<const SIZED: bool>(node: Node<SIZED>, side: Side, watch: Watch<'_>) -> Node<SIZED> {
    if let Some(child) = node.child(side, watch)
        && height(child.child(side, watch), watch) < height(child.child(side.other(), watch), watch)
    {
        node.set_child(side, Some(rotate(child, side.other(), watch)), watch);
    }
    rotate(node, side, watch)
}

/// The height of what hangs on a link.
fn height<const SIZED: bool>(node: Option<Node<SIZED>>, watch: Watch<'_>) -> usize {
    node.map_or(0, |node| node.height(watch))
}

/// Lifts the child on `side` above `node`; returns that child.
fn rotate<const SIZED: bool>(node: Node<SIZED>, side: Side, watch: Watch<'_>) -> Node<SIZED> {
    let Some(child) = node.child(side, watch) else { return node };
    node.set_child(side, child.child(side.other(), watch), watch);
    node.refresh(watch);
    child.set_child(side.other(), Some(node), watch);
    child.refresh(watch);
    child
}
