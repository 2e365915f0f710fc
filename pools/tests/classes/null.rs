//! The null class has every trait, serves nothing and loses nothing
//! (design/pool-null.md `.req.small`).

use crate::common::{arena, layout, memory};
use tripoint_ap::AllocationPoint;
use tripoint_core::{
    Arena, Check, CheckLevel, Describe, Error, Exhausted, PoolBox, PoolClass, PoolSizes, Store, walk,
};
use tripoint_pools::Null;

#[test]
fn it_refuses_everything() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let pool = Null::create(&arena).unwrap();
    for layout in [layout(0, 1), layout(1, 1), layout(64, 64), layout(isize::MAX as usize, 1)] {
        assert_eq!(pool.reserve_size(layout), None);
        assert!(matches!(pool.alloc(layout), Err(Error::Parameter(_))));
        assert!(matches!(pool.fill(layout), Err(Error::Parameter(_))));
        let exhausted = Exhausted::of(&pool, layout, Error::Limit);
        assert_eq!((exhausted.class, exhausted.largest_free), ("N", 0));
    }
    assert!(PoolBox::new_in(7, &pool).is_err());
    assert_eq!(pool.sizes(), PoolSizes::default());
    walk(&pool, |block, _| panic!("{block:?} is nowhere"));
    pool.check(CheckLevel::Deep).unwrap();
}

#[test]
fn its_points_stay_reset() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let pool = Null::create(&arena).unwrap();
    let mut point = AllocationPoint::create(&pool).unwrap();
    assert!(matches!(point.reserve(layout(16, 8)), Err(Error::Parameter(_))));
    let frame = point.push();
    point.scope(|frame| {
        assert!(frame.alloc(1).is_err());
        assert_eq!(*frame.alloc(()).unwrap(), ());
    });
    assert!(point.is_reset());
    // SAFETY: of this point, and nothing was allocated in it.
    unsafe { point.pop(frame) };
    assert!(point.is_reset());
    assert_eq!(arena.counts().fills.get(), 0);
}

#[test]
fn it_is_created_and_dropped() {
    let mut memory = memory(8);
    let arena = arena(&mut memory);
    let before = arena.sizes();
    let pool = Null::create(&arena).unwrap();
    let mut text = String::new();
    pool.describe(&mut text, 0).unwrap();
    assert!(text.starts_with("pool: N #"), "{text}");
    drop(pool);
    assert_eq!(arena.sizes(), before);
}
