//! Rings of events that last, which no frequent event overwrites (design/telemetry.md `.lasting`).

use std::thread;

use tripoint_core::{Event, EventHook};
use tripoint_telemetry::format::{EventKind, MAX_FRAMES};
use tripoint_telemetry::{Room, Telemetry};

use crate::decoder::{Found, InMemory, Ring};

const ROOM: Room = Room { threads: 2, ring_bytes: 8 << 10, lasting_bytes: 8 << 10, ..Room::LEAST };

/// Many times what a ring keeps.
const FREQUENT: usize = if cfg!(miri) { 200 } else { 10_000 };

fn violation(kind: &'static str, bytes: usize) -> Event {
    Event::Violation { kind, class: "amnesty_overrun", slot: 0, count: 1, bytes, address: 0, call: 0 }
}

fn write_frequent(telemetry: &Telemetry) {
    (0..FREQUENT).for_each(|size| telemetry.event_at(Event::Grow { size }, &[1, 2, 3]));
}

fn kinds(ring: &Ring) -> Vec<EventKind> {
    ring.events.iter().map(|found| found.kind).collect()
}

/// A thread does all that lasts, and then much that does not.
fn run(room: &Room) -> InMemory {
    let memory = InMemory::new(room);
    let attached = memory.telemetry.attach("hot");
    memory.telemetry.event(Event::Phase { from: "Warmup", to: "SteadyState" });
    ["violation", "alarm"]
        .into_iter()
        .for_each(|kind| memory.telemetry.event_at(violation(kind, 64), &[0xc0de, 0xc0df]));
    write_frequent(&memory.telemetry);
    drop(attached);
    memory
}

#[test]
fn what_is_frequent_does_not_overwrite_what_lasts() {
    let file = run(&ROOM).file();
    let lasting = &file.lasting_rings()[0];
    let expected = [EventKind::Phase, EventKind::Violation, EventKind::Violation];
    assert_eq!(kinds(lasting), expected);
    assert_eq!(lasting.events[1].site, [0xc0de, 0xc0df]);
    let recent = &file.rings()[0];
    let is_lasting = |found: &Found| expected.contains(&found.kind);
    assert!(recent.events[0].head.serial > 0 && !recent.events.iter().any(is_lasting), "{recent:?}");
    assert_eq!(recent.name, "hot");
}

/// The control: in one ring with all else nothing of it is left.
#[test]
fn without_room_of_its_own_it_is_overwritten() {
    let file = run(&Room { lasting_bytes: 0, ..ROOM }).file();
    assert!(file.lasting_rings().is_empty());
    let ends = [EventKind::Grow, EventKind::ThreadDetach];
    assert!(file.rings()[0].events.iter().all(|found| ends.contains(&found.kind)));
}

#[test]
fn what_an_amnesty_excused_does_not_last() {
    let memory = InMemory::new(&ROOM);
    memory.telemetry.event(violation("violation", 1));
    for kind in ["excused", "rehearsed"] {
        (0..FREQUENT).for_each(|_| memory.telemetry.event(violation(kind, 2)));
    }
    let file = memory.file();
    assert_eq!(file.lasting_rings()[0].events.len(), 1);
    assert!(file.rings()[0].events.iter().all(|found| found.words["bytes"] == 2));
}

/// As [`Room::lasting_bytes`] says; and those of one thread do not overwrite another's, nor the phases of a third.
#[test]
fn each_thread_keeps_its_last_violations() {
    const KEPT: usize = 14;
    let room = Room { threads: 3, ..ROOM };
    let memory = InMemory::new(&room);
    let telemetry = &memory.telemetry;
    telemetry.event(Event::Phase { from: "Warmup", to: "SteadyState" });
    let site = [7; MAX_FRAMES];
    let violations = if cfg!(miri) { 40 } else { 300 };
    let write = |bytes: usize| telemetry.event_at(violation("violation", bytes), &site);
    let kept = |bytes: usize| {
        let rings = memory.file().lasting_rings();
        let has = |found: &Found| found.words.get("bytes") == Some(&(bytes as u64));
        let ring = rings.into_iter().find(|ring| ring.events.iter().any(has));
        ring.map_or(0, |ring| ring.events.len())
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            write(1_000_000);
            // This thread has its rings until the other one has ended.
            thread::scope(|scope| {
                scope.spawn(|| {
                    for bytes in 0..violations {
                        write(bytes);
                        assert!(kept(bytes) >= KEPT.min(bytes + 1), "{} of {bytes}", kept(bytes));
                    }
                });
            });
        });
    });
    assert_eq!(kept(1_000_000), 1);
    let events: Vec<_> = memory.file().lasting_rings().into_iter().flat_map(|ring| ring.events).collect();
    assert!(events.iter().any(|found| found.kind == EventKind::Phase));
    assert!(events.len() < violations, "the ring was lapped");
}

#[test]
fn a_thread_that_takes_rings_leaves_what_lasts_in_them() {
    let memory = InMemory::new(&Room { threads: 1, ..ROOM });
    let telemetry = &memory.telemetry;
    for thread in 0..3 {
        thread::scope(|scope| {
            scope.spawn(|| {
                let _attached = telemetry.attach("one after another");
                telemetry.event(violation("violation", thread));
                write_frequent(telemetry);
            });
        });
    }
    let found = memory.file().lasting_rings().swap_remove(0).events;
    let bytes: Vec<_> = found.iter().filter_map(|found| found.words.get("bytes").copied()).collect();
    assert_eq!(bytes, [0, 1, 2]);
}

/// Threads that have no rings of their own share the last two.
#[test]
fn threads_without_rings_share_a_lasting_one() {
    let memory = InMemory::new(&Room { threads: 0, ..ROOM });
    memory.telemetry.event(violation("violation", 3));
    write_frequent(&memory.telemetry);
    let [shared] = &memory.file().lasting_rings()[..] else { panic!("there is one") };
    assert_eq!((kinds(shared), shared.events[0].words["bytes"]), (vec![EventKind::Violation], 3));
}
