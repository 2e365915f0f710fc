//! A reader against writers in other processes (design/telemetry.md `.reader.figures`): the part
//! that runs always. `telemetry/examples/telemetry_race.rs` runs more of it.
#![cfg(all(feature = "reader", feature = "linux", target_os = "linux", not(miri)))]

#[path = "../examples/telemetry_race.rs"]
mod example;

use example::race;

/// Leads this program to [`the_writer`] alone.
const ARGUMENTS: &[&str] = &["--exact", "the_writer", "--nocapture", "--test-threads=1"];

const RING_BYTES: usize = 64 << 10;

/// The other process. Without orders it does nothing.
#[test]
fn the_writer() {
    race::write_if_told();
}

#[test]
fn every_event_of_another_process_is_read_or_counted() {
    for ring_bytes in [8 << 10, 1 << 20] {
        let counts = race::against_a_live_writer(ARGUMENTS, 200_000, ring_bytes);
        assert!(counts.read > 0, "{counts:?}");
    }
}

#[test]
fn what_a_killed_writer_completed_is_read() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut state = seed;
    let kill = |_| race::against_a_killed_writer(ARGUMENTS, RING_BYTES, race::draw(&mut state)).read;
    let read: u64 = (0..30).map(kill).sum();
    // Some are killed before their first event.
    assert!(read > 0);
}
