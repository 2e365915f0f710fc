//! Collections of `allocator_api2` and `hashbrown`.

use tripoint_adaptors::PoolAllocator;
use tripoint_core::{CheckLevel, ManualPool, PoolClass};
use tripoint_pools::{
    DebugOptions, DebugPool, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Tlsf, TlsfOptions,
    UnitLayout,
};

use crate::layout;

/// (design/adaptors.md `.req.in-place`)
#[test]
fn a_vector_grows_in_place_while_the_memory_behind_it_is_free() {
    with_pool!(|arena| Tlsf::create(arena, TlsfOptions::default()), |pool| {
        let mut bytes = allocator_api2::vec::Vec::with_capacity_in(64, PoolAllocator::new(pool));
        bytes.extend(0..64_u8);
        let (place, kept) = (bytes.as_ptr(), bytes.clone());
        while bytes.capacity() < 4096 {
            let twice = bytes.capacity();
            bytes.reserve_exact(twice + bytes.capacity() - bytes.len());
            if bytes.as_ptr() != place {
                break;
            }
        }
        assert!(bytes.as_ptr() != place && bytes[..] == kept[..], "it has moved past its copy");
        drop(kept);
        let place = bytes.as_ptr();
        bytes.reserve_exact(4096);
        assert_eq!(bytes.as_ptr(), place);
        bytes.shrink_to(100);
        assert_eq!((bytes.as_ptr(), bytes.capacity()), (place, 100));
        assert!(bytes.iter().copied().eq(0..64));
        drop(bytes);
        assert_eq!(pool.sizes().free, pool.sizes().total);
    });
}

/// (design/adaptors.md `.req.refused`)
#[test]
fn a_refusal_leaves_the_block_as_it_was() {
    with_pool!(|arena| Mvff::create(arena, MvffOptions::default()), |pool| {
        let allocator = PoolAllocator::new(pool);
        let mut bytes = allocator_api2::vec::Vec::new_in(allocator);
        bytes.extend(0..100_u8);
        let before = pool.sizes();
        assert!(bytes.try_reserve(1 << 20).is_err());
        assert!(bytes.try_reserve(isize::MAX as usize - 100).is_err());
        assert!(bytes.iter().copied().eq(0..100));
        assert_eq!(pool.sizes(), before);

        let mut map = hashbrown::HashMap::new_in(allocator);
        map.insert(1, 2);
        assert!(map.try_reserve(1 << 20).is_err());
        assert_eq!(map[&1], 2);
    });
}

#[test]
fn it_says_which_store_it_is() {
    with_pool!(|arena| Mvff::create(arena, MvffOptions::default()), |pool| {
        let allocator = PoolAllocator::new(pool);
        assert_eq!(format!("{allocator:?}"), format!("PoolAllocator({:?})", &raw const *pool));
        assert!(core::ptr::eq(allocator.store(), pool));
    });
}

/// Collections free through a pointer that may have passed through a reference to the
/// elements alone. Miri reports it if the pool reaches further with that pointer.
/// (design/adaptors.md `.req.contract`)
fn narrows_and_frees<P: ManualPool>(pool: &P) {
    use allocator_api2::boxed::Box;
    use allocator_api2::vec::Vec;
    let allocator = PoolAllocator::new(pool);
    let boxes: [_; 4] = core::array::from_fn(|_| Box::into_boxed_slice(Box::new_in(7_u8, allocator)));
    drop(boxes);
    let mut bytes = Vec::with_capacity_in(3, allocator);
    bytes.extend([1_u8, 2, 3]);
    // Grown in place, from a slice that reached three bytes.
    let mut bytes = bytes.into_boxed_slice().into_vec();
    bytes.extend([4, 5, 6, 7, 8]);
    assert_eq!(bytes.as_slice(), [1, 2, 3, 4, 5, 6, 7, 8]);
    let (raw, _) = Box::into_raw_with_allocator(Box::new_in([1_u8; 5], allocator));
    // SAFETY: from a box of this allocator, just now.
    drop(unsafe { Box::from_raw_in(raw, allocator) });
    drop(bytes);
    pool.check(CheckLevel::Deep).unwrap();
}

#[test]
fn what_collections_narrow_is_freed_whole() {
    with_pool!(|arena| Mvff::create(arena, MvffOptions::default()), |pool| narrows_and_frees(pool));
    with_pool!(|arena| Tlsf::create(arena, TlsfOptions::default()), |pool| narrows_and_frees(pool));
    with_pool!(|arena| Mvt::create(arena, MvtOptions::default()), |pool| narrows_and_frees(pool));
    with_pool!(
        |arena| Mfs::create(arena, UnitLayout::new(layout(64, 8)).unwrap(), MfsOptions::default()),
        |pool| narrows_and_frees(pool)
    );
    with_pool!(
        |arena| DebugPool::create(
            Mvff::create(arena, MvffOptions::default()).unwrap(),
            DebugOptions::default()
        ),
        |pool| narrows_and_frees(pool)
    );
}
