//! A thread that is held to the contract while everything is recorded and sampled: writing telemetry is
//! no violation (design/telemetry.md `.req.steady`).
#![cfg(all(tripoint_kernel, not(feature = "interpose-malloc")))]

use core::alloc::Layout;
use core::cell::Cell;
use std::thread;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_contract::{Contract, ContractAllocator, DetectorSet, HotThread, PoolEvents, ViolationClass};
use tripoint_core::{Addr, Event, EventHook, PoolClass, Store};
use tripoint_pools::{Mfs, MfsOptions, UnitOf};
use tripoint_telemetry::{FileOptions, Mean, Room, SampledObject, SampledStore, Sampling, Telemetry};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();
static CONTRACT: Contract = Contract::new();
static SAMPLING: Sampling = Sampling::off(0x5eed);

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Of 1,024 pages of 4 KiB.
const RING_BYTES: usize = 4 << 20;

/// The bytes of the record of a freed object: three words of head and five fields.
const RECORD_BYTES: usize = 8 * 8;

/// Objects of the warm-up, which writes to a few pages of the ring: code, tables of the unwinder and the
/// pool have been used then.
const WARMUP: usize = 200;

/// Objects that are allocated while the thread is armed: more than half the ring is written.
const OBJECTS: usize = 40_000;
const _: () = assert!(OBJECTS * RECORD_BYTES > RING_BYTES / 2 && WARMUP * RECORD_BYTES < RING_BYTES / 100);

/// Takes the pages of all telemetry from this process: they stay in the file, and the next access to
/// each is a page fault, as if it had not been populated.
fn drop_pages() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_data = |line: &&str| line.contains("/memfd:tripoint-telemetry ");
    for line in maps.lines().filter(of_data) {
        let (begin, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [begin, end] = [begin, end].map(|number| usize::from_str_radix(number, 16).unwrap());
        let base = core::ptr::without_provenance_mut(begin);
        // SAFETY: a mapping of this process; unlocking it changes no byte.
        assert_eq!(unsafe { libc::munlock(base, end - begin) }, 0);
        // SAFETY: the same mapping, of a file: its bytes stay as they are, because they are shared.
        assert_eq!(unsafe { libc::madvise(base, end - begin, libc::MADV_DONTNEED) }, 0);
    }
}

#[test]
fn a_steady_thread_writes_pages_it_never_touched_without_a_violation() {
    let room = Room { threads: 4, ring_bytes: RING_BYTES, ..Room::default() };
    let telemetry = leak(Telemetry::create(&FileOptions { room, ..FileOptions::default() }).unwrap());
    let hook = leak((PoolEvents, telemetry.arena_hook()));
    let options = ArenaVmOptions { event_hook: Some(hook), ..ArenaVmOptions::default() };
    let arena = ArenaVm::create(options).unwrap();
    // An object at a time, allocated without a buffer: the pool needs neither fills nor memory.
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
    let store = SampledStore::new(&pool, &SAMPLING, on_sample).of_pool(&pool);
    let layout = Layout::new::<[u64; 8]>();
    let work = |objects: usize| {
        for _ in 0..objects {
            let object = store.alloc(layout).unwrap();
            // SAFETY: allocated here with this layout, and not used any more.
            unsafe { store.free(object, layout) };
            let object = Addr::of(object.as_ptr());
            hook.1.event(Event::Free { pool: pool_id, object, size: 64, align: 8 });
        }
        guard.poll();
    };
    work(WARMUP);
    samples.set(0);
    guard.arm();
    let of = |class| guard.slot().armed_tally(class).count;
    work(OBJECTS);
    let counts = ViolationClass::ALL.map(|class| (class, of(class)));
    let seen: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(seen, [] as [&(ViolationClass, usize); 0]);
    assert!(samples.get() > OBJECTS / 8, "{} samples", samples.get());

    // The controls: what the detectors are there for is seen, and without its pages telemetry faults.
    drop(core::hint::black_box(Box::new([0_u8; 100])));
    assert!(of(ViolationClass::Alloc) > 0);
    if !guard.slot().live().intersects(DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL) {
        tripoint_oracle::skipped!("page faults are not seen here, so there is no control of them");
        return;
    }
    thread::spawn(drop_pages).join().unwrap();
    guard.poll();
    let before = of(ViolationClass::MinorFault);
    work(OBJECTS);
    let faults = of(ViolationClass::MinorFault) - before;
    // How many depends on how large the system's pages are.
    assert!(faults > 0, "{faults} faults");
}
