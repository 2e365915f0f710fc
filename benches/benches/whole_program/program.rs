//! What the program does.

use core::fmt::Write;
use core::hint::black_box;
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::time::Instant;

use benches::random::Random;
use serde_json::Value;

/// What a program may do.
pub(crate) const WORKS: [Work; 3] = [Work::Program, Work::Document, Work::Handover];

/// Records of a document of about 4 MB.
const RECORDS: usize = 12_000;
/// How often as much is kept whole.
const WHOLE: usize = 5;
/// Documents that are kept, one after the other.
const DOCUMENTS: usize = 3;
/// Documents that another thread drops.
const HANDOVERS: usize = 15;
const REPLACEMENTS: usize = 400_000;
const LIVE: usize = 20_000;

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Documents are parsed, counted in maps, sorted and dropped, and then objects replaced at random.
    Program,
    /// Documents of about 20 MB are parsed, kept until they are looked through, and dropped whole.
    Document,
    /// Documents of about 4 MB are parsed by one thread and dropped by another.
    Handover,
}

impl Work {
    /// Its name on the command line and in titles.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Program => "whole program",
            Self::Document => "20 MB of JSON, parsed and dropped",
            Self::Handover => "JSON parsed by one thread, dropped by another",
        }
    }

    /// On how many threads it is done.
    pub(crate) const fn threads(self) -> &'static [usize] {
        match self {
            Self::Program | Self::Document => &[1, 2],
            Self::Handover => &[2],
        }
    }
}

/// JSON of that many records.
fn text(random: &mut Random, records: usize) -> String {
    let mut text = String::from("[");
    for record in 0..records {
        let comma = if record == 0 { "" } else { "," };
        let (price, depth) = (random.below(100_000), random.below(12));
        write!(
            text,
            r#"{comma}{{"id":{record},"symbol":"SYM{}","side":"{}","price":{price}.25,"note":"{}","levels":["#,
            random.below(500),
            ["bid", "ask"][record % 2],
            "x".repeat(random.below(120)),
        )
        .expect("a string takes all");
        for level in 0..=depth {
            let comma = if level == 0 { "" } else { "," };
            write!(text, r#"{comma}{{"price":{},"quantity":{level}}}"#, price + level)
                .expect("a string takes all");
        }
        text.push_str("]}");
    }
    text.push(']');
    text
}

fn strings<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Value::Object(values) => values.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

fn parse(random: &mut Random, records: usize) -> Value {
    serde_json::from_str(&text(random, records)).expect("JSON")
}

fn keep_documents(seed: u64) {
    let mut random = Random(seed);
    for _ in 0..DOCUMENTS {
        let parsed = parse(&mut random, WHOLE * RECORDS);
        let mut found = Vec::new();
        strings(&parsed, &mut found);
        black_box(found.iter().map(|text| text.len()).sum::<usize>());
    }
}

/// One thread parses, this one drops; at most one document waits.
fn hand_over(seed: u64) {
    let (to_drop, parsed) = mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut random = Random(seed);
            for _ in 0..HANDOVERS {
                to_drop.send(parse(&mut random, RECORDS)).expect("the other thread");
            }
        });
        parsed.into_iter().for_each(|parsed: Value| drop(black_box(parsed)));
    });
}

fn replace_and_sort(seed: u64) {
    let mut random = Random(seed);
    for _ in 0..2 {
        let parsed = parse(&mut random, RECORDS);
        let mut found = Vec::new();
        strings(&parsed, &mut found);
        let mut counts: HashMap<String, usize> = HashMap::new();
        for string in &found {
            *counts.entry((*string).to_string()).or_default() += 1;
        }
        let ordered: BTreeMap<String, Vec<usize>> =
            counts.iter().map(|(string, &count)| (string.clone(), vec![count; count % 7])).collect();
        let mut sorted: Vec<String> = found.iter().map(|string| (*string).to_string()).collect();
        sorted.sort();
        black_box((parsed.clone(), ordered, sorted));
    }
    let mut window: Vec<Vec<u8>> = (0..LIVE).map(|_| vec![1; random.below(500) + 1]).collect();
    for _ in 0..REPLACEMENTS {
        window[random.below(LIVE)] = vec![1; random.below(500) + 1];
    }
    black_box(window);
}

/// Does a work, by its name, on that many threads, and prints what it took.
pub(crate) fn run(name: &str, threads: usize) {
    const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
    let work = WORKS.into_iter().find(|work| work.name() == name).expect("the name of a work");
    let each = match work {
        Work::Program => replace_and_sort,
        Work::Document => keep_documents,
        Work::Handover => hand_over,
    };
    let start = Instant::now();
    if work == Work::Handover {
        each(SEED);
    } else {
        std::thread::scope(|scope| {
            for thread in 1..threads {
                scope.spawn(move || each(SEED + thread as u64));
            }
            each(SEED);
        });
    }
    let time = start.elapsed().as_nanos();
    // SAFETY: a structure of numbers.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: writes the structure.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let nanoseconds = |time: libc::timeval| time.tv_sec * 1_000_000_000 + time.tv_usec * 1000;
    let (program, system) = (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime));
    println!("{time} {program} {system} {}", usage.ru_maxrss);
}
