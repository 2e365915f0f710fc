//! Batches in a depot: none is lost, none is taken twice, and a thread that takes one sees what
//! its last user did (design/cache.md `.depot`).
//!
//! Bound: none.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::ptr::{self, NonNull};
use std::sync::Arc;

use tests_loom::{UnsafeCell, model_unbounded, thread};
use tripoint_core::internal::{AtomicPtr, Ordering};
use tripoint_pools::internal::Batches;

/// Memory of a batch's first block: two words, and a count of those that use it, which loom watches.
#[repr(C, align(16))]
struct Batch {
    words: core::cell::UnsafeCell<[usize; 2]>,
    users: UnsafeCell<u32>,
}

trait Stack: Default + Send + Sync + 'static {
    fn push(&self, batch: NonNull<u8>);
    fn take(&self) -> Option<NonNull<u8>>;
}

impl Stack for Batches {
    fn push(&self, batch: NonNull<u8>) {
        // SAFETY: each model pushes a batch that it alone has, and keeps it until its threads have ended.
        unsafe { self.push(batch) };
    }

    fn take(&self) -> Option<NonNull<u8>> {
        self.take()
    }
}

/// The twin: a stack without a lock, which takes its top by compare-exchange. A top that was taken and pushed
/// again meanwhile is mistaken for what it was.
struct Unlocked {
    top: AtomicPtr<AtomicPtr<u8>>,
}

impl Default for Unlocked {
    fn default() -> Self {
        Self { top: AtomicPtr::new(ptr::null_mut()) }
    }
}

fn below(batch: *mut u8) -> *mut *mut u8 {
    batch.cast::<*mut u8>().wrapping_add(1)
}

impl Stack for Unlocked {
    fn push(&self, batch: NonNull<u8>) {
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            // SAFETY: the second word of a batch, which each model alone has.
            unsafe { below(batch.as_ptr()).write(top.cast()) };
            match self.top.compare_exchange(top, batch.as_ptr().cast(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    fn take(&self) -> Option<NonNull<u8>> {
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            let batch = NonNull::new(top.cast::<u8>())?;
            // SAFETY: the memory of batches stays valid while the model runs.
            let next = unsafe { below(batch.as_ptr()).read() };
            match self.top.compare_exchange(top, next.cast(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(batch),
                Err(now) => top = now,
            }
        }
    }
}

struct Shared<S> {
    stack: S,
    batches: [Batch; 2],
}

// SAFETY: batches go from thread to thread by the stack, which is what is modelled.
unsafe impl<S: Stack> Send for Shared<S> {}
// SAFETY: shared, a batch is used only by the thread that has it off the stack, which is what is modelled.
unsafe impl<S: Stack> Sync for Shared<S> {}

impl<S: Stack> Shared<S> {
    fn push(&self, batch: &Batch) {
        // SAFETY: the batch is this thread's until it is pushed; loom reports any other use.
        batch.users.with_mut(|users| unsafe { *users -= 1 });
        self.stack.push(NonNull::from(batch).cast());
    }

    fn take(&self) -> Option<&Batch> {
        let taken = self.stack.take()?;
        let batch = self.batches.iter().find(|&batch| ptr::addr_eq(batch, taken.as_ptr())).unwrap();
        batch.users.with_mut(|users| {
            // SAFETY: the batch is this thread's now; loom reports any other use.
            let users = unsafe { &mut *users };
            *users += 1;
            assert_eq!(*users, 1, "a batch was taken twice");
        });
        Some(batch)
    }
}

/// One thread takes a batch and keeps it, the other takes both and pushes one again.
fn race<S: Stack>() {
    let batch = || Batch { words: core::cell::UnsafeCell::new([0; 2]), users: UnsafeCell::new(1) };
    let shared = Arc::new(Shared { stack: S::default(), batches: [batch(), batch()] });
    for batch in &shared.batches {
        // What is written here is what a free block has.
        // SAFETY: the batch is on no stack yet.
        unsafe { batch.words.get().write([0; 2]) };
        shared.push(batch);
    }
    let other = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || usize::from(shared.take().is_some()))
    };
    let first = shared.take();
    let second = shared.take();
    if let Some(batch) = first {
        shared.push(batch);
    }
    let mut found = usize::from(second.is_some()) + other.join().unwrap();
    while shared.take().is_some() {
        found += 1;
    }
    assert_eq!(found, 2, "a batch was lost");
}

#[test]
fn batches_are_taken_once() {
    model_unbounded(race::<Batches>);
}

#[test]
#[should_panic(expected = "a batch was taken twice")]
fn without_a_lock_they_are_taken_twice() {
    model_unbounded(race::<Unlocked>);
}
