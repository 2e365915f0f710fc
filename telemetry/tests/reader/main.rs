//! The reader of telemetry files, on files of a naive writer that knows what was written.
#![cfg(all(feature = "reader", unix))]

mod core_files;
mod objects;
mod switches;

use core::iter;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tripoint_oracle::{NaiveEvent, NaiveFile, NaiveRing, cases, telemetry_bytes};
use tripoint_telemetry::format::{
    ArenaWord, BYTE_ORDER, EntryState, EventKind, ExtentWord, FieldForm, FileState, HeaderWord, PoolWord,
    SECTION_WORDS, SectionKind, SectionWord, TABLE_TEXT_WORDS, TALLY_NUMBERS, TallyWord, VERSION,
    words_of_text,
};
use tripoint_telemetry::internal::Words;
use tripoint_telemetry::reader::{
    Counters, Events, Fields, Gap, Item, OpenError, Reader, RecordedEvent, Start, SwitchesFile, TallyNumbers,
};

/// A kind that no version has.
const UNKNOWN: u16 = 999;

/// A file in a folder for temporary files, removed when it is dropped.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("tripoint-reader-{}-{name}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

fn poll_all(events: &mut Events<'_>) -> Vec<Item> {
    core::iter::from_fn(|| events.poll()).collect()
}

fn items(reader: &Reader) -> Vec<Item> {
    poll_all(&mut reader.events(Start::Oldest))
}

fn as_json(item: &Item) -> Value {
    let mut line = String::new();
    item.write_json(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Fields of a kind: words, and what JSON they should become.
fn fields_of(kind: EventKind, seed: u64) -> (Vec<u64>, serde_json::Map<String, Value>) {
    let mut words = Vec::new();
    let mut members = serde_json::Map::new();
    for (number, field) in (seed..).zip(kind.fields()) {
        let value = match field.form {
            FieldForm::Text => {
                let text = format!("{} \u{1b}[31m \"{number}\"", field.name);
                words.extend(words_of_text(&text, 64));
                json!(text)
            }
            FieldForm::Site => {
                let frames: Vec<_> = (0..seed % 21).map(|frame| 0x1000 + frame).collect();
                words.extend(&frames);
                json!(frames.iter().map(|frame| format!("{frame:#x}")).collect::<Vec<_>>())
            }
            FieldForm::Address | FieldForm::Handle => {
                words.push(number);
                json!(format!("{number:#x}"))
            }
            _ => {
                words.push(number);
                json!(number)
            }
        };
        members.insert(field.name.to_owned(), value);
    }
    (words, members)
}

#[test]
fn every_kind_is_read_with_the_fields_of_the_table() {
    let mut file = NaiveFile::new(1, 16);
    let mut expected = Vec::new();
    for (serial, &kind) in (0_u64..).zip(EventKind::ALL) {
        let (words, mut members) = fields_of(kind, serial);
        file.rings[0].write(kind as u16, 2 * serial, &words);
        for (name, value) in
            [("ring", json!(0)), ("serial", json!(serial)), ("tid", json!(100)), ("ns", json!(serial))]
        {
            members.insert(name.to_owned(), value);
        }
        members.insert("event".to_owned(), json!(kind.name()));
        expected.push(Value::Object(members));
    }
    let reader = Reader::from_bytes(file.bytes()).unwrap();
    let items = items(&reader);
    assert_eq!(items.iter().map(as_json).collect::<Vec<_>>(), expected);
    for (item, kind) in items.iter().zip(EventKind::ALL) {
        let shown = item.to_string();
        assert!(shown.contains(kind.name()) && !shown.contains('\u{1b}'), "{shown}");
        assert!(matches!(item, Item::Event(event) if event.fields.kind() == Some(*kind)));
    }
}

#[test]
fn fields_are_typed() {
    let mut file = NaiveFile::new(1, 2);
    file.rings[0].write(
        EventKind::Extend as u16,
        3_000_000_000 * 2,
        &[1, 2, 0x7f00_0000_1000, 65_536, 0x5555],
    );
    let reader = Reader::from_bytes(file.bytes()).unwrap();
    let items = items(&reader);
    let [Item::Event(event)] = items[..] else { panic!("{items:?}") };
    let Fields::Extend { arena: 1, pool: 2, base: 0x7f00_0000_1000, size: 65_536, site } = event.fields
    else {
        panic!("{event:?}")
    };
    assert_eq!(site.as_slice(), [0x5555]);
    assert_eq!(
        event.to_string(),
        "3.000000000 s thread 100 ring 0 #0 extend arena=1 pool=2 base=0x7f0000001000 size=65536 at 0x5555"
    );
}

#[test]
fn what_is_unknown_is_shown_as_numbers() {
    let mut file = NaiveFile::new(1, 2);
    file.rings[0].write(UNKNOWN, 0, &[1, 2]);
    file.rings[0].write(EventKind::Extend as u16, 0, &[1, 2]); // two fields are missing
    file.rings[0].write(EventKind::Marker as u16, 0, &[1, 65]); // longer than any text, and than the record
    let reader = Reader::from_bytes(file.bytes()).unwrap();
    let kinds: Vec<_> = items(&reader)
        .iter()
        .map(|item| match item {
            Item::Event(RecordedEvent { fields: Fields::Unknown { kind, words }, .. }) => (*kind, *words),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(kinds, [(UNKNOWN, 5), (EventKind::Extend as u16, 5), (EventKind::Marker as u16, 5)]);
}

/// Whether an event is the one that was written.
fn is(event: &RecordedEvent, written: &NaiveEvent) -> bool {
    let kind = match event.fields {
        Fields::Marker { value, .. } if written.fields[0] == value => EventKind::Marker as u16,
        Fields::Unknown { kind, words } if usize::from(words) == 3 + written.fields.len() => kind,
        _ => return false,
    };
    (event.serial, event.ticks, kind) == (written.serial, written.time, written.kind)
}

/// Writes `count` events of differing lengths to a ring.
fn write_events(file: &mut NaiveFile, ring: usize, count: u64) {
    for number in 0..count {
        let name = "x".repeat((number % 60) as usize);
        let fields: Vec<_> = core::iter::once(number).chain(words_of_text(&name, 64)).collect();
        let time = number * (2 + ring as u64);
        if number % 7 == 6 {
            file.rings[ring].write(UNKNOWN, time, &fields);
        } else {
            file.rings[ring].write(EventKind::Marker as u16, time, &fields);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    /// A reader that comes late, or reads now and then, gets the events that are still there, in
    /// order, and the number of all others.
    #[test]
    fn all_events_are_read_or_counted(counts in prop::collection::vec(0_u64..700, 3), blocks in 1_u32..4) {
        let mut file = NaiveFile::new(3, 1 << blocks);
        for (ring, &count) in counts.iter().enumerate() {
            write_events(&mut file, ring, count);
        }
        let reader = Reader::from_bytes(file.bytes()).unwrap();
        let items = items(&reader);
        for (ring, &count) in counts.iter().enumerate() {
            let of_ring: Vec<_> = items.iter().filter(|item| match item {
                Item::Event(event) => event.ring == ring,
                Item::Gap(gap) => gap.ring == ring,
            }).collect();
            let readable = file.rings[ring].readable();
            let missed = count - readable.len() as u64;
            let mut of_ring = of_ring.into_iter();
            if missed > 0 {
                prop_assert_eq!(of_ring.next(), Some(&Item::Gap(Gap { ring, is_lasting: false, first: 0, count: missed })));
            }
            for written in readable {
                let Some(Item::Event(event)) = of_ring.next() else { panic!("an event is missing") };
                prop_assert!(is(event, written), "{event} is not {written:?}");
            }
            prop_assert_eq!(of_ring.next(), None);
        }
        let times: Vec<_> = items.iter().filter_map(|item| match item {
            Item::Event(event) => Some(event.ticks),
            Item::Gap(_) => None,
        }).collect();
        prop_assert!(times.is_sorted(), "events of several rings come by time");
    }

    /// The body of the fuzz target.
    #[test]
    fn any_bytes_and_any_changes_are_survived(data in prop::collection::vec(any::<u8>(), 0..512)) {
        telemetry_bytes(&data);
    }

    /// One bit of a sound file is flipped: what is read is still a part of the truth, but for
    /// the one record or number that has the bit.
    #[test]
    fn flipped_bits_are_survived(flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 1..4)) {
        let mut file = NaiveFile::new(2, 2);
        write_events(&mut file, 0, 300);
        write_events(&mut file, 1, 20);
        let mut bytes = file.bytes();
        for (index, bit) in flips {
            let index = index.index(bytes.len());
            bytes[index] ^= 1 << bit;
        }
        let reader = Reader::from_bytes(bytes).or_else(|error| error.into_readable().ok_or(()));
        if let Ok(reader) = reader {
            prop_assert!(items(&reader).len() <= 1_000);
            reader.counters().ok();
        }
    }
}

#[test]
fn a_file_cut_off_at_any_byte_is_read_up_to_there() {
    let mut file = NaiveFile::new(1, 2);
    write_events(&mut file, 0, 30);
    file.tables[0].push([EntryState::Live as u64; 16]);
    let bytes = file.bytes();
    let written = &file.rings[0].events;
    let mut most = 0;
    for length in 0..bytes.len() {
        let error = Reader::from_bytes(bytes[..length].to_vec()).unwrap_err();
        let expected_bytes = match error {
            OpenError::NotTelemetry { .. } if length < 8 => continue,
            OpenError::Truncated { bytes, expected, .. } if bytes == length as u64 => expected,
            other => panic!("{length}: {other}"),
        };
        let Some(reader) = error.into_readable() else {
            assert!(length < 4_096, "{length}");
            continue;
        };
        assert_eq!(expected_bytes, bytes.len() as u64);
        reader.counters().unwrap();
        let (mut events, mut missed) = (0, 0);
        for item in items(&reader) {
            match item {
                Item::Event(event) => {
                    assert!(is(&event, &written[event.serial as usize]), "{length}: {event}");
                    events += 1;
                }
                Item::Gap(gap) => missed += gap.count,
            }
        }
        assert!(events + missed <= written.len() as u64);
        assert!(events >= most, "a longer file has more to read");
        most = events;
    }
    assert!(most > 5, "the first block was read without the second");
    assert_eq!(items(&Reader::from_bytes(bytes).unwrap()).len(), written.len());
}

fn with_word(word: HeaderWord, value: u64) -> Vec<u8> {
    let mut words = NaiveFile::new(1, 2).words();
    words[word as usize] = value;
    words.into_iter().flat_map(u64::to_ne_bytes).collect()
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let refused = |bytes: Vec<u8>| Reader::from_bytes(bytes).unwrap_err();
    assert!(matches!(refused(Vec::new()), OpenError::NotTelemetry { bytes: 0 }));
    assert!(matches!(refused(vec![0; 8_192]), OpenError::NotTelemetry { bytes: 8_192 }));
    let newer = refused(with_word(HeaderWord::Version, VERSION + 1));
    assert!(matches!(newer, OpenError::Newer { process: 4_711, version } if version == VERSION + 1));
    assert!(newer.to_string().contains("take a newer reader"), "{newer}");
    let making = refused(with_word(HeaderWord::State, FileState::Making as u64));
    assert!(matches!(making, OpenError::Unfinished { process: 4_711 }));
    assert!(matches!(refused(with_word(HeaderWord::ByteOrder, 7)), OpenError::Damaged { .. }));
    assert!(matches!(refused(with_word(HeaderWord::PointerBytes, 3)), OpenError::Damaged { .. }));
    let swapped = NaiveFile::new(1, 2).words().into_iter().map(u64::swap_bytes);
    let mut swapped: Vec<u8> = swapped.flat_map(u64::to_ne_bytes).collect();
    swapped[..8].reverse(); // the magic is bytes
    let foreign = refused(swapped);
    assert!(matches!(foreign, OpenError::ForeignByteOrder { process: 4_711, version: VERSION }), "{foreign}");
    assert_eq!(BYTE_ORDER.swap_bytes(), 0x0807_0605_0403_0201);
    let nowhere = Reader::open("/nowhere").unwrap_err();
    assert!(matches!(nowhere, OpenError::System { .. }));
    assert!(nowhere.to_string().starts_with("cannot open the file /nowhere: "), "{nowhere}");
    assert!(matches!(Reader::open("/dev/null").unwrap_err(), OpenError::System { .. }));
    assert!(matches!(Reader::open("/").unwrap_err(), OpenError::System { .. }));
    let here = std::process::id();
    assert!(matches!(Reader::attach(here).unwrap_err(), OpenError::NoneFound { process } if process == here));
    // No process has this number.
    assert!(matches!(Reader::attach(u32::MAX).unwrap_err(), OpenError::NoneFound { process: u32::MAX }));
    assert!(matches!(
        SwitchesFile::attach(u32::MAX).unwrap_err(),
        OpenError::NoneFound { process: u32::MAX }
    ));
}

#[test]
fn a_section_that_makes_no_sense_is_left_out_and_said() {
    let sound = NaiveFile::new(1, 2).words();
    let table = sound[HeaderWord::SectionTable as usize..].chunks(SECTION_WORDS);
    let index = table.into_iter().position(|entry| entry[0] == SectionKind::Rings as u64).unwrap();
    let entry = HeaderWord::SectionTable as usize + index * SECTION_WORDS;
    for (word, value, damaged) in [
        (SectionWord::Offset, 3, true),
        (SectionWord::Offset, u64::MAX - 7, true),
        (SectionWord::Entries, u64::MAX, true),
        (SectionWord::EntryBytes, 0, true),
        (SectionWord::EntryBytes, 8 * (16 + 513), true),
        (SectionWord::Kind, 99, false),
        (SectionWord::Kind, 1, true),
    ] {
        let mut words = sound.clone();
        words[entry + word as usize] = value;
        let bytes = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        let reader = Reader::from_bytes(bytes).unwrap();
        assert_eq!(reader.rings(), 0, "{word:?} = {value}");
        assert_eq!(reader.damage().len(), usize::from(damaged), "{word:?} = {value}: {:?}", reader.damage());
        assert_eq!(items(&reader), []);
    }
}

#[test]
fn counters_are_read_without_events() {
    let mut file = NaiveFile::new(1, 2);
    let mut arena = [0; 16];
    arena[ArenaWord::State as usize] = EntryState::Live as u64 | 3 << 8;
    arena[ArenaWord::Arena as usize] = 1;
    arena[ArenaWord::Grown as usize] = 1 << 20;
    let mut pool = [0; 16];
    pool[PoolWord::State as usize] = EntryState::Gone as u64;
    pool[PoolWord::Extended as usize] = 65_536;
    for (to, word) in pool[PoolWord::Class as usize..].iter_mut().zip(words_of_text("mvff", 24)) {
        *to = word;
    }
    let (free, making) = ([EntryState::Free as u64; 16], [EntryState::Making as u64; 16]);
    file.tables[0] = vec![arena, free, making];
    file.tables[1] = vec![pool];
    file.tallies = tallies(2);
    let reader = Reader::from_bytes(file.bytes()).unwrap();
    let counters = reader.counters().unwrap();
    assert_eq!((counters.arenas.entries.len(), counters.arenas.unsteady), (1, 1));
    let of_arena = counters.arenas.entries[0];
    assert_eq!((of_arena.arena, of_arena.grown, of_arena.is_live), (1, 1 << 20, true));
    let of_pool = counters.pools.entries[0];
    assert_eq!(of_pool.class.as_str(), Some("mvff"));
    assert_eq!((of_pool.numbers.extended, of_pool.numbers.is_live), (65_536, false));
    let shown = counters.to_string();
    assert!(shown.contains("pool class=\"mvff\" arena=0 pool=0 extended=65536"), "{shown}");
    let mut line = String::new();
    counters.write_json(&mut line).unwrap();
    let read: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(read["arenas"]["entries"][0]["grown"], json!(1 << 20));
    assert_eq!(read["pools"]["entries"][0]["class"], json!("mvff"));
    assert_eq!(counters.pools.left_out, 1, "as the naive file says of its second section");
    assert!(counters.points.entries.is_empty());
    let [tally] = counters.tallies.entries[..] else { panic!("{counters:?}") };
    assert_eq!((tally.thread, tally.class.as_str()), (1, Some("fill")));
    let of = |count| TallyNumbers { count, bytes: count + 1, excused: count + 2, excused_bytes: count + 3 };
    assert_eq!((tally.all, tally.armed), (of(10), of(14)));
    assert!(shown.contains("tally class=\"fill\" thread=1 count=10 bytes=11"), "{shown}");
    assert_eq!(read["tallies"]["entries"][0]["armed_count"], json!(14));
    let [thread] = &counters.contract_threads.entries[..] else { panic!("{counters:?}") };
    assert_eq!((thread.thread, thread.name.as_str()), (1, Some("a hot thread of thirty bytes ")));
    assert_eq!(
        (thread.is_hot, thread.was_armed, thread.has_left, thread.left_unarmed),
        (true, false, true, true)
    );
    assert_eq!((thread.records_lost, thread.overlapped), (4, 5));
    assert!(
        shown.contains(
            "thread name=\"a hot thread of thirty bytes \" thread=1 is_hot=1 was_armed=0 left_unarmed=1 records_lost=4 \
             overlapped=5 held=fill wanted=allocator,fault_trap live=fault_trap, gone\n"
        ),
        "{shown}"
    );
    let thread = &read["contract_threads"]["entries"][0];
    assert_eq!((&thread["held"], &thread["wanted"]), (&json!(["fill"]), &json!(["allocator", "fault_trap"])));
    let ring = reader.ring(0).unwrap().unwrap();
    assert_eq!((ring.thread, ring.name.as_str(), ring.events), (100, Some("thread 100"), 0));
    assert!(!ring.within_record);
    assert!(reader.ring(1).unwrap().is_none());
}

/// A file of which it is counted how often something was read.
struct CountedReads {
    bytes: Vec<u8>,
    reads: Arc<AtomicUsize>,
}

impl Words for CountedReads {
    fn bytes(&self) -> io::Result<u64> {
        self.bytes.bytes()
    }

    fn read(&self, offset: u64, to: &mut [u64]) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.read(offset, to)
    }
}

/// (design/cli.md `.capture.look`)
#[test]
fn counters_of_memory_take_no_longer_if_other_tables_are_large() {
    let read = |others: usize| {
        let mut file = NaiveFile::new(1, 2);
        let entry = [EntryState::Live as u64; 16];
        for (table, entries) in file.tables.iter_mut().zip([3, 3].into_iter().chain(iter::repeat(others))) {
            *table = vec![entry; entries];
        }
        let reads = Arc::new(AtomicUsize::new(0));
        let words = CountedReads { bytes: file.bytes(), reads: Arc::clone(&reads) };
        let reader = Reader::from_words(words).unwrap();
        let before = reads.load(Ordering::Relaxed);
        let of_memory = reader.counters_of_memory().unwrap();
        let reads = reads.load(Ordering::Relaxed) - before;
        let all = reader.counters().unwrap();
        assert!(all.arenas.entries.len() == 3 && all.extents.entries.len() == others);
        let expected = Counters { arenas: all.arenas, pools: all.pools, ..Counters::default() };
        assert_eq!(of_memory, expected);
        reads
    };
    assert_eq!(read(1), read(200));
}

/// Tallies of two classes, and of two threads, of which only the second registered and had events, in this version of the
/// format.
fn tallies(version: u64) -> Vec<u64> {
    let (first, thread_words) = if version == 1 { (8 + 16 * 4, 0) } else { (8 + 32 * 4, 16) };
    let thread = thread_words + 2 * TALLY_NUMBERS;
    let mut tallies = vec![0; first + 2 * thread];
    tallies[TallyWord::State as usize] = EntryState::Live as u64;
    let mut name = |at: usize, name: &str| {
        tallies[at..].iter_mut().zip(words_of_text(name, 32)).for_each(|(to, word)| *to = word);
    };
    name(8, "alloc");
    name(8 + TABLE_TEXT_WORDS, "fill");
    if version > 1 {
        name(8 + 16 * 4, "allocator");
        name(8 + 17 * 4, "fault_trap");
        name(first + thread + 8, "a hot thread of thirty bytes ");
        [0b11011, 0b10, 0b11, 0b10, 4, 5]
            .into_iter()
            .enumerate()
            .for_each(|(at, word)| tallies[first + thread + at] = word);
        tallies[2..4].copy_from_slice(&[2, 16]);
    }
    tallies[TallyWord::Classes as usize] = 2;
    for number in 0..TALLY_NUMBERS {
        tallies[first + thread + thread_words + 2 * number + 1] = 10 + number as u64;
    }
    tallies
}

/// Version 1 of the format does not say who the threads of tallies are.
#[test]
fn tallies_of_the_first_version_are_read() {
    let read = |tallies: Vec<u64>| {
        let mut file = NaiveFile::new(1, 2);
        file.tallies = tallies;
        Reader::from_bytes(file.bytes()).unwrap().counters().unwrap()
    };
    let (old, new) = (read(tallies(1)), read(tallies(2)));
    assert_eq!(old.tallies, new.tallies);
    assert_eq!((old.tallies.entries.len(), old.contract_threads.entries.len()), (1, 0));
    assert_eq!(new.contract_threads.entries.len(), 1);
    let mut later = tallies(2);
    later[TallyWord::ThreadWords as usize] = 17;
    assert_eq!(read(later).tallies.unsteady, 1, "words of which this reader knows nothing");
}

/// (design/telemetry.md `.lasting`)
#[test]
fn lasting_events_are_read_by_time_among_the_others_and_have_gaps_of_their_own() {
    let mut file = NaiveFile::new(2, 2);
    file.lasting = vec![NaiveRing::new(100, 2), NaiveRing::new(101, 2)];
    let write = |ring: &mut NaiveRing, time: u64| {
        let fields: Vec<_> = ["Init", "Warmup"].iter().flat_map(|phase| words_of_text(phase, 64)).collect();
        ring.write(EventKind::Phase as u16, time, &fields);
    };
    for time in 0..1_000 {
        write_grow(&mut file.rings[0], time);
        if time % 100 == 50 {
            write(&mut file.lasting[0], time);
        }
        // More than this ring keeps.
        if time % 2 == 0 {
            write(&mut file.lasting[1], time);
        }
    }
    let reader = Reader::from_bytes(file.bytes()).unwrap();
    let items = items(&reader);
    let of = |ring, is_lasting| {
        let is_its = move |item: &&Item| match item {
            Item::Event(event) => (event.ring, event.is_lasting) == (ring, is_lasting),
            Item::Gap(gap) => (gap.ring, gap.is_lasting) == (ring, is_lasting),
        };
        items.iter().filter(is_its)
    };
    let times = |ring, is_lasting| -> Vec<u64> {
        let time = |item: &Item| if let Item::Event(event) = item { Some(event.ticks) } else { None };
        of(ring, is_lasting).filter_map(time).collect()
    };
    let readable = |ring: &NaiveRing| ring.readable().iter().map(|event| event.time).collect::<Vec<_>>();
    assert_eq!(
        times(0, true),
        [50, 150, 250, 350, 450, 550, 650, 750, 850, 950],
        "all that the ring ever had"
    );
    assert_eq!(times(1, true), readable(&file.lasting[1]));
    assert_eq!(times(0, false), readable(&file.rings[0]));
    assert_eq!(of(1, false).count(), 0);
    let gap = of(1, true).next();
    assert!(matches!(gap, Some(Item::Gap(Gap { is_lasting: true, first: 0, .. }))), "{gap:?}");
    assert!(gap.unwrap().to_string().starts_with("lasting ring 1: "));
    assert_eq!(as_json(gap.unwrap())["is_lasting"], true);
    // Of the same time, lasting events come first.
    let all: Vec<_> = items
        .iter()
        .filter_map(
            |item| if let Item::Event(event) = item { Some((event.ticks, !event.is_lasting)) } else { None },
        )
        .collect();
    assert!(all.is_sorted(), "{all:?}");
    let info = reader.ring(0).unwrap().unwrap();
    assert_eq!((info.events, info.lasting_events), (1_000, 10));
    let mut cursor = reader.lasting_events(0, Start::Oldest).unwrap();
    assert_eq!(core::iter::from_fn(|| cursor.poll()).count(), 10);
    assert!(reader.lasting_events(2, Start::Oldest).is_none());
}

/// Writes that an arena grew by as many bytes as the time is.
fn write_grow(ring: &mut NaiveRing, time: u64) {
    ring.write(EventKind::Grow as u16, time, &[1, time]);
}

/// (design/telemetry.md `.extents`)
#[test]
fn extents_are_those_that_pools_have_now() {
    let mut file = NaiveFile::new(1, 2);
    let entry = |state: EntryState, base: u64| {
        let mut entry = [0; 16];
        entry[ExtentWord::State as usize] = state as u64;
        entry[ExtentWord::Arena as usize] = 1;
        entry[ExtentWord::Pool as usize] = 2;
        entry[ExtentWord::Base as usize] = base;
        entry[ExtentWord::Bytes as usize] = 0x1000;
        entry
    };
    let states = [EntryState::Live, EntryState::Gone, EntryState::Free, EntryState::Live];
    file.tables[5] = (1..).zip(states).map(|(base, state)| entry(state, base << 16)).collect();
    let counters = Reader::from_bytes(file.bytes()).unwrap().counters().unwrap();
    let found: Vec<_> =
        counters.extents.entries.iter().map(|it| (it.arena, it.pool, it.base, it.bytes)).collect();
    assert_eq!(found, [(1, 2, 0x1_0000, 0x1000), (1, 2, 0x4_0000, 0x1000)]);
    assert!(counters.to_string().contains("extent arena=1 pool=2 base=0x40000 bytes=4096\n"), "{counters}");
}

/// Of a writer that was killed within a record, the records before it are read.
#[test]
fn a_record_that_is_not_complete_is_not_read_and_is_said() {
    let mut file = NaiveFile::new(2, 2);
    write_events(&mut file, 0, 10);
    write_events(&mut file, 1, 10);
    file.rings[1].begun = 8;
    let reader = Reader::from_bytes(file.bytes()).unwrap();
    assert_eq!([0, 1].map(|ring| reader.ring(ring).unwrap().unwrap().within_record), [false, true]);
    assert_eq!(items(&reader).len(), 20);
}

#[test]
fn a_file_is_read_while_it_grows_is_lapped_and_is_cut_off() {
    let mut file = NaiveFile::new(1, 2);
    write_events(&mut file, 0, 10);
    let path = TemporaryFile::new("live", &file.bytes());
    let reader = Reader::open(&path.0).unwrap();
    let mut events = reader.events(Start::Oldest);
    let mut late = reader.events(Start::Now);
    let count = |items: Vec<Item>| {
        items.iter().fold((0, 0), |(events, missed), item| match item {
            Item::Event(_) => (events + 1, missed),
            Item::Gap(gap) => (events, missed + gap.count),
        })
    };
    assert_eq!(count(poll_all(&mut late)), (0, 0));
    assert_eq!(count(poll_all(&mut events)), (10, 0));
    write_events(&mut file, 0, 5);
    fs::write(&path.0, file.bytes()).unwrap();
    assert_eq!(count(poll_all(&mut events)), (5, 0));
    assert_eq!(count(poll_all(&mut late)), (5, 0), "only what came after");
    write_events(&mut file, 0, 1_000);
    fs::write(&path.0, file.bytes()).unwrap();
    let (read, missed) = count(poll_all(&mut events));
    assert_eq!(read + missed, 1_000);
    assert_eq!(read, file.rings[0].readable().len() as u64);
    assert_eq!(count(poll_all(&mut late)), (read, missed));
    // A file that becomes shorter is an error or a gap, and no signal.
    write_events(&mut file, 0, 50);
    fs::write(&path.0, &file.bytes()[..4_096]).unwrap();
    assert_eq!(count(poll_all(&mut events)), (0, 0));
    assert!(reader.ring(0).is_err());
    assert!(reader.state().is_ok());
    fs::write(&path.0, file.bytes()).unwrap();
    let (read, missed) = count(poll_all(&mut events));
    assert_eq!(read + missed, 50, "it goes on when the file is whole again");
}
