//! The program that hands the datagrams of one port to a socket of AF_XDP, and leaves all else to the kernel
//! (design/packet-path.md `.redirect`).

use core::ffi::{c_long, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// An instruction: the operation, the registers, an offset, an immediate.
type Instruction = u64;

const fn instruction(operation: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    let [low, high] = offset.to_ne_bytes();
    let [a, b, c, d] = immediate.to_ne_bytes();
    u64::from_ne_bytes([operation, registers, low, high, a, b, c, d])
}

// Registers: the result, the arguments, and two of our own.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;

// Operations, as the kernel's documentation of the instruction set has them.
const LOAD_BYTE: u8 = 0x71;
const LOAD_HALF: u8 = 0x69;
const LOAD_WORD: u8 = 0x61;
const LOAD_DOUBLE: u8 = 0x18;
const MOVE: u8 = 0xbf;
const MOVE_IMMEDIATE: u8 = 0xb7;
const ADD_IMMEDIATE: u8 = 0x07;
const JUMP_IF_ABOVE: u8 = 0x2d;
const JUMP_IF_NOT: u8 = 0x55;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// The kernel's function that hands a frame to what is in a map.
const REDIRECT_MAP: i32 = 51;

/// What the program says of a frame that the kernel is to have.
const PASS: i32 = 2;

// Where things stand in the context, and in a frame of Ethernet with IPv6 and UDP.
const CONTEXT_DATA: i16 = 0;
const CONTEXT_END: i16 = 4;
const ETHER_TYPE: i16 = 12;
const NEXT_HEADER: i16 = 20;
const PORT: i16 = 56;
const PORT_END: i32 = 58;

const IPV6: u16 = 0x86dd;
const UDP: i32 = 17;

/// Instructions of the program.
const LENGTH: usize = 19;

/// The program for datagrams to `port`, whose socket is the first of the map with the descriptor `map`.
const fn program(port: u16, map: i32) -> [Instruction; LENGTH] {
    [
        instruction(LOAD_WORD, R2, R1, CONTEXT_DATA, 0),
        instruction(LOAD_WORD, R3, R1, CONTEXT_END, 0),
        instruction(MOVE, R4, R2, 0, 0),
        instruction(ADD_IMMEDIATE, R4, 0, 0, PORT_END),
        instruction(JUMP_IF_ABOVE, R4, R3, pass(4), 0),
        instruction(LOAD_HALF, R5, R2, ETHER_TYPE, 0),
        instruction(JUMP_IF_NOT, R5, 0, pass(6), IPV6.to_be() as i32),
        instruction(LOAD_BYTE, R5, R2, NEXT_HEADER, 0),
        instruction(JUMP_IF_NOT, R5, 0, pass(8), UDP),
        instruction(LOAD_HALF, R5, R2, PORT, 0),
        instruction(JUMP_IF_NOT, R5, 0, pass(10), port.to_be() as i32),
        // An operation of two instructions: register 1 is the map with this descriptor.
        instruction(LOAD_DOUBLE, R1, 1, 0, map),
        0,
        instruction(MOVE_IMMEDIATE, R2, 0, 0, 0),
        instruction(MOVE_IMMEDIATE, R3, 0, 0, PASS),
        instruction(CALL, R0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, R0, 0, 0, 0),
        instruction(MOVE_IMMEDIATE, R0, 0, 0, PASS),
        instruction(EXIT, R0, 0, 0, 0),
    ]
}

/// How far it is from instruction `here` to the last two, which pass the frame on.
const fn pass(here: i16) -> i16 {
    LENGTH as i16 - 2 - (here + 1)
}

// Commands of the call `bpf`, and what they take: the first fields of its union.
const MAP_CREATE: c_long = 0;
const MAP_UPDATE: c_long = 2;
const PROGRAM_LOAD: c_long = 5;
const LINK_CREATE: c_long = 28;

const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_OF_XDP: u32 = 6;
const ATTACH_TO_XDP: u32 = 37;

/// The licence of a program, which some functions of the kernel ask for.
const LICENCE: &core::ffi::CStr = c"Dual MIT/GPL";

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
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// Datagrams of a port on their way to a socket, until this is dropped.
#[derive(Debug)]
pub(crate) struct Redirect {
    _link: OwnedFd,
}

impl Redirect {
    /// Has interface `interface` hand datagrams to `port` to `socket`, which is bound to its first queue.
    ///
    /// # Errors
    /// The operating system's: without the privilege, [`io::ErrorKind::PermissionDenied`].
    pub(crate) fn begin(interface: u32, port: u16, socket: BorrowedFd<'_>) -> io::Result<Self> {
        let map = MapCreate { kind: MAP_OF_SOCKETS, key_size: 4, value_size: 4, entries: 1, flags: 0 };
        let map = bpf_descriptor(MAP_CREATE, &map)?;
        let (first, socket) = (0_u32, socket.as_raw_fd());
        let update = MapUpdate {
            map: number(&map),
            key: address(&raw const first),
            value: address(&raw const socket),
            flags: 0,
        };
        bpf(MAP_UPDATE, &update)?;
        let instructions = program(port, map.as_raw_fd());
        let load = ProgramLoad {
            kind: PROGRAM_OF_XDP,
            instruction_count: LENGTH as u32,
            instructions: address(instructions.as_ptr()),
            licence: address(LICENCE.as_ptr()),
            log_level: 0,
            log_size: 0,
            log: 0,
        };
        let program = bpf_descriptor(PROGRAM_LOAD, &load)?;
        let link = LinkCreate { program: number(&program), interface, attach_type: ATTACH_TO_XDP, flags: 0 };
        // The link keeps the program, and the program the map.
        Ok(Self { _link: bpf_descriptor(LINK_CREATE, &link)? })
    }
}

/// What the kernel takes for a pointer. It reads it during the call only.
fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

fn number(descriptor: &OwnedFd) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

fn bpf_descriptor<T>(command: c_long, attributes: &T) -> io::Result<OwnedFd> {
    let descriptor = bpf(command, attributes)?;
    // SAFETY: the commands that are passed here return a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn bpf<T>(command: c_long, attributes: &T) -> io::Result<i32> {
    let attributes_at = core::ptr::from_ref(attributes).cast::<c_void>();
    // SAFETY: the attributes are those of the command, valid to read for their size, and so is what they point to for
    // the size that the kernel takes from them: a key and a descriptor of four bytes, `LENGTH` instructions, and a
    // licence that ends with a zero. The kernel takes zeros for what follows them in its union.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes_at, size_of::<T>()) };
    match i32::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}
