//! The contract's tallies in a telemetry file, which another process reads exactly
//! (design/telemetry.md `.tallies`, design/contract.md `.tallies.child`).
#![cfg(all(tripoint_kernel, not(feature = "interpose-malloc")))]

use tripoint_contract::{
    Contract, ContractAllocator, DetectorSet, Guard, HotThread, NoDetectors, NoReason, Observation, Policies,
    Policy, RECORDS_PER_TURN, Tally, ViolationClass, ViolationSet,
};
use tripoint_core::Error;
use tripoint_oracle::forever;
use tripoint_telemetry::reader::{Fields, Item, Reader, Start, TallyCounters, TallyNumbers, Text};
use tripoint_telemetry::{FileOptions, Room, Telemetry};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

/// A file with a path, which is removed with this.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("tripoint-tallies-{}-{name}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for extension in ["", ".switches"] {
            let path = format!("{}{extension}", self.0.display());
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A contract whose tallies are in a file, with the calling thread armed and held to allocations.
fn in_file(file: &File) -> (Guard<NoReason, NoDetectors>, Reader) {
    let room = Room { tallies: 2, ..Room::default() };
    let options = FileOptions { path: Some(&file.0), room, ..FileOptions::default() };
    let telemetry = forever(Telemetry::create(&options).unwrap());
    let contract: &'static Contract<NoReason, 2> = forever(Contract::new());
    contract.observe_with(telemetry).unwrap();
    let other: &'static Contract<NoReason, 2> = forever(Contract::new());
    let refused = other.observe_with(telemetry);
    assert!(matches!(refused, Err(Error::Parameter(why)) if why.contains("another contract")), "{refused:?}");
    let reader = Reader::open(&file.0).unwrap();
    contract.begin_init().unwrap();
    let thread = HotThread {
        classes: ViolationSet::ALLOC,
        detectors: DetectorSet::ALLOCATOR,
        policies: Policies::all(Policy::Quarantine),
        ..HotThread::new("hot")
    };
    let guard = contract.register_with(thread, NoDetectors).unwrap();
    guard.arm();
    (guard, reader)
}

/// What the reader finds of a class of the only thread.
fn read(reader: &Reader, class: ViolationClass) -> Option<TallyCounters> {
    let counters = reader.counters().unwrap().tallies;
    assert_eq!(counters.unsteady, 0);
    let of_class = |entry: &&TallyCounters| entry.class.as_str() == Some(class.name());
    counters.entries.iter().find(of_class).copied()
}

fn numbers(tally: Tally) -> TallyNumbers {
    let [count, bytes, excused, excused_bytes] =
        [tally.count, tally.bytes, tally.excused, tally.excused_bytes].map(|number| number as u64);
    TallyNumbers { count, bytes, excused, excused_bytes }
}

/// Each event is counted, although only the first of a turn are recorded.
#[test]
fn a_reader_finds_the_tallies_by_which_the_contract_judges() {
    const BOXES: usize = 10_000;
    let file = File::new("exact");
    let (guard, reader) = in_file(&file);
    let mut boxes = [const { None }; 100];
    for number in 0..BOXES {
        boxes[number % 100] = Some(core::hint::black_box(Box::new([number; 3])));
    }
    let slot = guard.slot();
    assert_eq!(slot.armed_tally(ViolationClass::Alloc).count, BOXES);
    guard.follow_lifecycle();
    boxes.fill(None);
    // From here on nothing is counted, so that this thread itself can read.
    drop(guard);
    for class in ViolationClass::ALL {
        let [all, armed] = [slot.tally(class), slot.armed_tally(class)].map(numbers);
        match read(&reader, class) {
            Some(found) => assert_eq!((found.thread, found.all, found.armed), (0, all, armed), "{class}"),
            None => assert_eq!(all, TallyNumbers::default(), "{class}"),
        }
    }
    assert!(slot.tally(ViolationClass::Dealloc).count >= BOXES);

    // The control: events of records are no tally.
    let mut events = reader.events(Start::Oldest);
    let mut recorded = 0;
    while let Some(item) = events.poll() {
        let Item::Event(event) = item else { continue };
        if let Fields::Violation { kind, class, .. } = event.fields
            && (kind.as_str(), class.as_str()) == (Some("violation"), Some("alloc"))
        {
            recorded += 1;
        }
    }
    assert_eq!(recorded, RECORDS_PER_TURN);
}

/// The words are of a file that a child shares.
#[test]
fn a_forked_child_counts_in_memory_of_its_own() {
    let file = File::new("child");
    let (guard, reader) = in_file(&file);
    let grow = |count| guard.observe(Observation { count, ..Observation::new(ViolationClass::Growth, 10) });
    let counted = || guard.slot().tally(ViolationClass::Growth).count;
    grow(3);
    // SAFETY: the child counts, which neither locks nor allocates, and ends with `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        grow(100);
        let is_counted = counted() == 103;
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(!is_counted)) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's own, and the status is a number of that type.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child goes on from its parent's numbers");
    grow(1);
    assert_eq!((counted(), read(&reader, ViolationClass::Growth).unwrap().all.count), (4, 4));
}

/// What the reader takes for a thread's words is what the contract takes.
#[test]
fn both_crates_have_one_layout() {
    const { assert!(ViolationClass::COUNT <= tripoint_telemetry::format::MAX_TALLY_CLASSES) };
    let file = File::new("layout");
    let (guard, reader) = in_file(&file);
    let described = |reader: &Reader| {
        let threads = reader.counters().unwrap().contract_threads.entries;
        let [thread] = &threads[..] else { panic!("{threads:?}") };
        thread.clone()
    };
    let names = |set: &[Text]| set.iter().map(ToString::to_string).collect::<Vec<_>>();
    let slot = guard.slot();
    drop(guard);
    let thread = described(&reader);
    assert_eq!((thread.thread, thread.name.as_str()), (0, Some("hot")));
    assert_eq!((thread.is_hot, thread.was_armed, thread.has_left), (true, true, true));
    assert_eq!(names(&thread.held), ["alloc"]);
    assert_eq!(names(&thread.wanted), ["allocator"]);
    assert!(slot.live().names().eq(names(&thread.live)), "{thread:?}");
    assert_eq!(thread.records_lost, slot.records_lost() as u64);
    assert_eq!(thread.overlapped, slot.overlapped() as u64);
}

/// Before anything is counted in the wrong place.
#[test]
fn a_contract_of_more_threads_than_the_file_has_room_for_is_refused() {
    let file = File::new("few");
    let room = Room { tallies: 1, ..Room::default() };
    let options = FileOptions { path: Some(&file.0), room, ..FileOptions::default() };
    let telemetry = forever(Telemetry::create(&options).unwrap());
    let contract: &'static Contract = forever(Contract::new());
    let refused = contract.observe_with(telemetry);
    assert!(matches!(refused, Err(Error::Parameter(why)) if why.contains("Room::tallies")), "{refused:?}");
    let reader = Reader::open(&file.0).unwrap();
    contract.begin_init().unwrap();
    assert_eq!(reader.counters().unwrap().phase.entries, [], "it has no hook");
}
