//! The program that an interface runs for each frame: which frames go to sockets (design/xdp.md `.redirect`).

/// Which frames go to the sockets of an interface. The kernel has all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum XdpFilter {
    /// All. The kernel then answers no request of neighbours either: the program has to.
    All,
    /// Datagrams of UDP to this port, over IPv4 or IPv6, with a tag of a VLAN or without. Fragments, and headers of IPv6
    /// between that and UDP, are left to the kernel.
    UdpPort(u16),
}

/// An instruction of eight bytes: the operation, the registers, an offset, an immediate.
pub(crate) type Instruction = u64;

/// The number of the queue that a frame came by is the key of its socket in the map with this descriptor.
pub(crate) fn program(filter: XdpFilter, map: i32) -> Vec<Instruction> {
    let mut assembler = Assembler::default();
    match filter {
        XdpFilter::All => redirect(&mut assembler, map),
        XdpFilter::UdpPort(port) => {
            match_udp(&mut assembler, port);
            redirect(&mut assembler, map);
            assembler.place(Label::Pass);
            assembler.emit(MOVE_IMMEDIATE, R0, 0, 0, PASS);
            assembler.emit(EXIT, R0, 0, 0, 0);
        }
    }
    assembler.finish()
}

/// Hands the frame to the socket of its queue, or passes it if there is none.
fn redirect(assembler: &mut Assembler, map: i32) {
    assembler.emit(LOAD_WORD, R2, R1, CONTEXT_QUEUE, 0);
    // An operation of two instructions: register 1 is the map with this descriptor.
    assembler.emit(LOAD_DOUBLE, R1, PSEUDO_MAP, 0, map);
    assembler.emit(0, R0, 0, 0, 0);
    // What to say if there is no socket for the queue.
    assembler.emit(MOVE_IMMEDIATE, R3, 0, 0, PASS);
    assembler.emit(CALL, R0, 0, 0, REDIRECT_MAP);
    assembler.emit(EXIT, R0, 0, 0, 0);
}

/// Goes on to what follows for datagrams to the port, and to the end for all else. Register 2 is where a header begins.
fn match_udp(assembler: &mut Assembler, port: u16) {
    assembler.emit(LOAD_WORD, R2, R1, CONTEXT_DATA, 0);
    assembler.emit(LOAD_WORD, R3, R1, CONTEXT_END, 0);
    assembler.need(ETHERNET);
    assembler.emit(LOAD_HALF, R5, R2, ETHER_TYPE, 0);
    assembler.jump(JUMP_IF_NOT, R5, 0, be(VLAN), Label::NoTag);
    assembler.emit(ADD_IMMEDIATE, R2, 0, 0, TAG);
    assembler.need(ETHERNET);
    assembler.emit(LOAD_HALF, R5, R2, ETHER_TYPE, 0);
    assembler.place(Label::NoTag);
    assembler.emit(ADD_IMMEDIATE, R2, 0, 0, ETHERNET);
    assembler.jump(JUMP_IF, R5, 0, be(IPV4), Label::Ipv4);
    assembler.jump(JUMP_IF_NOT, R5, 0, be(IPV6), Label::Pass);

    assembler.need(IPV6_HEADER);
    assembler.emit(LOAD_BYTE, R5, R2, IPV6_NEXT, 0);
    assembler.emit(ADD_IMMEDIATE, R2, 0, 0, IPV6_HEADER);
    assembler.jump(JUMP, R0, 0, 0, Label::Transport);

    assembler.place(Label::Ipv4);
    assembler.need(IPV4_HEADER);
    assembler.emit(LOAD_HALF, R5, R2, IPV4_FRAGMENT, 0);
    assembler.emit(AND_IMMEDIATE, R5, 0, 0, be(IPV4_IS_PART));
    assembler.jump(JUMP_IF_NOT, R5, 0, 0, Label::Pass);
    assembler.emit(LOAD_BYTE, R5, R2, IPV4_PROTOCOL, 0);
    assembler.emit(LOAD_BYTE, R4, R2, 0, 0);
    // The length of the header. Each is compared with: to add a number to an address, a program needs CAP_PERFMON.
    assembler.emit(AND_IMMEDIATE, R4, 0, 0, IPV4_WORDS_MAX);
    assembler.emit(ADD_IMMEDIATE, R2, 0, 0, IPV4_HEADER);
    for words in IPV4_HEADER / WORD..=IPV4_WORDS_MAX {
        assembler.jump(JUMP_IF, R4, 0, words, Label::Transport);
        assembler.emit(ADD_IMMEDIATE, R2, 0, 0, WORD);
    }
    assembler.jump(JUMP, R0, 0, 0, Label::Pass);

    assembler.place(Label::Transport);
    assembler.jump(JUMP_IF_NOT, R5, 0, UDP, Label::Pass);
    assembler.need(UDP_HEADER);
    assembler.emit(LOAD_HALF, R5, R2, UDP_PORT, 0);
    assembler.jump(JUMP_IF_NOT, R5, 0, be(port), Label::Pass);
}

/// A number as it lies in a frame, read by this processor.
const fn be(number: u16) -> i32 {
    number.to_be() as i32
}

/// A place in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    NoTag,
    Ipv4,
    Transport,
    Pass,
}

#[derive(Default)]
struct Assembler {
    instructions: Vec<Instruction>,
    /// Where labels are, and which instructions jump to them.
    placed: Vec<(Label, usize)>,
    jumps: Vec<(Label, usize)>,
}

impl Assembler {
    fn emit(&mut self, operation: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        self.instructions.push(instruction(operation, to, from, offset, immediate));
    }

    fn jump(&mut self, operation: u8, register: u8, other: u8, immediate: i32, to: Label) {
        self.jumps.push((to, self.instructions.len()));
        self.emit(operation, register, other, 0, immediate);
    }

    /// Passes frames that have fewer than `bytes` from register 2 on.
    fn need(&mut self, bytes: i32) {
        self.emit(MOVE, R4, R2, 0, 0);
        self.emit(ADD_IMMEDIATE, R4, 0, 0, bytes);
        self.jump(JUMP_IF_ABOVE, R4, R3, 0, Label::Pass);
    }

    fn place(&mut self, label: Label) {
        self.placed.push((label, self.instructions.len()));
    }

    /// The instructions, with the distances of their jumps.
    fn finish(mut self) -> Vec<Instruction> {
        for (label, at) in self.jumps {
            let place = self.placed.iter().find(|(placed, _)| *placed == label);
            // Every label that is jumped to is placed, and the program has fewer instructions than an `i16` counts.
            let distance = place.map_or(0, |(_, to)| (*to - (at + 1)) as i16);
            self.instructions[at] |= instruction(0, 0, 0, distance, 0);
        }
        self.instructions
    }
}

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
const AND_IMMEDIATE: u8 = 0x57;
const JUMP: u8 = 0x05;
const JUMP_IF: u8 = 0x15;
const JUMP_IF_ABOVE: u8 = 0x2d;
const JUMP_IF_NOT: u8 = 0x55;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// In place of a register: the immediate is the descriptor of a map.
const PSEUDO_MAP: u8 = 1;

/// The kernel's function that hands a frame to what is in a map.
const REDIRECT_MAP: i32 = 51;

/// What the program says of a frame that the kernel is to have.
const PASS: i32 = 2;

// Where things stand in the context.
const CONTEXT_DATA: i16 = 0;
const CONTEXT_END: i16 = 4;
const CONTEXT_QUEUE: i16 = 16;

// Where things stand in headers, from the beginning of each, and how long these are.
const ETHERNET: i32 = 14;
const ETHER_TYPE: i16 = 12;
const TAG: i32 = 4;
const IPV6_HEADER: i32 = 40;
const IPV6_NEXT: i16 = 6;
const IPV4_HEADER: i32 = 20;
/// The longest header with its options, in words. They are the lower half of the first byte.
const IPV4_WORDS_MAX: i32 = 15;
const WORD: i32 = 4;
const IPV4_FRAGMENT: i16 = 6;
const IPV4_PROTOCOL: i16 = 9;
const UDP_HEADER: i32 = 8;
const UDP_PORT: i16 = 2;

const VLAN: u16 = 0x8100;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const UDP: i32 = 17;

/// The bits that say that a packet of IPv4 is a part of one: more follow, or its place is not the first.
const IPV4_IS_PART: u16 = 0x3fff;
