//! A whole program in one pool: every `String`, every map, every thread's name.
//!
//! ```sh
//! cargo run --release --example 09_whole_program
//! ```
//!
//! The program counts words on several threads as any program would. Each has a cache of
//! the pool. At the end it asks the pool what that took.

use core::error::Error;
use std::collections::HashMap;
use std::thread;

use tripoint::{
    Arena, ArenaVm, ArenaVmOptions, Check, CheckLevel, PoolClass, Tlsf, TlsfOptions, cached_global_pool,
};

cached_global_pool! {
    // Only on Linux: on macOS, BSD and Android the arena takes its address space from the global
    // allocator, and cannot be it.
    #[cfg_attr(target_os = "linux", global_allocator)]
    static GLOBAL: Tlsf<ArenaVm> = || {
        let options = ArenaVmOptions { commit_limit: 1 << 30, ..Default::default() };
        // Huge pages save page faults. A system that has none refuses them.
        let arena = ArenaVm::create(ArenaVmOptions { huge_pages: true, grain: 2 << 20, ..options })
            .or_else(|_| ArenaVm::create(options))?;
        Tlsf::create(arena, TlsfOptions::default())
    };
}

const THREADS: usize = 4;
const LINES: usize = 5000;

/// A line of a text that has something of a language: few words are frequent.
fn line(number: usize) -> String {
    let words = (1..9).map(|place| format!("word{}", (number * place * place) % (7 * place)));
    words.collect::<Vec<_>>().join(" ")
}

fn count_words(lines: impl Iterator<Item = String>) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for line in lines {
        for word in line.split(' ') {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn main() -> Result<(), Box<dyn Error>> {
    let counters: Vec<_> = (0..THREADS)
        .map(|index| {
            let lines = (index..LINES).step_by(THREADS).map(line);
            thread::Builder::new().name(format!("counter {index}")).spawn(|| count_words(lines))
        })
        .collect::<Result<_, _>>()?;
    let mut total: HashMap<String, usize> = HashMap::new();
    for counter in counters {
        for (word, count) in counter.join().map_err(|_| "a counter panicked")? {
            *total.entry(word).or_default() += count;
        }
    }
    assert_eq!(total.values().sum::<usize>(), LINES * 8);
    assert_eq!(total, count_words((0..LINES).map(line)));

    let pool = GLOBAL.pool()?;
    pool.check(CheckLevel::Deep)?;
    let (sizes, arena) = (pool.sizes(), pool.header().arena().sizes());
    println!("{} words, {} of them different", LINES * 8, total.len());
    println!(
        "pool: {} KiB, {} KiB free, {} per mille fragmented",
        sizes.total >> 10,
        sizes.free >> 10,
        sizes.fragmentation()
    );
    println!("arena: {} KiB committed of {} GiB reserved", arena.committed >> 10, arena.reserved >> 30);
    Ok(())
}
