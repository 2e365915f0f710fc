//! Packets taken and given back, beside the pools of DPDK (design/packets.md `.req.burst`), and received and echoed by
//! AF_XDP (design/xdp.md `.measured`), which needs root: `-- --received` measures only these.
//!
//! `cargo bench -p benches --bench packets`, with `-- --quick` to see only that it runs, with `-- --seed S` to repeat the
//! orders of contenders. `-- --bursts NAME BURST ROUNDS` runs one contender's bursts and nothing else:
//! `benches/instructions --packets` counts them.
//!
//! DPDK is left out if its libraries are not there (Debian: libdpdk-dev). It runs without huge pages and devices, and
//! its loops are C, with its inlined functions in them. In the tables a peer's ratio is its time divided by ours: a
//! goal of 0.8x a peer's time is a ratio of at least 1.25.

mod bare;
mod bursts;
#[cfg(dpdk)]
mod dpdk;
mod echo;
mod receive;
mod threads;

use std::time::Instant;

use benches::compare::{Contender, compare, print};
use benches::processor::pin;

/// Packets that a contender takes in a round.
const PACKETS: usize = 1 << 16;

fn one_thread(rounds: usize) {
    let pool = bursts::pool();
    let (mut cache, mut boxes) = (pool.cache().unwrap(), pool.cache().unwrap());
    #[cfg(dpdk)]
    let (mempool, pktmbuf) = (dpdk::Peer::mempool(c"one"), dpdk::Peer::pktmbuf(c"one mbuf"));
    for writes in [false, true] {
        for burst in [1, 8, 32] {
            let times = PACKETS / burst;
            let mut contenders = vec![
                Contender::new("PacketCache, bursts", || {
                    let start = Instant::now();
                    bursts::run(&pool, &mut cache, times, burst, writes);
                    start.elapsed()
                }),
                Contender::new("PacketCache, boxes", || {
                    let start = Instant::now();
                    bursts::run_boxes(&mut boxes, times, burst, writes);
                    start.elapsed()
                }),
            ];
            #[cfg(dpdk)]
            contenders.extend([
                Contender::new("rte_mempool (goal 1.25)", || {
                    let start = Instant::now();
                    mempool.run(times, burst, writes);
                    start.elapsed()
                }),
                Contender::new("rte_pktmbuf", || {
                    let start = Instant::now();
                    pktmbuf.run(times, burst, writes);
                    start.elapsed()
                }),
            ]);
            let done = if writes { "taken, a word written, given back" } else { "taken and given back" };
            print(
                &format!("a packet {done}, in bursts of {burst}"),
                &compare(&mut contenders, rounds, PACKETS),
            );
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |option: &str| {
        let place = arguments.iter().position(|argument| argument == option);
        place.map(|place| &arguments[place + 1..])
    };
    #[cfg(dpdk)]
    dpdk::begin();
    pin(0);
    if let Some([name, burst, rounds, ..]) = after("--bursts") {
        let (burst, rounds) = (burst.parse().expect("a burst"), rounds.parse().expect("a count of rounds"));
        return run_one(name, burst, rounds);
    }
    let rounds = if after("--quick").is_some() { 3 } else { 201 };
    if after("--received").is_none() {
        one_thread(rounds);
        threads::measure(rounds);
    }
    receive::measure(rounds);
    echo::measure(rounds);
}

/// Runs the bursts of one contender, to be counted from outside.
fn run_one(name: &str, burst: usize, rounds: usize) {
    let pool = bursts::pool();
    let mut cache = pool.cache().unwrap();
    match name {
        "bursts" => bursts::run(&pool, &mut cache, rounds, burst, false),
        "boxes" => bursts::run_boxes(&mut cache, rounds, burst, false),
        #[cfg(dpdk)]
        "mempool" => dpdk::Peer::mempool(c"one").run(rounds, burst, false),
        #[cfg(dpdk)]
        "pktmbuf" => dpdk::Peer::pktmbuf(c"one").run(rounds, burst, false),
        _ => panic!("no contender of this name"),
    }
}
