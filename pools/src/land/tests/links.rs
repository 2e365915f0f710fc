//! Links that an old word could form, and that no damage from outside can: each is written
//! as the land writes it (design/hardening.md `.land`).

use super::*;
use crate::land::node::{HEIGHT_MAX, Node, Side};

/// A tree of one run, and another run above it that is in no tree.
struct Runs {
    ground: Ground,
    tree: Tree<RUNS>,
    health: Health,
}

impl Runs {
    fn new() -> Self {
        let mut runs = Self { ground: Ground::new(8), tree: Tree::new(), health: Health::new() };
        let (low, key) = (runs.ground.part(0, 2), runs.ground.land().key);
        // SAFETY: the ground is ours; two granules of it, in no tree yet.
        unsafe { runs.tree.insert(&mut Path::new(), low, Watch::new(key, &runs.health)) };
        runs
    }

    fn nodes(&self) -> [Node<RUNS>; 2] {
        // SAFETY: the ground is ours; two granules of it, in no tree.
        let high = unsafe { Node::create(self.ground.part(4, 2), self.watch()) };
        [self.tree.root().unwrap(), high]
    }

    fn watch(&self) -> Watch<'_> {
        Watch::new(self.ground.land().key, &self.health)
    }

    fn are_sound(&self) -> bool {
        self.health.ensure().is_ok()
    }
}

#[test]
fn a_child_on_its_side_is_one() {
    let runs = Runs::new();
    let ([low, high], watch) = (runs.nodes(), runs.watch());
    low.set_child(Side::Right, Some(high), watch);
    assert_eq!(low.child(Side::Right, watch), Some(high));
    assert_eq!(low.child(Side::Left, watch), None);
    assert_eq!(low.descend(Side::Right, HEIGHT_MAX - 1, watch), Some(high));
    assert!(runs.are_sound());
}

#[test]
fn a_child_on_the_other_side_is_none() {
    let runs = Runs::new();
    let ([low, high], watch) = (runs.nodes(), runs.watch());
    low.set_child(Side::Left, Some(high), watch);
    assert_eq!(low.child(Side::Left, watch), None);
    assert!(!runs.are_sound());
}

#[test]
fn a_node_is_no_child_of_its_own() {
    let runs = Runs::new();
    let ([low, _], watch) = (runs.nodes(), runs.watch());
    low.set_child(Side::Left, Some(low), watch);
    assert_eq!(low.child(Side::Left, watch), None);
    assert!(!runs.are_sound());
}

#[test]
fn a_way_is_no_longer_than_trees_are_high() {
    let runs = Runs::new();
    let ([low, high], watch) = (runs.nodes(), runs.watch());
    low.set_child(Side::Right, Some(high), watch);
    assert_eq!(low.descend(Side::Right, HEIGHT_MAX, watch), None);
    assert!(!runs.are_sound());
}

/// A walk round the circle would not end.
#[test]
fn a_circle_is_left() {
    let runs = Runs::new();
    let ([low, high], watch) = (runs.nodes(), runs.watch());
    low.set_child(Side::Right, Some(high), watch);
    high.set_child(Side::Left, Some(low), watch);
    runs.tree.first_from(high.addr(), watch);
    assert!(!runs.are_sound());
}
