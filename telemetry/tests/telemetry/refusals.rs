//! What happens if the system refuses (design/telemetry.md `.refused`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tripoint_telemetry::format::HeaderFlags;
use tripoint_telemetry::internal::{Refusing, create_on};
use tripoint_telemetry::{FileOptions, Refusal, Room, SystemCall, Telemetry, TelemetryError};

/// A directory of its own, which is removed at the end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tripoint-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Without these there is no telemetry.
const NEEDED: [SystemCall; 6] = [
    SystemCall::CreateAnonymous,
    SystemCall::CreateFile,
    SystemCall::Allocate,
    SystemCall::Map,
    SystemCall::Populate,
    SystemCall::Rename,
];

/// Without these it works less well: what the header does not say then.
const WISHED: [(SystemCall, HeaderFlags); 8] = [
    (SystemCall::Lock, HeaderFlags::LOCKED),
    (SystemCall::Seal, HeaderFlags::SEALED),
    (SystemCall::FileSystem, HeaderFlags::IN_MEMORY),
    (SystemCall::WipeOnFork, HeaderFlags::PARENT_ONLY),
    (SystemCall::Random, HeaderFlags::empty()),
    (SystemCall::Mode, HeaderFlags::empty()),
    (SystemCall::AvailableMemory, HeaderFlags::empty()),
    (SystemCall::FileLock, HeaderFlags::empty()),
];

#[test]
fn each_call_may_be_refused_without_a_trace_or_with_a_report() {
    let directory = Directory::new("refusals");
    let path = directory.path("telemetry");
    for path in [None, Some(&*path)] {
        for call in SystemCall::ALL {
            // What telemetry has locked counts until the process ends, and users may not lock much.
            let lock = call == SystemCall::Lock;
            let options = FileOptions { path, room: Room::LEAST, lock, ..FileOptions::default() };
            for allowed in [0, 1, 2] {
                // It would do without a call that it may not make.
                let code = if call == SystemCall::Populate { libc::ENOMEM } else { libc::EPERM };
                let system = Refusing::new(call, code, allowed);
                match create_on(&system, &options) {
                    Ok(telemetry) => {
                        let refusals: Vec<_> = telemetry.report().refusals().collect();
                        let wished = WISHED.iter().find(|(wished, _)| *wished == call);
                        let text = telemetry.report().to_string();
                        if let [refusal] = refusals[..] {
                            if lock && refusal.code != code {
                                tripoint_oracle::skipped!("this system allows no more locks ({refusal})");
                                continue;
                            }
                            assert_eq!((refusal.call, refusal.code), (call, code));
                            let flag = wished.expect("not needed").1;
                            assert!(flag.is_empty() || !telemetry.report().flags().contains(flag));
                            assert!(
                                text.contains(&refusal.to_string()) && text.contains(" (os error 1); "),
                                "{text}"
                            );
                        } else {
                            assert!(refusals.is_empty() && !text.contains("refused"), "{text}");
                            assert!(allowed > 0 || system.was_not_asked(), "{call:?} was refused");
                        }
                        drop(telemetry);
                    }
                    Err(TelemetryError::System(refusal)) => {
                        assert_eq!((refusal.call, refusal.code), (call, code));
                        assert!(NEEDED.contains(&call), "{call:?} is not needed");
                        let rooms = [Room::LEAST.bytes().unwrap() - 4096, 4096, 0];
                        assert!(rooms.contains(&refusal.bytes), "{refusal}");
                        // Telemetry that was complete but for its name stays mapped: it is never unmapped.
                        assert_eq!(system.mapped(), if call == SystemCall::Rename { 2 } else { 0 });
                    }
                    Err(other) => panic!("{call:?}: {other}"),
                }
                let mut left = directory.names();
                left.retain(|name| !["telemetry", "telemetry.switches"].contains(&&**name));
                assert_eq!(left, [""; 0], "{call:?} left files behind");
            }
        }
    }
}

#[test]
fn a_system_that_cannot_populate_has_its_pages_written_to() {
    let options = FileOptions { room: Room::LEAST, lock: false, ..FileOptions::default() };
    for code in [libc::EINVAL, libc::ENOSYS, libc::EOPNOTSUPP, libc::EPERM] {
        let telemetry = create_on(&Refusing::new(SystemCall::Populate, code, 0), &options).unwrap();
        assert!(telemetry.report().flags().contains(HeaderFlags::PREFAULTED));
        assert_eq!(telemetry.report().refusals().count(), 0);
    }
}

/// Otherwise the file would have no bytes, and the first write to its memory would end the process.
#[test]
fn a_file_system_that_cannot_allocate_has_zeros_written() {
    let directory = Directory::new("zeros");
    let path = directory.path("telemetry");
    let room = Room { ring_bytes: 1 << 20, ..Room::LEAST };
    let options = FileOptions { path: Some(&path), room, ..FileOptions::default() };
    for code in [libc::EOPNOTSUPP, libc::ENOSYS] {
        let telemetry = create_on(&Refusing::new(SystemCall::Allocate, code, 0), &options).unwrap();
        telemetry.mark("here", 1);
        assert_eq!(fs::metadata(&path).unwrap().len(), room.bytes().unwrap() as u64 - 4096);
    }
}

/// A profiler's signal at each interval may interrupt any call that takes time.
#[test]
fn an_interrupted_allocation_continues() {
    let options = FileOptions { room: Room::default(), lock: false, ..FileOptions::default() };
    // The file of 5.0 MiB is allocated in five parts, and that of the switches in one.
    for allowed in 0..6 {
        let system = Refusing::times(SystemCall::Allocate, libc::EINTR, allowed, 3);
        assert!(create_on(&system, &options).is_ok(), "interrupted after {allowed} parts");
        assert!(!system.was_not_asked());
    }
    // Parts become smaller with each interruption, down to a page.
    let system = Refusing::times(SystemCall::Allocate, libc::EINTR, 1, 100);
    assert!(create_on(&system, &options).is_ok());
}

#[test]
fn an_allocation_that_is_always_interrupted_ends() {
    let options = FileOptions { room: Room::LEAST, ..FileOptions::default() };
    let system = Refusing::new(SystemCall::Allocate, libc::EINTR, 0);
    match create_on(&system, &options) {
        Err(TelemetryError::System(Refusal { call: SystemCall::Allocate, code: libc::EINTR, .. })) => {}
        other => panic!("{other:?}"),
    }
}

/// The system would end the process with a signal (SIGXFSZ).
#[test]
fn a_file_beyond_the_limit_of_its_size_is_refused() {
    const CHILD: &str = "TRIPOINT_TEST_LIMITS_FILES";
    let options = FileOptions { room: Room::LEAST, ..FileOptions::default() };
    let bytes = Room::LEAST.bytes().unwrap() as libc::rlim_t - 4096;
    if std::env::var_os(CHILD).is_some() {
        let limit_to = |bytes| {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the call writes to this value only.
            assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) }, 0);
            limit.rlim_cur = bytes;
            // SAFETY: the call reads this value only.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
        };
        limit_to(bytes);
        assert!(Telemetry::create(&options).is_ok(), "what is at the limit is allowed");
        limit_to(bytes - 1);
        match Telemetry::create(&options) {
            Err(TelemetryError::System(Refusal {
                call: SystemCall::Allocate, code: libc::EFBIG, ..
            })) => {}
            other => panic!("{other:?}"),
        }
        return;
    }
    // The limit is of a whole process.
    let name = "refusals::a_file_beyond_the_limit_of_its_size_is_refused";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", name]).env(CHILD, "1").output().unwrap();
    assert!(child.status.success(), "{child:?}");
    assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"), "{child:?}");
}

/// The system would end processes to provide the memory, these tests among them, so no test asks it for that: a system
/// that refuses to allocate does not, even if the check is missing.
#[test]
fn more_memory_than_there_is_is_refused_before_anything_is_allocated() {
    let directory = Directory::new("memory");
    let path = directory.path("telemetry");
    let needed = Room::LEAST.bytes().unwrap();
    let refusing = || Refusing::new(SystemCall::Allocate, libc::EPERM, 0);
    for path in [None, Some(&*path)] {
        let options = FileOptions { path, room: Room::LEAST, ..FileOptions::default() };
        let system = refusing().with_memory(needed as u64 - 1);
        let available = needed as u64 - 1;
        let error = create_on(&system, &options).unwrap_err();
        assert_eq!(error, TelemetryError::NoMemory { needed, available });
        let text = error.to_string();
        assert!(
            text.contains(&format!("{needed} bytes")) && text.contains(&format!("has {available} ")),
            "{text}"
        );
        assert!(system.was_not_asked() && directory.names().is_empty());
        // The control: what there is may be asked for.
        let system = refusing().with_memory(needed as u64);
        assert!(matches!(create_on(&system, &options), Err(TelemetryError::System(_))));
        assert!(!system.was_not_asked());
    }
    // As much as no machine has, measured by what this machine says.
    let room = Room { threads: 4_000, ring_bytes: 512 << 20, ..Room::default() };
    let Some(needed) = room.bytes() else {
        tripoint_oracle::skipped!("that is more than there are addresses");
        return;
    };
    let system = refusing();
    match create_on(&system, &FileOptions { room, ..FileOptions::default() }) {
        Err(TelemetryError::NoMemory { available, .. }) => {
            assert!(available < needed as u64 && system.was_not_asked())
        }
        other => tripoint_oracle::skipped!("this system does not say how much memory it has ({other:?})"),
    }
}

/// Without random numbers, those of buffers would show addresses.
#[test]
fn addresses_are_not_left_out_by_half() {
    let options = FileOptions { room: Room::LEAST, without_addresses: true, ..FileOptions::default() };
    let refused = create_on(&Refusing::new(SystemCall::Random, libc::EPERM, 0), &options);
    assert!(matches!(refused, Err(TelemetryError::System(refusal)) if refusal.call == SystemCall::Random));
    assert!(create_on(&Refusing::new(SystemCall::Random, libc::EPERM, 1), &options).is_ok());
}

#[test]
fn errors_say_what_to_do() {
    let room = Room { threads: usize::MAX, ..Room::default() };
    let too_large = Telemetry::create(&FileOptions { room, ..FileOptions::default() });
    let too_large = too_large.unwrap_err();
    assert_eq!(too_large, TelemetryError::TooLarge);
    let text = too_large.to_string();
    assert!(text.contains("at most 4095 threads") && text.contains("MAX_RING_BYTES"), "{text}");
    for path in ["/", "", "a\0b", "name/", "name/."] {
        let options = FileOptions { path: Some(path.as_ref()), ..FileOptions::default() };
        assert_eq!(Telemetry::create(&options).unwrap_err(), TelemetryError::Path);
    }
    let directory = Directory::new("advice");
    fs::create_dir(directory.path("directory")).unwrap();
    fs::create_dir(directory.path("one.switches")).unwrap();
    fs::write(directory.path("file"), "").unwrap();
    for (path, code, advice) in [
        ("none/file", libc::ENOENT, "; create its directory first"),
        ("directory", libc::EISDIR, "; use a path that is not a directory"),
        ("one", libc::EISDIR, "; use a path that is not a directory"),
        ("file/file", libc::ENOTDIR, "; use another path: "),
        (&*"x".repeat(250), libc::ENAMETOOLONG, "; use a shorter name: "),
    ] {
        let path = directory.path(path);
        let error =
            Telemetry::create(&FileOptions { path: Some(&path), ..FileOptions::default() }).unwrap_err();
        let words = std::io::Error::from_raw_os_error(code).to_string();
        let text = error.to_string();
        assert!(text.contains(&words) && text.contains(advice), "{text}");
    }
    for (call, code, advice) in [
        (SystemCall::CreateFile, libc::EACCES, "; use a directory that this process may write to"),
        (SystemCall::Rename, libc::EPERM, "; use another path: a file of another user"),
        (SystemCall::FileLock, libc::EACCES, "; let this process read the directory and lock it"),
        (SystemCall::FileLock, libc::EWOULDBLOCK, "; see which process keeps the directory locked"),
        (SystemCall::FileLock, libc::ENOLCK, "; use a file system with locks"),
    ] {
        let text = Refusal { call, code, bytes: 0 }.to_string();
        assert!(text.contains(advice), "{text}");
    }
    let small = TelemetryError::TooSmall { needed: 10, bytes: 5 }.to_string();
    assert!(small.contains("needs 10 bytes") && small.contains("has 5"), "{small}");
}
