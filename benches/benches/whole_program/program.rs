//! What the program does.

use core::fmt::Write;
use core::hint::black_box;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use benches::random::Random;
use serde_json::Value;

const RECORDS: usize = 12_000;
const REPLACEMENTS: usize = 400_000;
const LIVE: usize = 20_000;

/// About 4 MB of JSON.
fn text(random: &mut Random) -> String {
    let mut text = String::from("[");
    for record in 0..RECORDS {
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

fn work(seed: u64) {
    let mut random = Random(seed);
    for _ in 0..2 {
        let parsed: Value = serde_json::from_str(&text(&mut random)).expect("JSON");
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

/// Does the work on that many threads, and prints what it took.
pub(crate) fn run(threads: usize) {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 1..threads {
            scope.spawn(move || work(0x9e37_79b9_7f4a_7c15 + thread as u64));
        }
        work(0x9e37_79b9_7f4a_7c15);
    });
    let time = start.elapsed().as_nanos();
    // SAFETY: a structure of numbers.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: writes the structure.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let nanoseconds = |time: libc::timeval| time.tv_sec * 1_000_000_000 + time.tv_usec * 1000;
    let (program, system) = (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime));
    println!("{time} {program} {system} {}", usage.ru_maxrss);
}
