//! Frames on their way from an interface to sockets, by a program that is attached to it (design/xdp.md `.redirect`).

use core::ffi::{CStr, c_long, c_void};
use core::fmt;
use core::mem::offset_of;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::interface::Interface;
use crate::program::{Instruction, program};
use crate::{XdpError, XdpFilter, XdpSocket};

/// The queues that a program can serve: as many as the kernel makes an interface with.
const QUEUES_MAX: u32 = 4096;

/// What loading a program and attaching it need.
const RIGHTS: &str = "CAP_BPF and CAP_NET_ADMIN";

/// What a driver says that has no XDP, or none with the MTU or the queues of the interface.
const NOT_IN_DRIVER: [i32; 3] = [libc::EOPNOTSUPP, libc::ERANGE, libc::ENOSPC];

/// Where an interface runs its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpAttach {
    /// In the driver if it has XDP with the MTU and the queues of the interface, else in the kernel's network stack.
    /// [`XdpRedirect::attached`] says which.
    #[default]
    Either,
    /// In the driver, before the kernel has made anything of a frame.
    Driver,
    /// In the kernel's network stack (generic XDP), which is slower, and works with any driver.
    Stack,
}

/// Frames on their way from an interface to sockets. They stop when this is dropped, and so does the program: it is attached
/// by a descriptor, which ends with the process, too.
pub struct XdpRedirect {
    /// The link keeps the program, and the program the map.
    _link: OwnedFd,
    map: OwnedFd,
    interface: Interface,
    attached: XdpAttach,
}

impl XdpRedirect {
    /// Attaches a program to an interface in the network namespace of the calling thread. The kernel has all frames until
    /// sockets are [added](Self::add).
    ///
    /// # Errors
    /// - of the interface: [`XdpError::NoInterface`], [`XdpError::InterfaceGone`], [`XdpError::ProgramInUse`]
    /// - of its driver, with [`XdpAttach::Driver`]: [`XdpError::NoDriverXdp`], [`XdpError::DriverQueues`], and
    ///   [`XdpError::Mtu`] if it has no XDP with this MTU
    /// - of the process and its user: [`XdpError::Descriptors`], and [`XdpError::Rights`] without CAP_BPF and CAP_NET_ADMIN
    /// - of the kernel: [`XdpError::NotOffered`], [`XdpError::System`]
    pub fn attach(interface: &str, filter: XdpFilter, attach: XdpAttach) -> Result<Self, XdpError> {
        Self::attach_flagged(interface, filter, attach, 0)
    }

    /// The same for frames that may lie in several buffers of the driver, which lets a driver have XDP with a larger MTU: for
    /// sockets of a region [with chains](crate::XdpRegion::with_chains). Other sockets get those that fit into a unit.
    ///
    /// # Errors
    /// Those of [`attach`](Self::attach).
    pub fn attach_with_chains(
        interface: &str,
        filter: XdpFilter,
        attach: XdpAttach,
    ) -> Result<Self, XdpError> {
        Self::attach_flagged(interface, filter, attach, HAS_FRAGMENTS)
    }

    fn attach_flagged(
        interface: &str,
        filter: XdpFilter,
        attach: XdpAttach,
        flags: u32,
    ) -> Result<Self, XdpError> {
        let interface = Interface::find(interface)?;
        let map =
            MapCreate { kind: MAP_OF_SOCKETS, key_size: 4, value_size: 4, entries: QUEUES_MAX, flags: 0 };
        let map = bpf_descriptor(MAP_CREATE, &map)
            .map_err(|error| XdpError::of("bpf(BPF_MAP_CREATE)", &error, RIGHTS))?;
        let program = load(&program(filter, map.as_raw_fd()), flags)
            .map_err(|error| XdpError::of("bpf(BPF_PROG_LOAD)", &error, RIGHTS))?;
        let (link, attached) = match attach {
            XdpAttach::Either => match link(&program, &interface, IN_DRIVER) {
                // The driver has no XDP, or none with this MTU or these queues.
                Err(error) if NOT_IN_DRIVER.iter().any(|errno| error.raw_os_error() == Some(*errno)) => {
                    (link(&program, &interface, IN_STACK), XdpAttach::Stack)
                }
                link => (link, XdpAttach::Driver),
            },
            XdpAttach::Driver => (link(&program, &interface, IN_DRIVER), XdpAttach::Driver),
            XdpAttach::Stack => (link(&program, &interface, IN_STACK), XdpAttach::Stack),
        };
        let link = link.map_err(|error| not_attached(&error, &interface))?;
        Ok(Self { _link: link, map, interface, attached })
    }

    /// Where the interface runs the program: in the driver or in the stack.
    #[must_use]
    pub const fn attached(&self) -> XdpAttach {
        self.attached
    }

    /// Hands frames that come by the queue of a socket to it, in place of another that was added for the queue. The kernel
    /// forgets a socket that is closed.
    ///
    /// # Errors
    /// - [`XdpError::OtherInterface`] if the socket is of another interface, also if that has the same name or number in
    ///   another network namespace
    /// - [`XdpError::System`] for a queue above 4095, or if the kernel refuses for another reason
    pub fn add<const SIZE: usize>(&self, socket: &XdpSocket<'_, SIZE>) -> Result<(), XdpError> {
        let (interface, queue) = socket.place();
        if interface != self.interface.identity {
            let (program, socket) = (self.interface.name().to_owned(), socket.interface().to_owned());
            return Err(XdpError::OtherInterface { program, socket });
        }
        let value = std::os::fd::AsFd::as_fd(socket).as_raw_fd();
        let update = MapUpdate {
            map: number(&self.map),
            _padding: 0,
            key: address(&raw const queue),
            value: address(&raw const value),
            flags: 0,
        };
        // SAFETY: key and value have the four bytes that the map was made for.
        unsafe { bpf(MAP_UPDATE, &update) }
            .map_err(|error| XdpError::of("bpf(BPF_MAP_UPDATE_ELEM)", &error, RIGHTS))?;
        Ok(())
    }
}

impl fmt::Debug for XdpRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XdpRedirect({}, {:?})", self.interface, self.attached)
    }
}

/// Why a program was not attached.
fn not_attached(error: &io::Error, interface: &Interface) -> XdpError {
    let name = interface.name().to_owned();
    match error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => XdpError::ProgramInUse { interface: name },
        Some(libc::ERANGE) => XdpError::Mtu { interface: name, mtu: interface.mtu, frame_max: None },
        Some(libc::ENOSPC) => XdpError::DriverQueues { interface: name },
        Some(libc::ENODEV) => XdpError::InterfaceGone { name },
        Some(libc::EOPNOTSUPP) => XdpError::NoDriverXdp { interface: name },
        _ => XdpError::of("bpf(BPF_LINK_CREATE)", error, RIGHTS),
    }
}

fn load(instructions: &[Instruction], flags: u32) -> io::Result<OwnedFd> {
    bpf_descriptor(
        PROGRAM_LOAD,
        &ProgramLoad {
            kind: PROGRAM_OF_XDP,
            // Far fewer than a `u32` counts.
            instruction_count: instructions.len() as u32,
            instructions: address(instructions.as_ptr()),
            licence: address(LICENCE.as_ptr()),
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags,
        },
    )
}

fn link(program: &OwnedFd, interface: &Interface, flags: u32) -> io::Result<OwnedFd> {
    let interface = interface.identity.index;
    bpf_descriptor(
        LINK_CREATE,
        &LinkCreate { program: number(program), interface, attach_type: ATTACH_TO_XDP, flags },
    )
}

// Commands of the call `bpf`, and what they take: the first fields of its union.
const MAP_CREATE: c_long = 0;
const MAP_UPDATE: c_long = 2;
const PROGRAM_LOAD: c_long = 5;
const LINK_CREATE: c_long = 28;

const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_OF_XDP: u32 = 6;
const ATTACH_TO_XDP: u32 = 37;

/// A flag of a program: it knows that what follows the first buffer of a frame is elsewhere. Ours reads headers only.
const HAS_FRAGMENTS: u32 = 1 << 5;

// Flags of a link.
const IN_STACK: u32 = 1 << 1;
const IN_DRIVER: u32 = 1 << 2;

/// The licence of a program, which some functions of the kernel ask for.
const LICENCE: &CStr = c"Dual MIT/GPL";

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

#[repr(C, align(8))]
struct MapUpdate {
    map: u32,
    // Addresses are aligned to eight bytes there on every target.
    _padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C, align(8))]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

// Where the kernel has the fields, on every target.
const _: () = {
    assert!(offset_of!(MapCreate, kind) == 0 && offset_of!(MapCreate, key_size) == 4);
    assert!(offset_of!(MapCreate, value_size) == 8 && offset_of!(MapCreate, entries) == 12);
    assert!(offset_of!(MapCreate, flags) == 16 && size_of::<MapCreate>() == 20);
    assert!(offset_of!(MapUpdate, map) == 0 && offset_of!(MapUpdate, key) == 8);
    assert!(offset_of!(MapUpdate, value) == 16 && offset_of!(MapUpdate, flags) == 24);
    assert!(offset_of!(ProgramLoad, kind) == 0 && offset_of!(ProgramLoad, instruction_count) == 4);
    assert!(offset_of!(ProgramLoad, instructions) == 8 && offset_of!(ProgramLoad, licence) == 16);
    assert!(offset_of!(ProgramLoad, log_level) == 24 && offset_of!(ProgramLoad, log_size) == 28);
    assert!(offset_of!(ProgramLoad, log) == 32 && offset_of!(ProgramLoad, kernel_version) == 40);
    assert!(offset_of!(ProgramLoad, flags) == 44 && size_of::<ProgramLoad>() == 48);
    assert!(offset_of!(LinkCreate, program) == 0 && offset_of!(LinkCreate, interface) == 4);
    assert!(offset_of!(LinkCreate, attach_type) == 8 && offset_of!(LinkCreate, flags) == 12);
};

/// What the kernel takes for a pointer. It reads it during the call only.
fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

fn number(descriptor: &OwnedFd) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

fn bpf_descriptor<T>(command: c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the callers pass the attributes of each command. What those of a program point to is there during the call: as many
    // instructions as they say, and a licence that ends with a zero. The others point to nothing.
    let descriptor = unsafe { bpf(command, attributes) }?;
    // SAFETY: the commands that are passed here return a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// # Safety
/// - The attributes are those of the command, and what they point to is valid to read as far as the kernel reads it.
unsafe fn bpf<T>(command: c_long, attributes: &T) -> io::Result<i32> {
    let attributes_at = core::ptr::from_ref(attributes).cast::<c_void>();
    // SAFETY: the attributes are valid to read for their size, and the caller answers for what they point to. The kernel takes
    // zeros for what follows them in its union.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes_at, size_of::<T>()) };
    match i32::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}
