//! AF_XDP on wires of the tests' own (design/xdp.md). Without the rights to make wires the tests say so, and show nothing.
#![cfg(target_os = "linux")]

mod chains;
mod closing;
mod filter;
mod limits;
mod modes;
#[cfg(feature = "smoltcp")]
mod smoltcp;
mod ways;

use core::time::Duration;
use std::time::Instant;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::{Check, CheckLevel};
use tripoint_oracle::skipped;
use tripoint_packets::{PacketPool, PacketPoolOptions};
use tripoint_xdp::{XdpAttach, XdpFilter, XdpOptions, XdpRedirect, XdpRegion, XdpSocket};
use wire::frames::PORT;
use wire::{End, INTERFACE};

/// The bytes of a unit, unless a test says otherwise.
const SIZE: usize = 2048;

type Pool<const SIZE: usize> = PacketPool<ArenaVm, SIZE>;

/// Small rings, so that the indexes of each turn over many times.
const OPTIONS: XdpOptions = XdpOptions {
    mode: tripoint_xdp::XdpMode::Either,
    need_wakeup: true,
    busy_poll: None,
    receive_entries: 64,
    transmit_entries: 64,
    drop_long_frames: false,
};

/// Two ends of a wire, or `None` if this user may not make one, which is said.
fn wire(queues: u32) -> Option<[End; 2]> {
    match wire::create(queues) {
        Ok(ends) => Some(ends),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            skipped!("wires between network namespaces need root: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A pool that is there for as long as the process.
fn pool<const SIZE: usize>(count: u32) -> &'static Pool<SIZE> {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let options = PacketPoolOptions { count, caches: 8, cache_size: 64, ..PacketPoolOptions::default() };
    Box::leak(Box::new(PacketPool::create(arena, options).unwrap()))
}

/// A socket for a queue of this thread's wire.
fn open<const SIZE: usize>(
    pool: &'static Pool<SIZE>,
    queue: u32,
    options: XdpOptions,
) -> XdpSocket<'static, SIZE> {
    XdpRegion::of_static(pool).open(INTERFACE, queue, options).unwrap()
}

/// Hands the datagrams of these tests to a socket.
fn redirect<const SIZE: usize>(socket: &XdpSocket<'_, SIZE>) -> XdpRedirect {
    let redirect = XdpRedirect::attach(INTERFACE, XdpFilter::UdpPort(PORT), XdpAttach::Either).unwrap();
    assert_eq!(redirect.attached(), XdpAttach::Driver, "veth has XDP");
    redirect.add(socket).unwrap();
    redirect
}

/// Closes a socket, and expects all its units in the pool.
fn close<const SIZE: usize>(socket: XdpSocket<'_, SIZE>) -> usize {
    socket.close().wait(PATIENCE).unwrap()
}

/// All units of a pool are free.
fn assert_whole<const SIZE: usize>(pool: &Pool<SIZE>) {
    let counts = pool.counts();
    assert_eq!((counts.depot, counts.rings, counts.boxed()), (counts.units, 0, 0), "{counts:?}");
    assert_eq!(counts.taken, counts.given, "{counts:?}");
    assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
}

/// How long a test waits for the next of what should come within milliseconds: machines that run tests are busy.
/// `verify/xdp-mutants` builds the tests with less.
const PATIENCE: Duration =
    Duration::from_secs(if option_env!("XDP_SHORT_PATIENCE").is_some() { 5 } else { 60 });

/// Fails a test that waits for too long.
struct Patience(Instant);

impl Patience {
    fn new() -> Self {
        Self(Instant::now())
    }

    /// Lets other threads run, or fails: `what` has not come.
    #[track_caller]
    fn wait(&self, what: impl core::fmt::Debug) {
        assert!(self.0.elapsed() < PATIENCE, "waiting for {what:?}");
        std::thread::yield_now();
    }
}
