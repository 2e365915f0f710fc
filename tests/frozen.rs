//! A frozen arena serves every class from what it has, to nearly the last byte. This includes
//! what the classes need for themselves (design/arena-vm.md `.descriptors`).
#![cfg(feature = "vm")]

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint::author::CacheClass;
use tripoint::debug::{DebugOptions, DebugPool};
use tripoint::{
    AllocationPoint, Arena, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Check, CheckLevel,
    Error, ManualPool, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Prefault, Snc, SncOptions, Store,
    Tlsf, TlsfOptions, UnitLayout,
};

const MIB: usize = 1 << 20;

/// What the arena has when it is frozen.
const SPARE: usize = 16 * MIB;

/// The size of an object.
const SIZE: usize = 1008;

fn layout() -> Layout {
    Layout::from_size_align(SIZE, 16).unwrap()
}

fn arena() -> ArenaVm {
    let arena = ArenaVm::create(ArenaVmOptions {
        reserve: 64 * MIB,
        reserve_floor: 64 * MIB,
        prefault: Prefault::Size(SPARE),
        ..Default::default()
    })
    .unwrap();
    assert_eq!(arena.sizes().spare, SPARE);
    arena
}

/// Freezes the arena and allocates until it refuses: with the right error, and with no
/// memory left. Returns the bytes served.
fn serve(arena: &ArenaVm, mut alloc: impl FnMut() -> Result<NonNull<u8>, Error>) -> usize {
    let committed = arena.sizes().committed;
    arena.freeze();
    let mut served = 0;
    let refused = loop {
        match alloc() {
            Ok(object) => {
                // SAFETY: allocated just now, of this size.
                unsafe { object.write_bytes(0xa5, SIZE) };
                served += SIZE;
            }
            Err(error) => break error,
        }
    };
    assert_eq!(refused, Error::Frozen);
    let sizes = arena.sizes();
    assert_eq!(sizes.committed, committed, "frozen");
    assert!(sizes.spare < arena.grain(), "every spare grain was used: {sizes:?}");
    assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
    served
}

fn assert_serves<P: ManualPool>(arena: &ArenaVm, name: &str, percent: usize, pool: &P) {
    let served = serve(arena, || pool.alloc(layout()));
    println!("{name}: {} KiB of {} KiB", served >> 10, SPARE >> 10);
    assert!(served * 100 >= SPARE * percent, "{name} served {served} of {SPARE} bytes");
}

#[test]
fn classes_of_objects_serve_all_spare_memory() {
    let extend_by = 64 << 10;
    let options = MvffOptions { extend_by, ..Default::default() };
    let first = arena();
    assert_serves(&first, "Mvff", 99, &Mvff::create(&first, options).unwrap());
    let first = arena();
    let tlsf = TlsfOptions { extend_by, ..Default::default() };
    assert_serves(&first, "Tlsf", 98, &Tlsf::create(&first, tlsf).unwrap());
    let first = arena();
    assert_serves(&first, "Mvt", 99, &Mvt::create(&first, MvtOptions::default()).unwrap());
    let first = arena();
    let mfs = MfsOptions { extend_by, ..Default::default() };
    assert_serves(&first, "Mfs", 99, &Mfs::create(&first, UnitLayout::new(layout()).unwrap(), mfs).unwrap());
}

#[test]
fn debug_pools_serve_all_spare_memory() {
    let extend_by = 64 << 10;
    let debug = DebugOptions::default();
    let first = arena();
    let pool = Mvff::create(&first, MvffOptions { extend_by, ..Default::default() }).unwrap();
    assert_serves(&first, "DebugPool<Mvff>", 94, &DebugPool::create(pool, debug).unwrap());
    let first = arena();
    let pool = Tlsf::create(&first, TlsfOptions { extend_by, ..Default::default() }).unwrap();
    assert_serves(&first, "DebugPool<Tlsf>", 93, &DebugPool::create(pool, debug).unwrap());
}

#[test]
fn caches_and_points_serve_all_spare_memory() {
    let first = arena();
    let pool = Tlsf::create(&first, TlsfOptions { extend_by: 64 << 10, ..Default::default() }).unwrap();
    let classes = [CacheClass { size: SIZE, count: 4 }];
    let descriptor = CacheDescriptor::new(CacheClasses::new(&classes).unwrap());
    let cache = Cache::create(&pool, &descriptor).unwrap();
    let served = serve(&first, || cache.alloc(layout()));
    assert!(served * 100 >= SPARE * 95, "Cache<Tlsf> served {served}");

    let first = arena();
    let pool = Snc::create(&first, SncOptions { extend_by: 64 << 10, ..Default::default() }).unwrap();
    let mut point = AllocationPoint::create(&pool).unwrap();
    let served = serve(&first, || {
        let reservation = point.reserve(layout())?;
        let object = reservation.as_ptr();
        // SAFETY: any bytes are an object; it is written once it is out.
        assert!(unsafe { reservation.commit() }.is_ok());
        Ok(object)
    });
    assert!(served * 100 >= SPARE * 90, "a point of Snc served {served}");
}

/// The first point that finds no room in the page of descriptors.
#[test]
fn points_are_made_once_the_page_of_descriptors_is_full() {
    let arena = arena();
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let first = AllocationPoint::create(&pool).unwrap();
    arena.freeze();
    let points: Vec<_> = (0..1000).map(|_| AllocationPoint::create(&pool).unwrap()).collect();
    let sizes = arena.sizes();
    assert!(sizes.spare < SPARE, "a grain of spare memory serves descriptors");
    assert_eq!(arena.counts().growth_refused.get(), 0);
    drop((first, points));
    assert_eq!(arena.sizes(), sizes, "and keeps doing so");
}

#[test]
fn a_refusal_says_what_is_missing_and_what_to_do() {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    arena.freeze();
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let refused = AllocationPoint::create(&pool).unwrap_err().to_string();
    for part in ["frozen", "spare grains", "before freezing", "points and caches", "thaw"] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
}
