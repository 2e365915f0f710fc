//! Random lives against the oracle.

use core::alloc::Layout;

use proptest::prelude::*;
use tripoint_core::{Error, ManualPool, Result};

use crate::common::{Oracle, pick};

/// Something done with a pool. Numbers choose among what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Alloc(usize),
    Free(usize),
    Fill { layout: usize, objects: usize },
    Empty(usize),
    Point { layout: usize, objects: usize },
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => any::<usize>().prop_map(Step::Alloc),
        5 => any::<usize>().prop_map(Step::Free),
        2 => (any::<usize>(), 0..8_usize).prop_map(|(layout, objects)| Step::Fill { layout, objects }),
        2 => any::<usize>().prop_map(Step::Empty),
        1 => (any::<usize>(), 0..8_usize).prop_map(|(layout, objects)| Step::Point { layout, objects }),
    ];
    prop::collection::vec(step, 1..100)
}

/// Does a step, unless there is nothing it could be done with.
pub(crate) fn do_step<P: ManualPool>(
    oracle: &mut Oracle,
    pool: &P,
    layouts: &[Layout],
    step: Step,
) -> Result<()> {
    let layout = |which| pick(layouts, which).unwrap();
    match step {
        Step::Alloc(which) => oracle.alloc(pool, layout(which)).map(drop),
        Step::Fill { layout: which, objects } => oracle.fill(pool, layout(which), objects).map(drop),
        Step::Point { layout: which, objects } => oracle.point(pool, layout(which), objects),
        Step::Free(which) => {
            if let Some(addr) = pick(&oracle.addresses(true), which) {
                oracle.free(pool, addr);
            }
            Ok(())
        }
        Step::Empty(which) => {
            if let Some(addr) = pick(&oracle.addresses(false), which) {
                oracle.empty(pool, addr);
            }
            Ok(())
        }
    }
}

/// Does the steps, and compares pool and oracle after each. In the end nothing is lost
/// (design/conformance.md `.req.lost`; for MVFF, design/pool-mvff.md `.req.lost`).
///
/// What is neither live nor free changes only with the extents, whose ends may be of no
/// use.
pub(crate) fn live<P: ManualPool>(pool: &P, layouts: &[Layout], steps: &[Step]) {
    let mut oracle = Oracle::default();
    for &step in steps {
        let (total, slack) = (pool.sizes().total, oracle.slack(pool));
        let done = do_step(&mut oracle, pool, layouts, step);
        assert!(matches!(done, Ok(()) | Err(Error::Limit)), "{step:?}: {done:?}");
        if oracle.agree(pool).total == total {
            assert_eq!(oracle.slack(pool), slack, "{step:?} lost something");
        }
    }
    let slack = oracle.slack(pool);
    oracle.clear(pool);
    let sizes = oracle.agree(pool);
    assert_eq!(sizes.free == 0, sizes.largest_free == 0);
    assert_eq!(oracle.slack(pool), slack, "nothing is lost");
}
