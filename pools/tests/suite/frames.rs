//! Frames: what was allocated since a push is free after its pop, and nothing else is
//! (design/conformance.md `.req.frames`).

use core::alloc::Layout;

use proptest::prelude::*;
use tripoint_ap::{AllocationPoint, Frame};
use tripoint_core::{Error, FramePool, Result};

use super::refusals::insist;
use crate::common::{Oracle, TestArena, pick};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Alloc(usize),
    Push,
    Pop(usize),
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<(bool, Step)>> {
    let step = prop_oneof![
        8 => any::<usize>().prop_map(Step::Alloc),
        2 => Just(Step::Push),
        1 => any::<usize>().prop_map(Step::Pop),
    ];
    prop::collection::vec((any::<bool>(), step), 1..150)
}

/// An allocation point, its frames, and its objects, oldest first.
struct Stack<'pool, P: FramePool> {
    point: AllocationPoint<'pool, P>,
    /// Each with the number of objects there were at its push.
    frames: Vec<(Frame, usize)>,
    objects: Vec<usize>,
    /// What was skipped to an alignment before each object: it counts as allocated.
    skipped: Vec<usize>,
}

impl<'pool, P: FramePool> Stack<'pool, P> {
    fn create(pool: &'pool P) -> Result<Self> {
        let point = AllocationPoint::create(pool)?;
        Ok(Self { point, frames: Vec::new(), objects: Vec::new(), skipped: Vec::new() })
    }

    fn alloc(&mut self, oracle: &mut Oracle, layout: Layout) -> Result<()> {
        let before = self.point.buffer().snapshot().unwrap();
        let object = oracle.reserve_and_commit(&mut self.point, layout)?.base().addr().get();
        let same_block = self.point.buffer().snapshot().unwrap().base == before.base;
        self.skipped.push(if same_block { object - before.init.get() } else { 0 });
        self.objects.push(object);
        Ok(())
    }

    fn push(&mut self) {
        self.frames.push((self.point.push(), self.objects.len()));
    }

    /// Pops back to one of the frames, those above it too.
    fn pop(&mut self, oracle: &mut Oracle, which: usize) {
        let Some(at) = which.checked_rem(self.frames.len()) else { return };
        let Some((frame, objects)) = self.frames.drain(at..).next() else { return };
        for object in self.objects.drain(objects..) {
            oracle.remove(object);
        }
        self.skipped.truncate(objects);
        // SAFETY: a frame of this point; no earlier one was popped since, or it would
        // be gone from the list, as are the objects and frames since.
        unsafe { self.point.pop(frame) };
    }

    /// What was filled, less what was given back or is left, is live.
    fn assert_balance(&self, oracle: &Oracle) {
        let live: usize = self.objects.iter().map(|&object| oracle.size_of(object)).sum();
        let buffer = self.point.buffer();
        let allocated = buffer.fill_size() - buffer.empty_size() - self.point.room() as u64;
        let skipped: usize = self.skipped.iter().sum();
        assert_eq!(allocated, (live + skipped) as u64);
    }

    /// Dropping the point frees its objects.
    fn finish(self, oracle: &mut Oracle) {
        for &object in &self.objects {
            oracle.remove(object);
        }
    }
}

/// Two stacks in one pool.
pub(crate) fn live<P: FramePool>(pool: &P, layouts: &[Layout], steps: &[(bool, Step)]) {
    let mut oracle = Oracle::default();
    let mut stacks = [Stack::create(pool).unwrap(), Stack::create(pool).unwrap()];
    for &(which, step) in steps {
        let stack = &mut stacks[usize::from(which)];
        match step {
            Step::Alloc(layout) => {
                let Some(layout) = pick(layouts, layout) else { continue };
                assert!(matches!(stack.alloc(&mut oracle, layout), Ok(()) | Err(Error::Limit)));
            }
            Step::Push => stack.push(),
            Step::Pop(which) => stack.pop(&mut oracle, which),
        }
        stacks.iter().for_each(|stack| stack.assert_balance(&oracle));
        oracle.agree(pool);
    }
    stacks.into_iter().for_each(|stack| stack.finish(&mut oracle));
    oracle.agree(pool);
    assert_eq!(oracle.slack(pool), 0, "nothing is lost");
}

pub(crate) fn run_out_and_recover<P: FramePool>(pool: &P, layout: Layout) {
    let mut oracle = Oracle::default();
    let mut stack = Stack::create(pool).unwrap();
    stack.alloc(&mut oracle, layout).unwrap();
    let mut counts = Vec::new();
    for _ in 0..3 {
        stack.push();
        let before = stack.objects.len();
        let refused = core::iter::repeat_with(|| stack.alloc(&mut oracle, layout)).find_map(Result::err);
        assert_eq!(refused, Some(Error::Limit));
        oracle.agree(pool);
        counts.push(stack.objects.len() - before);
        stack.pop(&mut oracle, 0);
        oracle.agree(pool);
    }
    // Free memory is in fewer pieces than at first, or in others; from then on it is the
    // same each time.
    assert!(counts[0] > 10 && counts[1] * 10 > counts[0] * 9 && counts[2] == counts[1], "{counts:?}");
    stack.finish(&mut oracle);
    oracle.agree(pool);
    assert_eq!(oracle.slack(pool), 0, "nothing is lost");
}

/// After a refusal the frames are what they were.
pub(crate) fn live_through_refusals<P: FramePool>(arena: &TestArena<'_>, pool: &P, layout: Layout) {
    let mut oracle = Oracle::default();
    let mut stack = insist(arena, || Stack::create(pool));
    for _ in 0..3 {
        stack.push();
        for _ in 0..6 {
            insist(arena, || {
                let done = stack.alloc(&mut oracle, layout);
                stack.assert_balance(&oracle);
                if done.is_err() {
                    oracle.agree(pool);
                }
                done
            });
        }
    }
    while !stack.frames.is_empty() {
        let newest = stack.frames.len() - 1;
        stack.pop(&mut oracle, newest);
        oracle.agree(pool);
    }
    stack.finish(&mut oracle);
    oracle.agree(pool);
    assert_eq!(oracle.slack(pool), 0, "nothing is lost");
}
