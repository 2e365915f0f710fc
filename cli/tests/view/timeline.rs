//! The time line of `tripoint report` (design/cli.md `.exports.perfetto`). `verify/exports` has the parser of the viewer
//! read one.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use prost::Message as _;
use tripoint_core::{Addr, Event, EventHook};

use crate::recorded::{Hot, Recorded};
use crate::run::run;

/// The public schema, as far as the test looks at it. Declared apart from the writer's messages.
mod schema {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Trace {
        #[prost(message, repeated, tag = "1")]
        pub(super) packet: Vec<Packet>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Packet {
        #[prost(uint64, optional, tag = "8")]
        pub(super) timestamp: Option<u64>,
        #[prost(uint32, tag = "10")]
        pub(super) trusted_packet_sequence_id: u32,
        #[prost(message, optional, tag = "11")]
        pub(super) track_event: Option<TrackEvent>,
        #[prost(message, optional, tag = "60")]
        pub(super) track_descriptor: Option<TrackDescriptor>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TrackEvent {
        #[prost(message, repeated, tag = "4")]
        pub(super) debug_annotations: Vec<Annotation>,
        #[prost(int32, optional, tag = "9")]
        pub(super) r#type: Option<i32>,
        #[prost(uint64, tag = "11")]
        pub(super) track_uuid: u64,
        #[prost(string, tag = "23")]
        pub(super) name: String,
        #[prost(int64, tag = "30")]
        pub(super) counter_value: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Annotation {
        #[prost(string, tag = "10")]
        pub(super) name: String,
        #[prost(uint64, tag = "3")]
        pub(super) uint_value: u64,
        #[prost(string, tag = "6")]
        pub(super) string_value: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TrackDescriptor {
        #[prost(uint64, tag = "1")]
        pub(super) uuid: u64,
        #[prost(string, tag = "2")]
        pub(super) name: String,
        #[prost(message, optional, tag = "4")]
        pub(super) thread: Option<ThreadDescriptor>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ThreadDescriptor {
        #[prost(string, tag = "5")]
        pub(super) thread_name: String,
    }
}

const BEGIN: i32 = 1;
const END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;

/// What a track has: an event's type, name and counter, by time.
type Track = Vec<(i32, String, i64)>;

struct Line {
    tracks: BTreeMap<String, Track>,
    annotations: HashMap<String, Vec<schema::Annotation>>,
    /// How many events were missed each time, by track.
    missed: HashMap<String, Vec<u64>>,
}

impl Line {
    fn of(recording: &Path) -> Self {
        let path = recording.with_extension("perfetto");
        let report = run(&["report", "--perfetto", path.to_str().unwrap()], recording);
        // Whether there are violations is not what is asked here.
        assert!([Some(0), Some(1)].contains(&report.status) && report.err.is_empty(), "{}", report.err);
        let mut packets = schema::Trace::decode(&*std::fs::read(path).unwrap()).unwrap().packet;
        assert!(packets.iter().all(|packet| packet.trusted_packet_sequence_id != 0));
        let descriptors = packets.iter().filter_map(|packet| packet.track_descriptor.as_ref());
        let name = |track: &schema::TrackDescriptor| {
            track.thread.as_ref().map_or(&track.name, |thread| &thread.thread_name).clone()
        };
        let names: HashMap<u64, String> = descriptors.map(|track| (track.uuid, name(track))).collect();
        packets.sort_by_key(|packet| packet.timestamp);
        let mut line = Self { tracks: BTreeMap::new(), annotations: HashMap::new(), missed: HashMap::new() };
        for event in packets.into_iter().filter_map(|packet| packet.track_event) {
            let name = &names[&event.track_uuid];
            if event.name == "events missed" {
                let counts = event.debug_annotations.iter().map(|annotation| annotation.uint_value);
                line.missed.entry(name.clone()).or_default().extend(counts);
            }
            let track = line.tracks.entry(name.clone()).or_default();
            track.push((event.r#type.unwrap(), event.name.clone(), event.counter_value));
            line.annotations.insert(event.name, event.debug_annotations);
        }
        line.assert_is_nested();
        line
    }

    /// Each end has a beginning.
    fn assert_is_nested(&self) {
        for (name, track) in &self.tracks {
            let mut open = 0_usize;
            for (kind, ..) in track {
                match *kind {
                    BEGIN => open += 1,
                    END => open = open.checked_sub(1).unwrap_or_else(|| panic!("{name}: {track:?}")),
                    other => assert!([INSTANT, COUNTER].contains(&other), "{other}"),
                }
            }
        }
    }

    /// The names of a track's events of one type.
    fn names(&self, track: &str, kind: i32) -> Vec<&str> {
        let events = self.tracks[track].iter().filter(|(other, ..)| *other == kind);
        events.map(|(_, name, _)| name.as_str()).collect()
    }
}

#[test]
fn a_time_line_has_phases_events_violations_with_their_site_and_bytes_over_time() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let line = Line::of(&recorded.path());
    assert_eq!(line.names("phases", BEGIN), ["Boot", "Warmup", "SteadyState", "Teardown"]);
    assert_eq!(line.names("phases", END).len(), 3, "the last phase goes on");
    let instants = line.names("hot", INSTANT);
    for expected in ["extend", "grow", "fill", "empty", "sample", "violation: alloc", "alarm: alloc"] {
        assert!(instants.contains(&expected), "{expected}: {instants:?}");
    }
    let of_violation = &line.annotations["violation: alloc"];
    let site = of_violation.iter().find(|annotation| annotation.name == "site").unwrap();
    assert!(site.string_value.contains("recorded::violates at "), "{site:?}");
    let bytes = of_violation.iter().find(|annotation| annotation.name == "bytes").unwrap();
    assert_eq!(bytes.uint_value, 64);
    assert_eq!(line.tracks["arena 1, committed"], [(COUNTER, String::new(), 8192)]);
    assert_eq!(line.tracks["arena 1, pool 2, held"], [(COUNTER, String::new(), 8192)]);
}

#[test]
fn the_time_line_of_a_capture_is_that_of_the_recording() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let (path, capture) = (recorded.path(), recorded.folder().join("capture"));
    let _folder = recorded.close();
    run(&["attach", "--duration", "1000days", "-o", capture.to_str().unwrap()], &path);
    assert_eq!(Line::of(&capture).tracks, Line::of(&path).tracks);
}

#[test]
fn collections_their_parts_steps_and_stops_are_slices_within_each_other() {
    let recorded = Recorded::empty();
    let hook = recorded.telemetry.arena_hook();
    let heap = Addr::new(0x4ea9);
    let sweep = Event::BeginSweep { heap, copied: 0 };
    for event in [
        Event::BeginStop { heap, mutator: 1 },
        Event::Stop { heap },
        Event::BeginCollection { heap, reason: "request" },
        sweep,
        Event::EndCollection { heap, examined: 9, kept: 8, freed: 7 },
        Event::BeginStep { heap },
        sweep,
        Event::EndStep { heap, examined: 1, collected: None, time: None },
        Event::EndStop { heap },
        // Its beginning is not in the recording.
        Event::GoOn { heap, mutator: 1 },
    ] {
        hook.event(event);
    }
    let line = Line::of(&recorded.path());
    let (_, track) = line.tracks.iter().find(|(_, track)| track.len() > 5).unwrap();
    let slices: Vec<_> = track.iter().map(|(kind, name, _)| (*kind, name.as_str())).collect();
    let begin = |name| (BEGIN, name);
    let end = (END, "");
    let [stop, stopped] = ["ask for a stop", "heap stopped"];
    assert_eq!(
        slices,
        [
            [begin(stop), end, begin(stopped)].as_slice(),
            &[begin("collection"), begin("mark or copy"), end, begin("sweep"), end, end],
            &[begin("step"), begin("sweep"), end, end],
            &[end],
        ]
        .concat()
    );
}

/// Whether what had begun has ended meanwhile is not known.
#[test]
fn slices_end_before_events_that_were_missed() {
    let line = of_lines(&[
        r#"{"ring":0,"tid":7,"ns":10,"event":"begin stop"}"#,
        r#"{"ring":0,"first":1,"missed":5}"#,
        r#"{"ring":0,"tid":7,"ns":30,"event":"stop"}"#,
    ]);
    let track = line.tracks["7"].iter().map(|(kind, name, _)| (*kind, name.as_str())).collect::<Vec<_>>();
    let expected =
        [(BEGIN, "ask for a stop"), (END, ""), (INSTANT, "events missed"), (BEGIN, "heap stopped")];
    assert_eq!(track, expected);
}

/// They belong to the thread of the next event of their ring; if none follows, to the process.
#[test]
fn events_that_were_missed_before_the_first_are_in_the_time_line() {
    let line = of_lines(&[
        r#"{"ring":0,"first":0,"missed":5}"#,
        r#"{"ring":0,"is_lasting":true,"first":0,"missed":2}"#,
        r#"{"ring":1,"first":0,"missed":3}"#,
        r#"{"ring":0,"is_lasting":true,"tid":7,"ns":10,"event":"phase","from":"Init","to":"Warmup"}"#,
        r#"{"ring":0,"tid":7,"ns":30,"event":"trip"}"#,
        r#"{"ring":0,"tid":7,"ns":40,"event":"trip"}"#,
    ]);
    let missed = "events missed";
    assert_eq!(line.names("7", INSTANT), [missed, missed, "trip", "trip"]);
    let counts = |track: &str| line.missed[track].clone();
    assert_eq!((counts("7"), counts("")), (vec![2, 5], vec![3]));
}

/// The time line of a capture with these lines.
fn of_lines(lines: &[&str]) -> Line {
    let recorded = Recorded::empty();
    let head = r#"{"tripoint_capture":1,"process":7}"#;
    let text = [&[head], lines, &[r#"{"counters":{"arenas":{"entries":[],"left_out":0,"unsteady":0},"pools":{"entries":[],"left_out":0,"unsteady":0},"points":{"entries":[],"left_out":0,"unsteady":0},"phase":{"entries":[],"left_out":0,"unsteady":0},"tallies":{"entries":[],"left_out":0,"unsteady":0},"samples":{"entries":[],"left_out":0,"unsteady":0}}}"#, ""]].concat().join("\n");
    Line::of(&recorded.beside("capture", text.as_bytes()))
}

#[test]
fn a_time_line_that_cannot_be_written_has_status_2_and_names_the_file() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let refused = run(&["report", "--perfetto", "/none/line"], &recorded.path());
    assert_eq!(refused.status, Some(2));
    assert!(refused.err.contains("/none/line"), "{}", refused.err);
}
