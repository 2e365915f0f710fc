//! Allocation points: what they were filled with, less what they returned, is what
//! they allocated.

use core::alloc::Layout;

use tripoint_ap::AllocationPoint;
use tripoint_core::{Arena, ManualPool, PoolBox, PoolClass, PoolSizes};

use crate::common::{Oracle, pick};

/// The bytes a pool has and could not give out. Ends of extents that make no unit
/// count as used from the first extent on, so there has to be one.
fn used(sizes: PoolSizes) -> usize {
    sizes.total - sizes.free
}

/// A fill takes memory from what is free, and an empty returns the rest.
pub(crate) fn fills_and_empties_balance<P: PoolClass>(pool: &P, layout: Layout) {
    let mut oracle = Oracle::default();
    oracle.fill(pool, layout, 1).unwrap();
    oracle.clear_rests(pool);
    let size = pool.reserve_size(layout).unwrap();
    for objects in 0..5 {
        let before = oracle.agree(pool);
        let count = oracle.addresses(true).len();
        let filled = oracle.fill(pool, layout, objects).unwrap().size();
        let during = oracle.agree(pool);
        assert_eq!(used(during) - used(before), filled, "a fill takes free memory");
        let allocated = (oracle.addresses(true).len() - count) * size;
        oracle.clear_rests(pool);
        let after = oracle.agree(pool);
        assert_eq!(used(during) - used(after), filled - allocated, "an empty returns the rest");
    }
}

/// Two allocation points at once, with objects of all layouts in turn
/// (design/conformance.md `.req.identity`).
pub(crate) fn two_points_balance<P: PoolClass>(pool: &P, layouts: &[Layout]) {
    let mut points = [AllocationPoint::create(pool).unwrap(), AllocationPoint::create(pool).unwrap()];
    let mut allocated = [0, 0];
    for round in 0..40 {
        let which = round % 2;
        let Some(layout) = pick(layouts, round / 3) else { return };
        let reservation = points[which].reserve(layout).unwrap();
        let (object, size) = (reservation.as_ptr(), reservation.size());
        assert!(object.addr().get().is_multiple_of(layout.align()));
        // Some reservations are abandoned.
        if round % 7 != 0 {
            // SAFETY: reserved, and so large.
            unsafe { object.write_bytes(0xA5, size) };
            // SAFETY: written just now.
            unsafe { reservation.commit() }.unwrap();
            allocated[which] += (size + P::SEAL_SIZE) as u64;
        }
    }
    for (point, allocated) in points.iter_mut().zip(allocated) {
        point.empty();
        assert_eq!(point.buffer().fill_size() - point.buffer().empty_size(), allocated);
    }
    let counts = pool.header().arena().counts();
    let sum = allocated[0] + allocated[1];
    assert_eq!(counts.fill_mutator.get() - counts.empty_mutator.get(), sum);
    assert_eq!(counts.alloc_mutator.get(), sum);
    let live = used(Oracle::default().agree(pool)) as u64;
    assert!(live >= sum, "{live} bytes are used, {sum} were allocated");
}

/// Objects from allocation points are freed like others.
pub(crate) fn objects_of_points_are_freed<P: ManualPool>(pool: &P) {
    let keep = PoolBox::new_in(1_u64, pool).unwrap();
    let before = pool.sizes();
    let mut point = AllocationPoint::create(pool).unwrap();
    let boxes: Vec<_> = (0..50_u64).map(|value| point.boxed([value, !value]).unwrap()).collect();
    drop(point);
    assert!(used(pool.sizes()) > used(before));
    for (value, boxed) in (0..).zip(&boxes) {
        assert_eq!(**boxed, [value, !value]);
    }
    drop(boxes);
    let slack_of_new_extents = pool.sizes().total - before.total;
    assert!(used(pool.sizes()) - used(before) <= slack_of_new_extents);
    Oracle::default().agree(pool);
    assert_eq!(*keep, 1);
}
