//! AF_XDP over a pool of packets, on Linux. For other systems the crate is empty: depend on it in
//! `[target.'cfg(target_os = "linux")'.dependencies]`.
//!
//! The kernel writes the frames of a network interface into units of a [`PacketPool`](tripoint_packets::PacketPool), and sends
//! them from there. [`XdpRegion`] is the pool's memory, as the kernel knows it; an [`XdpSocket`] is a queue of an interface; and
//! an [`XdpRedirect`] hands frames of an interface to sockets.
//!
//! A pool lies in an arena, and each is a crate of its own: `cargo add tripoint-xdp tripoint-packets tripoint-arena-vm`. (The
//! facade `tripoint` with its feature `xdp` has all three.)
//!
//! ```
//! use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
//! use tripoint_packets::{PacketPool, PacketPoolOptions};
//! use tripoint_xdp::{XdpAttach, XdpError, XdpFilter, XdpOptions, XdpRedirect, XdpRegion};
//!
//! /// Sends every frame of the first queue back, with its addresses exchanged.
//! fn echo(interface: &str, pool: &'static PacketPool<ArenaVm, 2048>) -> Result<(), XdpError> {
//!     let mut socket = XdpRegion::of_static(pool).open(interface, 0, XdpOptions::default())?;
//!     let redirect = XdpRedirect::attach(interface, XdpFilter::UdpPort(7), XdpAttach::Either)?;
//!     redirect.add(&socket)?;
//!     let mut batch = pool.batch::<32>();
//!     loop {
//!         // What could not be sent yet stays in the batch, and is sent before more comes.
//!         if batch.is_empty() {
//!             if socket.receive(&mut batch) == 0 {
//!                 socket.check()?; // is the interface still there?
//!             }
//!             for frame in batch.iter_mut() {
//!                 let (to, from) = frame[..12].split_at_mut(6);
//!                 to.swap_with_slice(from);
//!             }
//!         }
//!         socket.send(&mut batch);
//!         socket.wake()?;
//!     }
//! }
//!
//! # fn main() -> tripoint_core::Result<()> {
//! let arena = ArenaVm::create(ArenaVmOptions::default())?;
//! let pool = PacketPool::create(arena, PacketPoolOptions { count: 8192, ..Default::default() })?;
//! let pool = Box::leak(Box::new(pool));
//! assert!(matches!(echo("no interface", pool), Err(XdpError::NoInterface { .. })));
//! # Ok(())
//! # }
//! ```
//!
//! It needs Linux 5.10, and root, or CAP_NET_RAW for sockets and CAP_BPF with CAP_NET_ADMIN for a redirect. The kernel locks the
//! region (`ulimit -l`, or CAP_IPC_LOCK). For all of it: `setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep PROGRAM`.
//! [`XdpError`] names each limit that was met, and the command that raises it. A socket takes one of the pool's caches, and up
//! to as many units as its rings have entries.
//!
//! This loop keeps a processor busy: one that does not waits by `poll` ([`XdpSocket`]).
//!
//! A frame that a unit has no room for lies in several, from Linux 6.6 on: [`XdpRegion::with_chains`]. With the feature
//! `smoltcp` a socket is a device of smoltcp 0.12: `smoltcp::XdpDevice`.
//!
//! A program that ends closes its sockets by [`close`](XdpSocket::close), and waits for its units:
//! [`XdpClosing`] says why. [`XdpSocket::report`] says what the kernel really did.
//!
//! Design: [`design/xdp.md`](crate::design::xdp).

// | file | |
// |---|---|
// | `design` | the pages of `design/`, for readers of the documentation |
// | `options` | options for a socket |
// | `frame` | what a frame takes of a unit |
// | `error` | why something could not be, and what to do next |
// | `abi` | the calls: sockets, options, shared memory |
// | `interface` | a network interface, which is found by its name |
// | `ring` | the rings that a socket shares with the kernel |
// | `report` | what a socket and the kernel have counted |
// | `device` | a socket with its four rings |
// | `probe` | whether the kernel has let go of a queue |
// | `closing` | a socket that was closed, and its units |
// | `socket` | a queue of an interface |
// | `smoltcp` | such a queue as a device of smoltcp |
// | `region` | the region of a pool, as the kernel knows it |
// | `program` | which frames go to sockets, in the kernel's instructions |
// | `redirect` | the program, attached to an interface |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg(target_os = "linux")]

mod abi;
mod closing;
pub mod design;
mod device;
mod error;
mod frame;
mod interface;
mod options;
mod probe;
mod program;
mod redirect;
mod region;
mod report;
mod ring;
#[cfg(feature = "smoltcp")]
#[cfg_attr(docsrs, doc(cfg(feature = "smoltcp")))]
pub mod smoltcp;
mod socket;

pub use closing::XdpClosing;
pub use error::XdpError;
pub use options::{BusyPoll, XdpMode, XdpOptions};
pub use program::XdpFilter;
pub use redirect::{XdpAttach, XdpRedirect};
pub use region::XdpRegion;
pub use report::{XdpReport, XdpStatistics};
pub use socket::XdpSocket;
