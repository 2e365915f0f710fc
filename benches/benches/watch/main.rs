//! What it costs to have the platform watch writes (design/arena-vm.md `.watch`).
//!
//! ```text
//! cargo bench -p benches --bench watch
//! ```
//!
//! A block of 256 MiB of pages, on one thread. The rows of a round follow each other, and each figure is the median
//! of the rounds, in processor time: what else runs does not count.

use core::hint::black_box;
use core::time::Duration;

use tripoint::author::{AddrRange, Written};
use tripoint::{Arena, ArenaVm, ArenaVmOptions};

/// The rows of a round.
const ROWS: [&str; 9] = [
    "write to each page, as it is",
    "ask, all pages written",
    "write to each page, in order, after it was asked for",
    "ask, all pages written, again",
    "ask, nothing written",
    "write to 1 % of the pages, after they were asked for",
    "ask, 1 % of the pages written, apart from each other",
    "ask for each grain of 64 KiB by itself, nothing written",
    "look at each word instead of asking",
];

/// The processor time that this thread has used.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn timed(run: impl FnOnce()) -> Duration {
    let begin = thread_time();
    run();
    thread_time() - begin
}

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (size, rounds) = if is_quick { (4 << 20, 1) } else { (256 << 20, 11) };
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(size, pool).unwrap();
    let opening = timed(|| _ = arena.write_watch().is_ok());
    let watch = match arena.write_watch() {
        Ok(watch) => watch,
        Err(error) => return println!("writes are not watched here: {error}; {:?}", arena.last_refusal()),
    };
    println!("open the watch of {} GiB of addresses: {opening:?}", arena.reserved() >> 30);
    let (page, words) = (4096, size / size_of::<usize>());
    let write = |step: usize| {
        for offset in (0..size).step_by(step) {
            // SAFETY: the block is this function's, and the offset lies in it.
            unsafe { block.base().add(offset).write_volatile(1) };
        }
    };
    let ask = |range: AddrRange| {
        let mut found = 0;
        // SAFETY: the range consists of grains of the block, which is this function's.
        let written = unsafe { watch.take_written(range, &mut |pages| found += pages.size() / page) };
        assert_eq!(written, Written::Known);
        black_box(found);
    };
    let look = || {
        for index in 0..words {
            // SAFETY: the block is this function's, was written or is zero, and has that many words.
            black_box(unsafe { block.base().cast::<usize>().add(index).read() });
        }
    };
    let grains = || {
        let base = block.range().base();
        for offset in (0..size).step_by(64 << 10) {
            ask(AddrRange::with_size(base.checked_add(offset).unwrap(), 64 << 10).unwrap());
        }
    };
    write(page);
    let mut times = ROWS.map(|_| Vec::new());
    for _ in 0..rounds {
        let all = || ask(block.range());
        let round = [
            timed(|| write(page)),
            timed(all),
            timed(|| write(page)),
            timed(all),
            timed(all),
            timed(|| write(100 * page)),
            timed(all),
            timed(grains),
            timed(look),
        ];
        round.into_iter().zip(&mut times).for_each(|(time, times)| times.push(time));
        write(page);
    }
    let pages = size / page;
    for (name, mut times) in ROWS.into_iter().zip(times) {
        times.sort();
        let median = times[times.len() / 2];
        println!("{name:56} {median:>12.1?}, {:8.1} ns a page", median.as_nanos() as f64 / pages as f64);
    }
    // SAFETY: allocated above, freed once, unused.
    unsafe { arena.free_tracts(block, pool) };
}
