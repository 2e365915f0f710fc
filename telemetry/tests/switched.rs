//! What another process switches: the log of points, sampling, and the sites of samples
//! (design/telemetry.md `.switches.follow`).
#![cfg(all(feature = "reader", tripoint_on_linux, not(miri)))]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use tripoint_ap::{AllocationPoint, Tripper};
use tripoint_core::{BufferKind, ClientArena, ClientArenaOptions, ControlPair, EventHook};
use tripoint_pools::{Mvff, MvffOptions};
use tripoint_telemetry::reader::{Events, Fields, Item, Reader, Start, SwitchesFile};
use tripoint_telemetry::{
    FileOptions, Mean, PointLogger, PointSampler, ProgramSwitches, SampledObject, Sampling, Telemetry,
};

/// The path of the telemetry whose switches the other process changes.
const ORDERS: &str = "TRIPOINT_SWITCHED";

/// The other process: it follows orders, a line each, and answers each when it is done. Without orders it
/// does nothing.
#[test]
fn the_other_process() {
    let Some(path) = std::env::var_os(ORDERS) else { return };
    let switches = SwitchesFile::open(path).unwrap();
    println!("\nready");
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        match order.split(' ').collect::<Vec<_>>()[..] {
            ["log", on] => switches.set_point_log(on == "on").unwrap(),
            ["mean", mean] => {
                switches.set_mean(Mean::new(mean.parse().unwrap())).unwrap();
                switches.set_sampling(Some(mean != "0")).unwrap();
            }
            ["sites", on] => switches.set_sites(Some(on == "on")).unwrap(),
            _ => panic!("no such order: {order}"),
        }
        println!("done");
    }
}

/// The other process, which ends with this.
struct Other {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Other {
    fn start(path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_other_process", "--nocapture", "--test-threads=1"])
            .env(ORDERS, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut other = Self { child, orders, answers: BufReader::new(answers) };
        other.wait_for("ready");
        other
    }

    fn wait_for(&mut self, wanted: &str) {
        let mut answers = (&mut self.answers).lines();
        assert!(answers.any(|line| line.unwrap() == wanted), "the other process ended");
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
        self.wait_for("done");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A path for the telemetry, whose files are removed with this.
struct Files(PathBuf);

impl Drop for Files {
    fn drop(&mut self) {
        for extension in ["", ".switches"] {
            std::fs::remove_file(format!("{}{extension}", self.0.display())).ok();
        }
    }
}

/// What a cold thread of the program does now and then. Returns whether there was anything to follow.
fn follow(
    telemetry: &Telemetry,
    followed: &mut Option<ProgramSwitches>,
    sampling: &Sampling,
    point: Tripper<'_>,
) -> bool {
    let switches = telemetry.switches().of_program();
    let is_new = followed.replace(switches) != Some(switches);
    if is_new {
        switches.apply_to(sampling);
        point.trip();
    }
    is_new
}

/// How many events there are of each kind that the test is about, and samples with a site.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    reserved: usize,
    committed: usize,
    sampled: usize,
    sited: usize,
}

const NOTHING: Counts = Counts { reserved: 0, committed: 0, sampled: 0, sited: 0 };

fn count(events: &mut Events<'_>) -> Counts {
    let mut counts = NOTHING;
    while let Some(item) = events.poll() {
        let Item::Event(event) = item else { panic!("{item}") };
        match event.fields {
            Fields::Reserve { .. } => counts.reserved += 1,
            Fields::Commit { .. } => counts.committed += 1,
            Fields::Sample { site, .. } => {
                counts.sampled += 1;
                counts.sited += usize::from(!site.as_slice().is_empty());
            }
            _ => {}
        }
    }
    counts
}

/// Objects of each step.
const OBJECTS: usize = 50;

#[test]
fn another_process_switches_the_log_of_points_and_sampling() {
    let name = format!("tripoint-switched-{}", std::process::id());
    let files = Files(std::env::temp_dir().join(name));
    let telemetry =
        Telemetry::create(&FileOptions { path: Some(&files.0), ..FileOptions::default() }).unwrap();
    let hook = telemetry.arena_hook();
    let mut memory = Box::new_uninit_slice(1 << 20);
    let options = ClientArenaOptions { event_hook: Some(&hook), ..ClientArenaOptions::default() };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
    let sampling = Sampling::off(0x5eed);
    let on_sample = |sampled: SampledObject| hook.event_at(sampled.event(), sampled.site.frames());
    let sampler = PointSampler::new(&sampling, on_sample);
    let logger = PointLogger::new(|| telemetry.switches().point_log(), hook);
    let control = ControlPair::new(sampler, logger);
    let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, control).unwrap();

    let reader = Reader::open(&files.0).unwrap();
    let mut events = reader.events(Start::Oldest);
    let mut other = Other::start(&files.0);
    let mut followed = None;
    // Orders a change, lets a cold thread look or not, and allocates.
    let mut step = |order: Option<&str>, has_cold_thread: bool| {
        if let Some(order) = order {
            other.order(order);
        }
        let tripper = point.tripper();
        let look = || follow(&telemetry, &mut followed, &sampling, tripper);
        let is_new = has_cold_thread && thread::scope(|scope| scope.spawn(look).join().unwrap());
        for number in 0..OBJECTS {
            drop(point.boxed([number; 4]).unwrap());
        }
        (is_new, count(&mut events))
    };
    assert_eq!(step(None, true), (true, NOTHING), "the first look");
    assert_eq!(step(None, true), (false, NOTHING));

    // The log. The last commit of a step is reported in the next slow path, in the next step.
    let (is_new, logged) = step(Some("log on"), true);
    assert!(is_new && logged.reserved == OBJECTS && logged.committed + 1 >= OBJECTS, "{logged:?}");
    let (is_new, logged) = step(None, true);
    assert!(!is_new && logged.reserved == OBJECTS && logged.sampled == 0, "{logged:?}");
    let (is_new, last) = step(Some("log off"), true);
    assert!(is_new && last.reserved == 0 && last.committed <= 1, "{last:?}");
    assert_eq!(step(None, true), (false, NOTHING));

    // Sampling, at first of every object.
    let (is_new, sampled) = step(Some("mean 1"), true);
    assert!(is_new && sampled.sampled + 1 >= OBJECTS && sampled.sited == 0, "{sampled:?}");
    // A mean of 64 bytes draws some 20 of 50 objects with 32 bytes each, and not all: 3 in 10^20 say otherwise.
    let (is_new, sampled) = step(Some("mean 64"), true);
    assert!(is_new && (1..OBJECTS).contains(&sampled.sampled), "{sampled:?}");
    step(Some("mean 1"), true);
    let (is_new, sited) = step(Some("sites on"), true);
    assert!(is_new && sited.sited + 1 >= OBJECTS, "{sited:?}");
    let (is_new, sampled) = step(Some("sites off"), true);
    assert!(is_new && sampled.sampled >= OBJECTS && sampled.sited <= 1, "{sampled:?}");
    let (is_new, last) = step(Some("mean 0"), true);
    assert!(is_new && last.sampled <= 1, "{last:?}");
    assert_eq!(step(None, true), (false, NOTHING));

    // The control: without a cold thread that looks, nothing happens.
    assert_eq!(step(Some("mean 1"), false), (false, NOTHING));
}
