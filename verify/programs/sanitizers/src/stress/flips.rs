//! Commits against flips by two threads, each of which reads the objects that
//! its flip saw.

use core::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tripoint::author::{Buffer, RankSet, SymmetricFence};
use tripoint::{Addr, BufferKind};
use tripoint_ap::internal::{Owner, buffer_without_pool};

use crate::random::Random;

const FLIPPERS: usize = 2;
const OBJECTS: usize = 4000;
const OBJECT: usize = size_of::<u64>();

/// Each word is an object: plain memory, which the sanitizer watches.
struct Memory(Box<[UnsafeCell<u64>]>);

// SAFETY: the owner writes objects that no flip has seen, flippers read those that
// one has: what is raced here.
unsafe impl Sync for Memory {}

impl Memory {
    fn base(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }

    fn limit(&self) -> *mut u8 {
        self.base().wrapping_add(OBJECTS * OBJECT)
    }
}

/// Allocates until the memory is full. Returns how many commits failed.
fn allocate(memory: &Memory, owner: &mut Owner<'_>, mut random: Random) -> u64 {
    let mut failed = 0;
    owner.attach(memory.base(), memory.base(), memory.limit());
    for number in 0..OBJECTS {
        loop {
            if owner.limit().is_null() {
                owner.rearm(memory.limit(), &mut |_| {});
            }
            let object = owner.init();
            // SAFETY: from `base`, within the memory, and not committed yet.
            unsafe { object.cast::<u64>().write(number as u64) };
            random.pause();
            if owner.commit(object, object.wrapping_add(OBJECT), SymmetricFence) {
                break;
            }
            failed += 1;
        }
    }
    failed
}

fn flip(memory: &Memory, buffer: &Buffer, done: &AtomicBool, mut random: Random) {
    let mut before = 0;
    while !done.load(Ordering::Relaxed) {
        // SAFETY: the pair that the owner commits with.
        let Some(seen) = (unsafe { buffer.flip(SymmetricFence) }) else { continue };
        assert_eq!(seen.base(), Addr::of(memory.base()));
        let count = seen.size() / OBJECT;
        assert!(before <= count, "what was seen stays");
        for number in before.max(count.saturating_sub(20))..count {
            // SAFETY: below what the flip saw, where objects are whole and stay.
            assert_eq!(unsafe { *memory.0[number].get() }, number as u64);
        }
        before = count;
        random.pause();
    }
}

pub(crate) fn race(random: &mut Random) -> u64 {
    let memory = Memory((0..OBJECTS).map(|_| UnsafeCell::new(u64::MAX)).collect());
    let buffer = buffer_without_pool(BufferKind::Mutator, RankSet::EXACT);
    // SAFETY: the only owner of this buffer.
    let mut owner = unsafe { Owner::new(&buffer) };
    let done = AtomicBool::new(false);
    let failed = thread::scope(|scope| {
        for _ in 0..FLIPPERS {
            let random = random.split();
            let (memory, buffer, done) = (&memory, &buffer, &done);
            scope.spawn(move || flip(memory, buffer, done, random));
        }
        let failed = allocate(&memory, &mut owner, random.split());
        done.store(true, Ordering::Relaxed);
        failed
    });
    let whole = |(number, word): (usize, &UnsafeCell<u64>)| {
        // SAFETY: all other threads have ended.
        unsafe { *word.get() == number as u64 }
    };
    assert!(memory.0.iter().enumerate().all(whole));
    OBJECTS as u64 + failed
}
