//! A thread that is held to the contract while everything is recorded and sampled: writing telemetry is
//! no violation (design/telemetry.md `.req.steady`).
#![cfg(all(target_os = "linux", feature = "linux", not(feature = "interpose-malloc"), not(miri)))]

use core::cell::Cell;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_contract::{Contract, ContractAllocator, HotThread, PoolEvents, ViolationClass};
use tripoint_core::{Addr, BufferKind, Event, EventHook, PoolClass};
use tripoint_pools::{Mfs, MfsOptions, UnitOf};
use tripoint_telemetry::{FileOptions, Mean, PointSampler, Room, SampledObject, Sampling, Telemetry};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();
static CONTRACT: Contract = Contract::new();
static SAMPLING: Sampling = Sampling::off(0x5eed);

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Objects that are allocated while the thread is armed: several laps of its ring.
const OBJECTS: usize = 20_000;

#[test]
fn a_steady_thread_is_recorded_and_sampled_without_a_violation() {
    let room = Room { ring_bytes: 16 << 10, ..Room::default() };
    let telemetry = leak(Telemetry::create(&FileOptions { room, ..FileOptions::default() }).unwrap());
    let hook = leak((PoolEvents, telemetry.arena_hook()));
    let options = ArenaVmOptions { event_hook: Some(hook), ..ArenaVmOptions::default() };
    let arena = ArenaVm::create(options).unwrap();
    let pool = Mfs::create(&arena, UnitOf::<[u64; 8]>::new(), MfsOptions::default()).unwrap();
    let pool_id = pool.header().id();
    SAMPLING.set_mean(Mean::new(256));
    SAMPLING.set_sites(true);
    CONTRACT.begin_init().unwrap();
    let guard = CONTRACT.register(HotThread::new("hot")).unwrap();
    CONTRACT.begin_warmup().unwrap();

    let samples = Cell::new(0);
    let on_sample = |sampled: SampledObject| {
        samples.set(samples.get() + 1);
        hook.1.event_at(sampled.event(), sampled.site.frames());
    };
    let sampler = PointSampler::new(&SAMPLING, on_sample);
    let mut point = tripoint_ap::AllocationPoint::create_with(&pool, BufferKind::Mutator, sampler).unwrap();
    let mut work = |objects: usize| {
        for _ in 0..objects {
            let object = point.boxed([7_u64; 8]).unwrap();
            hook.1.event(Event::Free {
                pool: pool_id,
                object: Addr::of(&raw const *object),
                size: 64,
                align: 8,
            });
        }
    };
    work(OBJECTS);
    samples.set(0);
    guard.arm();
    work(OBJECTS);
    let of = |class| guard.slot().armed_tally(class).count;
    let counts = ViolationClass::ALL.map(|class| (class, of(class)));
    let foreign: Vec<_> =
        counts.iter().filter(|(class, count)| *class != ViolationClass::Fill && *count > 0).collect();
    assert_eq!(foreign, [] as [&(ViolationClass, usize); 0]);
    assert!(samples.get() > OBJECTS / 8, "{} samples", samples.get());

    // The control: what the detectors are there for is seen.
    drop(core::hint::black_box(Box::new([0_u8; 100])));
    assert!(of(ViolationClass::Alloc) > 0);
}
