//! What a walk costs, by the number of frames that it passes: medians of rounds, in ns
//! (design/stack.md `.cost`).

use core::hint::black_box;
use std::time::Instant;

use tripoint_stack::Site;

const ROUNDS: usize = 51;
const WALKS: u32 = 1_000;

/// The median time of a walk, and the number of frames that it kept.
fn walk() -> (f64, usize) {
    let time = || {
        let start = Instant::now();
        (0..WALKS).for_each(|_| {
            black_box(Site::here());
        });
        start.elapsed().as_nanos() as f64 / f64::from(WALKS)
    };
    let mut times: Vec<_> = (0..ROUNDS).map(|_| time()).collect();
    times.sort_by(f64::total_cmp);
    (times[ROUNDS / 2], Site::here().frames().len())
}

/// Walks with that many frames of this function between.
#[inline(never)]
fn deeper(frames: usize) -> (f64, usize) {
    black_box(if frames == 0 { walk() } else { deeper(frames - 1) })
}

fn main() {
    for depth in [0, 4, 8, 12, 16] {
        // A thread's stack is shallower than the main thread's of a bench.
        let (ns, frames) = std::thread::spawn(move || deeper(depth)).join().unwrap();
        println!("{{\"frames\":{frames},\"ns\":{ns:.0},\"ns_per_frame\":{:.0}}}", ns / frames as f64);
    }
}
