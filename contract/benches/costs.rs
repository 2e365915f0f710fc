//! What the contract costs a hot thread: side by side, medians of rounds.
//!
//! Prints one line of JSON per figure: ns per operation, of the base and of what
//! is measured, and their difference.
//! (design/contract.md `.req.cheap`.)

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use std::alloc::System;
use std::time::Instant;

use tripoint_contract::{
    Contract, ContractAllocator, DetectorSet, Guard, HotThread, Policies, Policy, SteadyScope,
};

/// Rounds, of which the median counts; interleaved, so that both sides meet the
/// same weather.
const ROUNDS: usize = 101;
/// Operations in a round.
const OPERATIONS: u32 = 200_000;

static CONTRACT: Contract = Contract::new();
static WRAPPED: ContractAllocator = ContractAllocator::system();
static SCOPE: SteadyScope = SteadyScope::new("bench");

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

/// Runs this many pairs of `system` or `wrapped`, for a tool that counts instructions.
fn count_pairs(allocator: &str, pairs: &str) {
    let pairs: u32 = pairs.parse().expect("a number of pairs");
    match allocator {
        "system" => (0..pairs).for_each(|_| pair(&System)),
        "wrapped" => (0..pairs).for_each(|_| pair(&WRAPPED)),
        other => panic!("`{other}` is neither system nor wrapped"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let ["--pairs", allocator, pairs] =
        arguments.iter().skip(1).map(String::as_str).collect::<Vec<_>>()[..]
    {
        return count_pairs(allocator, pairs);
    }
    compare("malloc and free pair, thread not registered", || pair(&System), || pair(&WRAPPED));
    compare("steady scope, entered and ended", || black_box(()), || drop(black_box(SCOPE.enter())));
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
    muted(&guard);
    drop(guard);
    let thread = HotThread { policies: Policies::all(Policy::Quarantine), ..HotThread::new("quarantined") };
    match CONTRACT.register(thread) {
        Ok(guard) => recorded(&guard),
        Err(error) => println!("{error}"),
    }
}

/// Turns in a round of [`tell`].
const TURNS: u32 = 20;

/// Prints the time of one operation in ns, in turns of this many, with checks and drains.
fn tell(name: &str, guard: &Guard, operations: u32, mut operation: impl FnMut()) {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..TURNS {
            (0..operations).for_each(|_| operation());
            guard.check();
        }
        times.push(start.elapsed().as_nanos() as f64 / f64::from(TURNS * operations));
        CONTRACT.drain(|record| {
            black_box(record);
        });
    }
    let each = median(times);
    println!("{{\"name\":\"{name}\",\"operations_in_a_turn\":{operations},\"ns\":{each:.1}}}");
}

/// Maps, touches and unmaps a page: a fault and two memory calls. Does nothing on other
/// systems.
fn touch() {
    #[cfg(all(feature = "linux", target_os = "linux"))]
    {
        use tripoint_contract::internal::Kernel;
        let _ = black_box(tripoint_contract::internal::LinuxKernel.touch_fresh_page());
    }
}

/// After AlarmOnce has raised its alarm.
fn muted(guard: &Guard) {
    pair(&WRAPPED);
    touch();
    guard.check();
    tell("malloc and free pair, muted", guard, 1_000, || pair(&WRAPPED));
    tell("fresh page, muted", guard, 10, touch);
}

/// Under Quarantine: in turns of few events each is recorded, in turns of many the first
/// 16 of a class.
fn recorded(guard: &Guard) {
    tell("fresh page, counting, under the filter", guard, 10, touch);
    guard.arm();
    tell("malloc and free pair, each recorded", guard, 1, || pair(&WRAPPED));
    tell("malloc and free pair, in a burst", guard, 1_000, || pair(&WRAPPED));
    tell("malloc and free pair, in a burst", guard, 100_000, || pair(&WRAPPED));
    tell("fresh page, each recorded", guard, 1, touch);
}
