//! Frames: what was allocated since a push is free after its pop, and nothing else is
//! (design/conformance.md `.req.frames`).

use core::alloc::Layout;

use proptest::prelude::*;
use tripoint_core::{Error, FramePool, Result};
use tripoint_oracle::{
    Between, Draws, Layouts, Menu, Operation, Run, STACKS, Scrutiny, effort, live_in_frames,
};

use super::refusals::insist;
use crate::common::TestArena;

/// Operations on stacks, about these layouts.
pub(crate) fn operations(layouts: &'static [Layout]) -> impl Strategy<Value = Vec<Operation>> {
    Menu { kinds: STACKS, layouts: Layouts::OneOf(layouts) }.operations(1..effort(150) as usize)
}

/// Two stacks in one pool.
pub(crate) fn live<P: FramePool>(pool: &P, operations: &[Operation]) {
    let draws = [Draws::Never, Draws::Never];
    live_in_frames(pool, &draws, operations.iter().copied(), Scrutiny::EveryStep);
}

fn alloc<P: FramePool>(run: &mut Run<'_, P>, layout: Layout) -> Result<()> {
    run.operate(Operation::Reserve { point: 0, layout, commit: true, between: Between::default() })
}

fn push<P: FramePool>(run: &mut Run<'_, P>) {
    run.operate_in_frames(Operation::Push(0)).unwrap();
}

fn pop<P: FramePool>(run: &mut Run<'_, P>, frame: usize) {
    run.operate_in_frames(Operation::Pop { point: 0, frame }).unwrap();
}

fn finish<P: FramePool>(run: Run<'_, P>, pool: &P) {
    let oracle = run.finish();
    oracle.agree(pool);
    assert_eq!(oracle.slack(pool), 0, "nothing is lost");
}

pub(crate) fn run_out_and_recover<P: FramePool>(pool: &P, layout: Layout) {
    let mut run = Run::create(pool, &[Draws::Never]).unwrap();
    alloc(&mut run, layout).unwrap();
    let mut counts = Vec::new();
    for _ in 0..3 {
        push(&mut run);
        let before = run.objects(0);
        let refused = core::iter::repeat_with(|| alloc(&mut run, layout)).find_map(Result::err);
        assert_eq!(refused, Some(Error::Limit));
        run.agree();
        counts.push(run.objects(0) - before);
        pop(&mut run, 0);
        run.agree();
    }
    // Free memory is in fewer pieces than at first, or in others; from then on it is the
    // same each time.
    assert!(counts[0] > 10 && counts[1] * 10 > counts[0] * 9 && counts[2] == counts[1], "{counts:?}");
    finish(run, pool);
}

/// After a refusal the frames are what they were.
pub(crate) fn live_through_refusals<P: FramePool>(arena: &TestArena<'_>, pool: &P, layout: Layout) {
    let mut run = insist(arena, || Run::create(pool, &[Draws::Never]));
    for _ in 0..3 {
        push(&mut run);
        for _ in 0..6 {
            insist(arena, || {
                let done = alloc(&mut run, layout);
                run.check();
                if done.is_err() {
                    run.agree();
                }
                done
            });
        }
    }
    for newest in (0..run.frames(0)).rev() {
        pop(&mut run, newest);
        run.agree();
    }
    finish(run, pool);
}
