//! Every event is written with all that it says (design/telemetry.md `.kinds`, `.counters`).

use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use tripoint_core::{
    Addr, AddrRange, BufferKind, Collected, ContractWords, Error, Event, EventHook, PoolId, PoolOptions,
    PoolSizes, RankSet, StepTime,
};
use tripoint_telemetry::Room;
use tripoint_telemetry::format::{
    ArenaWord, EventKind, HeapWord, MAX_TALLY_CLASSES, MAX_TALLY_DETECTORS, PhaseWord, PointWord, PoolWord,
    SectionKind, TALLY_NUMBERS, TALLY_THREAD_WORDS, TallyWord, text_from_words,
};

use crate::decoder::{File, Found, InMemory};

const ROOM: Room = Room {
    threads: 2,
    ring_bytes: 16 << 10,
    arenas: 4,
    pools: 4,
    points: 4,
    heaps: 4,
    tallies: 4,
    ..Room::LEAST
};

fn addr(value: usize) -> Addr {
    Addr::new(value)
}

fn range() -> AddrRange {
    AddrRange::with_size(addr(0x1000), 0x500).unwrap()
}

fn created_arena() -> Event {
    let size = range().size();
    Event::CreateArena {
        grain: 64,
        commit_limit: size,
        commit_policy: 0,
        prefault_size: 0,
        range: range(),
        memory: range(),
        class: "ClientArena",
    }
}

/// An event, its kind, its numbers, and its texts.
pub(crate) type Expected = (Event, EventKind, Vec<(&'static str, u64)>, Vec<(&'static str, &'static str)>);

/// Each event once, with the kind that it is written as, its numbers in order without arena, pool and
/// buffer, and its texts.
pub(crate) fn all_events() -> Vec<Expected> {
    let pool = PoolId::new(9).unwrap();
    let (buffer, base, object, init) = (addr(0xb000), addr(0xba5e), addr(0x0b1ec7), addr(0x1717));
    let (size, align) = (96, 8);
    let type_name = Some("Order");
    let places = vec![("base", 0xba5e), ("size", 96)];
    let ranges = vec![("base", 0x1000), ("size", 0x500)];
    let objects = vec![("object", 0x0b1ec7), ("size", 96)];
    let aligned = vec![("object", 0x0b1ec7), ("size", 96), ("align", 8)];
    let frames = vec![("init", 0x1717)];
    let class = vec![("class", "Mvff")];
    let (heap, mutator) = (addr(0xb000), vec![("mutator", 7)]);
    vec![
        (
            Event::CreateArena {
                grain: 64,
                commit_limit: 0x400,
                commit_policy: 0x2_0219,
                prefault_size: 4096,
                range: range(),
                memory: AddrRange::with_size(addr(0xfff), 0x502).unwrap(),
                class: "ClientArena",
            },
            EventKind::CreateArena,
            vec![
                ("grain", 64),
                ("commit_limit", 0x400),
                ("commit_policy", 0x2_0219),
                ("prefault_size", 4096),
                ("base", 0x1000),
                ("size", 0x500),
                ("memory_base", 0xfff),
                ("memory_size", 0x502),
            ],
            vec![("class", "ClientArena")],
        ),
        (Event::DestroyArena { range: range() }, EventKind::DestroyArena, ranges.clone(), vec![]),
        (Event::Grow { size }, EventKind::Grow, vec![("size", 96)], vec![]),
        (Event::Shrink { size }, EventKind::Shrink, vec![("size", 96)], vec![]),
        (Event::GrowthRefused { size }, EventKind::GrowthRefused, vec![("size", 96)], vec![]),
        (
            Event::CreatePool { pool, options: PoolOptions::new([24, 8, 4096]), class: "Mvff" },
            EventKind::CreatePool,
            vec![("option_1", 24), ("option_2", 8), ("option_3", 4096), ("option_4", 0), ("option_5", 0)],
            class.clone(),
        ),
        (Event::DestroyPool { pool, class: "Mvff" }, EventKind::DestroyPool, vec![], class),
        (Event::Extend { pool, base, size }, EventKind::Extend, places.clone(), vec![]),
        (Event::Retract { pool, base, size }, EventKind::Retract, places.clone(), vec![]),
        (
            Event::CreatePoint { pool, buffer, ranks: RankSet::EXACT, kind: BufferKind::Mutator },
            EventKind::CreatePoint,
            vec![("ranks", 2)],
            vec![("kind", "mutator")],
        ),
        (Event::DestroyPoint { pool, buffer }, EventKind::DestroyPoint, vec![], vec![]),
        (Event::Fill { pool, buffer, base, size }, EventKind::Fill, places.clone(), vec![]),
        (Event::Empty { pool, buffer, base, size }, EventKind::Empty, places, vec![]),
        (Event::Trip { pool, buffer, requests: 3 }, EventKind::Trip, vec![("requests", 3)], vec![]),
        (Event::Flip { pool, buffer, objects: range() }, EventKind::Flip, ranges, vec![]),
        (
            Event::CommitFailed { pool, buffer, object, size },
            EventKind::CommitFailed,
            objects.clone(),
            vec![],
        ),
        (Event::PushFrame { pool, buffer, init }, EventKind::PushFrame, frames.clone(), vec![]),
        (
            Event::PopFrame { pool, buffer, init, size },
            EventKind::PopFrame,
            [frames, vec![("size", 96)]].concat(),
            vec![],
        ),
        (
            Event::Reserve { pool, buffer, object, size, unit: 32, requested: 90, align, type_name },
            EventKind::Reserve,
            [objects.clone(), vec![("unit", 32), ("requested", 90), ("align", 8)]].concat(),
            vec![("type_name", "Order")],
        ),
        (
            Event::RefuseReserve { pool, buffer, requested: 90, align, type_name, error: Error::Limit },
            EventKind::RefuseReserve,
            vec![("requested", 90), ("align", 8)],
            vec![("type_name", "Order"), ("error", "Limit")],
        ),
        (Event::EmptyPoint { pool, buffer }, EventKind::EmptyPoint, vec![], vec![]),
        (
            Event::FreeAtPoint { pool, buffer, object, size, align },
            EventKind::FreeAtPoint,
            aligned.clone(),
            vec![],
        ),
        (
            Event::RefuseAlloc { pool, size, align, type_name, error: Error::Frozen },
            EventKind::RefuseAlloc,
            vec![("size", 96), ("align", 8)],
            vec![("type_name", "Order"), ("error", "Frozen")],
        ),
        (
            Event::Resize { pool, object, size, align, new_size: 80, new_align: 4, resized: object },
            EventKind::Resize,
            [aligned.clone(), vec![("new_size", 80), ("new_align", 4), ("resized", 0x0b1ec7)]].concat(),
            vec![],
        ),
        (Event::Commit { pool, buffer, object, size }, EventKind::Commit, objects.clone(), vec![]),
        (Event::Abandon { pool, buffer, object }, EventKind::Abandon, vec![("object", 0x0b1ec7)], vec![]),
        (
            Event::Alloc { pool, object, size, align, type_name: None },
            EventKind::Alloc,
            aligned.clone(),
            vec![("type_name", "")],
        ),
        (
            Event::Alloc { pool, object, size, align, type_name },
            EventKind::Alloc,
            aligned.clone(),
            vec![("type_name", "Order")],
        ),
        (Event::Free { pool, object, size, align }, EventKind::Free, aligned, vec![]),
        (
            Event::Sample {
                kind: "small",
                pool: Some(pool),
                class: Some("Mvff"),
                object,
                size,
                offset: 5,
                mean: 100,
                type_name,
            },
            EventKind::Sample,
            [objects, vec![("offset", 5), ("mean", 100)]].concat(),
            vec![("kind", "small"), ("class", "Mvff"), ("type_name", "Order")],
        ),
        (Event::BeginStop { heap, mutator: 7 }, EventKind::BeginStop, mutator.clone(), vec![]),
        (Event::Stop { heap }, EventKind::Stop, vec![], vec![]),
        (Event::PostponeStop { heap, mutator: 7 }, EventKind::PostponeStop, mutator.clone(), vec![]),
        (Event::EndStop { heap }, EventKind::EndStop, vec![], vec![]),
        (Event::GiveWay { heap, mutator: 7 }, EventKind::GiveWay, mutator.clone(), vec![]),
        (Event::GoOn { heap, mutator: 7 }, EventKind::GoOn, mutator.clone(), vec![]),
        (
            Event::BeginCollection { heap, reason: "request" },
            EventKind::BeginCollection,
            vec![],
            vec![("reason", "request")],
        ),
        (
            Event::EndCollection { heap, examined: 5, kept: 96, freed: 32 },
            EventKind::EndCollection,
            vec![("examined", 5), ("kept", 96), ("freed", 32)],
            vec![],
        ),
        (Event::BeginSweep { heap, copied: 24 }, EventKind::BeginSweep, vec![("copied", 24)], vec![]),
        (Event::BeginStep { heap }, EventKind::BeginStep, vec![], vec![]),
        (
            Event::EndStep {
                heap,
                examined: 5,
                collected: Some(Collected { kept: 96, freed: 32 }),
                time: Some(StepTime { allowed: Duration::from_micros(1), taken: Duration::from_nanos(1500) }),
            },
            EventKind::EndStep,
            vec![
                ("examined", 5),
                ("done", 1),
                ("kept", 96),
                ("freed", 32),
                ("allowed_ns", 1000),
                ("taken_ns", 1500),
            ],
            vec![],
        ),
        (Event::RegisterMutator { heap, mutator: 7 }, EventKind::RegisterMutator, mutator.clone(), vec![]),
        (Event::DropMutator { heap, mutator: 7 }, EventKind::DropMutator, mutator, vec![]),
        (
            Event::RegisterRoot { heap, root: buffer, base, words: 12, mask: 3, pattern: 1, kind: "table" },
            EventKind::RegisterRoot,
            vec![("base", 0xba5e), ("words", 12), ("mask", 3), ("pattern", 1)],
            vec![("kind", "table")],
        ),
        (Event::DropRoot { heap, root: buffer }, EventKind::DropRoot, vec![], vec![]),
        (
            Event::RegisterFrozen {
                heap,
                segment: buffer,
                memory: range(),
                objects: AddrRange::with_size(addr(0x1010), 0x40).unwrap(),
            },
            EventKind::RegisterFrozen,
            vec![("base", 0x1000), ("size", 0x500), ("first", 0x1010), ("filled", 0x40)],
            vec![],
        ),
        (
            Event::PacketUnit { pool, unit: 7, start: 128, length: 60 },
            EventKind::PacketUnit,
            vec![("unit", 7), ("start", 128), ("length", 60)],
            vec![],
        ),
        (
            Event::PacketCall {
                pool,
                cache: buffer,
                packet_ring: 3,
                asked: 0x4080,
                length: 60,
                moved: 1,
                trips: 2,
                call: "complete",
                error: "",
            },
            EventKind::PacketCall,
            vec![("packet_ring", 3), ("asked", 0x4080), ("length", 60), ("moved", 1), ("trips", 2)],
            vec![("call", "complete"), ("error", "")],
        ),
        (
            Event::UpdateFrozen { heap, segment: buffer, filled: 0x60 },
            EventKind::UpdateFrozen,
            vec![("filled", 0x60)],
            vec![],
        ),
        (Event::DropFrozen { heap, segment: buffer }, EventKind::DropFrozen, vec![], vec![]),
        (Event::DropHeap { heap }, EventKind::DropHeap, vec![], vec![]),
        (
            Event::Phase { from: "Warmup", to: "SteadyState" },
            EventKind::Phase,
            vec![],
            vec![("from", "Warmup"), ("to", "SteadyState")],
        ),
        (
            Event::Violation {
                kind: "violation",
                class: "minor fault",
                slot: 2,
                count: 4,
                bytes: 6,
                address: 0xadd,
                call: 8,
            },
            EventKind::Violation,
            vec![("slot", 2), ("count", 4), ("bytes", 6), ("address", 0xadd), ("call", 8)],
            vec![("kind", "violation"), ("class", "minor fault")],
        ),
        (
            Event::BeginAmnesty { slot: 2, reason: "logging" },
            EventKind::BeginAmnesty,
            vec![("slot", 2)],
            vec![("reason", "logging")],
        ),
        (
            Event::EndAmnesty { slot: 2, reason: "logging" },
            EventKind::EndAmnesty,
            vec![("slot", 2)],
            vec![("reason", "logging")],
        ),
    ]
}

fn has_words(found: &Found, words: &[(&'static str, u64)]) -> bool {
    let more = [("arena", 1), ("pool", 9)];
    words.iter().all(|(name, word)| found.words.get(name) == Some(word))
        && more.iter().all(|(name, word)| found.words.get(name).is_none_or(|found| found == word))
        && found.words.keys().all(|name| {
            ["arena", "pool", "buffer", "cache", "heap", "root", "segment"].contains(name)
                || words.iter().any(|(word, _)| word == name)
        })
}

#[test]
fn every_event_is_written_with_all_its_parameters() {
    let memory = InMemory::new(&ROOM);
    let hook = memory.telemetry.arena_hook();
    let events = all_events();
    for (index, (event, ..)) in events.iter().enumerate() {
        if index % 2 == 0 { hook.event(*event) } else { hook.event_at(*event, &[0xc0de, index]) }
    }
    let found = memory.file().events();
    assert_eq!(found.len(), events.len());
    for (index, (found, (event, kind, words, texts))) in found.iter().zip(&events).enumerate() {
        assert_eq!((found.kind, found.head.serial, found.head.time), (*kind, index as u64, 42), "{event:?}");
        assert!(found.head.thread != 0 && !found.head.without_addresses);
        assert!(has_words(found, words), "{found:?} is not {event:?}");
        assert_eq!(found.texts, texts.iter().map(|&(name, text)| (name, text.to_owned())).collect());
        assert_eq!(found.site, if index % 2 == 0 { vec![] } else { vec![0xc0de, index as u64] });
    }
    // All kinds that are not telemetry's own.
    let own = [EventKind::ThreadAttach, EventKind::ThreadDetach, EventKind::Marker, EventKind::NoteSizes];
    let is_missing =
        |kind: &&EventKind| !own.contains(kind) && found.iter().all(|found| found.kind != **kind);
    let missing: Vec<_> = EventKind::ALL.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "`all_events` in {} has none of {missing:?}", file!());
}

#[test]
fn addresses_are_left_out_if_that_is_switched_on() {
    let memory = InMemory::new(&ROOM).with_secret([3, 5]);
    let (hook, switches) = (memory.telemetry.arena_hook(), memory.telemetry.switches());
    let events = all_events();
    let numbers: Vec<_> = [false, true]
        .into_iter()
        .map(|without| {
            switches.set_without_addresses(without);
            events.iter().for_each(|(event, ..)| hook.event_at(*event, &[0xc0de]));
            let found = memory.file().events().split_off(if without { events.len() } else { 0 });
            for found in &found {
                assert_eq!(found.head.without_addresses, without);
                assert_eq!(found.site.is_empty(), without);
                for name in ["base", "object", "init", "address", "first"] {
                    assert!(found.words.get(name).is_none_or(|&word| (word == 0) == without), "{found:?}");
                }
            }
            found
                .iter()
                .filter_map(|found| found.words.get("buffer").or(found.words.get("heap")).copied())
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(numbers[0], numbers[1], "a buffer or a heap has one number all the time");
    assert!(numbers[0].iter().all(|&number| number != 0xb000 && number == numbers[0][0]));
}

/// A reader could compute the address from it.
#[test]
fn without_a_secret_buffers_have_no_numbers_while_addresses_are_left_out() {
    let memory = InMemory::new(&ROOM);
    let (hook, switches) = (memory.telemetry.arena_hook(), memory.telemetry.switches());
    let fill = || {
        let (pool, buffer, base) = (PoolId::new(1).unwrap(), addr(0xb000), addr(0xba5e));
        hook.event(Event::Fill { pool, buffer, base, size: 8 });
        memory.file().events().last().unwrap().words["buffer"]
    };
    let number = fill();
    switches.set_without_addresses(true);
    assert!(number != 0 && fill() == 0);
    // They have one entry of the counters together, which stays when one of them is destroyed.
    use_pools(&hook);
    hook.event(Event::DestroyPoint { pool: PoolId::new(1).unwrap(), buffer: addr(0xb000) });
    let file = memory.file();
    let points = file.live(SectionKind::Points);
    assert_eq!(points.len(), 1);
    let of_all = [PointWord::Buffer, PointWord::Fills, PointWord::Filled, PointWord::Flips];
    assert_eq!(words(points[0], of_all.map(|word| word as usize)), [0, 4, 300, 4]);
    // What events name, counters name as well.
    switches.set_without_addresses(false);
    assert_eq!(fill(), number);
}

#[test]
fn kinds_that_are_off_are_not_written() {
    let memory = InMemory::new(&ROOM);
    let hook = memory.telemetry.arena_hook();
    let events = all_events();
    for &kind in EventKind::ALL.iter().step_by(if cfg!(miri) { 9 } else { 1 }) {
        let before = memory.file().events().last().map_or(0, |last| last.head.serial + 1);
        memory.telemetry.switches().switch(kind, false);
        events.iter().for_each(|(event, ..)| hook.event(*event));
        memory.telemetry.switches().switch(kind, true);
        let found = memory.file().events();
        let new = found.iter().filter(|found| found.head.serial >= before);
        assert!(new.clone().all(|found| found.kind != kind));
        let ours = events.iter().filter(|(_, ours, ..)| *ours == kind).count();
        assert_eq!(new.count(), events.len() - ours, "{kind:?}");
    }
}

fn text(words: &[u64]) -> String {
    let mut bytes = [0; 24];
    String::from_utf8(text_from_words(words, &mut bytes).unwrap().0.to_vec()).unwrap()
}

fn words<const COUNT: usize>(entry: &[u64], words: [usize; COUNT]) -> [u64; COUNT] {
    words.map(|word| entry[word])
}

/// Creates two pools with a point each, and uses them twice.
fn use_pools(hook: &dyn EventHook) {
    hook.event(created_arena());
    hook.event(Event::Grow { size: 4096 });
    for number in [1, 2] {
        let (pool, buffer, base) = (PoolId::new(number).unwrap(), addr(0xb000 * number as usize), addr(1));
        let class = "a class whose name has more than 24 bytes";
        hook.event(Event::CreatePool { pool, options: PoolOptions::NONE, class });
        hook.event(Event::CreatePoint { pool, buffer, ranks: RankSet::empty(), kind: BufferKind::Internal });
        for size in [100, 50] {
            hook.event(Event::Extend { pool, base, size: 1000 });
            hook.event(Event::Fill { pool, buffer, base, size });
            hook.event(Event::Empty { pool, buffer, base, size: 10 });
            hook.event(Event::Trip { pool, buffer, requests: 2 });
            hook.event(Event::Flip { pool, buffer, objects: range() });
            hook.event(Event::CommitFailed { pool, buffer, object: base, size });
            hook.event(Event::PushFrame { pool, buffer, init: base });
            hook.event(Event::PopFrame { pool, buffer, init: base, size });
            hook.event(Event::Retract { pool, base, size: 300 });
            hook.event(Event::GrowthRefused { size });
        }
    }
    hook.event(Event::Shrink { size: 96 });
    let heap = addr(0x4ea9);
    for freed in [70, 30] {
        hook.event(Event::Stop { heap });
        hook.event(Event::EndCollection { heap, examined: 0, kept: 9, freed });
        hook.event(Event::PostponeStop { heap, mutator: 1 });
    }
    hook.event(Event::Stop { heap });
    (0..4).for_each(|mutator| hook.event(Event::GiveWay { heap, mutator }));
}

/// A step of a heap, by a caller with a clock.
fn step(heap: Addr, allowed: u64, taken: u64, collected: Option<Collected>) -> Event {
    let [allowed, taken] = [allowed, taken].map(Duration::from_nanos);
    Event::EndStep { heap, examined: 8, collected, time: Some(StepTime { allowed, taken }) }
}

#[test]
fn heaps_are_counted_each_by_itself() {
    let memory = InMemory::new(&ROOM);
    let hook = memory.telemetry.arena_hook();
    let (heap, other) = (addr(0x4ea9), addr(0x07e4));
    let collected = Some(Collected { kept: 1, freed: 50 });
    for event in [
        Event::BeginStop { heap, mutator: 1 },
        Event::GiveWay { heap, mutator: 2 },
        Event::Stop { heap },
        Event::BeginCollection { heap, reason: "request" },
        Event::BeginSweep { heap, copied: 24 },
        Event::EndCollection { heap, examined: 8, kept: 1, freed: 100 },
        Event::EndStop { heap },
        Event::GoOn { heap, mutator: 2 },
        Event::BeginStop { heap, mutator: 1 },
        Event::PostponeStop { heap, mutator: 2 },
        Event::BeginStep { heap },
        step(heap, 10, 11, None),
        step(heap, 10, 7, collected),
        Event::EndStep { heap, examined: 8, collected: None, time: None },
        Event::BeginStop { heap: other, mutator: 0 },
    ] {
        hook.event(event);
    }
    let file = memory.file();
    let arena = file.live(SectionKind::Arenas)[0];
    use ArenaWord::{Collections as Ended, Freed};
    assert_eq!(words(arena, [Ended, Freed].map(|word| word as usize)), [2, 150]);
    let heaps = file.live(SectionKind::Heaps);
    assert_eq!(heaps.len(), 2);
    let of = |found: &[u64]| found[HeapWord::StopsBegun as usize] == 2;
    let (one, two) = if of(heaps[0]) { (heaps[0], heaps[1]) } else { (heaps[1], heaps[0]) };
    use HeapWord::{Collections, Copied, LongestStep, Pauses, PausesEnded, StepTime, Steps, StepsLate};
    use HeapWord::{Stops, StopsBegun, StopsPostponed, TicksPaused, TicksToStop};
    let of_stops = [StopsBegun, Stops, StopsPostponed, TicksToStop, Pauses, PausesEnded, TicksPaused];
    // The clock always shows 42.
    assert_eq!(words(one, of_stops.map(|word| word as usize)), [2, 1, 1, 0, 1, 1, 0]);
    assert_eq!(words(two, of_stops.map(|word| word as usize)), [1, 0, 0, 42_u64.wrapping_neg(), 0, 0, 0]);
    let of_work = [Collections, Copied, Steps, StepsLate, StepTime, LongestStep];
    assert_eq!(words(one, of_work.map(|word| word as usize)), [2, 24, 3, 1, 18, 11]);
    assert_eq!(words(two, of_work.map(|word| word as usize)), [0; 6]);
    // Without room for it a heap is left out, and nothing else is lost.
    let memory = InMemory::new(&Room { heaps: 0, ..ROOM });
    memory.telemetry.arena_hook().event(Event::Stop { heap });
    assert_eq!(memory.file().live(SectionKind::Arenas)[0][ArenaWord::Stops as usize], 1);
    assert!(memory.file().live(SectionKind::Heaps).is_empty());
}

fn check_counters(file: &File) {
    let arenas = file.live(SectionKind::Arenas);
    use ArenaWord::{Arena, Base, Bytes, Grown, PoolsCreated, PoolsDestroyed, Refused, Shrunk};
    let of_arena = [Arena, Base, Bytes, Grown, Shrunk, Refused, PoolsCreated, PoolsDestroyed];
    assert_eq!(words(arenas[0], of_arena.map(|word| word as usize)), [1, 0x1000, 0x500, 4096, 96, 4, 2, 0]);
    use ArenaWord::{Collections, Freed, Pauses, Stops, StopsPostponed};
    let of_heaps = [Stops, StopsPostponed, Pauses, Collections, Freed];
    assert_eq!(words(arenas[0], of_heaps.map(|word| word as usize)), [3, 2, 4, 2, 100]);
    let pools = file.live(SectionKind::Pools);
    assert_eq!(pools.len(), 2);
    for pool in pools {
        use PoolWord::{Arena, Emptied, Empties, Extended, Filled, Fills, Retracted};
        let words =
            words(pool, [Arena, Extended, Retracted, Fills, Filled, Empties, Emptied].map(|w| w as usize));
        assert_eq!(words, [1, 2000, 600, 2, 150, 2, 20]);
        assert_eq!(text(&pool[PoolWord::Class as usize..]), "a class whose name has m");
    }
    let points = file.live(SectionKind::Points);
    assert_eq!(points.len(), 2);
    for point in points {
        use PointWord::{
            CommitsFailed, Emptied, Empties, Filled, Fills, Flips, FramesPopped, FramesPushed, Room, Trips,
        };
        let of_point =
            [Fills, Filled, Empties, Emptied, Room, Trips, Flips, CommitsFailed, FramesPushed, FramesPopped];
        assert_eq!(words(point, of_point.map(|word| word as usize)), [2, 150, 2, 20, 50, 4, 2, 2, 2, 2]);
    }
}

#[test]
fn counters_count_whatever_is_switched_on() {
    let memory = InMemory::new(&ROOM);
    EventKind::ALL.iter().for_each(|&kind| memory.telemetry.switches().switch(kind, false));
    let hook = memory.telemetry.arena_hook();
    use_pools(&hook);
    check_counters(&memory.file());
    assert_eq!(memory.file().events().len(), 0);
    // What is destroyed is live no more, and its entries are taken by others.
    let pool = PoolId::new(1).unwrap();
    hook.event(Event::DestroyPoint { pool, buffer: addr(0xb000) });
    hook.event(Event::DestroyPool { pool, class: "" });
    assert_eq!(memory.file().live(SectionKind::Points).len(), 1);
    assert_eq!(memory.file().live(SectionKind::Pools).len(), 1);
    for number in 0..9 {
        hook.event(Event::CreatePool {
            pool: PoolId::new(10 + number).unwrap(),
            options: PoolOptions::NONE,
            class: "",
        });
    }
    assert_eq!(memory.file().live(SectionKind::Pools).len(), 4);
    assert_eq!(memory.file().left_out(SectionKind::Pools), 6);
    hook.event(Event::DestroyArena { range: range() });
    assert_eq!(memory.file().live(SectionKind::Arenas).len(), 0);
}

#[test]
fn sizes_of_a_pool_are_what_the_program_noted_last() {
    let memory = InMemory::new(&ROOM);
    let hook = memory.telemetry.arena_hook();
    let [pool, other] = [1, 2].map(|number| PoolId::new(number).unwrap());
    hook.event(Event::CreatePool { pool, options: PoolOptions::NONE, class: "Mvff" });
    for (total, free) in [(0, 0), (5_000, 70), (4_000, 4_000)] {
        if total > 0 {
            hook.note_sizes(pool, PoolSizes { total, free, largest_free: 1, high_water: 2 });
            hook.note_sizes(other, PoolSizes { total: 9, free: 9, largest_free: 9, high_water: 9 });
        }
        let file = memory.file();
        let [pool] = file.live(SectionKind::Pools)[..] else { panic!("one pool") };
        assert_eq!(
            words(pool, [PoolWord::Total as usize, PoolWord::Free as usize]),
            [total as u64, free as u64]
        );
    }
    // Each is an event too, also of a pool that is not known.
    let events = memory.file().events();
    let noted: Vec<_> = events.iter().filter(|event| event.kind == EventKind::NoteSizes).collect();
    let sizes = ["pool", "total", "free", "largest_free", "high_water"];
    assert_eq!(noted.len(), 4);
    assert_eq!(sizes.map(|name| noted[0].words[name]), [1, 5_000, 70, 1, 2]);
    assert_eq!(sizes.map(|name| noted[3].words[name]), [2, 9, 9, 9, 9]);
}

#[test]
fn the_contract_has_counters() {
    let memory = InMemory::new(&ROOM);
    let telemetry = &memory.telemetry;
    telemetry.event(Event::Phase { from: "Boot", to: "Init" });
    telemetry.event(Event::Phase { from: "Init", to: "Warmup" });
    telemetry.event(Event::BeginAmnesty { slot: 1, reason: "" });
    let file = memory.file();
    let phase = file.live(SectionKind::Phase)[0];
    assert_eq!(text(&phase[PhaseWord::Phase as usize..]), "Warmup");
    use PhaseWord::{AmnestiesBegun, AmnestiesEnded, Changes, Time};
    assert_eq!(
        words(phase, [Changes, Time, AmnestiesBegun, AmnestiesEnded].map(|w| w as usize)),
        [2, 42, 1, 0]
    );
}

#[test]
fn the_contract_has_words_for_its_tallies() {
    let contract = ContractWords {
        threads: ROOM.tallies,
        thread_words: TALLY_THREAD_WORDS,
        numbers: TALLY_NUMBERS,
        classes: &["alloc", "a class whose name has more than 24 bytes"],
        detectors: &["allocator"],
    };
    let memory = InMemory::new(&ROOM);
    let telemetry = &memory.telemetry;
    assert_eq!(memory.file().live(SectionKind::Tallies), [] as [&[u64]; 0]);
    assert!(InMemory::new(&Room { tallies: 0, ..ROOM }).telemetry.words_for(&contract).unwrap().is_none());
    if usize::BITS != 64 {
        assert!(telemetry.words_for(&contract).unwrap().is_none());
        return;
    }
    let refused = |contract: ContractWords<'_>| match telemetry.words_for(&contract) {
        Err(Error::Parameter(why)) => why,
        other => panic!("{other:?}"),
    };
    for unknown in [
        ContractWords { classes: &[], ..contract },
        ContractWords { classes: &["class"; MAX_TALLY_CLASSES + 1], ..contract },
        ContractWords { detectors: &["detector"; MAX_TALLY_DETECTORS + 1], ..contract },
        ContractWords { numbers: TALLY_NUMBERS + 1, ..contract },
        ContractWords { thread_words: TALLY_THREAD_WORDS - 1, ..contract },
    ] {
        assert!(refused(unknown).contains("has no words"), "{unknown:?}");
    }
    let least =
        (ROOM.tallies * (TALLY_THREAD_WORDS + MAX_TALLY_CLASSES * TALLY_NUMBERS)) / contract.of_thread();
    assert!(refused(ContractWords { threads: least + 1, ..contract }).contains("Room::tallies"));
    let given = telemetry.words_for(&contract).unwrap().unwrap();
    assert!(refused(contract).contains("another contract"));
    assert!(given.len() >= ROOM.tallies * contract.of_thread());
    (1..).zip(given).for_each(|(number, word)| word.store(number, Relaxed));
    let file = memory.file();
    let tallies = file.live(SectionKind::Tallies)[0];
    let [classes, detectors, thread, places] =
        [TallyWord::Classes, TallyWord::Detectors, TallyWord::ThreadWords, TallyWord::Places]
            .map(|word| tallies[word as usize]);
    assert_eq!((classes, detectors, thread, places), (2, 1, 16, ROOM.tallies as u64));
    let names = [TallyWord::Names as usize, TallyWord::Names as usize + 4, TallyWord::DetectorNames as usize]
        .map(|at| text(&tallies[at..]));
    assert_eq!(names, ["alloc", "a class whose name has m", "allocator"]);
    assert!(tallies[TallyWord::Threads as usize..].iter().copied().eq(1..=given.len() as u64));
}

#[test]
fn markers_are_written() {
    let memory = InMemory::new(&ROOM);
    memory.telemetry.mark("opening auction", 7);
    let found = memory.file().events().pop().unwrap();
    assert_eq!((found.kind, found.words["value"]), (EventKind::Marker, 7));
    assert_eq!(found.texts["name"], "opening auction");
}
