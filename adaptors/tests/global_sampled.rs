//! A program that lives in a pool, and whose allocations are sampled.
// On other systems, and under Miri, the arena takes its addresses from the global allocator.
#![cfg(all(target_os = "linux", not(miri)))]

use core::hint::black_box;
use std::sync::Mutex;

use tripoint_adaptors::GlobalPool;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::{Addr, Result};
use tripoint_pools::{Tlsf, TlsfOptions};
use tripoint_telemetry::{GlobalSampler, Mean, SampledAllocator, SampledObject, Sampling};

type Pool = Tlsf<ArenaVm>;

static SAMPLING: Sampling = Sampling::off(7);

#[global_allocator]
static ALLOCATOR: SampledAllocator<GlobalPool<Pool>> =
    SampledAllocator::new(GlobalPool::new(make), GlobalSampler::new(&SAMPLING, keep));

fn make() -> Result<Pool> {
    Tlsf::create(ArenaVm::create(ArenaVmOptions::default())?, TlsfOptions::default())
}

/// What was sampled, without allocating: that many objects, and their addresses and sizes.
static SAMPLED: Mutex<(usize, [(usize, u64); 64])> = Mutex::new((0, [(0, 0); 64]));

fn keep(sampled: SampledObject) {
    let (count, objects) = &mut *SAMPLED.lock().unwrap();
    if let Some(place) = objects.get_mut(*count) {
        *place = (sampled.object.get(), sampled.sample.size());
        *count += 1;
    }
}

/// (design/sampling.md `.global`)
#[test]
fn a_whole_program_in_a_pool_is_sampled() {
    // Of the harness's threads only this one draws every byte: the others notice later, or not at all.
    SAMPLING.set_mean(Some(Mean::EVERY_BYTE));
    ALLOCATOR.follow_switch();
    let mut numbers = Vec::with_capacity(2_001);
    numbers.push(1_u8);
    numbers.reserve_exact(4_003);
    let boxed = black_box(Box::new([0_u8; 3_007]));
    SAMPLING.set_mean(None);
    ALLOCATOR.follow_switch();
    let (count, objects) = *SAMPLED.lock().unwrap();
    let own =
        [Addr::of(numbers.as_mut_ptr()), Addr::of(core::ptr::from_ref(&*boxed).cast_mut().cast::<u8>())];
    let sizes: Vec<_> = objects[..count].iter().map(|(_, size)| *size).collect();
    for expected in [2_001, 4_004, 3_007] {
        assert_eq!(sizes.iter().filter(|&&size| size == expected).count(), 1, "{expected} of {sizes:?}");
    }
    for (object, size) in own.into_iter().zip([4_004, 3_007]) {
        assert!(objects[..count].contains(&(object.get(), size)), "{object:?} of {objects:?}");
    }
}
