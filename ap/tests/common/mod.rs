//! What tests of allocation points share: arenas, and short forms.

// Each test file uses its own part of this.
#![allow(dead_code, unused_imports)]

mod points;

pub(crate) use points::*;

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use tripoint_ap::{AllocationPoint, Buffer};
use tripoint_core::{
    Addr, AddrRange, BarrierPair, ClientArena, ClientArenaOptions, Control, Event, EventHook, PoolClass,
    Result,
};
pub(crate) use tripoint_oracle::{
    ALIGN_MAX, BumpPool, Draws, FlipPool, Flippable, Form, Listener as TestControl, MIN_ALIGN, Manual,
    Notice, SIZE_MAX, Stopped, TestPool,
};

/// Runs `test` with an arena in `size` bytes of memory.
pub(crate) fn with_arena<R>(size: usize, test: impl FnOnce(&ClientArena<'_>) -> R) -> R {
    let mut memory = Box::new_uninit_slice(size);
    // Miri walks the whole table whenever it is lent: a short one.
    let grain = if cfg!(miri) { (size >> 8).next_power_of_two() } else { 4096 };
    let options = ClientArenaOptions { grain: Some(grain), event_hook: None };
    test(&ClientArena::create(&mut memory, options).unwrap())
}

/// Runs `test` with an arena that notifies `events` of its events.
pub(crate) fn with_events<R>(test: impl FnOnce(&ClientArena<'_>, &Events) -> R) -> R {
    let events = Events::default();
    let mut memory = Box::new_uninit_slice(1 << 20);
    let options = ClientArenaOptions { grain: Some(4096), event_hook: Some(&events) };
    test(&ClientArena::create(&mut memory, options).unwrap(), &events)
}

/// The events of an arena, in order.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<Vec<Event>>);

impl Events {
    /// The events since the last call.
    pub(crate) fn take(&self) -> Vec<Event> {
        core::mem::take(&mut self.0.lock().unwrap())
    }
}

impl EventHook for Events {
    fn event(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// The address of a pointer.
pub(crate) fn addr<T>(pointer: NonNull<T>) -> Addr {
    Addr::of(pointer.as_ptr())
}

/// Allocating in pools whose objects have no format, as in all pools of these tests.
pub(crate) trait Unformatted {
    fn make_with<T>(&mut self, make: impl FnMut() -> T) -> Result<NonNull<T>>;
}

impl<P: PoolClass, C: Control> Unformatted for AllocationPoint<'_, P, C> {
    fn make_with<T>(&mut self, make: impl FnMut() -> T) -> Result<NonNull<T>> {
        // SAFETY: these pools have no readers of their objects.
        unsafe { self.alloc_with(make) }
    }
}

/// Flips with the pair that the test commits with.
pub(crate) fn flip_buffer<B: BarrierPair>(buffer: &Buffer, barrier: B) -> Option<AddrRange> {
    // SAFETY: the only commits into the buffer are the test's, and they use this pair.
    unsafe { buffer.flip(barrier) }
}

/// An event hook that unwinds once: at the last of a number of events.
#[derive(Debug, Default)]
pub(crate) struct Fuse(AtomicUsize);

impl Fuse {
    /// Lights the fuse: the event with this number unwinds; with zero, none does.
    pub(crate) fn light(&self, length: usize) {
        self.0.store(length, Ordering::Relaxed);
    }

    /// From now on no event unwinds. Returns whether one did.
    pub(crate) fn put_out(&self) -> bool {
        self.0.swap(0, Ordering::Relaxed) == BURNT
    }

    /// Counts an event down, and unwinds at the last.
    pub(crate) fn burn(&self) {
        match self.0.load(Ordering::Relaxed) {
            0 | BURNT => (),
            1 => {
                self.light(BURNT);
                std::panic::resume_unwind(Box::new("on purpose"));
            }
            left => self.light(left - 1),
        }
    }
}

const BURNT: usize = usize::MAX;

impl EventHook for Fuse {
    fn event(&self, _: Event) {
        self.burn();
    }
}

/// Runs `test` with an arena whose events burn `fuse`.
pub(crate) fn with_fuse<R>(test: impl FnOnce(&ClientArena<'_>, &Fuse) -> R) -> R {
    let fuse = Fuse::default();
    let mut memory = Box::new_uninit_slice(1 << 20);
    let options = ClientArenaOptions { grain: Some(4096), event_hook: Some(&fuse) };
    test(&ClientArena::create(&mut memory, options).unwrap(), &fuse)
}
