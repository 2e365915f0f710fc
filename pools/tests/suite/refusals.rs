//! A platform that refuses at any one request, or from any one on.

use core::alloc::Layout;

use tripoint_core::{Arena, ArenaSizes, CheckLevel, Error, ManualPool, Result};

use super::lives::{Step, do_step};
use crate::common::{Oracle, TestArena};

/// Free and empty take the place of others now and then, so that classes that keep
/// descriptors need and free some.
const STEPS: [Step; 14] = {
    let layout = 0;
    [
        Step::Alloc(layout),
        Step::Fill { layout, objects: 2 },
        Step::Point { layout, objects: 3 },
        Step::Free(1),
        Step::Alloc(layout),
        Step::Alloc(layout),
        Step::Alloc(layout),
        Step::Alloc(layout),
        Step::Free(4),
        Step::Point { layout, objects: 9 },
        Step::Empty(0),
        Step::Free(2),
        Step::Fill { layout, objects: 9 },
        Step::Alloc(layout),
    ]
};

/// Does what was refused once more, now that it is granted.
pub(crate) fn insist<T>(arena: &TestArena<'_>, mut request: impl FnMut() -> Result<T>) -> T {
    request().unwrap_or_else(|error| {
        assert!(arena.has_refused() && error == Error::Memory, "{error:?}");
        arena.relent();
        request().unwrap()
    })
}

/// After a refusal the pool has what it had before, and goes on
/// (design/conformance.md `.req.refused`).
pub(crate) fn live_through<P: ManualPool>(
    arena: &TestArena<'_>,
    oracle: &mut Oracle,
    pool: &P,
    layout: Layout,
) {
    for step in STEPS {
        let slack = oracle.slack(pool);
        insist(arena, || {
            let done = do_step(oracle, pool, &[layout], step);
            if done.is_err() {
                oracle.agree(pool);
                assert_eq!(oracle.slack(pool), slack, "{step:?} was refused and lost something");
            }
            done
        });
    }
    oracle.agree(pool);
}

/// A pool that was dropped left its arena whole: what it had is spare again, except
/// for what the arena keeps for descriptors.
pub(crate) fn nothing_is_left(arena: &impl Arena, before: ArenaSizes) {
    let after = arena.sizes();
    let kept = after.control - before.control;
    assert_eq!(after, ArenaSizes { spare: before.spare - kept, control: after.control, ..before });
    arena.check(CheckLevel::Deep).unwrap();
}
