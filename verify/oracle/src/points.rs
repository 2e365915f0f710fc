//! Operations on two allocation points of one test pool.

use tripoint_core::{Check, CheckLevel, ClientArena, Error};

use crate::listener::Draws;
use crate::operation::Operation;
use crate::run::Run;
use crate::test_pool::{Form, TestPool};

/// Does operations on a mutator's and an internal allocation point of a test pool
/// with fills of this size: commits fail exactly when a flip came between, no trip
/// is lost, stops are reported at the objects that they are in, and what was filled
/// and not emptied is what was allocated (design/ap.md `.req.exact`, `.req.trip`,
/// `.req.count`).
///
/// # Panics
/// If any of that does not hold.
pub fn operate_points<F: Form>(
    arena: &ClientArena<'_>,
    form: F,
    fill_size: usize,
    draws: &[Draws; 2],
    operations: impl IntoIterator<Item = Operation>,
) {
    let pool = TestPool::with_form(arena, fill_size, form);
    let mut run = Run::create(&pool, draws).unwrap();
    let mut refuses = false;
    for operation in operations {
        match operation {
            Operation::RefuseFills(now) => {
                refuses = now;
                pool.fail_fills(now.then_some(Error::Frozen));
            }
            Operation::Preallocate(size) => pool.preallocate(size),
            other => match run.operate(other) {
                Ok(()) | Err(Error::Limit) => {}
                Err(error) => {
                    assert!(refuses && error == Error::Frozen, "refused although it need not: {error}")
                }
            },
        }
        run.check();
        assert_in_fills(&pool);
    }
    let oracle = run.finish();
    assert!(pool.fills().is_empty(), "fills that were not returned: {:?}", pool.fills());
    oracle.live().assert_kept();
    pool.check(CheckLevel::Deep).unwrap();
    arena.check(CheckLevel::Deep).unwrap();
}

/// Checks that each buffer has memory of a fill of its own that is out.
fn assert_in_fills<F: Form>(pool: &TestPool<'_, F>) {
    let mut fills = pool.fills();
    tripoint_ap::for_each_buffer(pool, |buffer| {
        let range = buffer.snapshot().unwrap().range();
        if !range.is_empty() {
            let fill = fills.iter().position(|fill| fill.limit() == range.limit());
            let fill = fills.swap_remove(fill.unwrap_or_else(|| panic!("{range} of a buffer is in no fill")));
            assert!(range.covers(fill), "a buffer has {range} of its fill {fill}");
        }
    });
    assert!(fills.is_empty(), "fills in no buffer: {fills:?}");
}
