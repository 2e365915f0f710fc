//! Shows a debugger where slots are and how they are laid out, without debug information.
//! `contract/gdb/contract.py` uses it to read alarms and records from a core file
//! (design/contract.md `.core`).

use core::mem::size_of;

use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_stack::Site;

use crate::thread::account::Account;
use crate::thread::records::Records;
use crate::thread::ring::{RING_RECORDS, Ring};
use crate::thread::slot::Slot;
use crate::words::class::ViolationClass;
use crate::words::record::WORDS;

/// Change this with any of the words below, and with the words of a record.
const VERSION: usize = 2;

/// The magic, and the words that `contract.py` names in this order.
#[derive(Debug)]
#[repr(C)]
struct Layout {
    magic: [u8; 16],
    version: usize,
    /// The slot listed last; each slot knows the one before.
    last_slot: AtomicUsize,
    offsets: [usize; 18],
}

const RECORDS: usize = Slot::OFFSETS[5];

/// A debugger finds this by its magic.
#[used]
static LAYOUT: Layout = Layout {
    magic: *b"tripointcontract",
    version: VERSION,
    last_slot: AtomicUsize::new(0),
    offsets: [
        Slot::OFFSETS[0],
        Slot::OFFSETS[1],
        Slot::OFFSETS[2],
        Slot::OFFSETS[3],
        Slot::OFFSETS[4],
        RECORDS + Records::OFFSETS[0],
        size_of::<Account>(),
        ViolationClass::COUNT,
        Account::OFFSETS[0],
        Account::OFFSETS[1],
        RECORDS + Records::OFFSETS[1],
        RECORDS + Records::OFFSETS[2],
        Ring::<RING_RECORDS>::OFFSETS[0],
        Ring::<RING_RECORDS>::OFFSETS[1],
        Ring::<RING_RECORDS>::OFFSETS[2],
        RING_RECORDS,
        WORDS,
        Site::FRAMES,
    ],
};

/// Lists a slot for the first time. It is `'static`, so it is never removed.
pub(crate) fn list(slot: &'static Slot) {
    let this = core::ptr::from_ref(slot).addr();
    slot.list_after(LAYOUT.last_slot.swap(this, Ordering::Relaxed));
}
