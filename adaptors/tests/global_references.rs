//! References to a global pool, from its maker and from other callers, used in turn. Miri
//! reports an error, in either model of aliasing, if one permits less than another.

use core::alloc::{GlobalAlloc, Layout};
use std::thread;

use tripoint_adaptors::GlobalPool;
use tripoint_core::{ClientArena, ClientArenaOptions, PoolClass, Result, Store};
use tripoint_pools::{Mvff, MvffOptions};

type Pool = Mvff<ClientArena<'static>>;

fn make() -> Result<Pool> {
    let memory = Box::leak(Box::new_uninit_slice(256 << 10));
    Mvff::create(ClientArena::create(memory, ClientArenaOptions::default())?, MvffOptions::default())
}

const LAYOUT: Layout = Layout::new::<[u64; 4]>();

#[test]
fn the_makers_reference_is_as_good_as_any() {
    static POOL: GlobalPool<Pool> = GlobalPool::new(make);
    let makers = POOL.pool().unwrap();
    let others = POOL.pool().unwrap();
    let object = others.alloc(LAYOUT).unwrap();
    // SAFETY: from this pool, with this layout, freed once.
    unsafe { makers.free(object, LAYOUT) };
    let sizes = others.sizes();
    assert_eq!((sizes.total, sizes), (sizes.free, makers.sizes()));
}

#[test]
fn threads_that_race_to_make_it_all_use_it() {
    static POOL: GlobalPool<Pool> = GlobalPool::new(make);
    thread::scope(|scope| {
        for byte in 0..2 {
            scope.spawn(move || {
                for _ in 0..10 {
                    // SAFETY: a layout with a size.
                    let object = unsafe { POOL.alloc(LAYOUT) };
                    assert!(!object.is_null());
                    // SAFETY: of this size, and this thread's.
                    unsafe { object.write_bytes(byte, LAYOUT.size()) };
                    // SAFETY: written above.
                    assert_eq!(unsafe { object.add(LAYOUT.size() - 1).read() }, byte);
                    // SAFETY: from this allocator, with this layout, freed once.
                    unsafe { POOL.dealloc(object, LAYOUT) };
                }
            });
        }
    });
    let sizes = POOL.pool().unwrap().sizes();
    assert_eq!(sizes.total, sizes.free);
}
