//! A reader against writers in other processes (design/telemetry.md `.reader.figures`): the part
//! that runs always. `telemetry/examples/telemetry_race.rs` runs more of it.
#![cfg(all(feature = "reader", tripoint_on_linux, not(miri)))]

#[path = "../examples/telemetry_race.rs"]
mod example;

use example::race;
use race::Counts;

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
    // A small ring laps before most writers are killed, a large one does not.
    for ring_bytes in [RING_BYTES, 4 << 20] {
        let kill = |_| race::against_a_killed_writer(ARGUMENTS, ring_bytes, race::draw(&mut state));
        let killed: Vec<_> = (0..15).map(kill).collect();
        println!("{} of 15 within a record", killed.iter().filter(|killed| killed.within_record).count());
        assert!(killed.iter().any(|killed| killed.counts.read > 0));
    }
}

/// A reader that counts what it could read as missed is found out.
#[test]
fn what_could_have_been_read_must_be() {
    let is_all_recovered = |read, missed| race::is_all_recovered(Counts { read, missed }, RING_BYTES);
    // 16 blocks of 101 events.
    assert!(is_all_recovered(0, 0) && is_all_recovered(16 * 101 - 1, 0));
    assert!(!is_all_recovered(0, 1) && !is_all_recovered(16 * 101 - 2, 1));
    assert!(is_all_recovered(15 * 101, 101) && !is_all_recovered(15 * 101 - 1, 102));
    assert!(is_all_recovered(15 * 101 + 50, 1_000 * 101) && !is_all_recovered(0, 1_000 * 101));
}

#[test]
fn a_writer_killed_as_it_begins_leaves_no_file_or_one_that_says_so() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut state = seed;
    for kill in [race::against_a_beginner_in_memory, race::against_a_beginner] {
        let left: Vec<_> = (0..15).map(|_| kill(ARGUMENTS, 1 << 20, race::draw(&mut state))).collect();
        println!("{left:?}");
    }
}
