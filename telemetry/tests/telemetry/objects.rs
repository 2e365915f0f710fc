//! Code addresses of a process mean something after it has ended (design/telemetry.md `.objects`).

use core::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol};
use tripoint_core::{Addr, Event, EventHook};
use tripoint_stack::{Site, visit_objects};
use tripoint_telemetry::reader::{CodePlace, Item, LoadedObject, Reader, Start, Table};
use tripoint_telemetry::{FileOptions, Room, Telemetry};

/// The path of the file that a child makes, and how many objects it has room for.
const CHILD: [&str; 2] = ["TRIPOINT_TEST_OBJECTS", "TRIPOINT_TEST_OBJECTS_ROOM"];

#[inline(never)]
fn culprit_in_a_dead_process(telemetry: &Telemetry) {
    let [object, size] = [Addr::new(16), Addr::new(8)];
    let event = Event::Sample {
        kind: "global",
        pool: None,
        class: None,
        object,
        size: size.get(),
        offset: 0,
        mean: 1,
        type_name: None,
    };
    telemetry.event_at(event, Site::here().frames());
}

fn create(path: &Path, objects: usize) -> Telemetry {
    let room = Room { objects, ..Room::LEAST };
    Telemetry::create(&FileOptions { path: Some(path), room, lock: false, ..FileOptions::default() }).unwrap()
}

/// What another process left, which has ended.
fn left_by_a_process(name: &str, room: usize) -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("tripoint-objects-{}-{name}", std::process::id()));
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "objects::frames_of_a_process_that_has_ended_are_found"]);
    let output = child.env(CHILD[0], &path).env(CHILD[1], room.to_string()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::remove_file(format!("{}.switches", path.display())).unwrap();
    bytes
}

/// The frames of the only event.
fn frames(reader: &Reader) -> Vec<u64> {
    let mut events = reader.events(Start::Oldest);
    let Some(Item::Event(event)) = events.poll() else { panic!("no event") };
    event.frames().to_vec()
}

/// The name of the function at a place in this program.
fn function(place: CodePlace<'_>) -> String {
    let program = fs::read(&place.object.path).unwrap();
    let program = ElfFile64::<Endianness>::parse(&*program).unwrap();
    assert_eq!(program.build_id().unwrap().unwrap_or_default(), place.object.build_id);
    let symbol = program
        .symbols()
        .find(|symbol| (symbol.address()..symbol.address() + symbol.size()).contains(&place.offset));
    symbol.expect("a function").name().unwrap().to_owned()
}

#[test]
fn frames_of_a_process_that_has_ended_are_found() {
    if let [Some(path), Some(room)] = CHILD.map(std::env::var_os) {
        let telemetry = create(Path::new(&path), room.to_str().unwrap().parse().unwrap());
        return culprit_in_a_dead_process(&telemetry);
    }
    let reader = Reader::from_bytes(left_by_a_process("named", 64)).unwrap();
    let objects = reader.objects().unwrap();
    assert_eq!((objects.left_out, objects.unsteady), (0, 0));
    let frames = frames(&reader);
    let place = objects.place(frames[0]).unwrap();
    assert_eq!(place.object.path, std::env::current_exe().unwrap());
    if cfg!(target_pointer_width = "64") {
        assert!(function(place).contains("culprit_in_a_dead_process"), "{place}");
    }
    assert!(frames.iter().all(|frame| objects.place(*frame).is_some()), "{frames:x?} in {objects:x?}");

    // The control: a file without the section has addresses alone.
    let reader = Reader::from_bytes(left_by_a_process("unnamed", 0)).unwrap();
    let none = reader.objects().unwrap();
    assert_eq!((none.entries.len(), none.left_out), (0, 0));
    assert_eq!(none.place(self::frames(&reader)[0]), None);
}

/// Held by tests that count what is loaded, or load something.
static LOADING: Mutex<()> = Mutex::new(());

/// The first address of each object of this process, and whether it was noted.
fn places(objects: &Table<LoadedObject>) -> Vec<(u64, bool)> {
    let mut starts = Vec::new();
    visit_objects(|object| {
        starts.extend(object.extent().map(|extent| extent.start as u64));
        false
    });
    starts.into_iter().map(|start| (start, objects.place(start + 1).is_some())).collect()
}

/// Libraries of C's own that hardly any program needs.
const LIBRARIES: [&CStr; 4] = [c"libBrokenLocale.so.1", c"libanl.so.1", c"libutil.so.1", c"libnsl.so.1"];

#[test]
fn a_library_that_is_loaded_later_is_noted_when_asked_for() {
    let _alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = std::env::temp_dir().join(format!("tripoint-objects-{}-later", std::process::id()));
    let telemetry = create(&path, 64);
    let reader = Reader::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::remove_file(format!("{}.switches", path.display())).unwrap();
    let objects = || reader.objects().unwrap();
    assert!(places(&objects()).iter().all(|(_, is_noted)| *is_noted));
    let loads = |library: &CStr| {
        // SAFETY: the name ends in a zero; libraries of C's own do nothing when they are loaded.
        !unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) }.is_null()
            && places(&objects()).iter().any(|(_, is_noted)| !is_noted)
    };
    let Some(library) = LIBRARIES.into_iter().find(|library| loads(library)) else {
        tripoint_oracle::skipped!("there is no library here that could be loaded later");
        return;
    };
    let before = objects().entries.len();
    telemetry.note_objects();
    telemetry.note_objects();
    let objects = objects();
    assert!(places(&objects).iter().all(|(_, is_noted)| *is_noted));
    assert!(objects.entries.len() > before);
    let name = library.to_str().unwrap();
    let paths: Vec<&PathBuf> = objects.entries.iter().map(|object| &object.path).collect();
    assert_eq!(paths.iter().filter(|path| path.ends_with(name)).count(), 1, "{paths:?}");
}

#[test]
fn objects_that_find_no_entry_are_counted() {
    let _alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = std::env::temp_dir().join(format!("tripoint-objects-{}-one", std::process::id()));
    let _telemetry = create(&path, 1);
    let objects = Reader::open(&path).unwrap().objects().unwrap();
    fs::remove_file(&path).unwrap();
    fs::remove_file(format!("{}.switches", path.display())).unwrap();
    assert_eq!(objects.entries[0].path, std::env::current_exe().unwrap());
    let mut loaded = 0;
    visit_objects(|object| {
        loaded += u64::from(object.extent().is_some());
        false
    });
    assert_eq!((objects.entries.len() as u64, objects.left_out), (1, loaded - 1));
}
