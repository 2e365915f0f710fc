//! Binary trees, as in `apps/trees`, whose contenders these are, and in collectors of others.

#[path = "../../../apps/trees/src/formatted.rs"]
mod formatted;
#[path = "../../../apps/trees/src/manual.rs"]
pub(crate) mod manual;
#[path = "../../../apps/trees/src/memory.rs"]
pub(crate) mod memory;
#[path = "../../../apps/trees/src/plan.rs"]
mod plan;
#[path = "../../../apps/trees/src/typed.rs"]
mod typed;

use std::alloc::System;

use boa_gc::{Finalize, Gc as BoaGc, Trace as BoaTrace};
use dumpster::unsync::Gc as DumpsterGc;
use gc_arena::metrics::Pacing;
use gc_arena::{Arena, Collect, Gc as ArenaGc, Mutation, Rootable};
use mimalloc::MiMalloc;
use tripoint::author::{Futex, Membarrier};
use tripoint::gc::{HeapOptions, Moved, Traced};

use crate::Contender;
use crate::run::{Laps, Size};
use manual::Global;
use plan::{Plan, nodes};

/// The peers that goals name.
pub(crate) const MALLOC: &str = "malloc and free";
pub(crate) const BOEHM: &str = "Boehm GC";
pub(crate) const GC_ARENA: &str = "gc-arena";

/// By default `gc-arena` collects in slices. This is how it collects at once, as the others do.
pub(crate) const GC_ARENA_AT_ONCE: &str = "gc-arena, at once";

pub(crate) const CONTENDERS: &[Contender] = &[
    ("tripoint, typed", |size, laps| grow(size, laps, |plan, counted| typed::grow(plan, heap(), counted))),
    ("tripoint, Amc", |size, laps| {
        grow(size, laps, |plan, counted| formatted::grow::<Moved, _>(plan, heap(), counted))
    }),
    ("tripoint, Ams", |size, laps| {
        grow(size, laps, |plan, counted| formatted::grow::<Traced, _>(plan, heap(), counted))
    }),
    ("tripoint, Mfs and free", |size, laps| {
        grow(size, laps, |plan, counted| manual::grow_in_pool(plan, counted))
    }),
    (MALLOC, |size, laps| grow(size, laps, |plan, counted| manual::grow(plan, &Global(System), counted))),
    ("mimalloc", |size, laps| {
        grow(size, laps, |plan, counted| manual::grow(plan, &Global(MiMalloc), counted))
    }),
    #[cfg(boehm)]
    (BOEHM, |size, laps| grow(size, laps, boehm)),
    (GC_ARENA, |size, laps| grow(size, laps, |plan, counted| gc_arena(Pacing::DEFAULT, plan, counted))),
    (GC_ARENA_AT_ONCE, |size, laps| {
        grow(size, laps, |plan, counted| gc_arena(Pacing::STOP_THE_WORLD, plan, counted))
    }),
    ("boa_gc", |size, laps| grow(size, laps, boa_gc)),
    ("dumpster", |size, laps| grow(size, laps, dumpster)),
];

type Outcome = tripoint::Result<()>;

/// What is called with the depth and the nodes of each tree.
type Counted<'a> = &'a mut dyn FnMut(u32, usize);

/// The options of heaps of programs on Linux.
pub(crate) fn heap() -> HeapOptions<'static, Membarrier> {
    let barrier = Membarrier::register().expect("a kernel with membarrier, which these figures are about");
    HeapOptions { barrier, parking: Some(&Futex) }
}

/// The trees of depth 4 in a lap.
const LAP: usize = 16;

/// Has a contender build the trees. A pause is measured while the smallest ones are built, and the lasting one is there.
fn grow(size: Size, laps: &mut Laps, contender: impl FnOnce(Plan, Counted<'_>) -> Outcome) -> u64 {
    let plan = Plan::new(if size == Size::Full { 18 } else { 10 });
    let (mut sum, mut small) = (0, 0);
    let mut counted = |depth, found| {
        assert_eq!(found, nodes(depth), "nodes of a tree of depth {depth}");
        sum += found as u64;
        small += usize::from(depth == 4);
        if depth == 4 && small % LAP == 0 {
            laps.lap();
        }
    };
    contender(plan, &mut counted).expect("memory");
    sum
}

#[cfg(boehm)]
fn boehm(plan: Plan, counted: Counted<'_>) -> Outcome {
    use crate::boehm::{Boehm, begin};

    begin();
    let build = |depth| manual::build(&Boehm, depth);
    // SAFETY: it is called with trees that were just built.
    let count = |tree| unsafe { manual::count(tree) };
    counted(plan.stretch(), count(build(plan.stretch())?));
    let lasting = build(plan.lasting())?;
    for depth in plan.short_lived() {
        counted(depth, count(build(depth)?));
    }
    counted(plan.lasting(), count(lasting));
    Ok(())
}

#[derive(Collect)]
#[collect(no_drop)]
struct ArenaTree<'gc> {
    branches: Option<(ArenaGc<'gc, ArenaTree<'gc>>, ArenaGc<'gc, ArenaTree<'gc>>)>,
}

impl<'gc> ArenaTree<'gc> {
    fn build(context: &Mutation<'gc>, depth: u32) -> ArenaGc<'gc, Self> {
        let branches =
            (depth > 0).then(|| (Self::build(context, depth - 1), Self::build(context, depth - 1)));
        ArenaGc::new(context, Self { branches })
    }

    fn count(&self) -> usize {
        1 + self.branches.map_or(0, |(left, right)| left.count() + right.count())
    }
}

fn gc_arena(pacing: Pacing, plan: Plan, counted: Counted<'_>) -> Outcome {
    let mut arena = Arena::<Rootable![Option<ArenaGc<'_, ArenaTree<'_>>>]>::new(|_| None);
    arena.metrics().set_pacing(pacing);
    counted(plan.stretch(), arena.mutate(|context, _| ArenaTree::build(context, plan.stretch()).count()));
    arena.mutate_root(|context, root| *root = Some(ArenaTree::build(context, plan.lasting())));
    for depth in plan.short_lived() {
        counted(depth, arena.mutate(|context, _| ArenaTree::build(context, depth).count()));
        arena.collect_debt();
    }
    counted(plan.lasting(), arena.mutate(|_, root| root.map_or(0, |tree| tree.count())));
    Ok(())
}

#[derive(BoaTrace, Finalize)]
struct BoaTree {
    branches: Option<(BoaGc<BoaTree>, BoaGc<BoaTree>)>,
}

impl BoaTree {
    fn build(depth: u32) -> BoaGc<Self> {
        let branches = (depth > 0).then(|| (Self::build(depth - 1), Self::build(depth - 1)));
        BoaGc::new(Self { branches })
    }

    fn count(&self) -> usize {
        1 + self.branches.as_ref().map_or(0, |(left, right)| left.count() + right.count())
    }
}

fn boa_gc(plan: Plan, counted: Counted<'_>) -> Outcome {
    counted(plan.stretch(), BoaTree::build(plan.stretch()).count());
    let lasting = BoaTree::build(plan.lasting());
    for depth in plan.short_lived() {
        counted(depth, BoaTree::build(depth).count());
    }
    counted(plan.lasting(), lasting.count());
    Ok(())
}

#[derive(dumpster::Trace)]
struct DumpsterTree {
    branches: Option<(DumpsterGc<DumpsterTree>, DumpsterGc<DumpsterTree>)>,
}

impl DumpsterTree {
    fn build(depth: u32) -> DumpsterGc<Self> {
        let branches = (depth > 0).then(|| (Self::build(depth - 1), Self::build(depth - 1)));
        DumpsterGc::new(Self { branches })
    }

    fn count(&self) -> usize {
        1 + self.branches.as_ref().map_or(0, |(left, right)| left.count() + right.count())
    }
}

fn dumpster(plan: Plan, counted: Counted<'_>) -> Outcome {
    counted(plan.stretch(), DumpsterTree::build(plan.stretch()).count());
    let lasting = DumpsterTree::build(plan.lasting());
    for depth in plan.short_lived() {
        counted(depth, DumpsterTree::build(depth).count());
    }
    counted(plan.lasting(), lasting.count());
    Ok(())
}
