//! Checking a land without trusting what its free blocks say.
//!
//! Free memory may have been written over by its last user. So no link is
//! followed before it is known to lead into the pool, between its neighbours, and
//! the heights bound the recursion (design/land.md `.land.check`).

use tripoint_core::{Addr, CheckError, ensure};

use super::Land;
use super::node::{GRANULE, HEIGHT_MAX, Node, Side};
use super::tree::Tree;
use crate::link::{Health, UNDAMAGED, Watch};

const LAND: &str = "Land";

/// What is found at and below a node.
#[derive(Clone, Copy, Default)]
struct Found {
    height: usize,
    largest: usize,
    count: usize,
}

/// Where a node may lie, and how high it may be.
#[derive(Clone, Copy)]
struct Bounds {
    base: usize,
    limit: usize,
    height: usize,
}

impl Land {
    /// Checks every rule of the land: order, balance, sizes, coalescing. `owns`
    /// returns whether an address lies in memory whose blocks the land may
    /// hold.
    ///
    /// # Errors
    /// The first rule found broken.
    pub fn check(&self, owns: &dyn Fn(Addr) -> bool) -> Result<(), CheckError> {
        self.check_sound()?;
        // The caller acts on what a check finds.
        let health = Health::new();
        let watch = Watch::new(self.key, &health);
        check_tree(&self.granules, owns, watch)?;
        check_tree(&self.runs, owns, watch)?;
        ensure(LAND, health.ensure().is_ok(), UNDAMAGED)?;
        self.check_apart()
    }

    /// Checks that no operation met free memory that was written over.
    pub(crate) fn check_sound(&self) -> Result<(), CheckError> {
        ensure(LAND, self.ensure_sound().is_ok(), UNDAMAGED)
    }

    /// Checks that blocks neither overlap nor touch. Of two blocks that overlap
    /// the walk may pass over one, which the sum of their sizes shows.
    fn check_apart(&self) -> Result<(), CheckError> {
        let (mut limit, mut apart, mut size) = (None, true, 0);
        self.walk(&mut |block| {
            apart &= limit.is_none_or(|limit| limit < block.range().base());
            limit = Some(block.range().limit());
            size += block.size();
        });
        ensure(LAND, apart, "between two free blocks there is memory in use")?;
        ensure(LAND, size == self.size, "the free blocks add up to the size")
    }
}

/// Checks one tree.
fn check_tree<const SIZED: bool>(
    tree: &Tree<SIZED>,
    owns: &dyn Fn(Addr) -> bool,
    watch: Watch<'_>,
) -> Result<(), CheckError> {
    let found =
        check_below(tree.root(), Bounds { base: 0, limit: usize::MAX, height: HEIGHT_MAX }, owns, watch)?;
    ensure(LAND, found.count == tree.count(), "the count of blocks is right")
}

/// Checks the tree below a link.
fn check_below<const SIZED: bool>(
    link: Option<Node<SIZED>>,
    bounds: Bounds,
    owns: &dyn Fn(Addr) -> bool,
    watch: Watch<'_>,
) -> Result<Found, CheckError> {
    let Some(node) = link else { return Ok(Found::default()) };
    let addr = node.addr();
    ensure(LAND, bounds.base <= addr && addr < bounds.limit, "links lead between the neighbours")?;
    ensure(LAND, owns(Addr::new(addr)), "links lead to memory of the pool")?;
    ensure(LAND, node.height(watch) <= bounds.height, "children are lower than their parent")?;

    let size = node.size(watch);
    ensure(LAND, size.is_multiple_of(GRANULE), "sizes are multiples of a granule")?;
    ensure(LAND, SIZED == (size > GRANULE), "blocks are in the tree for their size")?;
    ensure(LAND, size <= bounds.limit - addr, "blocks end before their neighbours")?;

    let height = node.height(watch).saturating_sub(1);
    let left_bounds = Bounds { limit: addr - GRANULE, height, ..bounds };
    let right_bounds = Bounds { base: node.limit(watch).saturating_add(GRANULE), height, ..bounds };
    // By the pointer that led here: the provenance of a damaged link is unknown.
    let child = |side| node.child(side, watch).map(|child| node.at(child));
    let left = check_below(child(Side::Left), left_bounds, owns, watch)?;
    let right = check_below(child(Side::Right), right_bounds, owns, watch)?;

    ensure(LAND, left.height.abs_diff(right.height) <= 1, "siblings differ by at most one in height")?;
    let found = Found {
        height: left.height.max(right.height) + 1,
        largest: left.largest.max(right.largest).max(size),
        count: left.count + right.count + 1,
    };
    ensure(LAND, node.height(watch) == found.height, "heights are right")?;
    ensure(LAND, node.largest(watch) == found.largest, "largest sizes are right")?;
    Ok(found)
}
