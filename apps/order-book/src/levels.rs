//! One side of a book: levels in order of price, every node from a pool.
//!
//! An AVL tree. Its height is below 1.45 log₂ of the number of levels, which
//! bounds every recursion here, the drop of a whole tree included
//! (design/order-book.md `.tree.depth`).

use core::alloc::Layout;
use core::cmp::Ordering;

use tripoint::{ArenaVm, Mfs, MfsOptions, PoolBox, Result, Store, UnitLayout};

use crate::decimal::Decimal;

/// One price and the quantity that stands at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub price: Decimal,
    pub quantity: Decimal,
}

/// The child with lower prices, and the one with higher.
const LOWER: usize = 0;
const HIGHER: usize = 1;

/// The pool that levels come from. A node names the type of its pool, so the pool
/// cannot name the type of its node, and has the layout instead
/// (design/order-book.md `.tree.unit`).
pub type LevelPool<'arena> = Mfs<&'arena ArenaVm, UnitLayout>;

/// Creates a pool for levels.
///
/// # Errors
/// The arena's.
pub fn create_pool(arena: &ArenaVm) -> Result<LevelPool<'_>> {
    let unit = UnitLayout::new(Layout::new::<Node<'_, LevelPool<'_>>>())?;
    Mfs::create(arena, unit, MfsOptions::default())
}

/// Has the pool get memory for `count` levels, which is then free in it.
///
/// # Errors
/// The pool's; what it got by then stays with it.
pub fn extend_pool<P: Store>(pool: &P, count: usize) -> Result<()> {
    let vacant = Level { price: Decimal::ZERO, quantity: Decimal::ZERO };
    let nodes: Result<Vec<_>> = (0..count).map(|_| PoolBox::new_in(Node::<P>::leaf(vacant), pool)).collect();
    nodes.map(drop)
}

/// The bytes that a level takes in its pool.
pub const LEVEL_BYTES: usize = size_of::<Node<'_, LevelPool<'_>>>();

type Link<'pool, P> = Option<PoolBox<'pool, Node<'pool, P>, P>>;

/// What the pool holds.
struct Node<'pool, P: Store> {
    level: Level,
    height: u8,
    children: [Link<'pool, P>; 2],
}

impl<P: Store> Node<'_, P> {
    const fn leaf(level: Level) -> Self {
        Self { level, height: 1, children: [None, None] }
    }

    fn child_height(&self, side: usize) -> u8 {
        self.children[side].as_ref().map_or(0, |child| child.height)
    }

    fn measure(&mut self) {
        self.height = 1 + self.child_height(LOWER).max(self.child_height(HIGHER));
    }

    /// The side that is taller by at least `margin`.
    fn taller_side(&self, margin: u8) -> Option<usize> {
        let (lower, higher) = (self.child_height(LOWER), self.child_height(HIGHER));
        match lower.cmp(&higher) {
            Ordering::Less if higher - lower >= margin => Some(HIGHER),
            Ordering::Greater if lower - higher >= margin => Some(LOWER),
            _ => None,
        }
    }
}

/// The levels of one side.
pub struct Levels<'pool, P: Store> {
    root: Link<'pool, P>,
    count: usize,
    pool: &'pool P,
}

impl<'pool, P: Store> Levels<'pool, P> {
    /// No levels; nodes will come from `pool`.
    pub const fn new(pool: &'pool P) -> Self {
        Self { root: None, count: 0, pool }
    }

    /// The number of levels.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Sets the quantity at a price; zero removes the level.
    ///
    /// # Errors
    /// The pool's, if there is no memory for a new level; nothing has changed
    /// then.
    pub fn set(&mut self, level: Level) -> Result<()> {
        if level.quantity == Decimal::ZERO {
            self.count -= usize::from(remove(&mut self.root, level.price));
        } else {
            self.count += usize::from(insert(&mut self.root, level, self.pool)?);
        }
        Ok(())
    }

    /// Whether there is a level at this price.
    pub fn contains(&self, price: Decimal) -> bool {
        let mut link = &self.root;
        while let Some(node) = link {
            link = match price.cmp(&node.level.price) {
                Ordering::Equal => return true,
                Ordering::Less => &node.children[LOWER],
                Ordering::Greater => &node.children[HIGHER],
            };
        }
        false
    }

    /// Removes every level.
    pub fn clear(&mut self) {
        self.root = None;
        self.count = 0;
    }

    /// The lowest price.
    pub fn lowest(&self) -> Option<Decimal> {
        self.outermost(LOWER)
    }

    /// The highest price.
    pub fn highest(&self) -> Option<Decimal> {
        self.outermost(HIGHER)
    }

    fn outermost(&self, side: usize) -> Option<Decimal> {
        let mut node = self.root.as_ref()?;
        while let Some(child) = &node.children[side] {
            node = child;
        }
        Some(node.level.price)
    }

    /// The levels, lowest price first.
    pub fn to_vec(&self) -> Vec<Level> {
        let mut levels = Vec::with_capacity(self.count);
        collect(&self.root, &mut levels);
        levels
    }
}

fn collect<P: Store>(link: &Link<'_, P>, levels: &mut Vec<Level>) {
    if let Some(node) = link {
        collect(&node.children[LOWER], levels);
        levels.push(node.level);
        collect(&node.children[HIGHER], levels);
    }
}

/// Sets a level below `link`; returns true if it is new.
fn insert<'pool, P: Store>(link: &mut Link<'pool, P>, level: Level, pool: &'pool P) -> Result<bool> {
    let Some(node) = link else {
        *link = Some(PoolBox::new_in(Node::leaf(level), pool)?);
        return Ok(true);
    };
    let side = match level.price.cmp(&node.level.price) {
        Ordering::Equal => {
            node.level.quantity = level.quantity;
            return Ok(false);
        }
        Ordering::Less => LOWER,
        Ordering::Greater => HIGHER,
    };
    let new = insert(&mut node.children[side], level, pool)?;
    if new {
        rebalance(link);
    }
    Ok(new)
}

/// Removes a price below `link`; returns false if there is none.
fn remove<P: Store>(link: &mut Link<'_, P>, price: Decimal) -> bool {
    let Some(node) = link else { return false };
    let side = match price.cmp(&node.level.price) {
        Ordering::Equal => {
            unlink(link);
            return true;
        }
        Ordering::Less => LOWER,
        Ordering::Greater => HIGHER,
    };
    let removed = remove(&mut node.children[side], price);
    if removed {
        rebalance(link);
    }
    removed
}

/// Takes the level at `link` out of the tree.
fn unlink<P: Store>(link: &mut Link<'_, P>) {
    let Some(node) = link else { return };
    let [lower, higher] = &mut node.children;
    if lower.is_some()
        && let Some(next) = take_lowest(higher)
    {
        node.level = next;
        rebalance(link);
    } else {
        let heir = lower.take().or_else(|| higher.take());
        *link = heir;
    }
}

/// Takes the lowest level below `link` out of the tree.
fn take_lowest<P: Store>(link: &mut Link<'_, P>) -> Option<Level> {
    let node = link.as_mut()?;
    if let Some(lowest) = take_lowest(&mut node.children[LOWER]) {
        rebalance(link);
        return Some(lowest);
    }
    let (level, heir) = (node.level, node.children[HIGHER].take());
    *link = heir;
    Some(level)
}

/// Restores the balance at `link`, whose children are balanced.
fn rebalance<P: Store>(link: &mut Link<'_, P>) {
    let Some(node) = link else { return };
    node.measure();
    let Some(taller) = node.taller_side(2) else { return };
    let child = &mut node.children[taller];
    let inner = 1 - taller;
    if child.as_ref().and_then(|child| child.taller_side(1)) == Some(inner) {
        rotate(child, taller);
    }
    rotate(link, inner);
}

/// Moves the node at `link` down to `side`; its other child takes its place.
fn rotate<P: Store>(link: &mut Link<'_, P>, side: usize) {
    let Some(mut node) = link.take() else { return };
    let Some(mut riser) = node.children[1 - side].take() else {
        *link = Some(node);
        return;
    };
    node.children[1 - side] = riser.children[side].take();
    node.measure();
    riser.children[side] = Some(node);
    riser.measure();
    *link = Some(riser);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tripoint::{Arena, ArenaVmOptions, Error, PoolClass};

    use super::*;

    fn level(price: u64, quantity: u64) -> Level {
        Level { price: Decimal::from_units(price), quantity: Decimal::from_units(quantity) }
    }

    /// The height below `link`, having checked order, heights and balance.
    fn checked_height<P: Store>(link: &Link<'_, P>) -> u8 {
        let Some(node) = link else { return 0 };
        let [lower, higher] = &node.children;
        assert!(lower.as_ref().is_none_or(|child| child.level.price < node.level.price));
        assert!(higher.as_ref().is_none_or(|child| child.level.price > node.level.price));
        let (low, high) = (checked_height(lower), checked_height(higher));
        assert!(low.abs_diff(high) <= 1);
        assert_eq!(node.height, 1 + low.max(high));
        node.height
    }

    fn assert_same<P: Store>(levels: &Levels<'_, P>, oracle: &BTreeMap<u64, u64>) {
        let expected: Vec<_> = oracle.iter().map(|(&price, &quantity)| level(price, quantity)).collect();
        assert_eq!(levels.to_vec(), expected);
        assert_eq!(levels.count(), expected.len());
        assert!((0..48).all(|price| levels.contains(level(price, 0).price) == oracle.contains_key(&price)));
        assert_eq!(levels.lowest(), expected.first().map(|level| level.price));
        assert_eq!(levels.highest(), expected.last().map(|level| level.price));
        checked_height(&levels.root);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn keeps_what_a_map_keeps(changes in prop::collection::vec((0..48_u64, 0..3_u64), 0..300)) {
            let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
            let pool = create_pool(&arena).unwrap();
            let mut levels = Levels::new(&pool);
            let mut oracle = BTreeMap::new();
            for (price, quantity) in changes {
                levels.set(level(price, quantity)).unwrap();
                match quantity {
                    0 => oracle.remove(&price),
                    _ => oracle.insert(price, quantity),
                };
                assert_same(&levels, &oracle);
            }
            levels.clear();
            assert_same(&levels, &BTreeMap::new());
        }
    }

    #[test]
    fn every_node_goes_back_to_the_pool() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        extend_pool(&pool, 1_000).unwrap();
        let free = pool.sizes().free;
        let mut levels = Levels::new(&pool);
        for price in 0..1_000 {
            levels.set(level(price, 1)).unwrap();
        }
        assert!(pool.sizes().free < free);
        for price in 0..500 {
            levels.set(level(price, 0)).unwrap();
        }
        drop(levels);
        assert_eq!(pool.sizes().free, free);
    }

    #[test]
    fn a_large_tree_is_low_and_drops_on_a_small_stack() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let in_order = || {
            let mut levels = Levels::new(&pool);
            for price in 0..100_000 {
                levels.set(level(price, 1)).unwrap();
            }
            // 1.45 log₂ of 100,000 is 24.1.
            assert!(checked_height(&levels.root) <= 24);
            levels.clear();
        };
        std::thread::scope(|scope| {
            std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, in_order).unwrap();
        });
    }

    #[test]
    fn a_refused_level_changes_nothing() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        extend_pool(&pool, 10).unwrap();
        arena.freeze();
        let mut levels = Levels::new(&pool);
        let mut oracle = BTreeMap::new();
        let refused = loop {
            let price = levels.count() as u64;
            match levels.set(level(price, 1)) {
                Ok(()) => oracle.insert(price, 1),
                Err(error) => break error,
            };
        };
        assert_eq!(refused, Error::Frozen);
        assert!(levels.count() >= 10);
        assert_same(&levels, &oracle);
        // A level that is there needs no memory, and one that goes makes room.
        levels.set(level(0, 7)).unwrap();
        levels.set(level(0, 0)).unwrap();
        levels.set(level(1_000_000, 1)).unwrap();
    }
}
