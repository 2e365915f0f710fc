//! Layouts a pool serves and layouts it does not.

use core::alloc::Layout;

use proptest::prelude::*;
use tripoint_core::{Error, ManualPool, PoolClass};

use crate::common::{Oracle, layout};

/// Any layout there can be, most of them small.
pub(crate) fn any_layout() -> impl Strategy<Value = Layout> {
    let size = prop_oneof![
        4 => 0..5000_usize,
        1 => any::<usize>().prop_map(|size| size >> 1),
        1 => (0..64_usize).prop_map(|less| isize::MAX as usize - less),
    ];
    (size, 0..20_u32)
        .prop_filter_map("a layout", |(size, align)| Layout::from_size_align(size, 1 << align).ok())
}

/// What a class says of a layout is always the same, and enough.
pub(crate) fn reserve_sizes_are_kept<P: PoolClass>(pool: &P, layout: Layout) {
    assert!(pool.min_align().is_power_of_two());
    let size = pool.reserve_size(layout);
    assert_eq!(size, pool.reserve_size(layout));
    if let Some(size) = size {
        assert!(size >= layout.size().max(1) && size.is_multiple_of(pool.min_align()));
    }
}

/// (design/conformance.md `.req.refuses`)
pub(crate) fn refuses_to_fill<P: PoolClass>(pool: &P, layout: Layout) {
    assert_eq!(pool.reserve_size(layout), None);
    assert!(matches!(pool.fill(layout), Err(Error::Parameter(_))));
    assert_eq!(pool.sizes().total, 0);
}

pub(crate) fn refuses<P: ManualPool>(pool: &P, layout: Layout) {
    assert!(matches!(pool.alloc(layout), Err(Error::Parameter(_))));
    refuses_to_fill(pool, layout);
}

/// Objects and fills aligned from a byte to a page, all live at once; the oracle looks
/// at each.
pub(crate) fn alignments_are_kept<P: ManualPool>(pool: &P, size: usize) {
    let mut oracle = Oracle::default();
    let step = if cfg!(miri) { 4 } else { 1 };
    for align in (0..13).step_by(step).map(|power| layout(size, 1 << power)) {
        if pool.reserve_size(align).is_none() {
            assert!(matches!(pool.alloc(align), Err(Error::Parameter(_))));
            continue;
        }
        for objects in 0..2 {
            oracle.alloc(pool, align).unwrap();
            oracle.fill(pool, align, objects).unwrap();
        }
        oracle.point(pool, align, 2).unwrap();
        oracle.agree(pool);
    }
    assert!(oracle.live_size() > 0);
    oracle.clear(pool);
    oracle.agree(pool);
}

/// An object that is resized in place has room for its new layout, and is freed by it.
/// Returns whether there was one.
pub(crate) fn resized_objects_are_freed<P: ManualPool>(pool: &P, from: Layout, to: Layout) -> bool {
    let resizes = pool.resizes_in_place(from, to);
    if resizes {
        let mut neighbours =
            [pool.alloc(from).unwrap(), pool.alloc(from).unwrap(), pool.alloc(from).unwrap()];
        neighbours.sort_unstable();
        let size = pool.reserve_size(to).unwrap();
        for pair in neighbours.windows(2) {
            assert!(pair[1].addr().get() - pair[0].addr().get() >= size, "there is room for both");
        }
        let neighbours = neighbours.map(|object| {
            // SAFETY: allocated above with this layout, and not freed.
            let resized = unsafe { pool.resize(object, from, to) };
            assert_eq!(resized, Some(object), "it is resized where it lies");
            object
        });
        for object in neighbours {
            // SAFETY: the pool says that the object has room for as many bytes.
            unsafe { object.write_bytes(0xA5, to.size()) };
        }
        for object in neighbours {
            // SAFETY: allocated above, and resized to this layout.
            unsafe { pool.free(object, to) };
        }
        Oracle::default().agree(pool);
    }
    resizes
}
