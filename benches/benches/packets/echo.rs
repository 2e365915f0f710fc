//! Frames of 60 bytes that two ends of a wire echo, on one queue and on two.

use core::time::Duration;
use std::sync::Mutex;
use std::time::Instant;

use benches::compare::{Contender, compare, print};
use benches::processor::{pin, thread_time};
use tripoint::packets::PacketBatch;
use tripoint::xdp::{XdpAttach, XdpFilter, XdpOptions, XdpRedirect, XdpRegion, XdpSocket};
use wire::{INTERFACE, frames};

use crate::bursts::{self, SIZE};
use crate::threads::two;

const QUEUES: u32 = 2;
const BURST: usize = 32;
/// Frames that a queue echoes in a round, at both of its ends.
const ECHOES: usize = 1 << 13;
/// How long frames may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// An end of a queue: what comes is sent back.
struct Echo {
    socket: XdpSocket<'static, SIZE>,
    batch: PacketBatch<'static, SIZE, BURST>,
}

impl Echo {
    /// Echoes what has come; returns how many frames that were.
    fn turn(&mut self) -> usize {
        let Self { socket, batch } = self;
        let came = socket.receive(batch);
        for frame in batch.iter_mut() {
            let (to, from) = frame[..12].split_at_mut(6);
            to.swap_with_slice(from);
        }
        self.send();
        came
    }

    fn send(&mut self) {
        let Self { socket, batch } = self;
        while !batch.is_empty() {
            socket.send(batch);
            socket.wake().unwrap();
        }
    }
}

/// A queue of a wire, with both its ends.
struct Queue([Echo; 2]);

impl Queue {
    /// Has frames go back and forth, until that many were echoed, and takes them off.
    fn run(&mut self) {
        let [first, _] = &mut self.0;
        while first.batch.room() > 0 {
            let mut packet = first.socket.cache().take().unwrap();
            packet.extend_from_slice(&frames::unnumbered(60)).unwrap();
            first.batch.push(packet).unwrap();
        }
        first.send();
        let (mut echoed, mut last) = (0, Instant::now());
        while echoed < ECHOES {
            let came: usize = self.0.iter_mut().map(Echo::turn).sum();
            if came > 0 {
                (echoed, last) = (echoed + came, Instant::now());
            }
            assert!(last.elapsed() < PATIENCE, "{echoed} of {ECHOES}; {}", self.0[0].socket.report());
        }
        let (mut gone, start) = (0, Instant::now());
        while gone < BURST {
            for Echo { socket, batch } in &mut self.0 {
                gone += socket.receive(batch);
                socket.cache().give_batch(batch);
            }
            assert!(start.elapsed() < PATIENCE, "{gone} of {BURST} frames came");
        }
    }
}

/// A wire, with the ends of its queues in one region.
fn queues() -> std::io::Result<Vec<Mutex<Queue>>> {
    let ends = wire::create(QUEUES)?;
    let pool = Box::leak(Box::new(bursts::pool()));
    let mut region = XdpRegion::of_static(pool);
    let options = XdpOptions { receive_entries: 128, transmit_entries: 128, ..XdpOptions::default() };
    let mut sockets = [const { Vec::new() }; 2];
    for (end, sockets) in ends.iter().zip(&mut sockets) {
        end.namespace.within(|| {
            let redirect = XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Driver).unwrap();
            for queue in 0..QUEUES {
                let socket = region.open(INTERFACE, queue, options).unwrap();
                redirect.add(&socket).unwrap();
                sockets.push(Echo { socket, batch: pool.batch() });
            }
            // Until the process ends.
            core::mem::forget(redirect);
            Ok(())
        })?;
    }
    core::mem::forget(ends);
    let [near, far] = sockets;
    Ok(near.into_iter().zip(far).map(|(near, far)| Mutex::new(Queue([near, far]))).collect())
}

/// The processor time of each echo. On two queues, two threads have half of the echoes each, and what is divided is the
/// mean of their times: if neither were in the other's way, it would be half of that of one.
pub(crate) fn measure(rounds: usize) {
    let queues = match queues() {
        Ok(queues) => queues,
        Err(error) => {
            return println!("\nechoes are left out: wires between network namespaces need root: {error}");
        }
    };
    let mut contenders = vec![
        Contender::new("one queue", || {
            pin(0);
            let start = thread_time();
            queues[0].lock().unwrap().run();
            queues[0].lock().unwrap().run();
            thread_time() - start
        }),
        Contender::new("two queues (goal 0.53)", || {
            two(|queue| queues[queue].lock().unwrap(), |queue| queue.run())
        }),
    ];
    let runs = [(); 2].map(|()| compare(&mut contenders, rounds, 2 * ECHOES));
    let worse = runs.iter().max_by(|a, b| a[1].ratio.median.total_cmp(&b[1].ratio.median)).unwrap();
    print("a frame of 60 bytes echoed, processor time, the worse of two runs", worse);
    pin(0);
}
