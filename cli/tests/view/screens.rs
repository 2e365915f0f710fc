//! Whole screens of `tripoint top` at three widths, as they are kept in `screens.txt` (design/cli.md `.top.narrow`,
//! `.top.ended`, `.report.late`). With `TRIPOINT_BLESS=1` they are written anew: then read the difference.

use core::fmt::Write as _;
use std::path::{Path, PathBuf};

use tripoint_core::{Addr, AddrRange, BufferKind, Event, EventHook, PoolId, PoolOptions, RankSet};
use tripoint_telemetry::format::HeaderWord;

use crate::recorded::Recorded;
use crate::top::Screen;

/// More than a ring keeps.
const MANY: usize = 20_000;

const MIB: usize = 1 << 20;

/// A hot thread violates its contract, and then trips so often.
fn trade(recorded: &Recorded, trips: usize) {
    let telemetry = &recorded.telemetry;
    let _attached = telemetry.attach("hot");
    let hook = telemetry.arena_hook();
    let base = Addr::new(0x7000_0000);
    let range = AddrRange::with_size(base, 64 * MIB).unwrap();
    hook.event(Event::CreateArena {
        grain: 4096,
        commit_limit: 64 * MIB,
        range,
        memory: range,
        class: "ArenaVm",
        commit_policy: 0,
        prefault_size: 0,
    });
    hook.event(Event::Grow { size: 4 * MIB });
    let [orders, books] = [2, 3].map(|number| PoolId::new(number).unwrap());
    for (pool, class) in [(orders, "MFS"), (books, "MVFF")] {
        hook.event(Event::CreatePool { pool, options: PoolOptions::NONE, class });
        hook.event(Event::Extend {
            pool,
            base: Addr::new(base.get() + MIB * pool.get() as usize),
            size: MIB,
        });
    }
    let buffer = Addr::new(0xb0f0);
    hook.event(Event::CreatePoint {
        pool: books,
        buffer,
        ranks: RankSet::empty(),
        kind: BufferKind::Mutator,
    });
    hook.event(Event::Fill { pool: books, buffer, base, size: 12_345 });
    telemetry.event(Event::Phase { from: "Warmup", to: "SteadyState" });
    for (kind, class) in [("alarm", "alloc"), ("violation", "alloc"), ("violation", "minor_fault")] {
        let violation =
            Event::Violation { kind, class, slot: 0, count: 2, bytes: 123_456, address: 0, call: 0 };
        // Addresses of no program: its path would be another on each machine.
        telemetry.event_at(violation, &[0x10, 0x20]);
    }
    (0..trips).for_each(|_| hook.event(Event::Trip { pool: books, buffer, requests: 1 }));
}

/// A copy of the recording, of a process with this number.
fn of_process(process: u64, recorded: &Recorded) -> PathBuf {
    let mut bytes = recorded.bytes();
    bytes[HeaderWord::Process as usize * 8..][..8].copy_from_slice(&process.to_ne_bytes());
    recorded.beside(&format!("of-{process}"), &bytes)
}

/// A screen without its empty lines, with `N` for each number, and one space for several: buffers have other numbers each time.
fn plain(screen: &str) -> String {
    let mut plain = String::new();
    for line in screen.lines().filter(|line| !line.trim().is_empty()) {
        let words = line.split_whitespace().map(|word| {
            let mut kept = String::new();
            for character in word.chars().map(|it| if it.is_ascii_digit() { 'N' } else { it }) {
                if !(character == 'N' && kept.ends_with('N')) {
                    kept.push(character);
                }
            }
            kept
        });
        writeln!(plain, "{}", words.collect::<Vec<_>>().join(" ")).unwrap();
    }
    plain
}

/// The screens of the file by their titles.
fn kept(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("--- ").filter_map(|part| part.split_once('\n'))
}

#[test]
fn screens_are_as_they_are_kept() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/view/screens.txt");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let is_blessed = std::env::var_os("TRIPOINT_BLESS").is_some();
    let [soon, late] = [0, MANY].map(|trips| {
        let recorded = Recorded::empty();
        trade(&recorded, trips);
        recorded
    });
    // Each system has a process with the number 1, and none has the other.
    let (running, none) = (1, u64::from(u32::MAX - 1));
    let mut found = String::new();
    for (what, path) in [
        ("a process that runs", of_process(running, &soon)),
        ("one that was killed", of_process(none, &soon)),
        ("one that is looked at late", of_process(running, &late)),
    ] {
        for columns in [120, 60, 40] {
            let Some(screen) = Screen::open(&path, columns) else { return };
            for (key, page) in [("1", "Contract"), ("2", "Memory")] {
                let title = format!("{what}, {columns} columns, {page}");
                screen.press(key);
                let shown = match kept(&text).find(|(known, _)| *known == title).filter(|_| !is_blessed) {
                    Some((_, kept)) => screen.until(|text| plain(text) == kept),
                    None => screen.settled(plain),
                };
                write!(found, "--- {title}\n{}", plain(&shown)).unwrap();
            }
            screen.press("q");
        }
    }
    if is_blessed {
        std::fs::write(&file, found).unwrap();
    } else {
        assert_eq!(found, text);
    }
}
