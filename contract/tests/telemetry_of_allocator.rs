//! A thread that allocates while it is held to the contract, each object sampled and recorded: it is
//! charged with what it allocates and frees, and with nothing that the sampler or telemetry does
//! (design/telemetry.md `.req.steady`, design/sampling.md `.global.contract`).
#![cfg(all(tripoint_kernel, not(feature = "interpose-malloc")))]

use core::hint::black_box;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::System;
use std::sync::OnceLock;

use tripoint_contract::{Contract, ContractAllocator, HotThread, ViolationClass};
use tripoint_core::EventHook;
use tripoint_telemetry::{FileOptions, GlobalSampler, Mean, Room, SampledObject, Sampling, Telemetry};

#[global_allocator]
static ALLOCATOR: ContractAllocator<System, GlobalSampler> =
    ContractAllocator::with_sampler(System, GlobalSampler::new(&SAMPLING, report));

static CONTRACT: Contract = Contract::new();
static SAMPLING: Sampling = Sampling::off(0x5eed);
static TELEMETRY: OnceLock<Telemetry> = OnceLock::new();
static SAMPLES: AtomicUsize = AtomicUsize::new(0);

fn report(sampled: SampledObject) {
    if let Some(telemetry) = TELEMETRY.get() {
        SAMPLES.fetch_add(1, Ordering::Relaxed);
        telemetry.event_at(sampled.event(), sampled.site.frames());
    }
}

/// Larger than what the warm-up writes, smaller than what the armed thread writes: a record of a sample has at
/// least 10 words.
const RING_BYTES: usize = 1 << 20;
const WARMUP: usize = 100;
const OBJECTS: usize = 20_000;
const _: () = assert!(OBJECTS * 10 * 8 > RING_BYTES && WARMUP * 64 * 8 < RING_BYTES / 10);

fn allocate(objects: usize) {
    (0..objects).for_each(|number| drop(black_box(Box::new(number))));
}

#[test]
fn an_armed_thread_is_charged_with_its_own_objects_alone() {
    let room = Room { threads: 8, ring_bytes: RING_BYTES, ..Room::default() };
    TELEMETRY.set(Telemetry::create(&FileOptions { room, ..FileOptions::default() }).unwrap()).unwrap();
    SAMPLING.set_sites(true);
    CONTRACT.begin_init().unwrap();
    let guard = CONTRACT.register(HotThread::new("hot")).unwrap();
    CONTRACT.begin_warmup().unwrap();
    SAMPLING.set_mean(Some(Mean::EVERY_BYTE));
    ALLOCATOR.follow_switch();
    allocate(WARMUP);
    guard.poll();
    guard.arm();
    let before = SAMPLES.load(Ordering::Relaxed);
    allocate(OBJECTS);
    let samples = SAMPLES.load(Ordering::Relaxed) - before;
    guard.poll();
    let counts = ViolationClass::ALL.map(|class| (class, guard.slot().armed_tally(class).count));
    let charged: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    let expected = [(ViolationClass::Alloc, OBJECTS), (ViolationClass::Dealloc, OBJECTS)];
    assert_eq!(charged, expected);
    // Other threads of the test are sampled as well.
    assert!(samples >= OBJECTS, "{samples} samples");
}
