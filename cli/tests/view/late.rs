//! Readers that come late: a hot thread that samples its objects has overwritten its ring many times by then
//! (design/telemetry.md `.lasting`, `.extents`).

use std::path::{Path, PathBuf};
use std::thread;

use serde_json::Value;
use tripoint::{
    ArenaVm, ArenaVmOptions, Mfs, MfsOptions, Mvff, MvffOptions, PoolBox, PoolClass, Prefault, Store, Tlsf,
    TlsfOptions, UnitOf,
};
use tripoint_core::{Event, EventHook};
use tripoint_oracle::forever;
use tripoint_stack::Site;
use tripoint_telemetry::{ArenaHook, FileOptions, Mean, Room, SampledStore, Sampling, Telemetry};

use crate::plot::Drawn;
use crate::run::run;

/// Between two samples, as of a busy order book.
const MEAN: u32 = 20_000;

/// Samples of a run, about: many times what a ring keeps.
const SAMPLES: usize = 4_000;

/// What the arena has from the beginning.
const COMMITTED: usize = 4 << 20;

/// What an order takes.
type Order = [u64; 12];

/// A program whose hot thread makes its pools, violates the contract once, and goes on. `look` comes late.
fn run_long(telemetry: &'static Telemetry, look: impl FnOnce() + Send) {
    let hook = forever(telemetry.arena_hook());
    // All memory is committed here, on another thread.
    let options = ArenaVmOptions {
        prefault: Prefault::Size(COMMITTED),
        event_hook: Some(hook),
        ..ArenaVmOptions::default()
    };
    let arena = ArenaVm::create(options).unwrap();
    thread::scope(|scope| {
        let hot = thread::Builder::new().name("hot".into());
        hot.spawn_scoped(scope, || trade(telemetry, hook, &arena, look)).unwrap();
    });
}

fn trade(telemetry: &Telemetry, hook: &ArenaHook<'_>, arena: &ArenaVm, look: impl FnOnce()) {
    telemetry.event(Event::Phase { from: "Init", to: "Warmup" });
    let orders = Mfs::create(arena, UnitOf::<Order>::new(), MfsOptions::default()).unwrap();
    let books = Mvff::create(arena, MvffOptions::default()).unwrap();
    let texts = Tlsf::create(arena, TlsfOptions::default()).unwrap();
    // All pools have memory from the warm-up on; of one the program notes sizes.
    let _book = PoolBox::new_in([1_u8; 300_000], &books).unwrap();
    let _text = PoolBox::new_in([1_u8; 200_000], &texts).unwrap();
    let _order = PoolBox::new_in(Order::default(), &orders).unwrap();
    hook.note_sizes(books.header().id(), books.sizes());
    telemetry.event(Event::Phase { from: "Warmup", to: "SteadyState" });
    violates(telemetry);
    samples(hook, &orders);
    look();
}

#[inline(never)]
fn violates(telemetry: &Telemetry) {
    let violation = Event::Violation {
        kind: "violation",
        class: "alloc",
        slot: 0,
        count: 1,
        bytes: 64,
        address: 0,
        call: 0,
    };
    telemetry.event_at(violation, Site::here().frames());
}

fn samples(hook: &ArenaHook<'_>, orders: &impl Store) {
    let sampling = Sampling::off(7);
    sampling.set_mean(Mean::new(MEAN));
    let store =
        SampledStore::new(orders, &sampling, |sampled| hook.event_at(sampled.event(), Site::here().frames()));
    for _ in 0..SAMPLES * MEAN as usize / size_of::<Order>() {
        drop(PoolBox::new_in(Order::default(), &store).unwrap());
    }
}

/// Room as it is by default, without that which late readers need.
fn without_lasting_rings() -> Room {
    Room { lasting_bytes: 0, ..Room::default() }
}

fn without_extents() -> Room {
    Room { extents: 0, ..Room::default() }
}

/// Runs the program, and reads its file while it runs.
fn late<T: Send>(room: Room, look: impl FnOnce(&Path) -> T + Send) -> T {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("telemetry");
    let options = FileOptions { path: Some(&path), room, ..FileOptions::default() };
    late_at(&options, &path, look)
}

fn late_at<T: Send>(options: &FileOptions<'_>, target: &Path, look: impl FnOnce(&Path) -> T + Send) -> T {
    let mut found = None;
    run_long(forever(Telemetry::create(options).unwrap()), || found = Some(look(target)));
    found.unwrap()
}

/// The functions where the contract was violated.
fn violated(report: &Value) -> Vec<String> {
    let rows = report["violations"].as_array().unwrap();
    rows.iter().map(|row| row["site"]["function"].as_str().unwrap().to_owned()).collect()
}

fn is_there(functions: &[String]) -> bool {
    functions.len() == 1 && functions[0].ends_with("late::violates")
}

/// The classes of the pools that exist.
fn live_pools(report: &Value) -> Vec<&str> {
    let rows = report["pools"].as_array().unwrap().iter().filter(|row| row["is_live"] == true);
    let mut classes: Vec<_> = rows.map(|row| row["class"].as_str().unwrap()).collect();
    classes.sort_unstable();
    classes
}

const POOLS: [&str; 3] = ["MFS", "MVFF", "TLSF"];

fn assert_is_overwritten(report: &Value) {
    let missed = report["losses"]["events_missed"].as_u64().unwrap();
    assert!(missed > SAMPLES as u64 / 2, "{missed} events were overwritten");
}

#[test]
fn a_late_report_has_the_violation_the_phases_and_all_pools() {
    let report = late(Room::default(), |path| run(&["report", "--json"], path));
    assert_eq!(report.status, Some(1), "{}", report.err);
    let report = report.json();
    assert_is_overwritten(&report);
    assert!(is_there(&violated(&report)), "{report}");
    assert_eq!(live_pools(&report), POOLS);
    let phases = report["phases"].as_array().unwrap();
    assert!(phases.iter().map(|phase| phase["to"].as_str().unwrap()).eq(["Warmup", "SteadyState"]));
    assert_eq!(report["losses"]["lasting_missed"], 0);
    assert_eq!(report["violations"][0]["name"], "hot");
}

/// The control.
#[test]
fn without_lasting_rings_a_late_report_has_no_violation() {
    let report = late(without_lasting_rings(), |path| run(&["report", "--json"], path)).json();
    assert_is_overwritten(&report);
    assert!(violated(&report).is_empty() && report["phases"].as_array().unwrap().is_empty(), "{report}");
    assert!(report["losses"]["lasting_missed"].is_null(), "it is not known: {}", report["losses"]);
}

/// A capture says it as the recording does, and so do texts.
#[test]
fn a_report_says_whether_violations_may_be_among_what_was_missed() {
    for (room, is_known) in [(Room::default(), true), (without_lasting_rings(), false)] {
        let [of_file, of_capture] = late(room, |path| {
            let folder = tempfile::tempdir().unwrap();
            let capture = folder.path().join("capture");
            run(&["attach", "--duration", "10ms", "-o", capture.to_str().unwrap()], path);
            [run(&["report"], path).out, run(&["report"], &capture).out]
        });
        for text in [of_file, of_capture] {
            let sentence = "violations, alarms and phases may be among them";
            assert!(text.contains("events were overwritten before they were read"), "{text}");
            assert_eq!(!text.contains(sentence), is_known, "{text}");
        }
    }
}

/// A process is found by its number if its telemetry has no path; no other test here makes such telemetry.
#[test]
fn a_late_report_of_a_process_is_that_of_a_file() {
    let process = PathBuf::from(std::process::id().to_string());
    let report =
        late_at(&FileOptions::default(), &process, |process| run(&["report", "--json"], process).json());
    assert_is_overwritten(&report);
    assert!(is_there(&violated(&report)), "{report}");
    assert_eq!(live_pools(&report), POOLS);
}

#[test]
fn a_late_gate_says_where() {
    let sites =
        |room| late(room, |path| run(&["gate", "--json"], path)).json()["breaches"][0]["sites"].to_string();
    let found = sites(Room::default());
    assert!(found.contains("late::violates"), "{found}");
    assert!(!sites(without_lasting_rings()).contains("late::violates"), "the control");
}

#[test]
fn a_late_top_says_where_and_names_all_pools() {
    let top = late(Room::default(), |path| run(&["top", "--once", "--json"], path).json());
    assert!(is_there(&violated(&top)), "{top}");
    assert_eq!(live_pools(&top), POOLS);
    let text = late(Room::default(), |path| run(&["top", "--once"], path));
    assert!(text.status == Some(1) && text.out.contains("late::violates"), "{}{}", text.out, text.err);
    let without = late(without_lasting_rings(), |path| run(&["top", "--once", "--json"], path).json());
    assert!(violated(&without).is_empty(), "the control");
}

/// The names in the legend of the map, and the bytes that are drawn.
fn drawn_pools(drawn: &Drawn) -> (Vec<String>, f64) {
    let blocks = &drawn.charts()[0]["content"]["blocks"];
    let names = blocks["names"].as_array().unwrap().iter();
    let width = |block: &Value| block["x"][1].as_f64().unwrap() - block["x"][0].as_f64().unwrap();
    let bytes = blocks["blocks"].as_array().unwrap().iter().map(width).sum();
    let mut names: Vec<_> =
        names.map(|name| name.as_str().unwrap().split(' ').next().unwrap().to_owned()).collect();
    names.sort_unstable();
    (names, bytes)
}

#[test]
fn a_late_map_has_all_pools() {
    let (map, held) = late(Room::default(), |path| {
        let pools = run(&["report", "--json"], path).json()["pools"].clone();
        let held = |row: &Value| row["extended"].as_u64().unwrap() - row["retracted"].as_u64().unwrap();
        (Drawn::of(path, &["--picture", "map"]), pools.as_array().unwrap().iter().map(held).sum::<u64>())
    });
    let (names, bytes) = drawn_pools(&map);
    assert_eq!((names.as_slice(), bytes), (&POOLS.map(str::to_owned)[..], held as f64));
    assert!(
        !map.texts().iter().any(|text| text.contains("addresses that are not known")),
        "{:?}",
        map.texts()
    );
}

/// The control: those events are overwritten, and the map says what is missing.
#[test]
fn without_extents_a_late_map_has_none() {
    let drawn = late(without_extents(), |path| {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("map.svg");
        run(&["plot", "--json", "--picture", "map", "-o", out.to_str().unwrap()], path)
    });
    assert_eq!(drawn.status, Some(2), "{}", drawn.out);
}

/// Layers of the first chart by their names, and the values of each.
fn layers(drawn: &Drawn) -> Vec<(String, Vec<f64>)> {
    let layers = drawn.charts()[0]["content"]["areas"]["layers"].as_array().unwrap().clone();
    let values = |layer: &Value| -> Vec<f64> {
        layer["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    layers.iter().map(|layer| (layer["name"].as_str().unwrap().to_owned(), values(layer))).collect()
}

fn of_layer<'l>(layers: &'l [(String, Vec<f64>)], name: &str) -> Option<&'l Vec<f64>> {
    layers.iter().find(|(known, _)| known == name).map(|(_, values)| values)
}

/// The arena is created by another thread, whose ring is whole: so what it commits is known, and what pools had of it is
/// not (design/cli.md `.plot.track`).
#[test]
fn what_a_late_reader_cannot_know_is_drawn_as_such_and_not_as_spare() {
    for arguments in [&["plot"][..], &["attach", "--duration", "1s"]] {
        let layers = late(Room::default(), |path| {
            let folder = tempfile::tempdir().unwrap();
            let capture = folder.path().join("capture");
            if arguments[0] == "plot" {
                return layers(&Drawn::of(path, &[]));
            }
            run(&[arguments, &["-o", capture.to_str().unwrap()]].concat(), path);
            layers(&Drawn::of(&capture, &[]))
        });
        let unknown = of_layer(&layers, "not known").unwrap_or_else(|| panic!("{layers:?}"));
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        assert!(most(unknown) >= 500_000.0 && unknown.last() == Some(&0.0), "{layers:?}");
        let spare = of_layer(&layers, "spare, and the arena's own").unwrap();
        assert_eq!(
            Some(&most(spare)),
            spare.last(),
            "no more is known to be spare than at the end: {layers:?}"
        );
    }
}

/// The control: a reader that has seen all events knows all.
#[test]
fn nothing_is_unknown_to_a_reader_that_saw_all() {
    let room = Room { ring_bytes: 4 << 20, ..Room::default() };
    let (layers, report) =
        late(room, |path| (layers(&Drawn::of(path, &[])), run(&["report", "--json"], path).json()));
    assert_eq!(report["losses"]["events_missed"], 0);
    assert!(of_layer(&layers, "not known").is_none(), "{layers:?}");
}
