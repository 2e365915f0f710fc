//! How data and switches receive their names, together (design/telemetry.md `.names`).

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use tripoint_telemetry::format::{HeaderWord, SwitchWord, VERSION};
use tripoint_telemetry::internal::{Refusing, create_on};
use tripoint_telemetry::reader::{OpenError, Reader, SwitchesFile};
use tripoint_telemetry::{Clock, FileOptions, Mean, Room, SystemCall, Telemetry};

use crate::refusals::Directory;

fn at(path: &Path) -> FileOptions<'_> {
    FileOptions {
        path: Some(path),
        room: Room::LEAST,
        clock: Clock::NONE,
        lock: false,
        ..FileOptions::default()
    }
}

/// A word of a file.
fn word(path: &Path, word: usize) -> u64 {
    u64::from_ne_bytes(fs::read(path).unwrap().as_chunks().0[word])
}

#[test]
fn both_files_receive_their_names_under_one_lock() {
    let directory = Directory::new("locked");
    let path = directory.path("telemetry");
    let system = Refusing::new(SystemCall::FileLock, libc::EPERM, usize::MAX);
    let telemetry = create_on(&system, &at(&path)).unwrap();
    assert!(!system.was_not_asked());
    assert_eq!((system.unlocked_renames(), telemetry.report().refusals().count()), (0, 0));
    // The control: without the lock both are seen, and the report says so.
    let system = Refusing::new(SystemCall::FileLock, libc::ENOLCK, 0);
    let telemetry = create_on(&system, &at(&path)).unwrap();
    assert_eq!((system.unlocked_renames(), telemetry.report().refusals().count()), (2, 1));
}

#[test]
fn of_those_that_start_at_once_one_has_both_names() {
    let directory = Directory::new("at-once");
    let path = directory.path("telemetry");
    let switches = directory.path("telemetry.switches");
    for round in 0..20 {
        let together = Barrier::new(4);
        let create = || {
            together.wait();
            Telemetry::create(&at(&path)).unwrap()
        };
        let all: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(create)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        if all.iter().any(|telemetry| telemetry.report().refusals().count() > 0) {
            tripoint_oracle::skipped!("the directory could not be locked");
            return;
        }
        let identities =
            (word(&path, HeaderWord::Identity as usize), word(&switches, SwitchWord::Identity as usize));
        assert_eq!(identities.0, identities.1, "round {round}");
        assert!(identities.0 != 0 && directory.names().len() == 2);
    }
}

#[test]
fn a_failure_leaves_the_files_of_others_as_they_are() {
    let directory = Directory::new("nameless");
    let path = directory.path("telemetry");
    let refused =
        |call, code, allowed| create_on(&Refusing::new(call, code, allowed), &at(&path)).unwrap_err();
    // There are no switches of telemetry that there is not.
    for allowed in [0, 1] {
        refused(SystemCall::Rename, libc::EPERM, allowed);
        assert_eq!(directory.names(), [""; 0], "{allowed} files had received theirs");
    }
    let telemetry = Telemetry::create(&at(&path)).unwrap();
    for allowed in [0, 1] {
        let system = Refusing::times(SystemCall::Rename, libc::EPERM, allowed, 1);
        create_on(&system, &at(&path)).unwrap_err();
        assert_eq!(directory.names(), ["telemetry", "telemetry.switches"]);
        SwitchesFile::open(&path).unwrap().set_point_log(allowed == 0).unwrap();
        assert_eq!(telemetry.switches().point_log(), allowed == 0, "the switches are not its own any more");
    }
    // The system itself refuses to put a file in the place of a directory.
    drop(telemetry);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let before = fs::read(directory.path("telemetry.switches")).unwrap();
    Telemetry::create(&at(&path)).unwrap_err();
    assert_eq!(fs::read(directory.path("telemetry.switches")).unwrap(), before);
}

#[test]
fn a_file_in_use_is_not_replaced_in_silence() {
    let directory = Directory::new("in-use");
    let path = directory.path("telemetry");
    let first = Telemetry::create(&at(&path)).unwrap();
    assert_eq!(first.report().replaced(), None);
    let second = Telemetry::create(&at(&path)).unwrap();
    let process = std::process::id();
    assert_eq!(second.report().replaced(), Some(process.into()));
    let text = format!(
        "it replaces the telemetry of process {process}, which that process or a child of it still has open: give each"
    );
    assert!(second.report().to_string().contains(&text));
    drop((first, second));
    assert_eq!(Telemetry::create(&at(&path)).unwrap().report().replaced(), None, "it was closed");
    // Also if only the directory could not be locked.
    let system = Refusing::times(SystemCall::FileLock, libc::ENOLCK, 0, 1);
    let third = create_on(&system, &at(&path)).unwrap();
    assert_eq!((third.report().refusals().count(), third.report().replaced()), (1, None));
    assert_eq!(Telemetry::create(&at(&path)).unwrap().report().replaced(), Some(process.into()));
    drop(third);
}

#[test]
fn a_reader_does_not_take_the_switches_of_others_for_those_of_the_data() {
    let directory = Directory::new("mixed");
    let [one, two] = ["one", "two"].map(|name| directory.path(name));
    let switches = |path: &Path| path.with_extension("switches");
    let telemetries = [&one, &two].map(|path| Telemetry::create(&at(path)).unwrap());
    let [first, second] = [&one, &two].map(|path| SwitchesFile::open(path).unwrap());
    let reader = Reader::open(&one).unwrap();
    assert!(first.belong_to(&reader) && !second.belong_to(&reader));
    // The path of the switches themselves will do.
    assert!(SwitchesFile::open(switches(&one)).unwrap().belong_to(&reader));
    fs::rename(switches(&two), switches(&one)).unwrap();
    let mixed = SwitchesFile::open(&one).unwrap_err();
    let process = u64::from(std::process::id());
    let is_expected = |error: &OpenError| matches!(error, OpenError::OtherSwitches { data, switches } if [*data, *switches] == [process; 2]);
    assert!(is_expected(&mixed), "{mixed}");
    drop(telemetries);
}

/// In a later version of the format, the word of the identity may have another meaning.
#[test]
fn switches_belong_to_data_of_a_later_version_by_their_process() {
    let directory = Directory::new("later");
    let path = directory.path("telemetry");
    let telemetry = Telemetry::create(&at(&path)).unwrap();
    let data = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for (word, value) in [(HeaderWord::Version, VERSION + 1), (HeaderWord::Identity, 7)] {
        data.write_all_at(&value.to_ne_bytes(), (word as u64) * 8).unwrap();
    }
    assert!(matches!(Reader::open(&path), Err(OpenError::Newer { .. })));
    assert_eq!(SwitchesFile::open(&path).unwrap().process(), u64::from(std::process::id()));
    drop(telemetry);
}

#[test]
fn of_several_switches_each_path_can_be_opened() {
    let options =
        FileOptions { room: Room::LEAST, clock: Clock::NONE, lock: false, ..FileOptions::default() };
    let means = [77_771, 77_773].map(Mean::new);
    let telemetries = means.map(|mean| {
        let telemetry = Telemetry::create(&options).unwrap();
        telemetry.switches().set_sampling(Some(mean));
        telemetry
    });
    let files = match SwitchesFile::attach(std::process::id()) {
        Err(OpenError::Several { files, .. }) => files,
        other => panic!("{other:?}"),
    };
    // Other tests have switches, too, and close them.
    let found: Vec<_> = files.iter().filter_map(|path| SwitchesFile::open(path).ok()?.mean().ok()?).collect();
    for mean in means {
        assert!(mean.is_some_and(|mean| found.contains(&mean)), "{files:?}");
    }
    drop(telemetries);
}
