//! What wrappers of a global allocator add to one that returns a constant: the system's own instructions
//! are left out, because they are many and vary.

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use core::ptr;
use std::alloc::System;

use tripoint::contract::ContractAllocator;
use tripoint::telemetry::{GlobalSampler, Mean, SampledAllocator, SampledObject, Sampling};

use crate::{Operation, counted};

pub(crate) const OPERATIONS: [Operation; 8] = [
    ("1,000 pairs, bare", |count| pairs(&Constant, count)),
    ("1,000 pairs, sampler off", |count| off(&SampledAllocator::new(Constant, SAMPLER), count)),
    ("1,000 pairs, contract", |count| pairs(&ContractAllocator::new(Constant), count)),
    ("1,000 pairs, contract, sampler off", |count| {
        off(&ContractAllocator::with_sampler(Constant, SAMPLER), count);
    }),
    ("100 KiB of System", |count| bytes(&System, count)),
    ("100 KiB of System, sampled", |count| on(&SampledAllocator::system(SAMPLER), count)),
    ("100 KiB of System, contract", |count| bytes(&ContractAllocator::system(), count)),
    ("100 KiB of System, contract, sampled", |count| {
        on(&ContractAllocator::with_sampler(System, SAMPLER), count);
    }),
];

const BYTES: usize = 100 << 10;

static SAMPLING: Sampling = Sampling::off(42);
static SAMPLER: GlobalSampler = GlobalSampler::new(&SAMPLING, report);

fn report(sampled: SampledObject) {
    black_box(sampled);
}

/// An allocator of no memory, whose objects are not used.
struct Constant;

// SAFETY: what it allocates is used only to be freed.
unsafe impl GlobalAlloc for Constant {
    #[inline]
    unsafe fn alloc(&self, _layout: Layout) -> *mut u8 {
        ptr::dangling_mut()
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, _layout: Layout) {
        black_box(object);
    }
}

fn off(allocator: &impl GlobalAlloc, count: usize) {
    SAMPLING.set_mean(None);
    pairs(allocator, count);
}

fn on(allocator: &impl GlobalAlloc, count: usize) {
    SAMPLING.set_mean(Mean::new(BYTES as u32));
    bytes(allocator, count);
}

fn pairs(allocator: &impl GlobalAlloc, count: usize) {
    for _ in 0..count {
        counted(|| run(allocator, 1000));
    }
}

/// 100 KiB in objects of 32 bytes.
fn bytes(allocator: &impl GlobalAlloc, count: usize) {
    for _ in 0..count {
        counted(|| run(allocator, BYTES / 32));
    }
}

#[inline(always)]
fn run(allocator: &impl GlobalAlloc, pairs: usize) {
    let layout = black_box(Layout::new::<[u64; 4]>());
    for _ in 0..pairs {
        // SAFETY: allocated and freed once, with one layout that is not empty.
        unsafe { allocator.dealloc(black_box(allocator.alloc(layout)), layout) };
    }
}
