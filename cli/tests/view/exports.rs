//! Exports of `tripoint report` (design/cli.md `.exports`).

use std::collections::HashSet;
use std::io::Read as _;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use prost::Message;
use serde_json::Value;
use tripoint_telemetry::format::MAX_FRAMES;

use crate::plot::Drawn;
use crate::recorded::{Hot, Recorded, sample_at};
use crate::run::run;

/// Exports, and returns the path of the export and the bytes of all samples according to the report.
fn export(recorded: &Recorded, option: &str) -> (PathBuf, f64) {
    let path = recorded.folder().join("export");
    let report = run(&["report", "--json", "--all", option, path.to_str().unwrap()], &recorded.path());
    // Whether there are violations is not what is asked here.
    assert!([Some(0), Some(1)].contains(&report.status), "{}", report.err);
    let report = report.json();
    let sites = report["sites"].as_array().unwrap();
    (path, sites.iter().map(|site| site["bytes"].as_f64().unwrap()).sum())
}

#[test]
fn collapsed_stacks_have_all_bytes_the_outermost_function_first() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let (path, bytes) = export(&recorded, "--collapsed");
    let text = std::fs::read_to_string(path).unwrap();
    let (stacks, weights): (Vec<_>, Vec<_>) = text.lines().map(|line| line.rsplit_once(' ').unwrap()).unzip();
    let sum: f64 = weights.iter().map(|weight| weight.parse::<f64>().unwrap()).sum();
    assert!((sum - bytes).abs() <= 2.0, "{sum} of {bytes}");
    let order = ["hot;", "of_a_run", "recorded::allocates_while_"].map(|name| stacks[0].find(name));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?} {}", stacks[0]);
    for stack in stacks {
        let (_, innermost) = stack.rsplit_once(';').unwrap();
        assert!(
            innermost.contains("recorded::allocates_while_"),
            "without the sampler's own frames: {stack}"
        );
    }
}

/// (design/cli.md `.exports.cut`)
#[test]
fn a_stack_that_was_cut_off_is_under_a_root_that_says_so() {
    let recorded = Recorded::empty();
    let hook = recorded.telemetry.arena_hook();
    // Addresses of no program, the innermost first.
    for frames in [MAX_FRAMES - 1, MAX_FRAMES] {
        sample_at(&hook, &(1..=frames).collect::<Vec<_>>());
    }
    let text = std::fs::read_to_string(export(&recorded, "--collapsed").0).unwrap();
    let second = |line: &str| line.split(';').nth(1).unwrap().to_owned();
    let mut roots: Vec<_> = text.lines().map(second).collect();
    roots.sort_unstable();
    assert_eq!(roots, [format!("{:#x}", MAX_FRAMES - 1), "[outer calls are not recorded]".to_owned()]);
    let flame = Drawn::of(&recorded.path(), &["--picture", "flame"]).charts();
    let blocks = flame[0]["content"]["blocks"]["blocks"].as_array().unwrap();
    let mut roots: Vec<_> =
        blocks.iter().filter(|block| block["y"][0] == 1.0).map(|block| block["text"].clone()).collect();
    roots.sort_by_key(ToString::to_string);
    assert_eq!(roots, [format!("{:#x}", MAX_FRAMES - 1).as_str(), "[outer calls are not recorded]"]);
}

/// What the schema requires.
#[test]
fn a_speedscope_file_has_frames_samples_and_as_many_weights() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let (path, bytes) = export(&recorded, "--speedscope");
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().unwrap();
    let steady = |frame: &&Value| frame["name"].as_str().unwrap().ends_with("allocates_while_steady");
    let frame = frames.iter().find(steady).unwrap();
    assert!(frame["file"].as_str().unwrap().ends_with("recorded.rs") && frame["line"].is_u64(), "{frame}");
    for (profile, unit) in file["profiles"].as_array().unwrap().iter().zip(["bytes", "none"]) {
        assert_eq!((&profile["type"], &profile["unit"]), (&"sampled".into(), &unit.into()));
        assert!(profile["name"].is_string() && profile["startValue"] == 0.0);
        let [samples, weights] = ["samples", "weights"].map(|name| profile[name].as_array().unwrap());
        assert!(samples.len() == 2 && weights.len() == 2, "{profile}");
        let indices = samples.iter().flat_map(|sample| sample.as_array().unwrap());
        assert!(indices.map(|index| index.as_u64().unwrap()).all(|index| index < frames.len() as u64));
        let sum: f64 = weights.iter().map(|weight| weight.as_f64().unwrap()).sum();
        assert!((profile["endValue"].as_f64().unwrap() - sum).abs() < 1e-6);
        assert!(unit == "none" || (sum - bytes).abs() <= 2.0, "{sum} of {bytes}");
    }
}

/// The public schema, as far as the test looks at it. Declared apart from the writer's messages.
mod schema {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub(super) sample_type: Vec<Pair>,
        #[prost(message, repeated, tag = "2")]
        pub(super) sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub(super) mapping: Vec<Numbers>,
        #[prost(message, repeated, tag = "4")]
        pub(super) location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub(super) function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub(super) string_table: Vec<String>,
        #[prost(int64, tag = "9")]
        pub(super) time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub(super) duration_nanos: i64,
        #[prost(int64, tag = "12")]
        pub(super) period: i64,
        #[prost(int64, tag = "14")]
        pub(super) default_sample_type: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(super) struct Pair {
        #[prost(int64, tag = "1")]
        pub(super) kind: i64,
        #[prost(int64, tag = "2")]
        pub(super) unit: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub(super) location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub(super) value: Vec<i64>,
    }

    /// A mapping.
    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(super) struct Numbers {
        #[prost(uint64, tag = "1")]
        pub(super) id: u64,
        #[prost(uint64, tag = "2")]
        pub(super) memory_start: u64,
        #[prost(uint64, tag = "3")]
        pub(super) memory_limit: u64,
        #[prost(int64, tag = "6")]
        pub(super) build_id: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Location {
        #[prost(uint64, tag = "1")]
        pub(super) id: u64,
        #[prost(uint64, tag = "2")]
        pub(super) mapping_id: u64,
        #[prost(uint64, tag = "3")]
        pub(super) address: u64,
        #[prost(message, repeated, tag = "4")]
        pub(super) line: Vec<Line>,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(super) struct Line {
        #[prost(uint64, tag = "1")]
        pub(super) function_id: u64,
        #[prost(int64, tag = "2")]
        pub(super) line: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(super) struct Function {
        #[prost(uint64, tag = "1")]
        pub(super) id: u64,
        #[prost(int64, tag = "2")]
        pub(super) name: i64,
        #[prost(int64, tag = "3")]
        pub(super) system_name: i64,
    }
}

#[test]
fn a_profile_of_pprof_resolves_every_number_that_it_has() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let (path, bytes) = export(&recorded, "--pprof");
    let mut unpacked = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut unpacked).unwrap();
    let profile = schema::Profile::decode(&*unpacked).unwrap();
    let string = |index: i64| profile.string_table[usize::try_from(index).unwrap()].as_str();
    assert_eq!(string(0), "");
    let types: Vec<_> =
        profile.sample_type.iter().map(|pair| (string(pair.kind), string(pair.unit))).collect();
    assert_eq!(types, [("alloc_objects", "count"), ("alloc_space", "bytes")]);
    assert_eq!(profile.period, 1000);

    let functions: HashSet<_> = profile.function.iter().map(|function| function.id).collect();
    assert!(functions.len() == profile.function.len() && !functions.contains(&0));
    let steady = profile.function.iter().find(|function| string(function.name).ends_with("while_steady"));
    let mangled = string(steady.unwrap().system_name);
    assert!(mangled.starts_with("_R") || mangled.starts_with("_ZN"), "{mangled}");
    assert!(profile.function.iter().all(|function| !string(function.name).contains("Telemetry::mark")));
    assert_eq!(string(profile.default_sample_type), "alloc_space");
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let made = u64::try_from(profile.time_nanos).unwrap() / 1_000_000_000;
    assert!((now - 600..=now).contains(&made), "{made} is not shortly before {now}");
    assert!((0..600_000_000_000).contains(&profile.duration_nanos));
    for location in &profile.location {
        assert!(location.line.iter().all(|line| functions.contains(&line.function_id) && line.line >= 0));
        if location.mapping_id != 0 {
            let mapping = profile.mapping.iter().find(|mapping| mapping.id == location.mapping_id).unwrap();
            assert!((mapping.memory_start..mapping.memory_limit).contains(&location.address));
        }
    }
    assert!(profile.mapping.iter().any(|mapping| !string(mapping.build_id).is_empty()));
    let locations: HashSet<_> = profile.location.iter().map(|location| location.id).collect();
    assert!(profile.sample.iter().all(|sample| sample.location_id.iter().all(|id| locations.contains(id))));
    let sum: i64 = profile.sample.iter().map(|sample| sample.value[1]).sum();
    assert!((sum as f64 - bytes).abs() <= 2.0, "{sum} of {bytes}");
}

#[test]
fn an_export_replaces_a_file_and_does_not_write_to_it() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let path = recorded.beside("export", b"before");
    let before = std::fs::File::open(&path).unwrap();
    export(&recorded, "--collapsed");
    let mut text = String::new();
    (&before).read_to_string(&mut text).unwrap();
    assert_eq!(text, "before");
    let refused = run(&["report", "--collapsed", "/none/export"], &recorded.path());
    assert_eq!(refused.status, Some(2));
    assert!(refused.err.contains("/none/export") && !refused.out.is_empty(), "{}", refused.err);
}
