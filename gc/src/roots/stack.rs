//! A thread's stack as a root: each word of it may be a reference.
//!
//! ```text
//!   lower addresses                                                     higher addresses
//!   ... functions that wait | registers | functions that use objects ... | what called them ...
//!                           hot end                                      cold end
//! ```
//!
//! Everything between the two ends is scanned. The cold end stays where it is. The hot end is known only while the
//! thread gives way or is away: before it waits it stores the registers on its stack ([`Stack::spill_during`],
//! design/gc.md `.stack.spill`).

use core::hint;
use core::mem::offset_of;
use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicPtr, Defer, Ordering};
use tripoint_core::{Addr, Error, Result, aver};

use crate::at_stop::AtStop;
use crate::roots::spill::{Registers, spill};

const NO_REGISTERS: Error = Error::Parameter(
    "a stack is no root here: it is not known how to read the registers of this architecture",
);
const NOT_COLD: Error =
    Error::Parameter("the cold end of a stack is aligned to a word, and above what its thread calls");

/// The part of a thread's stack that is a root.
#[derive(Debug)]
pub(crate) struct Stack {
    /// Null if no part is.
    cold_end: AtomicPtr<usize>,
    /// Null while the thread runs.
    hot_end: AtomicPtr<usize>,
}

impl Stack {
    /// Where in a stack its cold end and its hot end are, for readers outside of the process.
    pub(crate) const OFFSETS: [usize; 2] = [offset_of!(Self, cold_end), offset_of!(Self, hot_end)];

    /// No part of the stack is a root.
    pub(crate) fn new() -> Self {
        let null = || AtomicPtr::new(ptr::null_mut());
        Self { cold_end: null(), hot_end: null() }
    }

    /// The thread: makes the stack of the functions that it calls from now on a root, up to `cold_end`.
    #[inline(never)]
    pub(crate) fn begin(&self, cold_end: NonNull<usize>) -> Result<()> {
        let hot_end = spill(&mut Registers::default()).ok_or(NO_REGISTERS)?;
        if cold_end <= hot_end || !cold_end.is_aligned() {
            return Err(NOT_COLD);
        }
        self.cold_end.store(cold_end.as_ptr(), Ordering::Release);
        Ok(())
    }

    /// The cold end; zero if no part is a root.
    pub(crate) fn cold_end(&self) -> Addr {
        Addr::of(self.cold_end.load(Ordering::Acquire))
    }

    /// The stack is no longer a root.
    pub(crate) fn end(&self) {
        self.cold_end.store(ptr::null_mut(), Ordering::Release);
    }

    /// The thread: calls `wait`. Until that returns, the stack from here to its cold end does not change, and all
    /// registers are stored on it. Calls within each other have the hot end of the outermost (design/gc.md
    /// `.stack.outermost`).
    #[inline]
    pub(crate) fn spill_during<R>(&self, wait: impl FnOnce() -> R) -> R {
        let is_root = !self.cold_end.load(Ordering::Relaxed).is_null();
        if is_root && self.hot_end.load(Ordering::Relaxed).is_null() { self.spill_and(wait) } else { wait() }
    }

    /// Not inlined: so registers that this function uses itself were saved by it, above its stack pointer.
    #[inline(never)]
    fn spill_and<R>(&self, wait: impl FnOnce() -> R) -> R {
        let mut registers = Registers::default();
        let hot_end = spill(&mut registers).map_or(ptr::null_mut(), NonNull::as_ptr);
        self.hot_end.store(hot_end, Ordering::Release);
        let _runs_again = Defer::new(|| {
            self.hot_end.store(ptr::null_mut(), Ordering::Release);
            // They are on the stack until here.
            hint::black_box(&registers);
        });
        wait()
    }

    /// Passes each word between the two ends to `visit`. If the thread of the stack is in no [`Stack::spill_during`],
    /// it is the caller (design/gc.md `.stack.own`).
    ///
    /// # Safety
    /// - It is a root as [`Heap::root_stack`](crate::Heap::root_stack) demands.
    pub(crate) unsafe fn for_each_word(&self, _at: AtStop<'_>, mut visit: impl FnMut(usize)) {
        self.spill_during(|| {
            let cold_end = self.cold_end.load(Ordering::Acquire);
            let mut word = self.hot_end.load(Ordering::Acquire);
            let is_in_order = cold_end.is_null() || !word.is_null() && word <= cold_end;
            if !aver!(is_in_order, "a stack from {word:p} to {cold_end:p}") {
                return;
            }
            while word < cold_end {
                // The compiler knows nothing of this memory, so the read is volatile.
                // SAFETY: the word is aligned, as stack pointers are, and on the stack of a thread that has given way or
                // is the caller: above where it did so, and below the cold end that its root was registered with.
                let value = unsafe { word.read_volatile() };
                visit(value);
                word = word.wrapping_add(1);
            }
        });
    }
}
