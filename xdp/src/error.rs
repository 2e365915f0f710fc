//! Why something of AF_XDP could not be, and what to do next (design/xdp.md `.limits`).

use core::fmt;
use std::io;

use crate::abi::{self, Limit};
use crate::frame::HEADER_BYTES;

/// Why something of AF_XDP could not be. Nothing was taken: what was there before is as it was.
///
/// A limit is named as one, with its value and the command that raises it. [`is_refusal`](Self::is_refusal) tells what this
/// system or this user may never have from what failed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum XdpError {
    /// The kernel would lock more memory than this user may.
    LockedMemory {
        /// The bytes that the socket needs: a page, and the region if no other socket of it is bound.
        needed: u64,
        /// The limit `RLIMIT_MEMLOCK`, in bytes. What other processes of the user have locked counts.
        limit: u64,
    },
    /// The process has as many open files as it may.
    Descriptors {
        /// The limit `RLIMIT_NOFILE`.
        limit: u64,
    },
    /// The user may not do this.
    Rights {
        /// The call that was refused.
        call: &'static str,
        /// The capabilities that it needs.
        capability: &'static str,
    },
    /// The kernel does not have this.
    NotOffered {
        /// The call that was refused.
        call: &'static str,
        /// The number of the error.
        errno: i32,
    },
    /// No interface has this name in the namespace of the calling thread.
    NoInterface {
        /// The name.
        name: String,
    },
    /// The interface is there no more, or another one has its name.
    InterfaceGone {
        /// The name.
        name: String,
    },
    /// The interface is switched off.
    InterfaceDown {
        /// The name.
        name: String,
    },
    /// The interface has no such queue.
    NoQueue {
        /// The name of the interface.
        interface: String,
        /// The queue that was asked for.
        queue: u32,
    },
    /// A socket has the queue, of this program or of another, and still had it after two seconds.
    QueueInUse {
        /// The name of the interface.
        interface: String,
        /// The queue that was asked for.
        queue: u32,
    },
    /// The interface has an XDP program already.
    ProgramInUse {
        /// The name of the interface.
        interface: String,
    },
    /// The interface may have longer frames than the driver allows with XDP, or than a unit has room for.
    Mtu {
        /// The name of the interface.
        interface: String,
        /// The MTU of the interface, in bytes.
        mtu: u32,
        /// The most bytes of a frame that a unit has room for, if that is what is too small; `None` if it is the driver.
        frame_max: Option<u32>,
    },
    /// A packet lies in more units than a socket sends at once.
    Chain {
        /// The units in which it lies.
        parts: usize,
        /// The most that the socket sends: the entries of its transmit ring, or 1 if its region has no chains.
        most: u32,
    },
    /// The driver of the interface has no zero copy, which was asked for.
    NoZeroCopy {
        /// The name of the interface.
        interface: String,
    },
    /// The driver of the interface has no XDP, which was asked for.
    NoDriverXdp {
        /// The name of the interface.
        interface: String,
    },
    /// The driver of the interface has no XDP with as many queues as it has now.
    DriverQueues {
        /// The name of the interface.
        interface: String,
    },
    /// The pool keeps more of each unit than the kernel allows.
    Headroom {
        /// The bytes that the pool keeps.
        headroom: u32,
        /// The bytes of a unit.
        unit: u32,
    },
    /// The region of the pool begins in the middle of a page.
    Misaligned {
        /// The bytes from the beginning of a page to the region.
        offset: usize,
        /// The bytes of a page.
        page: usize,
    },
    /// A ring has entries whose number is a power of two.
    Entries {
        /// What was asked for.
        entries: u32,
    },
    /// The socket is not of the interface that the program is attached to.
    OtherInterface {
        /// The interface of the program.
        program: String,
        /// The interface of the socket.
        socket: String,
    },
    /// The kernel has not let go of the queue yet.
    StillBound {
        /// The name of the interface.
        interface: String,
        /// The queue.
        queue: u32,
        /// The units that are with it.
        units: u64,
    },
    /// The pool refused a cache or a ring.
    Pool(tripoint_core::Error),
    /// The system refused a call for another reason.
    System {
        /// The call.
        call: &'static str,
        /// The number of the error.
        errno: i32,
    },
}

impl XdpError {
    /// What an error of a call means, if it means the same for each of them. Without `capability`, a call needs none.
    pub(crate) fn of(call: &'static str, error: &io::Error, capability: &'static str) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        match errno {
            libc::EMFILE => Self::Descriptors { limit: abi::limit(Limit::OpenFiles).unwrap_or(u64::MAX) },
            libc::EPERM if !capability.is_empty() => Self::Rights { call, capability },
            libc::ENOSYS | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::ENOPROTOOPT => {
                Self::NotOffered { call, errno }
            }
            _ => Self::System { call, errno },
        }
    }

    /// Whether this system or this user cannot have it, whatever the call: rights that are missing, or a facility of
    /// the kernel. All else is a failure, and hides no other way that would do.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::Rights { .. } | Self::NotOffered { .. })
    }
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = |errno: i32| io::Error::from_raw_os_error(errno);
        match self {
            Self::LockedMemory { needed, limit } => write!(
                f,
                "the kernel would lock {needed} bytes, and this user may lock {limit} in all processes together: raise \
                 the limit (ulimit -l {}; as root above the hard limit), or run with CAP_IPC_LOCK",
                limit.saturating_add(*needed).div_ceil(1024)
            ),
            Self::Descriptors { limit } => write!(
                f,
                "the process has {limit} open files, and may have no more: raise the limit (ulimit -n {})",
                limit.saturating_mul(2)
            ),
            Self::Rights { call, capability } => {
                write!(f, "{call} needs {capability}, as root has: run as root, or grant it (setcap)")
            }
            Self::NotOffered { call, errno } => write!(
                f,
                "{call} is not offered here ({}): use a kernel of 5.10 or newer, 5.11 for busy polling, 6.6 for chains \
                 of units, that was built with XDP_SOCKETS and BPF_SYSCALL",
                system(*errno)
            ),
            Self::NoInterface { name } => {
                write!(f, "no interface is called {name} in this network namespace: see `ip link`")
            }
            Self::InterfaceGone { name } => {
                write!(f, "the interface {name} is gone: close its sockets, and open them on another")
            }
            Self::InterfaceDown { name } => {
                write!(f, "the interface {name} is switched off: ip link set dev {name} up")
            }
            Self::NoQueue { interface, queue } => {
                write!(
                    f,
                    "{interface} has no queue {queue} for both directions: see `ethtool -l {interface}`"
                )
            }
            Self::QueueInUse { interface, queue } => write!(
                f,
                "another socket has queue {queue} of {interface}: close it, and wait until the kernel has let go, or \
                 use another queue"
            ),
            Self::ProgramInUse { interface } => write!(
                f,
                "{interface} has an XDP program already: see `ip link show dev {interface}`, and end what attached it"
            ),
            Self::Mtu { interface, mtu, frame_max: Some(frame_max) } => write!(
                f,
                "{interface} has an MTU of {mtu}, and a unit has room for frames of {frame_max} bytes: ip link set \
                 dev {interface} mtu {}, use larger units or less headroom, chains of units (XdpRegion::with_chains), or \
                 have longer frames dropped (XdpOptions::drop_long_frames)",
                frame_max.saturating_sub(HEADER_BYTES)
            ),
            Self::Mtu { interface, mtu, frame_max: None } => write!(
                f,
                "the driver of {interface} has no XDP with an MTU of {mtu}: use XdpRedirect::attach_with_chains, \
                 XdpAttach::Either, or ip link set dev {interface} mtu 1500, and at the other end as well if it is a pair \
                 (veth)"
            ),
            Self::Chain { parts, most: 1 } => write!(
                f,
                "a packet of {parts} units cannot be sent by a socket of a region without chains: make the region with \
                 them (XdpRegion::with_chains)"
            ),
            Self::Chain { parts, most } => write!(
                f,
                "a packet of {parts} units cannot be sent by a transmit ring of {most} entries: use a larger one \
                 (XdpOptions::transmit_entries), or larger units"
            ),
            Self::NoZeroCopy { interface } => write!(
                f,
                "the driver of {interface} has no zero copy: use XdpMode::Either, or a card and a driver that have it"
            ),
            Self::NoDriverXdp { interface } => write!(
                f,
                "the driver of {interface} has no XDP: use XdpAttach::Either or XdpAttach::Stack, or a card whose \
                 driver has it"
            ),
            Self::DriverQueues { interface } => write!(
                f,
                "the driver of {interface} has no XDP with the queues that it has: use XdpAttach::Either, or change \
                 how many there are (ethtool -L {interface}); a pair (veth) needs as many to receive as the other end \
                 has to send"
            ),
            Self::Headroom { headroom, unit } => write!(
                f,
                "the kernel refuses a headroom of {headroom} bytes in units of {unit}, of which it needs 256 and \
                 room for a frame: use less headroom (PacketPoolOptions::headroom), or units of 4096 bytes"
            ),
            Self::Misaligned { offset, page } => write!(
                f,
                "the region begins {offset} bytes into a page of {page}: use units of {page} bytes, or an arena that \
                 begins with a page, as ArenaVm does"
            ),
            Self::Entries { entries } => {
                write!(f, "a ring cannot have {entries} entries: use a power of two from 1 to 2^20")
            }
            Self::OtherInterface { program, socket } => write!(
                f,
                "the program is attached to {program}, and the socket is of {socket}: attach one for each interface"
            ),
            Self::StillBound { interface, queue, units } => write!(
                f,
                "the kernel still has queue {queue} of {interface}, and {units} units with it: wait longer"
            ),
            Self::Pool(error) => write!(f, "{error}"),
            Self::System { call, errno } => write!(f, "{call}: {}", system(*errno)),
        }
    }
}

tripoint_core::debug_as_text!(
    XdpError: LockedMemory, Descriptors, Rights, NotOffered, NoInterface, InterfaceGone, InterfaceDown, NoQueue,
    QueueInUse, ProgramInUse, Mtu, Chain, NoZeroCopy, NoDriverXdp, DriverQueues, Headroom, Misaligned, Entries, OtherInterface, StillBound,
    Pool, System
);

impl core::error::Error for XdpError {}

impl From<tripoint_core::Error> for XdpError {
    fn from(error: tripoint_core::Error) -> Self {
        Self::Pool(error)
    }
}
