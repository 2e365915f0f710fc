//! A forked child has telemetry of its own (design/telemetry.md `.fork`), and no log of its parent's.

use std::io::BufWriter;

use tripoint_core::{Event, EventHook};
use tripoint_telemetry::format::RingWord;
use tripoint_telemetry::reader::Fields;
use tripoint_telemetry::{FileOptions, LogReader, PointLog, Room, Telemetry};

use crate::decoder::InMemory;

const ROOM: Room = Room { threads: 2, ring_bytes: 8 << 10, ..Room::LEAST };

/// Runs `work` in a forked child, and returns how that ended: zero if `work` returned true.
fn in_child(work: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child uses no lock but those of C's allocator, which C's library lets it use.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a fork failed");
    if child == 0 {
        // SAFETY: this arranges for a signal, which ends a child that waits for something.
        unsafe { libc::alarm(60) };
        // SAFETY: this ends the child without running what the parent has left to do.
        unsafe { libc::_exit(i32::from(!work())) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's own, and is waited for once.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// Whether two threads get a ring each, and write to no other.
fn two_threads_have_rings(memory: &InMemory) -> bool {
    let write = |size| memory.telemetry.event(Event::Grow { size });
    write(1);
    std::thread::scope(|scope| scope.spawn(|| write(2)).join().unwrap());
    write(3);
    let rings = memory.file().rings();
    let counts = [0, 1, 2].map(|ring: usize| (rings[ring].word(RingWord::Claims), rings[ring].events.len()));
    counts == [(1, 2), (1, 1), (0, 0)]
}

#[test]
fn a_child_does_not_take_its_first_thread_for_one_that_has_ended() {
    let memory = InMemory::new(&ROOM);
    // From here on the thread's number is known: the child's first thread has another.
    drop(memory.telemetry.attach("parent"));
    let other = InMemory::new(&ROOM);
    assert_eq!(in_child(|| two_threads_have_rings(&other)), 0);
    assert!(two_threads_have_rings(&other), "the parent");
}

#[test]
fn a_child_claims_rings_of_its_own_telemetry() {
    let parents =
        Telemetry::create(&FileOptions { room: ROOM, lock: false, ..FileOptions::default() }).unwrap();
    parents.event(Event::Grow { size: 1 });
    let other = InMemory::new(&ROOM);
    assert_eq!(in_child(|| two_threads_have_rings(&other)), 0);
    other.telemetry.event(Event::Grow { size: 1 });
    assert_eq!(other.file().rings()[2].events.len(), 1, "the parent's thread has a ring already");
}

/// The child neither waits for a thread that it has not, nor writes what its parent has buffered (design/point-log.md
/// `.file.fork`).
#[test]
fn a_child_has_no_log_of_points() {
    let (from, to) = std::io::pipe().unwrap();
    let mut log = Some(PointLog::begin(BufWriter::new(to)).unwrap());
    let shared = log.as_ref().unwrap();
    std::thread::scope(|scope| scope.spawn(|| shared.begin_call()).join().unwrap());
    shared.event(Event::Grow { size: 1 });
    let ended = in_child(|| {
        let inherited = log.take().unwrap();
        inherited.call(|| inherited.event(Event::Grow { size: 2 }));
        let has_ended = inherited.end().is_ok();
        drop(inherited);
        !has_ended
    });
    assert_eq!(ended, 0);
    let (to, events) = log.take().unwrap().finish().unwrap();
    drop(to);
    let mut reader = LogReader::open(from).unwrap();
    let event = reader.next_event().unwrap().unwrap();
    assert!(matches!(event.fields, Fields::Grow { size: 1, .. }), "{event}");
    assert!(events == 1 && reader.next_event().unwrap().is_none());
}
