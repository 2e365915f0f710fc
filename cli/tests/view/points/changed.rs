//! Logs that were changed.

use tripoint_oracle::Random;
use tripoint_telemetry::format::{
    EventKind, FieldForm, HEAD_WORDS, Head, LOG_HEADER_WORDS, LogCheck, RecordKind, WORD_BYTES,
};

use super::packets;
use super::programs::{self, Length, Logged};
use super::replay;

/// Fields that say what came of a call, or have to be those of the object. What was asked for is not among them: if
/// that is another, the outcome may be the same.
const OUTCOMES: [(EventKind, &[&str]); 10] = [
    (EventKind::Fill, &["base", "size"]),
    (EventKind::Empty, &["base", "size"]),
    (EventKind::Extend, &["base", "size"]),
    (EventKind::Retract, &["base", "size"]),
    (EventKind::Reserve, &["object", "size"]),
    (EventKind::Alloc, &["object"]),
    (EventKind::Free, &["size"]),
    (EventKind::FreeAtPoint, &["size"]),
    (EventKind::PopFrame, &["size"]),
    (EventKind::PacketCall, &["moved"]),
];

/// A log as words, and where each event begins and ends, its check included.
struct Parsed {
    words: Vec<u64>,
    events: Vec<core::ops::Range<usize>>,
}

impl Parsed {
    fn new(log: &[u8]) -> Self {
        let words: Vec<_> = log.as_chunks::<WORD_BYTES>().0.iter().copied().map(u64::from_ne_bytes).collect();
        let (mut events, mut at) = (Vec::new(), LOG_HEADER_WORDS);
        while at < words.len() {
            let end = at + usize::from(head(&words[at..]).words) + 1;
            events.push(at..end);
            at = end;
        }
        // The last is the end.
        events.pop();
        Self { words, events }
    }

    fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// The number of the first event of a kind.
    fn first(&self, kind: EventKind) -> usize {
        let is_of_kind = |event: &core::ops::Range<usize>| {
            head(&self.words[event.start..]).kind == RecordKind::Event(kind)
        };
        self.events.iter().position(is_of_kind).unwrap()
    }

    /// Writes all checks anew.
    fn sign(&mut self) {
        let (mut check, mut at) = (LogCheck::START, LOG_HEADER_WORDS);
        while at < self.words.len() {
            let end = at + usize::from(head(&self.words[at..]).words);
            check = check.over(&self.words[at..end]);
            self.words[end] = check.word();
            at = end + 1;
        }
    }
}

fn head(words: &[u64]) -> Head {
    Head::from_words([words[0], words[1], words[2]])
}

fn programs(seed: u64) -> Vec<Logged> {
    let classes = programs::CLASSES.into_iter();
    classes
        .map(|class| programs::random_run(class, seed, Length::SHORT))
        .chain([programs::order_book(seed, Length::SHORT), programs::threads(seed, Length::SHORT)])
        .chain([packets::random_calls(seed, Length::SHORT)])
        .collect()
}

/// One bit of 25 logs: each is refused, at the event that has it (design/point-log.md `.req.whole`).
#[test]
fn a_log_with_another_bit_is_refused_at_its_event() {
    let seed = seed();
    let (mut random, logs) = (Random::new(seed), programs(seed));
    for _ in 0..25 {
        let mut log = Parsed::new(&logs[random.below(logs.len())].log);
        let number = random.below(log.events.len());
        let event = log.events[number].clone();
        let word = event.start + random.below(event.len());
        log.words[word] ^= 1 << random.below(64);
        let ran = replay(&[], &log.bytes());
        assert_eq!(ran.status, Some(2), "seed {seed}, event {number}: {}", ran.out);
        let named = [format!("event {number} of the log"), format!("no event {number} and no end")];
        assert!(
            named.iter().any(|named| ran.err.contains(named)),
            "seed {seed}, event {number}: {}",
            ran.err
        );
    }
}

/// One outcome of 25 logs, whose checks are right: each diverges or is refused, at that event (design/point-log.md `.req.names`).
#[test]
fn a_log_with_another_outcome_diverges_at_its_event() {
    let seed = seed();
    let (mut random, logs) = (Random::new(seed), programs(seed));
    for _ in 0..25 {
        let mut log = Parsed::new(&logs[random.below(logs.len())].log);
        let (number, place) = loop {
            let number = random.below(log.events.len());
            let start = log.events[number].start;
            let RecordKind::Event(kind) = head(&log.words[start..]).kind else { continue };
            let Some((_, names)) = OUTCOMES.iter().find(|(outcome, _)| *outcome == kind) else { continue };
            let name = names[random.below(names.len())];
            break (number, start + HEAD_WORDS + index_of(kind, name));
        };
        // At least a granule more.
        log.words[place] += 16 * (4 + random.below(1000) as u64);
        log.sign();
        let ran = replay(&["--json"], &log.bytes());
        let found = match ran.status {
            Some(1) => ran.json()["divergence"]["event"] == number,
            Some(2) => ran.err.contains(&format!("event {number}:")),
            _ => false,
        };
        assert!(found, "seed {seed}, event {number}: {:?} {}{}", ran.status, ran.out, ran.err);
    }
}

/// A heap is not in the replay, and what the log says of it is checked (design/point-log.md `.heaps`).
#[test]
fn a_log_with_another_event_of_a_heap_is_refused_or_diverges_there() {
    let log = programs::collected(200);
    for (kind, name, status, why) in [
        (EventKind::Flip, "size", 1, "objects from +"),
        (EventKind::DropMutator, "mutator", 2, "its heap has no such mutator"),
        (EventKind::DropRoot, "root", 2, "its heap has no such root"),
        (EventKind::UpdateFrozen, "filled", 2, "its objects are not in its memory"),
        (EventKind::DropFrozen, "segment", 2, "its heap has no such frozen segment"),
        (EventKind::EndStop, "heap", 2, "its heap is not stopped by this thread"),
        (EventKind::EndCollection, "heap", 2, "its heap is not stopped by this thread"),
    ] {
        let mut log = Parsed::new(&log.log);
        let number = log.first(kind);
        let place = log.events[number].start + HEAD_WORDS + index_of(kind, name);
        log.words[place] += 1 << 16;
        log.sign();
        let ran = replay(&[], &log.bytes());
        let says = if status == 1 { &ran.out } else { &ran.err };
        assert!(
            ran.status == Some(status) && says.contains(&format!("event {number}")) && says.contains(why),
            "{kind:?}, event {number}: {:?} {}{}",
            ran.status,
            ran.out,
            ran.err
        );
    }
}

/// (design/point-log.md `.heaps`)
#[test]
fn a_step_that_ends_on_another_thread_is_refused_there() {
    let mut log = Parsed::new(&programs::collected(200).log);
    let number = log.first(EventKind::EndStep);
    // The thread is the upper half of an event's first word.
    log.words[log.events[number].start] += 1 << 32;
    log.sign();
    let ran = replay(&[], &log.bytes());
    let why = format!("event {number}: its heap is not stopped by this thread");
    assert!(ran.status == Some(2) && ran.err.contains(&why), "{:?} {}{}", ran.status, ran.out, ran.err);
}

/// Which word of an event's fields has this name.
fn index_of(kind: EventKind, name: &str) -> usize {
    let index = kind.fields().iter().position(|field| field.name == name).unwrap();
    assert!(kind.fields()[..index].iter().all(|field| field.form != FieldForm::Text));
    index
}

/// A seed that is printed if the test fails, or that of `TRIPOINT_SEED`.
fn seed() -> u64 {
    let given = std::env::var("TRIPOINT_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("TRIPOINT_SEED={seed}");
    seed
}
