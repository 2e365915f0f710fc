//! Objects of allocation points, which have no fences (design/debug.md `.debug.points`).

use super::*;

#[test]
fn a_write_to_freed_memory_of_a_point_is_found() {
    for_each_class!(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        // SAFETY: any bytes make the object. It is freed once rightly; the write is a fault,
        // to memory that is still the arena's, by a pointer that no reference narrowed.
        let object = unsafe {
            let object = point.reserve(Layout::new::<u64>()).unwrap().commit().unwrap();
            pool.free(object, Layout::new::<u64>());
            object.write(9);
            pool.free(object, Layout::new::<u64>());
            object
        };
        assert_eq!(only_report(pool).fault, Fault::DoubleFree);
        let mut found = Vec::new();
        pool.inspect(&mut |report| found.push(report.fault));
        assert_eq!(found, [Fault::UsedAfterFree { at: addr_of(object) }]);
    });
}

/// (design/debug.md `.debug.points`): what an abandoned reservation left behind is
/// not reported as an overrun.
#[test]
fn objects_of_points_may_follow_abandoned_ones() {
    for_each_class!(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let large = layout(200, 8);
        let abandoned = point.reserve(large).unwrap();
        // SAFETY: reserved just now.
        unsafe { abandoned.as_ptr().write_bytes(0xee, 200) };
        drop(abandoned);
        let small = point.boxed(3_u32).unwrap();
        drop(small);
        drop(point);
        assert_clean(pool);
        assert_eq!(pool.sizes().free, pool.sizes().total);
    });
}

/// What a point returned is no object.
#[test]
fn freeing_what_a_point_returned_is_found() {
    for_each_class!(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let abandoned = point.reserve(layout(40, 8)).unwrap().as_ptr();
        drop(point);
        // SAFETY: a debug pool looks before it touches.
        unsafe { pool.free(abandoned, layout(40, 8)) };
        assert_eq!(only_report(pool).fault, Fault::DoubleFree);
    });
}

#[test]
fn freeing_more_than_a_point_had_is_found() {
    let mut memory = memory(32);
    let arena = arena(&mut memory);
    let options = MvffOptions { fill_size: 64, ..MvffOptions::default() };
    let pool = debug(Mvff::create(&arena, options).unwrap());
    let mut point = AllocationPoint::create(&pool).unwrap();
    let object = NonNull::from(point.alloc([1_u8; 40]).unwrap()).cast::<u8>();
    drop(point);
    // SAFETY: an object of the pool; a debug pool looks at the layout.
    unsafe { pool.free(object, layout(2000, 1)) };
    assert!(matches!(only_report(&pool).fault, Fault::WrongLayout { align: 1, .. }));
    // SAFETY: allocated from this pool above, with this layout; freed once, and not used any more.
    unsafe { pool.free(object, Layout::new::<[u8; 40]>()) };
    assert_eq!(pool.reports().count(), 1);
}

/// In a fill too, in which the ledger does not know the bases of objects.
#[test]
fn a_pointer_into_an_object_of_a_point_is_found() {
    for_each_class!(|pool| {
        let mut point = AllocationPoint::create(pool).unwrap();
        let layout = Layout::new::<[u64; 5]>();
        let object = PoolBox::into_raw(point.boxed([7_u64; 5]).unwrap()).cast::<u8>();
        for offset in [1, 4, size_of::<usize>() + 1, pool.min_align() - 1] {
            // SAFETY: inside the object; a debug pool looks before it touches.
            unsafe { pool.free(object.add(offset), layout) };
            let report = *pool.reports().iter().last().unwrap();
            assert_eq!(report.fault, Fault::Interior, "{offset}");
        }
        if pool.min_align() > size_of::<usize>() {
            // SAFETY: inside the object; a debug pool looks before it touches.
            unsafe { pool.free(object.add(size_of::<usize>()), layout) };
            assert_eq!(pool.reports().iter().last().unwrap().fault, Fault::Interior);
        }
        // The object is unchanged, and is freed as usual.
        let found = pool.reports().count();
        // SAFETY: committed, and alive.
        assert_eq!(unsafe { object.cast::<[u64; 5]>().read() }, [7; 5]);
        // SAFETY: committed with this layout, and freed once.
        unsafe { pool.free(object, layout) };
        assert_eq!(pool.reports().count(), found);
    });
}
