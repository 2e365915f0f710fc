//! What the contract costs a hot thread: side by side, medians of rounds.
//!
//! Prints one line of JSON per figure: ns per operation, of the base and of what
//! is measured, and their difference.
//! (design/contract.md `.req.cheap`.)

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use std::alloc::System;
use std::time::Instant;

use tripoint_contract::{Contract, ContractAllocator, DetectorSet, HotThread};

/// Rounds, of which the median counts; interleaved, so that both sides meet the
/// same weather.
const ROUNDS: usize = 101;
/// Operations in a round.
const OPERATIONS: u32 = 200_000;

static CONTRACT: Contract = Contract::new();
static WRAPPED: ContractAllocator = ContractAllocator::system();

/// The time of one operation, in ns.
fn time(mut operation: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..OPERATIONS).for_each(|_| operation());
    start.elapsed().as_nanos() as f64 / f64::from(OPERATIONS)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn compare(name: &str, mut base: impl FnMut(), mut measured: impl FnMut()) {
    let (mut bases, mut measures, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (one, other) = (time(&mut base), time(&mut measured));
        bases.push(one);
        measures.push(other);
        differences.push(other - one);
    }
    println!(
        "{{\"name\":\"{name}\",\"base_ns\":{:.3},\"measured_ns\":{:.3},\"difference_ns\":{:.3}}}",
        median(bases),
        median(measures),
        median(differences)
    );
}

fn pair(allocator: &impl GlobalAlloc) {
    let layout = Layout::new::<[u64; 6]>();
    // SAFETY: allocated and freed once, with one layout that is not empty.
    unsafe {
        let object = black_box(allocator.alloc(black_box(layout)));
        allocator.dealloc(object, layout);
    }
}

/// Code without system calls: a chain that the optimiser cannot shorten.
fn compute(state: &mut u64) {
    for _ in 0..8 {
        *state = black_box(state.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7));
    }
}

fn main() {
    compare("malloc and free pair, thread not registered", || pair(&System), || pair(&WRAPPED));
    if let Err(error) = CONTRACT.begin_init() {
        println!("{error}");
        return;
    }
    let thread = HotThread { detectors: DetectorSet::all(), ..HotThread::new("bench") };
    let guard = match CONTRACT.register(thread) {
        Ok(guard) => guard,
        Err(error) => {
            println!("{error}");
            return;
        }
    };
    compare("check, not armed", || black_box(()), || guard.check());
    compare(
        "phase load",
        || black_box(()),
        || {
            black_box(guard.phase());
        },
    );
    compare("malloc and free pair, thread registered, warm-up", || pair(&System), || pair(&WRAPPED));
    let (mut free, mut filtered) = (1, 1);
    let unfiltered: Vec<_> = (0..ROUNDS).map(|_| time(|| compute(&mut free))).collect();
    guard.arm();
    let under_filter: Vec<_> = (0..ROUNDS).map(|_| time(|| compute(&mut filtered))).collect();
    println!(
        "{{\"name\":\"code without system calls, under the filter and fault events\",\"base_ns\":{:.3},\"measured_ns\":{:.3},\"live\":\"{}\"}}",
        median(unfiltered),
        median(under_filter),
        guard.slot().live().names().collect::<Vec<_>>().join(" ")
    );
    compare("check, armed", || black_box(()), || guard.check());
}
