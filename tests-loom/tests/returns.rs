//! Units returned by other threads: none is lost, none is allocated twice, and a thread that takes
//! one sees what its last user did (design/pool-mfs.md `.returns`).
//!
//! Bound: none with two threads, three preemptions with three.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::ptr::{self, NonNull};
use std::sync::Arc;

use tests_loom::{UnsafeCell, model, model_unbounded, thread};
use tripoint_core::internal::{AtomicPtr, Ordering};
use tripoint_pools::internal::{UnitStack, Units};

/// Memory of a unit: its link, and a word that loom watches.
#[repr(C)]
struct Unit {
    link: core::cell::UnsafeCell<usize>,
    used: UnsafeCell<u32>,
}

/// A stack of units. Chains have one unit here: longer ones are linked before they are
/// pushed, by one thread.
trait Stack: Default + Send + Sync + 'static {
    fn push(&self, unit: NonNull<u8>);
    fn take(&self) -> Units;
}

impl Stack for UnitStack {
    fn push(&self, unit: NonNull<u8>) {
        // SAFETY: each model pushes a unit that it alone has, and keeps it until its
        // threads have ended.
        unsafe { self.push(unit) };
    }

    fn take(&self) -> Units {
        self.take()
    }
}

/// A stack like it, whose push, and the ordering of it, each model chooses.
struct Broken<const LOST_UPDATE: bool> {
    head: AtomicPtr<usize>,
}

impl<const LOST_UPDATE: bool> Default for Broken<LOST_UPDATE> {
    fn default() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl<const LOST_UPDATE: bool> Stack for Broken<LOST_UPDATE> {
    fn push(&self, unit: NonNull<u8>) {
        let unit = unit.cast::<usize>().as_ptr();
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: each model pushes a unit that it alone has.
            unsafe { unit.cast::<*mut usize>().write(head) };
            if LOST_UPDATE {
                self.head.store(unit, Ordering::Release);
                return;
            }
            // Relaxed: the thread that takes the unit does not see what was done to it.
            match self.head.compare_exchange(head, unit, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn take(&self) -> Units {
        let mut next = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        let mut list = Units::default();
        while let Some(unit) = NonNull::new(next) {
            // SAFETY: pushed units begin with their link.
            next = unsafe { unit.cast::<*mut usize>().read() };
            // SAFETY: the unit is off the stack, and in no other list.
            unsafe { list.push(unit.cast()) };
        }
        list
    }
}

struct Shared<S> {
    stack: S,
    units: [Unit; 2],
}

// SAFETY: units go from thread to thread by the stack, which is what is modelled.
unsafe impl<S: Stack> Send for Shared<S> {}
// SAFETY: shared, a unit is used only by the thread that has it off the stack, which is what
// is modelled.
unsafe impl<S: Stack> Sync for Shared<S> {}

fn free<S: Stack>(shared: &Shared<S>, index: usize) {
    let unit = &shared.units[index];
    // SAFETY: the unit is this thread's until it is pushed; loom reports any other use.
    unit.used.with_mut(|used| unsafe { *used += 1 });
    shared.stack.push(NonNull::from(unit).cast());
}

/// Takes everything and uses it. Returns the number of units.
fn take<S: Stack>(shared: &Shared<S>) -> usize {
    let (mut list, mut count) = (shared.stack.take(), 0);
    while let Some(taken) = list.pop() {
        let unit = shared.units.iter().find(|&unit| ptr::addr_eq(unit, taken.as_ptr())).unwrap();
        // SAFETY: the unit is this thread's now; loom reports any other use.
        unit.used.with_mut(|used| unsafe { *used += 1 });
        count += 1;
        // A list of two units that does not end leads back to one of them.
        assert!(count <= 2, "a unit was lost: it came twice");
    }
    count
}

fn unit() -> Unit {
    Unit { link: core::cell::UnsafeCell::new(0), used: UnsafeCell::new(0) }
}

/// Two threads free a unit each while a third takes; panics if one is lost.
fn race<S: Stack>() {
    let shared = Arc::new(Shared { stack: S::default(), units: [unit(), unit()] });
    let threads = [0, 1].map(|index| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || free(&shared, index))
    });
    let mut taken = take(&shared);
    for thread in threads {
        thread.join().unwrap();
    }
    taken += take(&shared);
    assert_eq!(taken, 2, "a unit was lost");
}

/// A unit is returned, is taken, and is returned again while another is on its
/// way.
fn comes_back<S: Stack>() {
    let shared = Arc::new(Shared { stack: S::default(), units: [unit(), unit()] });
    free(&shared, 0);
    let other = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || free(&shared, 1))
    };
    let mut taken = take(&shared);
    free(&shared, 0);
    other.join().unwrap();
    taken += take(&shared);
    assert_eq!(taken, 3, "a unit was lost");
}

#[test]
fn units_come_home() {
    model(race::<UnitStack>);
}

#[test]
fn units_come_home_again() {
    model_unbounded(comes_back::<UnitStack>);
}

#[test]
#[should_panic(expected = "a unit was lost")]
fn without_compare_exchange_units_are_lost() {
    model(race::<Broken<true>>);
}

#[test]
#[should_panic(expected = "a unit was lost")]
fn without_compare_exchange_units_that_come_again_are_lost() {
    model_unbounded(comes_back::<Broken<true>>);
}

/// Loom's word for it: two threads use the unit at once. Only an ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "Causality violation"))]
fn without_release_their_last_use_is_not_seen() {
    model(race::<Broken<false>>);
}
