//! Defaults of the traits, and what they say of pools.

use core::alloc::Layout;
use core::error::Error as _;

use tripoint_core::{
    BufferClass, Error, Exhausted, GivesWay, KeepsInBuffer, ManualPool, OwnBuffer, PoolClass, PoolSizes,
    RankSet, Store,
};

use crate::{GRAIN, Whole, with_pool};

#[test]
fn objects_stay_where_both_layouts_take_the_same_room() {
    with_pool(|pool| {
        let layout = |size, align| Layout::from_size_align(size, align).unwrap();
        assert!(pool.resizes_in_place(layout(10, 8), layout(GRAIN, 8)));
        assert!(!pool.resizes_in_place(layout(10, 8), layout(GRAIN + 1, 8)), "more room");
        assert!(!pool.resizes_in_place(layout(10, 8), layout(10, 16)), "another alignment");
        let unserved = layout(10, 2 * GRAIN);
        assert!(!pool.resizes_in_place(unserved, unserved), "not served");
    });
}

#[test]
fn a_class_that_keeps_nothing_with_its_buffers_need_not_say_so() {
    with_pool(|pool| {
        let (kept, layout) = (pool.new_buffer(), Layout::new::<[u8; GRAIN]>());
        // SAFETY: the pool made it, and the test is the owner.
        let own = unsafe { OwnBuffer::new(pool, &kept) };
        assert_eq!((own.pool().header().id(), own.kept().rank_set()), (pool.header().id(), RankSet::empty()));
        // SAFETY: the buffer never had memory.
        assert!(unsafe { Whole::fill_buffer(own, layout) }.unwrap().is_none(), "it is filled as any other");
        let fill = pool.fill(layout).unwrap();
        assert_eq!((fill.block.size(), fill.preallocated, fill.segment), (GRAIN, 0, None));
        assert!(Whole::next_run(own, layout).is_none(), "a fill is one run");
        // SAFETY: all of the fill, never used.
        let unused = unsafe { Whole::empty_buffer(own, fill.block) }.unwrap();
        assert_eq!(unused.range(), fill.block.range(), "the pool has yet to take it back");
        // SAFETY: all of the fill, never used.
        unsafe { pool.empty(unused) };
        assert_eq!(pool.header().total(), 0);
        let object = pool.alloc(layout).unwrap();
        // SAFETY: allocated above with this layout, and not used any more.
        unsafe { Whole::free_in_buffer(own, object, layout) };
        assert_eq!(pool.header().total(), 0, "freed at once");
        assert!(Whole::alloc_in_buffer(own, layout).is_none());
        Whole::flush_buffer(own);
        // SAFETY: no object of the pool is used.
        assert!(!unsafe { Whole::finish_buffer(own) }, "it takes no objects back");
        // SAFETY: the buffer is reset.
        unsafe { Whole::give_way(own) };
        assert!(!pool.wants_stop());
    });
}

#[test]
fn fragmentation_is_what_is_not_in_the_largest_block() {
    let fragmentation =
        |free, largest_free| PoolSizes { free, largest_free, ..PoolSizes::default() }.fragmentation();
    assert_eq!(fragmentation(0, 0), 0);
    assert_eq!(fragmentation(100, 100), 0);
    assert_eq!(fragmentation(100, 25), 750);
    assert_eq!(fragmentation(1000, 1), 999);
    assert_eq!(fragmentation(usize::MAX, 0), 1000, "and the sum does not wrap");
    assert_eq!(fragmentation(64, 128), 0, "a block that grows where it lies may be larger");
}

#[test]
fn a_refusal_says_who_refused_what_and_what_is_left() {
    with_pool(|pool| {
        pool.keep_free(2 * GRAIN);
        pool.keep_free(GRAIN);
        let layout = Layout::from_size_align(1000, 32).unwrap();
        let refusal = Exhausted::of(pool, layout, Error::Limit);
        let expected =
            Exhausted { class: "Whole", size: 1000, align: 32, largest_free: 2 * GRAIN, cause: Error::Limit };
        assert_eq!(refusal, expected);
        assert_eq!(
            refusal.to_string(),
            format!(
                "Whole has no 1000 bytes aligned to 32 (largest free block: 512 bytes): {}",
                Error::Limit
            )
        );
        assert_eq!(refusal.source().unwrap().to_string(), Error::Limit.to_string());
    });
}
