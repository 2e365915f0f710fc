//! The typed forms: objects, boxes and batches.

use core::cell::Cell;

use crate::common::{Counted, FILL, Unformatted, flip, with_bump, with_flip};
use tripoint_ap::{AllocationPoint, CommitFailed};
use tripoint_core::{Error, PoolBox, PoolClass};

#[test]
fn objects_live_as_long_as_the_pool() {
    with_bump(|pool| {
        let dropped = Cell::new(0);
        let (object, boxed) = {
            let mut point = AllocationPoint::create(pool).unwrap();
            (
                point.alloc((7_u64, Counted(&dropped))).unwrap(),
                point.boxed((8_u64, Counted(&dropped))).unwrap(),
            )
        };
        assert_eq!((object.0, boxed.0, dropped.get()), (7, 8, 0));
        drop(boxed);
        assert_eq!(dropped.get(), 1);
    });
}

#[test]
fn refused_values_are_dropped() {
    with_bump(|pool| {
        pool.fail_fills(Some(Error::Memory));
        let dropped = Cell::new(0);
        let mut point = AllocationPoint::create(pool).unwrap();
        assert!(point.alloc(Counted(&dropped)).is_err());
        assert!(point.boxed(Counted(&dropped)).is_err());
        assert!(point.make_with(|| Counted(&dropped)).is_err());
        assert_eq!(dropped.get(), 2, "the last was never made");
    });
}

#[test]
fn a_batch_commits_what_was_pushed() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let mut batch = point.batch(10).unwrap();
        assert_eq!((batch.capacity(), batch.len(), batch.is_empty()), (10, 0, true));
        (0..3_u64).for_each(|value| batch.push([value; 2]).unwrap());
        assert_eq!((batch.capacity(), batch.len(), batch.is_empty()), (10, 3, false));
        assert_eq!(batch.as_slice(), [[0; 2], [1; 2], [2; 2]]);
        assert_eq!(batch.commit(), [[0; 2], [1; 2], [2; 2]]);
        assert_eq!(point.room(), FILL - 48);
    });
}

#[test]
fn an_abandoned_batch_drops_what_was_pushed() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let dropped = Cell::new(0);
        let mut batch = point.batch(2).unwrap();
        assert!((0..3).map(|_| batch.push(Counted(&dropped)).is_ok()).eq([true, true, false]));
        assert_eq!(dropped.get(), 1, "the third came back");
        drop(batch);
        assert_eq!((dropped.get(), point.room()), (3, FILL));
    });
}

#[test]
fn a_boxed_batch_drops_and_frees_each_once() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let dropped = Cell::new(0);
        let mut batch = point.batch(8).unwrap();
        assert!((0..5).all(|_| batch.push(Counted(&dropped)).is_ok()));
        let boxed: PoolBox<'_, [Counted<'_>], _> = batch.commit_boxed();
        let free = pool.sizes().free;
        assert_eq!((boxed.len(), dropped.get()), (5, 0));
        drop(boxed);
        assert_eq!((dropped.get(), pool.sizes().free), (5, free + 48));
    });
}

#[test]
fn a_batch_that_fails_drops_what_was_pushed() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let dropped = Cell::new(0);
        let mut batch = point.batch(4).unwrap();
        assert!(batch.push((1_u64, Counted(&dropped))).is_ok());
        flip(pool);
        // SAFETY: the pool has no format, so no code reads the objects.
        assert_eq!(unsafe { batch.commit_raw() }.map(drop), Err(CommitFailed));
        assert_eq!((dropped.get(), point.room()), (1, FILL));
    });
}

#[test]
fn batches_of_flippable_pools_have_no_gaps() {
    with_flip(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        assert!(matches!(point.batch::<u64>(4).map(drop), Err(Error::Parameter(_))));
        assert!(matches!(point.batch::<u64>(usize::MAX).map(drop), Err(Error::Parameter(_))));
    });
}
