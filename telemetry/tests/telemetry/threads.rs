//! Which thread writes to which ring (design/telemetry.md `.thread`).

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::catch_unwind;
use std::sync::Barrier;
use std::thread;

use tripoint_core::{Event, EventHook};
use tripoint_telemetry::format::{EventKind, RingState, RingWord, SectionKind};
use tripoint_telemetry::{Clock, Room, thread_number};

use crate::decoder::{File, InMemory};

const ROOM: Room = Room { threads: 2, ring_bytes: 64 << 10, ..Room::LEAST };

fn state(file: &File, ring: usize) -> u64 {
    file.rings()[ring].word(RingWord::State)
}

#[test]
fn a_thread_that_attaches_returns_its_ring() {
    let memory = InMemory::new(&ROOM);
    for round in 1..4 {
        let attached = memory.telemetry.attach("feed handler, with a name that is too long");
        assert!(attached.has_own_ring());
        memory.telemetry.event(Event::Grow { size: round });
        let ring = &memory.file().rings()[0];
        assert_eq!(ring.name, "feed handler, with a name that i");
        assert_eq!((ring.word(RingWord::Claims), ring.word(RingWord::State)), (round as u64, 1));
        assert_eq!(ring.word(RingWord::Thread), u64::from(ring.events[0].head.thread));
        drop(attached);
        assert_eq!((state(&memory.file(), 0), memory.file().rings()[0].word(RingWord::Thread)), (0, 0));
    }
    let kinds: Vec<_> = memory.file().events().iter().map(|found| found.kind).collect();
    assert_eq!(kinds, [EventKind::ThreadAttach, EventKind::Grow, EventKind::ThreadDetach].repeat(3));
}

/// Runs `threads` at once, each of which writes that many events.
fn write_together(memory: &InMemory, threads: usize, events: usize, attach: bool) {
    let together = Barrier::new(threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let attached = attach.then(|| memory.telemetry.attach("one of some"));
                together.wait();
                (0..events).for_each(|size| memory.telemetry.event(Event::Grow { size }));
                together.wait();
                drop(attached);
            });
        }
    });
}

#[test]
fn threads_without_a_ring_share_one_and_lose_nothing_without_counting_it() {
    let memory = InMemory::new(&ROOM);
    let (threads, events) = (5, if cfg!(miri) { 20 } else { 200 });
    write_together(&memory, threads, events, false);
    let file = memory.file();
    assert_eq!(file.left_out(SectionKind::Rings), 3);
    let rings = file.rings();
    assert_eq!(rings[2].word(RingWord::State), RingState::Shared as u64);
    for own in &rings[..2] {
        assert_eq!((own.events.len(), own.word(RingWord::Dropped)), (events, 0));
        assert!(own.events.iter().all(|found| found.head.thread == own.events[0].head.thread));
    }
    let shared = rings[2].word(RingWord::Serial) + rings[2].word(RingWord::Dropped);
    assert_eq!(shared, 3 * events as u64);
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn rings_of_threads_that_have_ended_are_taken_again() {
    let memory = InMemory::new(&ROOM);
    // None of them attaches, so none returns its ring.
    for _ in 0..20 {
        write_together(&memory, 2, 3, false);
        // A thread that was joined may be there for a moment more.
        let ended = |ring: &crate::decoder::Ring| {
            let thread = ring.word(RingWord::Thread);
            !std::path::Path::new(&format!("/proc/self/task/{thread}")).exists()
        };
        tripoint_oracle::wait_until(|| memory.file().rings()[..2].iter().all(ended));
    }
    assert_eq!(memory.file().left_out(SectionKind::Rings), 0);
    assert_eq!(memory.file().rings().iter().map(|ring| ring.word(RingWord::Claims)).sum::<u64>(), 40);
}

/// The system uses numbers of threads again.
#[test]
fn a_ring_is_taken_by_a_thread_with_the_number_of_the_one_that_ended() {
    let memory = InMemory::new(&ROOM);
    // As a thread leaves it that ends without returning it.
    let words =
        [(RingWord::State, RingState::Claimed as u64), (RingWord::Thread, u64::from(thread_number()))];
    for (word, value) in words {
        memory.word_of_ring(0, word).store(value, Ordering::Relaxed);
    }
    memory.telemetry.event(Event::Grow { size: 1 });
    let ring = &memory.file().rings()[0];
    assert_eq!((ring.events.len(), ring.word(RingWord::Claims), ring.word(RingWord::Dropped)), (1, 1, 0));
}

#[test]
fn a_thread_has_a_ring_in_one_file_at_a_time() {
    let [first, second] = [&ROOM; 2].map(InMemory::new);
    first.telemetry.event(Event::Grow { size: 1 });
    second.telemetry.event(Event::Grow { size: 2 });
    assert_eq!((first.file().rings()[0].events.len(), second.file().rings()[0].events.len()), (1, 0));
    assert_eq!(second.file().rings()[2].events.len(), 1, "it shares");
    assert!(!second.telemetry.attach("main").has_own_ring());
    drop(first.telemetry);
    second.telemetry.event(Event::Grow { size: 3 });
    assert_eq!(second.file().rings()[0].events.len(), 1, "the other telemetry is closed");
}

#[test]
fn no_thread_has_a_ring_of_telemetry_that_was_in_the_same_memory_before() {
    let memory = InMemory::new(&ROOM);
    memory.telemetry.event(Event::Grow { size: 1 });
    let memory = memory.again(&ROOM);
    memory.telemetry.event(Event::Grow { size: 2 });
    thread::scope(|scope| scope.spawn(|| memory.telemetry.event(Event::Grow { size: 3 })).join().unwrap());
    for ring in &memory.file().rings()[..2] {
        assert_eq!((ring.events.len(), ring.word(RingWord::Claims), ring.word(RingWord::State)), (1, 1, 1));
    }
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn a_ring_whose_thread_ended_in_a_record_goes_on_behind_it() {
    use tripoint_telemetry::format::{BLOCK_WORDS, CLOCK_RECORD_WORDS, HEAD_WORDS};

    let memory = InMemory::new(&Room { threads: 1, ..ROOM });
    let write = |size| {
        let write = || {
            memory.telemetry.event(Event::Grow { size });
            std::fs::read_link("/proc/thread-self").unwrap()
        };
        thread::scope(|scope| scope.spawn(write).join().unwrap())
    };
    let first = std::path::Path::new("/proc").join(write(1));
    // It seems to have announced a record.
    let [tail, intent] = [RingWord::Tail, RingWord::Intent].map(|word| memory.word_of_ring(0, word));
    let announced = tail.load(Ordering::Relaxed) + 40;
    intent.store(announced, Ordering::Relaxed);
    // A thread that was joined may be there for a moment more.
    tripoint_oracle::wait_until(|| !first.exists());
    write(2);
    assert_eq!(memory.word_of_ring(0, RingWord::Claims).load(Ordering::Relaxed), 2);
    let sizes: Vec<_> = memory.file().rings()[0].events.iter().map(|found| found.words["size"]).collect();
    assert_eq!(sizes, [1, 2]);
    // The clock's record and the event are in the next block.
    let block = BLOCK_WORDS as u64;
    assert_eq!(tail.load(Ordering::Relaxed), block + CLOCK_RECORD_WORDS as u64 + HEAD_WORDS as u64 + 2);
    assert_eq!(intent.load(Ordering::Relaxed), tail.load(Ordering::Relaxed));
}

#[test]
fn a_clock_that_unwinds_does_not_keep_its_ring() {
    static UNWINDS: AtomicBool = AtomicBool::new(false);
    let clock = Clock::new(|| {
        assert!(!UNWINDS.load(Ordering::Relaxed), "the clock stops");
        42
    });
    for threads in [0, 1] {
        let memory = InMemory::with_clock(&Room { threads, ..ROOM }, clock);
        let write = || {
            let write = |unwinds| {
                UNWINDS.store(unwinds, Ordering::Relaxed);
                catch_unwind(AssertUnwindSafe(|| memory.telemetry.event(Event::Grow { size: 5 }))).is_ok()
            };
            [true, false, true, false].map(write)
        };
        let written = thread::scope(|scope| scope.spawn(write).join().unwrap());
        assert_eq!(written, [false, true, false, true]);
        let ring = &memory.file().rings()[0];
        assert_eq!((ring.events.len(), ring.word(RingWord::Dropped)), (2, 0));
    }
}
