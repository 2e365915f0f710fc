//! Tells a debugger where slots are and how they are laid out, without debug information.
//! `contract/gdb/contract.py` uses it to read alarms and records from a core file
//! (design/contract.md `.core`).

use core::mem::{offset_of, size_of};

use tripoint_core::internal::{AtomicUsize, Ordering};

use super::{Account, RING_RECORDS, Slot};
use crate::alarm::AlarmCell;
use crate::attendance::Attendance;
use crate::class::ViolationClass;
use crate::name::NameCell;
use crate::record::{FRAMES, WORDS};
use crate::ring::Ring;

/// Change this with any of the words below, and with the words of a record.
const VERSION: usize = 1;

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

const ALARM: usize = offset_of!(Account, alarm);
const NAME: usize = offset_of!(Slot, name);

/// A debugger finds this by its magic.
#[used]
static LAYOUT: Layout = Layout {
    magic: *b"tripointcontract",
    version: VERSION,
    last_slot: AtomicUsize::new(0),
    offsets: [
        offset_of!(Slot, before),
        offset_of!(Slot, attendance) + Attendance::STATE_OFFSET,
        offset_of!(Slot, alarms),
        NAME + NameCell::OFFSETS[0],
        NAME + NameCell::OFFSETS[1],
        offset_of!(Slot, accounts),
        size_of::<Account>(),
        ViolationClass::COUNT,
        ALARM + AlarmCell::OFFSETS[0],
        ALARM + AlarmCell::OFFSETS[1],
        offset_of!(Slot, own),
        offset_of!(Slot, supervised),
        Ring::<RING_RECORDS>::OFFSETS[0],
        Ring::<RING_RECORDS>::OFFSETS[1],
        Ring::<RING_RECORDS>::OFFSETS[2],
        RING_RECORDS,
        WORDS,
        FRAMES,
    ],
};

/// Lists a slot for the first time. It is `'static`, so it is never removed.
pub(super) fn list(slot: &'static Slot) {
    let this = core::ptr::from_ref(slot).addr();
    slot.before.store(LAYOUT.last_slot.swap(this, Ordering::Relaxed), Ordering::Relaxed);
}
