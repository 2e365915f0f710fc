//! A program that needed much memory for a while returns it: from the caches to the depot, from there to the pool, and,
//! with `spare` set, to the arena, which decommits it (design/adaptors.md `.cached.return`).

use core::alloc::GlobalAlloc;
use std::thread;

use tripoint_adaptors::{CachedGlobalPool, cached_global_pool};
use tripoint_arena_vm::ArenaVm;
use tripoint_core::{Arena, Check, CheckLevel, PoolClass};
use tripoint_oracle::Random;
use tripoint_pools::{Tlsf, TlsfOptions};

use crate::{arena, layout};

/// The memory in objects at the peak, in bytes.
const BURST: usize = 256 << 20;

/// What the pool keeps, in bytes.
const SPARE: usize = 8 << 20;

cached_global_pool! {
    static RETURNING: Tlsf<ArenaVm> = || {
        Tlsf::create(arena(1 << 30)?, TlsfOptions { spare: SPARE, ..TlsfOptions::default() })
    };
}

cached_global_pool! {
    static KEEPING: Tlsf<ArenaVm> = || Tlsf::create(arena(1 << 30)?, TlsfOptions::default());
}

/// An object of an allocator, which any thread may free.
struct Object {
    base: *mut u8,
    size: usize,
}

// SAFETY: memory that no thread uses; the allocator takes it from any thread.
unsafe impl Send for Object {}
// SAFETY: a shared reference reads only an address and a size.
unsafe impl Sync for Object {}

/// Allocates objects of 16 bytes to 4 KiB, `bytes` in all, and returns them in random order.
fn allocate(allocator: &impl GlobalAlloc, bytes: usize) -> Vec<Object> {
    let (mut objects, mut left, mut random) = (Vec::new(), bytes, Random::new(7));
    while left != 0 {
        let size = (16 + random.below(4081)).min(left);
        left -= size;
        // SAFETY: the layout has a size.
        let base = unsafe { allocator.alloc(layout(size)) };
        assert!(!base.is_null());
        objects.push(Object { base, size });
        // As if it had been allocated at another time.
        let last = objects.len() - 1;
        objects.swap(random.below(last + 1), last);
    }
    objects
}

fn free(allocator: &impl GlobalAlloc, objects: &[Object]) {
    for object in objects {
        // SAFETY: from `allocate` with this allocator and this size, and not used any more.
        unsafe { allocator.dealloc(object.base, layout(object.size)) };
    }
}

/// The bytes that the arena of an allocator has committed at the peak, after all was freed by two threads, and after what this
/// thread's cache and the depot keep was flushed.
fn committed<K>(allocator: &'static CachedGlobalPool<K>, bytes: usize) -> [usize; 3]
where
    K: tripoint_adaptors::internal::ThreadCached<Pool = Tlsf<ArenaVm>>,
{
    let pool = allocator.pool().unwrap();
    let committed = || pool.header().arena().sizes().committed;
    let objects = allocate(allocator, bytes);
    let peak = committed();
    let (here, there) = objects.split_at(objects.len() / 2);
    thread::scope(|scope| scope.spawn(|| free(allocator, there)).join()).unwrap();
    free(allocator, here);
    let freed = committed();
    allocator.flush_thread();
    allocator.flush_depot();
    pool.check(CheckLevel::Deep).unwrap();
    println!("committed: {peak} at the peak, {freed} when all is freed, {} when flushed", committed());
    [peak, freed, committed()]
}

#[test]
fn a_burst_is_returned() {
    let [peak, freed, flushed] = committed(&RETURNING, BURST);
    assert!(peak > BURST && freed < peak && flushed < freed);
    let pool = RETURNING.pool().unwrap();
    let (sizes, map) = (pool.sizes(), pool.map_size());
    assert!(sizes.total < SPARE + (1 << 20), "{sizes:?}");
    // What is not the pool's is the arena's own, which grows by doubling and has the map, and spare memory, up to a quarter
    // of all that is committed.
    let own = pool.header().arena().sizes().own;
    assert!(own < 2 * map + (1 << 20), "{own} bytes for a map of {map}");
    assert!(flushed < (sizes.total + own) * 4 / 3 + (1 << 20), "{flushed} bytes, {own} of them the arena's");
    let [peak, freed, flushed] = committed(&KEEPING, BURST / 16);
    assert!(freed == peak && flushed == peak, "by default the pool keeps it");
}
