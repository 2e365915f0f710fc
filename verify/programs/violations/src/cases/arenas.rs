//! More than an arena has.

use core::alloc::Layout;

use tripoint::contract::PoolEvents;
use tripoint::{
    AllocationPoint, Arena, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Mfs, MfsOptions,
    Mvff, MvffOptions, Prefault, Store, Tlsf, TlsfOptions, UnitOf,
};

use crate::case::{Case, FAULT, GROWTH, Group, LIBRARY, MEMORY_CALL, forever, once};

static EVENTS: PoolEvents = PoolEvents;

pub(crate) type Order = [u64; 4];

/// A request that no part of a small arena has room for.
const LARGE: Layout = Layout::new::<[u64; 1 << 20]>();

/// An arena that reports what it does. What it commits has memory at once.
pub(crate) fn arena() -> &'static ArenaVm {
    let options = ArenaVmOptions {
        reserve: 1 << 30,
        prefault: Prefault::AtFill,
        event_hook: Some(&EVENTS),
        ..ArenaVmOptions::default()
    };
    forever(ArenaVm::create(options).expect("the system has addresses"))
}

/// An arena, and a pool over it that has little.
fn small() -> (&'static ArenaVm, &'static Mvff<&'static ArenaVm>) {
    let arena = arena();
    let pool = forever(Mvff::create(arena, MvffOptions::default()).expect("the arena has room"));
    (arena, pool)
}

pub(crate) const GROUP: Group = Group {
    name: "more than an arena has",
    cases: &[
        Case::new("a point asks a frozen arena for more", GROWTH, || {
            let (arena, pool) = small();
            let mut point = AllocationPoint::create(pool).expect("the arena has room");
            arena.freeze();
            once(move || {
                drop(point.reserve(LARGE));
                core::mem::forget(point);
            })
        })
        .may(FAULT),
        Case::new("a pool of any size asks a frozen arena for more", GROWTH, || {
            let (arena, pool) = small();
            arena.freeze();
            once(move || assert!(pool.alloc(LARGE).is_err()))
        })
        .may(FAULT),
        Case::new("a pool of one size is full, and its arena frozen", GROWTH, || {
            let arena = arena();
            let pool = forever(
                Mfs::create(arena, UnitOf::<Order>::new(), MfsOptions::default())
                    .expect("the arena has room"),
            );
            let cache = forever(pool.cache());
            arena.freeze();
            once(move || {
                while let Ok(order) = cache.boxed([7; 4]) {
                    core::mem::forget(order);
                }
            })
        })
        .may(FAULT),
        Case::new("a cache asks a frozen arena for more", GROWTH, || {
            let arena = arena();
            let pool = forever(Tlsf::create(arena, TlsfOptions::default()).expect("the arena has room"));
            let classes = CacheClasses::geometric(512, 8).expect("classes that caches may have");
            let descriptor = forever(CacheDescriptor::new(classes));
            let cache = forever(Cache::create(pool, descriptor).expect("the arena has room"));
            arena.freeze();
            once(move || {
                while let Ok(order) = cache.boxed([7_u64; 4]) {
                    core::mem::forget(order);
                }
            })
        })
        .may(FAULT),
        Case::new("an arena that is not frozen grows", GROWTH | MEMORY_CALL | LIBRARY, || {
            let (_, pool) = small();
            once(move || assert!(pool.alloc(LARGE).is_ok()))
        })
        .may(FAULT),
    ],
};
