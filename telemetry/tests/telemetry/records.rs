//! What is recorded of each event stays as it was, word for word, and so does what a reader shows of it
//! (design/telemetry.md `.kinds`).
//!
//! `records.txt` has the number of a kind, the words that follow a record's head, and the line of JSON without its
//! beginning. With `TRIPOINT_BLESS=1`, records of further kinds are appended; no record that is there is changed.

use std::collections::BTreeSet;
use std::path::Path;

use tripoint_core::{EventHook, PoolId, PoolSizes};
use tripoint_telemetry::Room;
use tripoint_telemetry::format::EventKind;
use tripoint_telemetry::reader::{Reader, Start};

use crate::decoder::InMemory;
use crate::events::all_events;

const ROOM: Room = Room { threads: 2, ring_bytes: 16 << 10, ..Room::LEAST };

/// One of each event, as lines of the table.
fn recorded() -> Vec<(EventKind, String)> {
    let memory = InMemory::new(&ROOM);
    let (attached, hook) = (memory.telemetry.attach("hot"), memory.telemetry.arena_hook());
    memory.telemetry.mark("opening auction", 7);
    for (event, ..) in all_events() {
        hook.event_at(event, &[0xc0de, 0x517e]);
    }
    let sizes = PoolSizes { total: 5000, free: 70, largest_free: 60, high_water: 4000 };
    hook.note_sizes(PoolId::new(9).unwrap(), sizes);
    drop(attached);
    let file = memory.file();
    let reader = Reader::from_bytes(file.bytes()).unwrap();
    let mut events = reader.events(Start::Oldest);
    let line = |found: &crate::decoder::Found| {
        let words: Vec<_> = found.fields.iter().map(|word| format!("{word:x}")).collect();
        let mut json = String::new();
        events.poll().unwrap().write_json(&mut json).unwrap();
        let shown = &json[json.find("\"event\"").unwrap()..];
        (found.kind, format!("{} [{}] {{{shown}\n", found.kind as u16, words.join(" ")))
    };
    file.events().iter().map(line).collect()
}

#[test]
fn records_are_as_they_were() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/telemetry/records.txt");
    let mut text = std::fs::read_to_string(&path).unwrap();
    let recorded = recorded();
    if std::env::var_os("TRIPOINT_BLESS").is_some() {
        let numbers = text.lines().filter_map(|line| line.split(' ').next()?.parse::<u16>().ok());
        let known: BTreeSet<_> = numbers.collect();
        text.extend(
            recorded.iter().filter(|(kind, _)| !known.contains(&(*kind as u16))).map(|(_, line)| &**line),
        );
        return std::fs::write(path, text).unwrap();
    }
    let kept: BTreeSet<_> = text.split_inclusive('\n').collect();
    let lines: BTreeSet<_> = recorded.iter().map(|(_, line)| &**line).collect();
    let changed: Vec<_> = lines.symmetric_difference(&kept).collect();
    assert!(changed.is_empty(), "not as in {}, or not there: {changed:#?}", path.display());
}
