//! Files of telemetry on Linux (design/telemetry.md `.file`, `.private`, `.fork`, `.req.private`).

use std::fs::{self, OpenOptions};
use std::io::{Error, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tripoint_core::{Addr, AddrRange, Event, EventHook, PoolId};
use tripoint_telemetry::format::{
    ArenaWord, ClockKind, EventKind, FileState, HeaderFlags, HeaderWord, SectionKind, SwitchWord,
};
use tripoint_telemetry::{FileOptions, Room, Telemetry};

use crate::decoder::File;
use crate::refusals::Directory;

const ROOM: Room = Room { threads: 1, ..Room::LEAST };

/// The descriptors of this process that are files in memory with this name.
fn descriptors(name: &str) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let link = format!("/memfd:{name} (deleted)");
    all.filter(|path| fs::read_link(path).is_ok_and(|target| target == Path::new(&link))).collect()
}

/// The one descriptor that is new.
fn created<T>(name: &str, create: impl FnOnce() -> T) -> (T, PathBuf) {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap();
    let before = descriptors(name);
    let created = create();
    let mut new = descriptors(name);
    new.retain(|path| !before.contains(path));
    // Other tests refuse calls, and close what they have opened.
    let path = new.into_iter().find(|path| fs::metadata(path).is_ok_and(|file| file.len() == LENGTH));
    (created, path.expect("a descriptor with this name"))
}

/// The bytes of the files here, which no other test's have.
const LENGTH: u64 = 160 << 10;

fn errno<T>(outcome: Result<T, Error>) -> i32 {
    outcome.err().and_then(|error| error.raw_os_error()).unwrap_or(0)
}

fn file(path: &Path) -> File {
    File::from_bytes(&fs::read(path).unwrap())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Room that makes a file of `LENGTH` bytes.
const OWN_ROOM: Room = Room { threads: 1, ring_bytes: 64 << 10, ..Room::LEAST };

#[test]
fn a_file_in_memory_is_found_by_its_name_and_is_the_owners_alone() {
    let options = FileOptions { room: OWN_ROOM, ..FileOptions::default() };
    assert_eq!(OWN_ROOM.bytes().unwrap() as u64 - 4096, LENGTH);
    let (telemetry, data) = created("tripoint-telemetry", || Telemetry::create(&options).unwrap());
    telemetry.mark("here", 1);
    let flags = telemetry.report().flags();
    let expected = HeaderFlags::ANONYMOUS
        | HeaderFlags::IN_MEMORY
        | HeaderFlags::SEALED
        | HeaderFlags::PREFAULTED
        | HeaderFlags::PARENT_ONLY
        | HeaderFlags::SWITCHES;
    assert_eq!(flags - HeaderFlags::LOCKED, expected, "{}", telemetry.report());

    let read = file(&data);
    assert_eq!(read.header(HeaderWord::Process), u64::from(std::process::id()));
    assert_eq!(read.header(HeaderWord::Flags), flags.bits());
    assert_eq!(read.header(HeaderWord::State), FileState::Open as u64);
    assert_eq!(read.events()[0].kind, EventKind::Marker);
    assert_eq!(mode(&data), 0o600);

    // It opens for writing, and cannot be written to, resized, or mapped for writing.
    let mut open = OpenOptions::new().write(true).read(true).open(&data).unwrap();
    assert_eq!(errno(open.write(b"x")), libc::EPERM);
    assert_eq!(errno(open.set_len(4096)), libc::EPERM);
    assert_eq!(errno(open.set_len(1 << 30)), libc::EPERM);
    for (access, refused) in [(libc::PROT_WRITE, true), (libc::PROT_READ, false)] {
        // SAFETY: the system chooses addresses that nothing uses.
        let base =
            unsafe { libc::mmap(core::ptr::null_mut(), 4096, access, libc::MAP_SHARED, open.as_raw_fd(), 0) };
        assert_eq!(base == libc::MAP_FAILED, refused);
    }
    // SAFETY: the command takes no argument.
    let closed_on_exec = unsafe { libc::fcntl(descriptor(&data), libc::F_GETFD) };
    assert_eq!(closed_on_exec, libc::FD_CLOEXEC);
    drop(telemetry);
    assert!(!data.exists(), "closed");
}

fn descriptor(path: &Path) -> i32 {
    path.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

fn set_switch(path: &Path, word: SwitchWord, value: u64) {
    use std::os::unix::fs::FileExt;
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&value.to_ne_bytes(), word as u64 * 8).unwrap();
}

#[test]
fn a_file_with_a_path_is_complete_when_it_has_it() {
    let directory = Directory::new("files");
    let path = directory.path("telemetry");
    let options = FileOptions { path: Some(&path), room: ROOM, ..FileOptions::default() };
    let first = Telemetry::create(&options).unwrap();
    first.mark("first", 1);
    let readers_of_the_first = fs::File::open(&path).unwrap();
    let telemetry = Telemetry::create(&options).unwrap();
    telemetry.mark("second", 2);
    assert_eq!(directory.names(), ["telemetry", "telemetry.switches"]);
    assert_eq!((mode(&path), mode(&directory.path("telemetry.switches"))), (0o600, 0o600));
    assert_eq!(file(&path).events()[0].texts["name"], "second");
    let old = PathBuf::from(format!("/proc/self/fd/{}", readers_of_the_first.as_raw_fd()));
    assert_eq!(file(&old).events()[0].texts["name"], "first", "it is replaced, not written to");
    let flags = telemetry.report().flags();
    assert!(flags.contains(HeaderFlags::PATH) && !flags.contains(HeaderFlags::SEALED));
    drop(telemetry);
    assert_eq!(file(&path).header(HeaderWord::State), FileState::Closed as u64);
}

#[test]
fn another_process_may_change_the_switches_and_nothing_it_writes_does_harm() {
    let directory = Directory::new("switches");
    let path = directory.path("telemetry");
    let options = FileOptions { path: Some(&path), room: ROOM, ..FileOptions::default() };
    let telemetry = Telemetry::create(&options).unwrap();
    let switches = directory.path("telemetry.switches");
    set_switch(&switches, SwitchWord::Events, !EventKind::Grow.bit());
    telemetry.event(Event::Grow { size: 1 });
    telemetry.event(Event::Shrink { size: 1 });
    assert_eq!(file(&path).events().iter().map(|found| found.kind).collect::<Vec<_>>(), [EventKind::Shrink]);
    set_switch(&switches, SwitchWord::Sampling, 1);
    set_switch(&switches, SwitchWord::Mean, 512);
    assert_eq!(telemetry.switches().sampling(), Some(tripoint_telemetry::Mean::new(512)));
    for garbage in [u64::MAX, 1 << 63, 0x5555_5555_5555_5555] {
        for word in [SwitchWord::Events, SwitchWord::Sampling, SwitchWord::Mean, SwitchWord::PointLog] {
            set_switch(&switches, word, garbage);
        }
        assert_eq!(telemetry.switches().sampling(), None);
        assert!(!telemetry.switches().point_log());
        telemetry.event(Event::Shrink { size: 1 });
    }
    // Only the first of these values had the bit of the kind.
    assert_eq!(file(&path).events().len(), 2);
}

/// Runs `child` in a forked child, and waits for it.
fn in_child(mut child: impl FnMut()) {
    // SAFETY: the child writes events, which neither allocates nor locks, and ends with `_exit`.
    let process = unsafe { libc::fork() };
    if process == 0 {
        child();
        // SAFETY: this ends the process.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's, and the status is a whole number of its type.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    assert_eq!(status, 0);
}

#[test]
fn a_forked_child_does_not_write_to_its_parents_file() {
    let directory = Directory::new("fork");
    let path = directory.path("telemetry");
    for parent_only in [true, false] {
        let options = FileOptions { path: Some(&path), room: ROOM, ..FileOptions::default() };
        let call = tripoint_telemetry::SystemCall::WipeOnFork;
        let system =
            tripoint_telemetry::internal::Refusing::new(call, libc::EINVAL, usize::from(parent_only));
        let telemetry = tripoint_telemetry::internal::create_on(&system, &options).unwrap();
        let mut attached = Some(telemetry.attach("parent"));
        telemetry.event(Event::Grow { size: 1 });
        let before = fs::read(&path).unwrap();
        in_child(|| {
            telemetry.event(Event::Grow { size: 2 });
            telemetry.mark("child", 0);
            drop(telemetry.attach("child"));
            drop(attached.take());
        });
        // The control: without that word the child writes.
        assert_eq!(fs::read(&path).unwrap() == before, parent_only);
        if parent_only {
            telemetry.event(Event::Grow { size: 3 });
            let sizes: Vec<_> =
                file(&path).events().iter().filter_map(|found| found.words.get("size").copied()).collect();
            assert_eq!(sizes, [1, 3]);
        }
    }
}

#[test]
fn times_are_of_the_systems_clock() {
    let directory = Directory::new("times");
    let path = directory.path("telemetry");
    let options = FileOptions { path: Some(&path), room: ROOM, ..FileOptions::default() };
    let monotonic = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a whole `timespec`.
        assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) }, 0);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let telemetry = Telemetry::create(&options).unwrap();
    let before = monotonic();
    telemetry.event(Event::Grow { size: 1 });
    let after = monotonic();
    let file = file(&path);
    let time = file.events()[0].head.time;
    let [ticks, ns, span_ticks, span_ns] = [
        HeaderWord::AnchorTicks,
        HeaderWord::AnchorNanoseconds,
        HeaderWord::SpanTicks,
        HeaderWord::SpanNanoseconds,
    ]
    .map(|word| file.header(word));
    assert!(file.header(HeaderWord::Clock) != ClockKind::None as u64);
    let converted = ns + (u128::from(time - ticks) * u128::from(span_ns) / u128::from(span_ticks)) as u64;
    // The rate is exact to one in a thousand at worst, if this thread was interrupted while it was measured.
    let slack = (after - ns) / 1_000 + 100_000;
    assert!(converted + slack >= before && converted <= after + slack, "{before} {converted} {after}");
    assert!(file.live(SectionKind::Arenas).len() == 1);
}

/// The base of the arena, the numbers of buffers, and all addresses of events and their sites.
fn secrets(file: &File) -> (u64, Vec<u64>, Vec<u64>) {
    let base = file.live(SectionKind::Arenas)[0][ArenaWord::Base as usize];
    let of = |name| file.events().into_iter().filter_map(move |found| found.words.get(name).copied());
    let sites = file.events().into_iter().flat_map(|found| found.site);
    (base, of("buffer").collect(), of("base").chain(sites).collect())
}

#[test]
fn what_the_program_leaves_out_no_other_process_brings_back() {
    let directory = Directory::new("without");
    let path = directory.path("telemetry");
    let room = Room { objects: 8, ..ROOM };
    for without_addresses in [false, true] {
        let options = FileOptions { path: Some(&path), room, without_addresses, ..FileOptions::default() };
        let telemetry = Telemetry::create(&options).unwrap();
        let flags = telemetry.report().flags();
        assert_eq!(flags.contains(HeaderFlags::WITHOUT_ADDRESSES), without_addresses);
        assert_eq!(telemetry.report().to_string().contains("without addresses"), without_addresses);
        set_switch(&directory.path("telemetry.switches"), SwitchWord::WithoutAddresses, 0);
        let hook = telemetry.arena_hook();
        let (pool, buffer, base) = (PoolId::new(1).unwrap(), Addr::new(0xb000), Addr::new(0xba5e));
        let range = AddrRange::with_size(Addr::new(0x1000), 0x500).unwrap();
        hook.event(Event::CreateArena {
            grain: 64,
            commit_limit: 0x500,
            commit_policy: 0,
            prefault_size: 0,
            range,
            memory: range,
            class: "ClientArena",
        });
        hook.event_at(Event::Fill { pool, buffer, base, size: 8 }, &[0xc0de]);
        let (base, buffers, addresses) = secrets(&file(&path));
        let expected: (_, &[u64]) =
            if without_addresses { (0, &[0, 0]) } else { (0x1000, &[0x1000, 0xba5e, 0xc0de]) };
        assert_eq!((base, &addresses[..]), expected);
        assert_eq!(file(&path).live(SectionKind::Objects).is_empty(), without_addresses);
        assert!(buffers.len() == 1 && ![0, 0xb000].contains(&buffers[0]));
        // The first address goes with the arena's next event, if addresses are left out later.
        telemetry.switches().set_without_addresses(true);
        hook.event(Event::Grow { size: 1 });
        assert_eq!(secrets(&file(&path)).0, 0);
    }
}
