//! The layouts that a reserve may be asked for.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::common::{
    FILL, FlipPool, MIN_ALIGN, OBJECT, addr, allocate, allocate_through, flip, refusal, with_arena, with_bump,
};
use tripoint_ap::{AllocationPoint, CommitFailed};
use tripoint_core::{Arena, Error, INLINE_SIZE_MAX, PoolClass, SymmetricFence};

#[test]
fn unserved_layouts_are_refused_and_change_nothing() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        allocate(&mut point, OBJECT).unwrap();
        let before = point.buffer().snapshot();
        for (size, align) in
            [(crate::common::SIZE_MAX + 1, 1), (isize::MAX as usize, 1), (1, 2 * crate::common::ALIGN_MAX)]
        {
            let layout = Layout::from_size_align(size, align).unwrap();
            assert!(matches!(refusal(&mut point, layout), Error::Parameter(_)));
        }
        assert_eq!(point.buffer().snapshot(), before);
    });
}

#[test]
fn sizes_above_the_inlined_path_are_served() {
    with_arena(24 << 20, |arena| {
        let pool = FlipPool::create(arena, FILL, SymmetricFence);
        let mut point = AllocationPoint::create(&pool).unwrap();
        for size in [INLINE_SIZE_MAX, INLINE_SIZE_MAX + 16, crate::common::SIZE_MAX] {
            let layout = Layout::from_size_align(size, 8).unwrap();
            allocate(&mut point, layout).unwrap();
            assert_eq!(allocate_through(&mut point, layout, || flip(&pool)), Err(CommitFailed));
        }
    });
}

#[test]
fn every_alignment_is_kept() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        for log in 0..=crate::common::ALIGN_MAX.ilog2() {
            // Something small before, so that the place is mostly not aligned.
            point.alloc(0_u8).unwrap();
            let layout = Layout::from_size_align(24, 1 << log).unwrap();
            let object = allocate(&mut point, layout).unwrap();
            assert!(addr(object).get().is_multiple_of(1 << log));
        }
    });
}

#[test]
fn types_without_size_take_no_memory() {
    #[derive(Debug)]
    #[repr(align(256))]
    struct Nothing;
    with_bump(|pool| {
        pool.fail_fills(Some(Error::Memory));
        let mut point = AllocationPoint::create(pool).unwrap();
        assert!(addr(NonNull::from(point.alloc(Nothing).unwrap())).get().is_multiple_of(256));
        point.boxed(Nothing).unwrap();
        let mut batch = point.batch::<Nothing>(3).unwrap();
        assert!((0..3).all(|_| batch.push(Nothing).is_ok()) && batch.push(Nothing).is_err());
        assert_eq!(batch.commit().len(), 3);
        assert!(point.is_reset());
    });
}

#[test]
fn layouts_without_size_get_the_smallest_object() {
    with_bump(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let nothing = Layout::new::<()>();
        let (first, second) =
            (allocate(&mut point, nothing).unwrap(), allocate(&mut point, nothing).unwrap());
        assert_eq!(addr(second).get() - addr(first).get(), MIN_ALIGN);
    });
}

#[test]
fn preallocated_memory_is_left_alone_and_not_counted() {
    with_bump(|pool| {
        pool.preallocate(256);
        let counts = pool.header().arena().counts();
        let mut point = AllocationPoint::create(pool).unwrap();
        let object = allocate(&mut point, OBJECT).unwrap();
        let now = point.buffer().snapshot().unwrap();
        assert_eq!(addr(object).get() - now.base.get(), 256);
        assert_eq!(point.buffer().fill_size() as usize, now.range().size() - 256);
        point.empty();
        assert_eq!(counts.alloc_mutator.get(), OBJECT.size() as u64);
        assert_eq!(counts.fill_mutator.get() - counts.empty_mutator.get(), OBJECT.size() as u64);
    });
}
