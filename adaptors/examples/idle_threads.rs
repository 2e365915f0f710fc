//! What idle threads keep (design/adaptors.md `.cached.rest`): each allocates and frees a MiB, in objects of 16 bytes to
//! 16 KiB, and waits. The resident memory is the process's, with what the stacks of the threads take.
//!
//! ```text
//! cargo run --release -p tripoint-adaptors --features std --example idle_threads -- 10000 [system]
//! ```
//!
//! Fails if the threads keep more than 64 KiB each of the pool after they were flushed, or before.
#![cfg_attr(not(target_os = "linux"), expect(unused, reason = "reads the memory of a process on Linux"))]

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;
use std::sync::Barrier;
use std::{env, fs, thread};

use tripoint_adaptors::cached_global_pool;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::PoolClass;
use tripoint_pools::{Tlsf, TlsfOptions};

cached_global_pool! {
    static POOL: Tlsf<ArenaVm> = || {
        Tlsf::create(ArenaVm::create(ArenaVmOptions::default())?, TlsfOptions { spare: 64 << 20, ..TlsfOptions::default() })
    };
}

/// The bytes that each thread allocates and frees.
const BYTES: usize = 1 << 20;

/// The most that a thread may keep, in bytes.
const GOAL: usize = 64 << 10;

fn use_cache(allocator: &impl GlobalAlloc) {
    let mut left = BYTES;
    let mut objects = Vec::new();
    for size in (4..15).map(|bit| (1_usize << bit) - 3).cycle() {
        let layout = Layout::from_size_align(size, 8).expect("a layout");
        // SAFETY: the layout has a size.
        let object = unsafe { allocator.alloc(layout) };
        assert!(!object.is_null(), "out of memory");
        // SAFETY: a new object of this size.
        unsafe { object.write_bytes(1, size) };
        objects.push((object, layout));
        left = left.saturating_sub(size);
        if left == 0 {
            break;
        }
    }
    for (object, layout) in objects {
        // SAFETY: allocated above with this layout, freed once.
        unsafe { allocator.dealloc(object, layout) };
    }
}

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok()).map_or(0, |pages| pages << 12)
}

/// The bytes of the pool that are in use, or that caches keep.
fn kept() -> usize {
    POOL.flush_depot();
    POOL.pool().map_or(0, |pool| pool.sizes().total - pool.sizes().free)
}

fn main() {
    let mut arguments = env::args().skip(1);
    let threads: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let is_system = arguments.next().is_some_and(|text| text == "system");
    let say = |when: &str| {
        println!(
            "{when}: {} MB resident, {} KB of the pool a thread",
            resident() / 1_000_000,
            kept() / threads / 1000
        );
    };
    POOL.pool().expect("a pool"); // on this stack, which is large
    let barrier = Barrier::new(threads + 1);
    let kept = thread::scope(|scope| {
        let idles = || {
            if is_system {
                use_cache(&System)
            } else {
                use_cache(&POOL)
            }
            barrier.wait();
            barrier.wait();
        };
        for _ in 0..threads {
            thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, idles).expect("a thread");
        }
        barrier.wait();
        say("idle");
        let idle = kept();
        POOL.flush_threads();
        say("flushed");
        barrier.wait();
        [idle, kept()]
    });
    say("ended");
    let [idle, flushed] = kept;
    let most = threads * GOAL;
    assert!(flushed.max(idle) <= most, "{threads} threads keep {idle} bytes, and {flushed} when flushed");
}
