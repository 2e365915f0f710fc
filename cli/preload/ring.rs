//! What a recorded process and its recorder share: a control page, and a ring of operations for each process
//! (design/cli-traces.md `.ring`).
//!
//! This file is compiled twice: into the preloaded library, and into the recorder. Both map the same memory.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Written last when a ring or control page is ready; counted up when the layout changes.
pub const READY: u32 = 0x7470_0003;

/// The most bytes of the name of a program.
const NAME: usize = 64;

/// Operations that a ring has room for.
pub const SLOTS: u64 = 1 << 18;

/// The control page, one for each run of the recorder.
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    pub ready: AtomicU32,
    /// Counted up, and waited on, when a ring is new or a quarter full.
    pub bell: AtomicU32,
    /// How many rings were begun. Ring `n` is the file `n` beside the control file.
    pub rings: AtomicU32,
    /// The process of the first ring: the command itself.
    pub first: AtomicU32,
    /// Whether other processes are recorded, too.
    pub follow: AtomicU32,
    /// Set when the recorder has ended: what begins later is not recorded.
    pub closed: AtomicU32,
    /// Why a process could not be recorded: a system error's number, or zero.
    pub problem: AtomicU32,
}

/// What the recorded process writes and the recorder reads.
#[repr(C)]
#[derive(Debug)]
pub struct Ring {
    pub ready: AtomicU32,
    pub pid: AtomicU32,
    /// The recorded process that forked this one, or zero.
    pub forked_by: AtomicU32,
    /// Threads that have a number.
    pub threads: AtomicU32,
    /// Set when either side has given up: nothing more is written.
    pub off: AtomicU32,
    /// The most memory that the process had resident, in KiB, if it has ended by itself; zero before.
    pub peak_resident: AtomicU32,
    /// Threads that wait for room, and the word that they wait on.
    pub waiting: AtomicU32,
    pub room: AtomicU32,
    /// The name of the program, which ends at the first zero.
    name: [AtomicU8; NAME],
    head: Line,
    tail: Line,
    slots: [Slot; SLOTS as usize],
}

/// A count on a cache line of its own.
#[repr(C, align(64))]
#[derive(Debug)]
struct Line(AtomicU64);

#[repr(C, align(32))]
#[derive(Debug)]
struct Slot {
    /// The lap in which the slot was written last, from one.
    lap: AtomicU32,
    thread: AtomicU32,
    address: AtomicU64,
    size: AtomicU64,
    /// The code of the operation, and the binary logarithm of an alignment in the next byte.
    what: AtomicU64,
}

/// The codes of operations.
pub mod code {
    /// `malloc` and what is like it returned `address`.
    pub const PLAIN: u8 = 1;
    pub const ZEROED: u8 = 2;
    pub const ALIGNED: u8 = 3;
    /// `free(address)` is about to be called.
    pub const FREE: u8 = 4;
    /// `realloc(address, size)` is about to be called.
    pub const REALLOC: u8 = 5;
    /// The last `realloc` of this thread returned `address`, or nothing if that is zero.
    pub const REALLOCATED: u8 = 6;
    pub const END_THREAD: u8 = 7;
    /// `address` is the number of the child.
    pub const FORK: u8 = 8;
}

/// An operation in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub code: u8,
    pub align_log2: u8,
    pub thread: u32,
    pub address: u64,
    pub size: u64,
}

impl Ring {
    /// Notes the name of the program, as much of it as there is room for.
    pub fn set_name(&self, name: &[u8]) {
        self.name.iter().zip(name).for_each(|(place, byte)| place.store(*byte, Ordering::Relaxed));
    }

    /// The name of the program; empty if there was none.
    pub fn name(&self) -> Vec<u8> {
        let bytes = self.name.iter().map(|byte| byte.load(Ordering::Relaxed));
        bytes.take_while(|byte| *byte != 0).collect()
    }

    /// Takes the next place. Places are numbered in the order of operations: one that happens after another
    /// has a higher number (design/cli-traces.md `.order`).
    #[inline]
    pub fn take_place(&self) -> u64 {
        self.head.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the slot of this place is not yet free.
    #[inline]
    pub fn is_full(&self, place: u64) -> bool {
        place.wrapping_sub(self.tail.0.load(Ordering::Acquire)) >= SLOTS
    }

    /// Writes an operation to a place that this thread took and that has room.
    #[inline]
    pub fn put(&self, place: u64, entry: Entry) {
        let slot = &self.slots[(place % SLOTS) as usize];
        slot.thread.store(entry.thread, Ordering::Relaxed);
        slot.address.store(entry.address, Ordering::Relaxed);
        slot.size.store(entry.size, Ordering::Relaxed);
        slot.what.store(u64::from(entry.code) | u64::from(entry.align_log2) << 8, Ordering::Relaxed);
        slot.lap.store((place / SLOTS) as u32 + 1, Ordering::Release);
    }

    /// The operation at a place, if it is written.
    pub fn get(&self, place: u64) -> Option<Entry> {
        let slot = &self.slots[(place % SLOTS) as usize];
        let written = slot.lap.load(Ordering::Acquire) == (place / SLOTS) as u32 + 1;
        written.then(|| {
            let what = slot.what.load(Ordering::Relaxed);
            Entry {
                code: what as u8,
                align_log2: (what >> 8) as u8,
                thread: slot.thread.load(Ordering::Relaxed),
                address: slot.address.load(Ordering::Relaxed),
                size: slot.size.load(Ordering::Relaxed),
            }
        })
    }

    /// The place after the last that was taken.
    pub fn head(&self) -> u64 {
        self.head.0.load(Ordering::Relaxed)
    }

    /// The place after the last whose slot is free again.
    pub fn tail(&self) -> u64 {
        self.tail.0.load(Ordering::Relaxed)
    }

    /// Frees the slots of all places before this one.
    pub fn set_tail(&self, place: u64) {
        self.tail.0.store(place, Ordering::Release);
    }
}
