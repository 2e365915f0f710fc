//! The core file of a process that crashed has its telemetry (design/telemetry.md `.reader.core`): one
//! that the system writes, and one of a debugger.
//!
//! Skipped, with a message, if there is no gdb, or if the system writes no core files to the working
//! directory.
#![cfg(all(feature = "reader", tripoint_on_linux, not(miri)))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tripoint_core::{Event, EventHook};
use tripoint_oracle::core_by_debugger;
use tripoint_stack::Site;
use tripoint_telemetry::reader::{Fields, Item, OpenError, Reader, Start};
use tripoint_telemetry::{FileOptions, Telemetry};

/// Tells the child to crash; the value says what of its memory the system is to dump.
const CHILD: &str = "TRIPOINT_TEST_CRASH";

/// What is dumped by default: private memory, and shared memory that has no name in the file system.
const DEFAULT: &str = "0x33";

/// The same without shared memory.
const PRIVATE: &str = "0x31";

/// Leads this program to [`the_child`] alone.
const ARGUMENTS: [&str; 4] = ["--exact", "the_child", "--nocapture", "--test-threads=1"];

/// Events before the crash, fewer than a ring keeps.
const EVENTS: u64 = 500;

/// The process that crashes. Without orders it does nothing.
#[test]
fn the_child() {
    let Ok(filter) = std::env::var(CHILD) else { return };
    fs::write("/proc/self/coredump_filter", filter).unwrap();
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is valid to write.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit) }, 0);
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the limit is valid to read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) }, 0);
    let telemetry = Telemetry::create(&FileOptions::default()).unwrap();
    let _attached = telemetry.attach("crasher");
    let hook = telemetry.arena_hook();
    let here = Site::here();
    (0..EVENTS).for_each(|size| hook.event_at(Event::Grow { size: size as usize }, here.frames()));
    std::process::abort();
}

/// A folder of its own, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tripoint-crash-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The core file in it. The system may add numbers to its name.
    fn core(&self) -> Option<PathBuf> {
        let paths = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        paths.into_iter().find(|path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("core"))
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether no limit cuts core files off.
fn may_be_whole() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is valid to write.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit) } == 0;
    is_known && limit.rlim_max == libc::RLIM_INFINITY
}

/// Crashes a child in a folder; returns its number, and the core file that the system wrote.
fn crash(folder: &Folder, filter: &str) -> Option<(u32, PathBuf)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(ARGUMENTS)
        .env(CHILD, filter)
        .current_dir(&folder.0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = child.id();
    assert!(!child.wait().unwrap().success());
    let core = folder.core().filter(|_| may_be_whole());
    if core.is_none() {
        let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
        tripoint_oracle::skipped!("the system wrote no whole core file here; its pattern is {pattern:?}");
    }
    Some((process, core?))
}

/// Reads what the child wrote up to its end: events with their sites, counters, and in which objects its
/// addresses are. Returns the process that the file names.
fn read_all(core: &Path) -> u64 {
    let reader = Reader::open(core).unwrap();
    let objects = reader.objects().unwrap();
    let program = std::env::current_exe().unwrap();
    let mut events = reader.events(Start::Oldest);
    let mut next = 0;
    let mut ring = None;
    while let Some(item) = events.poll() {
        let Item::Event(event) = item else { panic!("{item}") };
        assert_eq!(event.serial, next, "{event}");
        match event.fields {
            Fields::ThreadAttach { name } => assert_eq!((name.as_str(), next), (Some("crasher"), 0)),
            Fields::Grow { size, .. } => {
                assert_eq!(size + 1, next);
                let place = objects.place(event.frames()[0]).unwrap();
                assert!(place.object.is_path_cut || place.object.path == program, "{place}");
            }
            _ => panic!("{event}"),
        }
        next += 1;
        ring = Some(event.ring);
    }
    assert_eq!(next, EVENTS + 1, "every event up to the crash");
    assert_eq!(events.damaged_blocks(), 0);
    let info = reader.ring(ring.unwrap()).unwrap().unwrap();
    assert_eq!((info.name.as_str(), info.events, info.within_record), (Some("crasher"), next, false));
    let of_arena = reader.counters().unwrap().arenas.entries[0];
    assert_eq!((of_arena.arena, of_arena.grown), (1, (0..EVENTS).sum()));
    reader.info().process
}

#[test]
fn the_core_file_of_a_crash_is_read() {
    let folder = Folder::new("kernel");
    if let Some((process, core)) = crash(&folder, DEFAULT) {
        assert_eq!(read_all(&core), u64::from(process));
    }
}

#[test]
fn a_core_file_without_shared_memory_says_that_there_is_no_telemetry() {
    let folder = Folder::new("filtered");
    if let Some((_, core)) = crash(&folder, PRIVATE) {
        let error = Reader::open(core).unwrap_err();
        assert!(matches!(error, OpenError::NotTelemetry { .. }), "{error}");
        assert!(error.to_string().contains("a core file of a process that had one"), "{error}");
    }
}

#[test]
fn the_core_file_of_a_debugger_is_read() {
    let folder = Folder::new("gdb");
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(ARGUMENTS).env(CHILD, DEFAULT);
    if let Some(core) = core_by_debugger(&program, &folder.0) {
        assert!(read_all(&core) > 0);
    }
}
