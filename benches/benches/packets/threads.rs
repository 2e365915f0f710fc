//! Two threads at once, each with a cache of its own.

use core::time::Duration;
use std::sync::Barrier;
use std::thread;

use benches::compare::{Contender, compare, print};
use benches::processor::{pin, thread_time};

use crate::PACKETS;
use crate::bursts;

/// The processor time of two threads that do the work at once, each pinned to a processor. Each prepares before they
/// meet, and only the work after that is timed.
pub(crate) fn two<P>(prepare: impl Fn(usize) -> P + Sync, work: impl Fn(&mut P) + Sync) -> Duration {
    let meet = Barrier::new(2);
    let run = |processor| {
        pin(processor);
        let mut prepared = prepare(processor);
        meet.wait();
        let start = thread_time();
        work(&mut prepared);
        let time = thread_time() - start;
        meet.wait();
        time
    };
    thread::scope(|scope| {
        let threads = [0, 1].map(|processor| scope.spawn(move || run(processor)));
        threads.map(|thread| thread.join().unwrap()).into_iter().sum::<Duration>() / 2
    })
}

pub(crate) fn measure(rounds: usize) {
    let pool = bursts::pool();
    #[cfg(dpdk)]
    let (mempool, pktmbuf) = (crate::dpdk::Peer::mempool(c"two"), crate::dpdk::Peer::pktmbuf(c"two mbuf"));
    for burst in [1, 8, 32] {
        let times = PACKETS / burst;
        let mut contenders = vec![
            Contender::new("PacketCache, bursts", || {
                two(|_| pool.cache().unwrap(), |cache| bursts::run(&pool, cache, times, burst, true))
            }),
            Contender::new("PacketCache, boxes", || {
                two(|_| pool.cache().unwrap(), |cache| bursts::run_boxes(cache, times, burst, true))
            }),
        ];
        #[cfg(dpdk)]
        contenders.extend([
            Contender::new("rte_mempool (goal 1.25)", || {
                two(|_| crate::dpdk::Registered::new(), |_| mempool.run(times, burst, true))
            }),
            Contender::new("rte_pktmbuf", || {
                two(|_| crate::dpdk::Registered::new(), |_| pktmbuf.run(times, burst, true))
            }),
        ]);
        let title = format!("two threads, in bursts of {burst}, a word written, processor time");
        print(&title, &compare(&mut contenders, rounds, PACKETS));
    }
}
