//! A platform that refuses one request, or all from one request on.

use core::alloc::Layout;

use tripoint_core::{Arena, ArenaSizes, CheckLevel, Error, ManualPool, Result};
use tripoint_oracle::{Between, Draws, Operation, Oracle, Run};

use crate::common::TestArena;

/// Free and empty take the place of others now and then, so that classes that keep
/// descriptors need and free some.
fn operations(layout: Layout) -> [Operation; 18] {
    let between = Between { trips: 1, flips: 0 };
    let reserve = |commit| Operation::Reserve { point: 0, layout, commit, between };
    [
        Operation::Alloc(layout),
        Operation::Fill { layout, objects: 2 },
        Operation::Point { layout, objects: 3 },
        Operation::Free(1),
        Operation::Alloc(layout),
        Operation::Alloc(layout),
        Operation::Alloc(layout),
        Operation::Alloc(layout),
        Operation::Free(4),
        reserve(true),
        Operation::Point { layout, objects: 9 },
        Operation::EmptyFill(0),
        Operation::EmptyPoint(0),
        Operation::Free(2),
        Operation::Fill { layout, objects: 9 },
        reserve(true),
        reserve(false),
        Operation::Alloc(layout),
    ]
}

/// Does what was refused once more, now that it is granted.
pub(crate) fn insist<T>(arena: &TestArena<'_>, mut request: impl FnMut() -> Result<T>) -> T {
    request().unwrap_or_else(|error| {
        assert!(arena.has_refused() && error == Error::Memory, "{error:?}");
        arena.relent();
        request().unwrap()
    })
}

/// After a refusal the pool has what it had before, and goes on
/// (design/conformance.md `.req.refused`). Returns what is live afterwards.
pub(crate) fn live_through<P: ManualPool>(arena: &TestArena<'_>, pool: &P, layout: Layout) -> Oracle {
    let mut run = insist(arena, || Run::create(pool, &[Draws::Never]));
    for operation in operations(layout) {
        let slack = run.slack();
        insist(arena, || {
            let done = run.operate_manually(operation);
            if done.is_err() {
                run.agree();
                assert_eq!(run.slack(), slack, "{operation:?} was refused and lost something");
            }
            done
        });
    }
    run.agree();
    run.finish()
}

/// A pool that was dropped left its arena whole: what it had is spare again, except
/// for what the arena keeps for descriptors.
pub(crate) fn nothing_is_left(arena: &impl Arena, before: ArenaSizes) {
    let after = arena.sizes();
    let kept = after.own - before.own;
    assert_eq!(after, ArenaSizes { spare: before.spare - kept, own: after.own, ..before });
    arena.check(CheckLevel::Deep).unwrap();
}
