//! Large blocks of whole programs: zeros that are never written, a vector that grows, and blocks of zeros that come and
//! go as in `xz`, in a pool with caches and with the system's allocator.
//!
//! `cargo run --release -p tripoint-adaptors --features std --example large_blocks -- ROUNDS`
//!
//! Each run is a process of its own, and the allocators take turns. The table has medians: milliseconds by the clock, the ratio to
//! the system's allocator in the same round, and by how much the program's memory grew at most, in KiB. It fails if a
//! goal of design/adaptors.md `.allocator.large` is missed.

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use core::sync::atomic::{AtomicU8, Ordering};
use std::alloc::System;
use std::process::{Command, ExitCode};
use std::time::Instant;

use tripoint_adaptors::cached_global_pool;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_pools::{Mvff, MvffOptions, Tlsf, TlsfOptions};

const ALLOCATORS: [&str; 3] = ["system", "tlsf", "mvff"];
const PROGRAMS: [&str; 4] = ["zeros", "vector", "xz", "xz-written"];

cached_global_pool! {
    static TLSF: Tlsf<ArenaVm> =
        || Tlsf::create(ArenaVm::create(ArenaVmOptions::default())?, TlsfOptions::default());
}
cached_global_pool! {
    static MVFF: Mvff<ArenaVm> =
        || Mvff::create(ArenaVm::create(ArenaVmOptions::default())?, MvffOptions::default());
}

/// The allocator of the program: the system's until one is chosen, and for what that allocated.
struct Chosen;

static CHOICE: AtomicU8 = AtomicU8::new(0);

/// Blocks of programs are large, and all others are the system's.
const LARGE: usize = 4096;

macro_rules! chosen {
    ($layout:expr, $allocator:ident => $call:expr) => {
        match CHOICE.load(Ordering::Relaxed) {
            1 if $layout.size() >= LARGE => {
                let $allocator = &TLSF;
                $call
            }
            2 if $layout.size() >= LARGE => {
                let $allocator = &MVFF;
                $call
            }
            _ => {
                let $allocator = &System;
                $call
            }
        }
    };
}

// SAFETY: each block goes back to the allocator that it came from: the choice is made before the first large one, and a
// block that grows or shrinks past the limit moves by `alloc` and `dealloc`.
unsafe impl GlobalAlloc for Chosen {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout.
        chosen!(layout, allocator => unsafe { allocator.alloc(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's block, which came from the allocator of its size.
        chosen!(layout, allocator => unsafe { allocator.dealloc(block, layout) });
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout.
        chosen!(layout, allocator => unsafe { allocator.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if (layout.size() >= LARGE) == (size >= LARGE) {
            // SAFETY: the caller's block, which came from the allocator of its size and stays there.
            return chosen!(layout, allocator => unsafe { allocator.realloc(block, layout, size) });
        }
        // SAFETY: the caller promises that the size makes a layout and is not zero; both blocks have the bytes that are copied,
        // and the old one is freed once.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                block.copy_to_nonoverlapping(moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

#[global_allocator]
static GLOBAL: Chosen = Chosen;

/// A number of kibibytes that the system says of the process.
fn kibibytes(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process has a status");
    let line = status.lines().find(|line| line.starts_with(name)).expect("the status has the line");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("the line has a number")
}

/// 20 blocks of 8 MiB, half of which are freed, 20 times.
fn come_and_go(write: bool) {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    for _ in 0..20 {
        for _ in 0..20 {
            let mut block = black_box(vec![0_u8; 8 << 20]);
            if write {
                block.iter_mut().step_by(64).for_each(|byte| *byte = 1);
            }
            blocks.push(block);
        }
        let mut index = 0;
        blocks.retain(|_| {
            index += 1;
            index % 2 == 0
        });
        blocks.truncate(10);
    }
}

fn run(program: &str) {
    let before = kibibytes("VmRSS");
    let begun = Instant::now();
    match program {
        "zeros" => drop(black_box(vec![0_u8; 1 << 30])),
        "vector" => {
            let mut numbers = Vec::new();
            (0..50_000_000_u64).for_each(|number| numbers.push(number));
            black_box(&numbers);
        }
        "xz" => come_and_go(false),
        _ => come_and_go(true),
    }
    let micros = begun.elapsed().as_micros();
    println!("{micros} {}", kibibytes("VmHWM") - before);
}

fn measure(allocator: &str, program: &str) -> (f64, f64) {
    let this = std::env::current_exe().expect("this program has a path");
    let output = Command::new(this).args(["--run", allocator, program]).output().expect("it runs again");
    let text = String::from_utf8(output.stdout).expect("it prints numbers");
    let mut numbers = text.split_whitespace().map(|number| number.parse().expect("a number"));
    let mut next = || numbers.next().unwrap_or_else(|| panic!("{allocator} did not run {program}"));
    (next(), next())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, allocator, program] = &arguments[..]
        && flag == "--run"
    {
        let choice = ALLOCATORS.iter().position(|name| name == allocator).expect("an allocator of the list");
        CHOICE.store(u8::try_from(choice).expect("few allocators"), Ordering::Relaxed);
        run(program);
        return ExitCode::SUCCESS;
    }
    let rounds = arguments.first().and_then(|rounds| rounds.parse().ok()).unwrap_or(7);
    let mut missed = false;
    println!("| program | allocator | ms | ratio | grew, KiB | ratio |\n|---|---|---:|---:|---:|---:|");
    for program in PROGRAMS {
        // For each round the time and the memory with each allocator.
        let rounds: Vec<[(f64, f64); 3]> =
            (0..rounds).map(|_| ALLOCATORS.map(|name| measure(name, program))).collect();
        for (index, allocator) in ALLOCATORS.iter().enumerate() {
            let own = || rounds.iter().map(|round| (round[index], round[0]));
            let time = median(own().map(|(own, _)| own.0).collect());
            let memory = median(own().map(|(own, _)| own.1).collect());
            let ratio = median(own().map(|(own, system)| own.0 / system.0).collect());
            let grown = median(own().map(|(own, system)| own.1 / system.1.max(1.0)).collect());
            println!(
                "| {program} | {allocator} | {:.2} | {ratio:.2} | {memory} | {grown:.2} |",
                time / 1000.0
            );
            missed |= match program {
                "zeros" => index > 0 && memory > 2048.0,
                "vector" => grown > 1.2,
                _ => ratio > 1.2,
            };
        }
    }
    if missed {
        eprintln!("a goal was missed: zeros 2048 KiB, the vector's memory 1.2, the time of xz 1.2");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
