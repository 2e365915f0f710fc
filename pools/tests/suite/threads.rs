//! Threads that free each other's objects.

use std::sync::mpsc;

use tripoint_ap::AllocationPoint;
use tripoint_core::{ManualPool, PoolBox};

use crate::common::Oracle;

/// Threads pass objects round; each frees what another allocated, every other one in
/// an allocation point of its own (design/conformance.md `.req.threads`).
pub(crate) fn any_thread_frees<P: ManualPool + Sync>(pool: &P) {
    const THREADS: usize = 3;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::sync_channel(16)).unzip();
    std::thread::scope(|scope| {
        for (thread, receiver) in receivers.into_iter().enumerate() {
            let sender = senders[(thread + 1) % THREADS].clone();
            scope.spawn(move || {
                let mut point = AllocationPoint::create(pool).unwrap();
                for round in 0..if cfg!(miri) { 12 } else { 1000_u64 } {
                    let value = [round, round ^ 0x55, thread as u64];
                    let object =
                        if round % 2 == 0 { PoolBox::new_in(value, pool) } else { point.boxed(value) };
                    sender.send(object.unwrap()).unwrap();
                    let received = receiver.recv().unwrap();
                    assert_eq!([received[0], received[1]], [round, round ^ 0x55]);
                    assert_eq!(received[2], ((thread + THREADS - 1) % THREADS) as u64);
                }
            });
        }
    });
    Oracle::default().agree(pool);
}
