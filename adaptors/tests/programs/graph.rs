//! A graph of nodes and edges, searched breadth first.

use std::collections::{BTreeMap, BTreeSet};

use tripoint_adaptors::PoolAllocator;
use tripoint_core::ManualPool;

use super::{Numbers, PoolVec};

const NODES: usize = if cfg!(miri) { 10 } else { 400 };
const EDGES: usize = NODES * 7 / 4;

fn edges() -> impl Iterator<Item = (usize, usize)> {
    let mut numbers = Numbers::new(2);
    let mut node = move || numbers.below(NODES as u64) as usize;
    (0..EDGES).map(move |_| (node(), node()))
}

struct Node<'p, P: ManualPool> {
    neighbours: PoolVec<'p, usize, P>,
    distance: Option<usize>,
}

pub(crate) fn run<P: ManualPool>(pool: &P) {
    let memory = PoolAllocator::new(pool);
    let mut nodes = PoolVec::with_capacity_in(NODES, memory);
    nodes.resize_with(NODES, || Node { neighbours: PoolVec::new_in(memory), distance: None });
    for (from, to) in edges() {
        nodes[from].neighbours.push(to);
        nodes[to].neighbours.push(from);
    }

    nodes[0].distance = Some(0);
    let mut queue = PoolVec::new_in(memory);
    queue.push(0);
    let mut seen = 0;
    while let Some(&node) = queue.get(seen) {
        seen += 1;
        let next = nodes[node].distance.map(|distance| distance + 1);
        for index in 0..nodes[node].neighbours.len() {
            let neighbour = nodes[node].neighbours[index];
            if nodes[neighbour].distance.is_none() {
                nodes[neighbour].distance = next;
                queue.push(neighbour);
            }
        }
    }

    let expected = with_std();
    assert!(expected.len() > NODES / 2 && expected.len() < NODES, "some nodes are out of reach");
    let found = nodes.iter().enumerate().filter_map(|(node, found)| found.distance.map(|at| (node, at)));
    assert!(found.eq(expected));
}

/// Distances by growing a set of nodes, one step at a time.
fn with_std() -> BTreeMap<usize, usize> {
    let edges: Vec<_> = edges().collect();
    let mut distances = BTreeMap::from([(0, 0)]);
    for distance in 1.. {
        let reached = |node: &usize| distances.contains_key(node);
        let ends = edges.iter().flat_map(|&(from, to)| [(from, to), (to, from)]);
        let new: BTreeSet<_> =
            ends.filter(|(from, to)| reached(from) && !reached(to)).map(|(_, to)| to).collect();
        if new.is_empty() {
            break;
        }
        distances.extend(new.into_iter().map(|node| (node, distance)));
    }
    distances
}
