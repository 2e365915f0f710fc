//! Trees of typed objects, which free themselves: safe code, without a size or a free.

use tripoint::author::BarrierPair;
use tripoint::gc::{Gc, Heap, HeapOptions, Inside, Rooted, SweptOptions, TypedObjects, object_types};
use tripoint::{ArenaVm, Error};

use super::memory::arena;
use super::plan::Plan;

object_types! {
    struct Tree<'g> {
        branches: Option<(Gc<'g, Tree<'g>>, Gc<'g, Tree<'g>>)>,
    }
}

type In<'g, 'a, B> = Inside<'g, &'a ArenaVm, B>;

fn build<'g, B: BarrierPair>(inside: &In<'g, '_, B>, depth: u32) -> Result<Gc<'g, Tree<'g>>, Error> {
    let branches = match depth {
        0 => None,
        _ => Some((build(inside, depth - 1)?, build(inside, depth - 1)?)),
    };
    inside.alloc(Tree { branches })
}

fn count(tree: Gc<'_, Tree<'_>>) -> usize {
    1 + tree.branches.map_or(0, |(left, right)| count(left) + count(right))
}

/// Builds the trees of a plan, and calls `counted` with the depth and the nodes of each.
pub(crate) fn grow<B: BarrierPair>(
    plan: Plan,
    options: HeapOptions<'_, B>,
    mut counted: impl FnMut(u32, usize),
) -> Result<(), Error> {
    let arena = arena()?;
    let heap = Heap::create(&arena, options)?;
    let objects = TypedObjects::create(&heap, SweptOptions::default())?;
    let mut mutator = objects.register()?;
    // What is built in a closure and not made a root is garbage when the closure has returned.
    let nodes = mutator.enter(|inside| build(inside, plan.stretch()).map(count))?;
    counted(plan.stretch(), nodes);
    let lasting: Rooted<'_, Tree<'static>> =
        mutator.enter(|inside| objects.root(inside, build(inside, plan.lasting())?))?;
    for depth in plan.short_lived() {
        let nodes = mutator.enter(|inside| build(inside, depth).map(count))?;
        counted(depth, nodes);
    }
    let nodes = mutator.enter(|inside| lasting.get(inside).map(count))?;
    counted(plan.lasting(), nodes);
    Ok(())
}
