//! `tripoint plot` (design/cli.md `.plot`).

use std::path::{Path, PathBuf};
use std::process::Command;

use roxmltree::Document;
use serde_json::Value;
use tripoint_core::{Addr, AddrRange, BufferKind, Event, EventHook, PoolId, PoolOptions, PoolSizes, RankSet};
use tripoint_stack::Site;
use tripoint_telemetry::{Mean, ObjectKind, Sample, SampledObject, Telemetry};

use crate::recorded::Recorded;
use crate::run::{Ran, run};

/// What a picture drew: its texts, and the value that it is made of.
pub(crate) struct Drawn {
    pub(crate) ran: Ran,
    pub(crate) svg: String,
}

impl Drawn {
    pub(crate) fn of(target: &Path, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("picture.svg");
        let ran = run(&[&["plot", "--json", "-o", out.to_str().unwrap()], arguments].concat(), target);
        let svg = std::fs::read_to_string(&out).unwrap_or_else(|error| panic!("{error}: {}", ran.err));
        Self { ran, svg }
    }

    /// The texts, as a reader of XML sees them.
    pub(crate) fn texts(&self) -> Vec<String> {
        let document = Document::parse(&self.svg).unwrap();
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        texts.map(|node| node.text().unwrap().trim().to_owned()).collect()
    }

    pub(crate) fn charts(&self) -> Vec<Value> {
        self.ran.json()[0]["charts"].as_array().unwrap().clone()
    }
}

/// Numbers of an array.
fn numbers(array: &Value) -> Vec<f64> {
    array.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// The sum of all layers at each position.
fn sums(chart: &Value) -> Vec<f64> {
    let areas = &chart["content"]["areas"];
    let mut sums = vec![0.0; areas["at"].as_array().unwrap().len()];
    for layer in areas["layers"].as_array().unwrap() {
        sums.iter_mut().zip(numbers(&layer["values"])).for_each(|(sum, value)| *sum += value);
    }
    sums
}

fn most(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

const BASE: usize = 0x7000_0000;
const MIB: usize = 1 << 20;

/// A run with something for each picture.
fn of_everything() -> Recorded {
    let recorded = Recorded::empty();
    run_everything(&recorded.telemetry);
    recorded
}

fn run_everything(telemetry: &Telemetry) {
    let _attached = telemetry.attach("hot <&> 池");
    let hook = telemetry.arena_hook();
    let (pool, buffer, heap) = (PoolId::new(2).unwrap(), Addr::new(0xb0f0), Addr::new(0x4ea0));
    let base = Addr::new(BASE);
    let range = AddrRange::with_size(base, 64 * MIB).unwrap();
    hook.event(Event::CreateArena {
        grain: 4096,
        commit_limit: 64 * MIB,
        commit_policy: 0,
        prefault_size: 0,
        range,
        memory: range,
        class: "ArenaVm",
    });
    hook.event(Event::CreatePool { pool, options: PoolOptions::NONE, class: "MVFF" });
    hook.event(Event::Grow { size: 4 * MIB });
    hook.event(Event::Extend { pool, base, size: 3 * MIB });
    hook.event(Event::CreatePoint { pool, buffer, ranks: RankSet::empty(), kind: BufferKind::Mutator });
    hook.event(Event::Fill { pool, buffer, base, size: 4096 });
    telemetry.event(Event::Phase { from: "Warmup", to: "SteadyState" });
    hook.event(Event::Fill { pool, buffer, base, size: 4096 });
    hook.event(Event::Empty { pool, buffer, base, size: 1024 });
    let sizes = PoolSizes { total: 3 * MIB, free: MIB, largest_free: MIB / 4, high_water: 3 * MIB };
    hook.note_sizes(pool, sizes);
    hook.event(Event::BeginStop { heap, mutator: 1 });
    hook.event(Event::Stop { heap });
    hook.event(Event::BeginCollection { heap, reason: "asked" });
    hook.event(Event::EndCollection { heap, examined: 10, kept: 2 * MIB, freed: MIB });
    hook.event(Event::EndStop { heap });
    let sample = Sample::new(100, 1, Mean::new(1000).unwrap()).unwrap();
    let known = SampledObject::new(ObjectKind::Small, Addr::new(0x2000), sample);
    hook.event_at(SampledObject { pool: Some(pool), ..known }.event(), Site::here().frames());
}

/// Each kind, and texts that are in it.
const KINDS: [(&str, &[&str]); 7] = [
    (
        "footprint",
        &["Footprint", "memory (MiB)", "in objects and buffers", "free in pools", "MVFF 2", "SteadyState"],
    ),
    ("fragmentation", &["Fragmentation", "share (%)", "MVFF 2", "spare, or free in pools"]),
    ("map", &["Map of the address range", "offset in the row (KiB)", "MVFF 2: 67 % in use"]),
    ("fills", &["Fills and empties", "hot <&> 池", "fills", "empties", "events"]),
    (
        "latency",
        &[
            "time to stop (1 time)",
            "stopped (1 time)",
            "a collection (1 time)",
            "time (logarithmic)",
            "median",
        ],
    ),
    ("flame", &["depth of calls", "hot <&> 池"]),
    ("collections", &["Kept by each collection", "heap 1: 1 collection", "memory (MiB)"]),
];

/// (design/cli.md `.plot`)
#[test]
fn each_picture_of_a_recording_is_well_formed_and_names_what_it_shows() {
    let recorded = of_everything();
    for (kind, expected) in KINDS {
        let themes = if kind == "footprint" { &["light", "dark"][..] } else { &["light"] };
        for theme in themes {
            let drawn = Drawn::of(&recorded.path(), &["--picture", kind, "--theme", theme]);
            assert_eq!(drawn.ran.status, Some(0), "{kind}: {}", drawn.ran.err);
            let texts = drawn.texts();
            for text in expected {
                let is_there =
                    |known: &String| known == text || known.starts_with(&format!("{text} of view-"));
                assert!(texts.iter().any(is_there), "{kind}: {text}: {texts:?}");
            }
            // The program and the day are in the title, and nothing is cut but functions.
            assert!(texts[0].contains(" of view-") && texts[0].ends_with(" UTC"), "{kind}: {texts:?}");
            assert!(*kind == *"flame" || !texts.iter().any(|text| text.contains('…')), "{kind}: {texts:?}");
            // The background is the first thing that is drawn.
            let ground = if *theme == "light" { "#FFFFFF" } else { "#161B22" };
            assert!(drawn.svg.lines().nth(1).unwrap().contains(ground), "{kind}");
        }
    }
}

#[test]
fn a_folder_has_a_file_for_each_picture_in_the_form_that_is_asked_for() {
    let recorded = of_everything();
    let folder = recorded.folder().join("pictures/");
    let arguments = ["plot", "--form", "png", "--width", "400", "-o", folder.to_str().unwrap()];
    let ran = run(&arguments, &recorded.path());
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    for (kind, _) in KINDS {
        let bytes = std::fs::read(folder.join(format!("{kind}.png"))).unwrap();
        assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n", "{kind}");
        // Two pixels for each.
        assert_eq!(u32::from_be_bytes(bytes[16..20].try_into().unwrap()), 800, "{kind}");
        assert!(ran.out.contains(&format!("{kind}.png\n")), "{}", ran.out);
    }
}

/// The peak is compared with a naive account, in the value and in the pixels (design/cli.md `.plot.thin`).
#[test]
fn the_footprint_has_the_peaks_of_a_naive_account() {
    for seed in 1..=5 {
        let mut random = fastrand::Rng::with_seed(seed);
        let recorded = Recorded::empty();
        let hook = recorded.telemetry.arena_hook();
        let pools = [1, 2, 3].map(|number| PoolId::new(number).unwrap());
        pools.iter().for_each(|pool| {
            hook.event(Event::CreatePool { pool: *pool, options: PoolOptions::NONE, class: "TLSF" })
        });
        let (mut committed, mut held, mut highest) = (0, [0; 3], [0; 4]);
        for _ in 0..400 {
            let size = 4096 * random.usize(1..50);
            let at = random.usize(0..3);
            let (pool, base) = (pools[at], Addr::new(BASE));
            if random.bool() {
                hook.event(Event::Grow { size });
                committed += size;
                hook.event(Event::Extend { pool, base, size });
                held[at] += size;
            } else if size <= held[at] {
                hook.event(Event::Retract { pool, base, size });
                held[at] -= size;
                hook.event(Event::Shrink { size });
                committed -= size;
            }
            highest[3] = highest[3].max(committed);
            (0..3).for_each(|at| highest[at] = highest[at].max(held[at]));
        }
        let drawn = Drawn::of(&recorded.path(), &[]);
        let charts = drawn.charts();
        let total = sums(&charts[0]);
        assert_eq!(most(total.clone()), highest[3] as f64, "seed {seed}");
        assert_eq!(*total.last().unwrap(), committed as f64, "seed {seed}");
        for (at, highest) in highest[..3].iter().enumerate() {
            let name = format!("TLSF {}", at + 1);
            let layers = charts[1]["content"]["areas"]["layers"].as_array().unwrap();
            let layer = layers.iter().find(|layer| layer["name"] == *name).unwrap();
            assert_eq!(most(numbers(&layer["values"])), *highest as f64, "seed {seed} {name}");
        }
        // The first area is the sum. The end of the second to last corner is on the axis.
        let [base, peak, end] = first_outline(&drawn.svg);
        let heights = (f64::from(base - peak), f64::from(base - end));
        let expected = committed as f64 / highest[3] as f64;
        assert!(
            (heights.1 / heights.0 - expected).abs() < 2.0 / heights.0,
            "seed {seed}: {heights:?} {expected}"
        );
    }
}

/// The pixels of the axis, the highest value and the last value of the first area.
fn first_outline(svg: &str) -> [i32; 3] {
    let document = Document::parse(svg).unwrap();
    let area = document.descendants().find(|node| node.has_tag_name("polygon")).unwrap();
    let corners = area.attribute("points").unwrap().split_whitespace();
    let heights: Vec<i32> =
        corners.map(|corner| corner.split_once(',').unwrap().1.parse().unwrap()).collect();
    let [.., end, base, _] = heights[..] else { panic!("{heights:?}") };
    [base, *heights.iter().min().unwrap(), end]
}

/// A capture of lines.
pub(crate) fn capture(recorded: &Recorded, lines: impl Iterator<Item = String>, end: &str) -> PathBuf {
    let mut text = "{\"tripoint_capture\":2,\"process\":7,\"made\":null}\n".to_owned();
    lines.for_each(|line| text.push_str(&(line + "\n")));
    text.push_str(end);
    recorded.beside("made.capture", text.as_bytes())
}

pub(crate) const END: &str = "{\"counters\":{\"arenas\":{\"entries\":[],\"left_out\":0,\"unsteady\":0},\"pools\":{\"entries\":[],\
     \"left_out\":0,\"unsteady\":0},\"points\":{\"entries\":[],\"left_out\":0,\"unsteady\":0},\"phase\":{\"entries\":[],\
     \"left_out\":0,\"unsteady\":0},\"tallies\":{\"entries\":[],\"left_out\":0,\"unsteady\":0},\"samples\":{\"entries\":[],\
     \"left_out\":0,\"unsteady\":0}},\"threads\":[],\"is_closed\":true}\n";

#[test]
fn a_long_recording_is_a_small_picture_with_the_same_peak() {
    let recorded = Recorded::empty();
    let line = |index: u64| {
        // One change is greater than all others.
        let size = if (77_777..=77_778).contains(&index) { 1_000_000 } else { 1_000 + index % 13 };
        let event = if index.is_multiple_of(2) { "shrink" } else { "grow" };
        format!(
            "{{\"ring\":0,\"tid\":1,\"ns\":{},\"event\":\"{event}\",\"arena\":1,\"size\":{size}}}",
            index * 1000
        )
    };
    let path = capture(&recorded, (1..200_000).map(line), END);
    let drawn = Drawn::of(&path, &[]);
    assert_eq!(drawn.ran.status, Some(0), "{}", drawn.ran.err);
    assert!(drawn.svg.len() < 60_000, "{} bytes", drawn.svg.len());
    assert!(most(sums(&drawn.charts()[0])) > 900_000.0);
}

/// Names come from another process.
#[test]
fn hostile_and_long_names_are_texts() {
    let recorded = Recorded::empty();
    let names = [
        "<script>alert(1)</script>",
        "a\\nb\\u0000\\u001b[31m\\u202e",
        "池池池",
        "&amp;\\\"'",
        &"x".repeat(5000),
    ];
    let lines = names.iter().enumerate().flat_map(|(index, name)| {
        let at = index + 1;
        let event =
            |rest: &str| format!("{{\"ring\":0,\"tid\":1,\"ns\":{at}000,\"arena\":1,\"pool\":{at},{rest}}}");
        let created = event(&format!("\"event\":\"create pool\",\"class\":\"{name}\""));
        [created, event("\"event\":\"extend\",\"size\":4096,\"base\":\"0x1000\"")]
    });
    let path = capture(&recorded, lines, END);
    for kind in ["footprint", "map"] {
        let drawn = Drawn::of(&path, &["--picture", kind]);
        assert_eq!(drawn.ran.status, Some(0), "{}", drawn.ran.err);
        let document = Document::parse(&drawn.svg).unwrap();
        let known = ["svg", "rect", "text", "line", "polyline", "polygon", "circle"];
        let strange = document.descendants().filter(|node| node.is_element());
        let strange: Vec<_> =
            strange.map(|node| node.tag_name().name()).filter(|name| !known.contains(name)).collect();
        assert!(strange.is_empty(), "{strange:?}");
        assert!(!drawn.svg.contains("<script"), "{kind}");
    }
    let texts = Drawn::of(&path, &[]).texts();
    for text in ["<script>alert(1)</script> 1", "池池池 3", "&amp;\"' 4"] {
        assert!(texts.iter().any(|known| known == text), "{text}: {texts:?}");
    }
    assert!(texts.iter().all(|text| text.chars().count() < 200));
}

/// The peak of a trace is that which `tripoint replay` counts.
#[test]
fn the_footprint_of_a_trace_has_its_peak() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("made.trace");
    let mut synthesize = Command::new(env!("CARGO_BIN_EXE_tripoint"));
    synthesize.args(["synthesize", "--seed", "11", "--objects", "20000", "--threads", "2", "-o"]).arg(&trace);
    assert!(synthesize.output().unwrap().status.success());
    let totals =
        run(&["replay", "--json", "--contents", "--with", "system"], &trace).json()["totals"].clone();
    let drawn = Drawn::of(&trace, &[]);
    assert_eq!(drawn.ran.status, Some(0), "{}", drawn.ran.err);
    for (chart, total) in drawn.charts().iter().zip(["peak_live", "peak_objects"]) {
        let points = chart["content"]["steps"][0]["points"].as_array().unwrap().clone();
        assert_eq!(
            most(points.iter().map(|point| point[1].as_f64().unwrap())),
            totals[total].as_f64().unwrap()
        );
        assert!(points.len() < 2_500, "{}", points.len());
    }
    let half = folder.path().join("half.trace");
    let bytes = std::fs::read(&trace).unwrap();
    std::fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
    let cut = Drawn::of(&half, &[]);
    assert_eq!(cut.ran.status, Some(2));
    assert!(cut.texts().iter().any(|text| text.starts_with("not all of the trace could be read")));
}

/// A free block of a pool is all that is free, so nothing is fragmented: that is a line, and no chart.
#[test]
fn nothing_but_zeros_is_said_and_not_drawn() {
    let recorded = Recorded::empty();
    let hook = recorded.telemetry.arena_hook();
    let (pool, base) = (PoolId::new(2).unwrap(), Addr::new(BASE));
    hook.event(Event::CreatePool { pool, options: PoolOptions::NONE, class: "MVFF" });
    hook.event(Event::Grow { size: 4 * MIB });
    hook.event(Event::Extend { pool, base, size: 3 * MIB });
    let sizes = PoolSizes { total: 3 * MIB, free: MIB, largest_free: MIB, high_water: 3 * MIB };
    hook.note_sizes(pool, sizes);
    let drawn = Drawn::of(&recorded.path(), &["--picture", "fragmentation"]);
    assert_eq!((drawn.ran.status, drawn.charts().len()), (Some(0), 1), "{}", drawn.ran.out);
    let said = "in each pool, all that is free is in one block";
    assert!(drawn.texts().iter().any(|text| text.contains(said)), "{:?}", drawn.texts());
}

/// (design/cli.md `.plot.given`)
#[test]
fn a_picture_that_a_program_wrote_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let line = serde_json::json!({ "name": "late", "colour": 0, "points": [[0, 1], [1, 9_000]] });
    let chart = serde_json::json!({
        "title": "how late <&>",
        "x": { "label": "share", "unit": "nines" },
        "y": { "label": "time", "unit": "nanoseconds", "is_logarithmic": true },
        "content": { "lines": [line] },
        "if_empty": "nothing was late",
    });
    let picture = serde_json::json!({ "title": "Of a program", "about": "itself", "charts": [chart] });
    let whole = serde_json::json!({ "messages": 3, "picture": picture });
    std::fs::write(&report, serde_json::to_string_pretty(&whole).unwrap()).unwrap();
    let drawn = Drawn::of(&report, &[]);
    let texts = drawn.texts();
    for text in ["Of a program", "how late <&>", "late", "share", "10 µs"] {
        assert!(texts.iter().any(|drawn| drawn.contains(text)), "{text}: {texts:?}");
    }
    let ran = run(&["plot", "-o", "x.svg", "--picture", "map"], &report);
    assert_eq!(ran.status, Some(2), "{}", ran.err);
    std::fs::write(&report, "{}").unwrap();
    let ran = run(&["plot", "-o", "x.svg"], &report);
    assert!(ran.status == Some(2) && ran.err.contains("not a report with a picture"), "{}", ran.err);
}
