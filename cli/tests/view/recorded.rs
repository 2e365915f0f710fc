//! A recording with a little of everything, of this very process.

use core::sync::atomic::Ordering;
use std::path::{Path, PathBuf};
use std::thread;

use tempfile::TempDir;
use tripoint_core::{Addr, BufferKind, ContractWords, Event, EventHook, PoolId, PoolOptions, RankSet};
use tripoint_stack::Site;
use tripoint_telemetry::format::{
    HeaderWord, TALLY_NUMBERS, TALLY_THREAD_WORDS, TallyThreadWord, words_of_text,
};
use tripoint_telemetry::{FileOptions, Mean, ObjectKind, Sample, SampledObject, Telemetry};

/// The classes of the tallies.
pub(crate) const CLASSES: [&str; 2] = ["alloc", "dealloc"];

/// What the hot thread does while it is armed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hot {
    Keeps,
    Violates,
}

/// A recording in a folder of its own.
pub(crate) struct Recorded {
    pub(crate) telemetry: Telemetry,
    folder: TempDir,
}

impl Recorded {
    /// Nothing but what creating it records.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("telemetry");
        let options = FileOptions { path: Some(&path), ..FileOptions::default() };
        Self { telemetry: Telemetry::create(&options).unwrap(), folder }
    }

    /// A run from the warm-up to the end of the steady state.
    pub(crate) fn of_a_run(hot: Hot) -> Self {
        let recorded = Self::empty();
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("hot".into());
            thread.spawn_scoped(scope, || run(&recorded.telemetry, hot)).unwrap();
        });
        recorded
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("telemetry")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Closes the recording. The folder stays as long as what this returns.
    pub(crate) fn close(self) -> TempDir {
        self.folder
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    /// The recording of a process that was killed: its file is locked no more, and there is no process of its number.
    pub(crate) fn killed(&self) -> PathBuf {
        let mut bytes = self.bytes();
        let at = HeaderWord::Process as usize * 8;
        bytes[at..at + 8].copy_from_slice(&u64::from(u32::MAX - 1).to_ne_bytes());
        self.beside("killed", &bytes)
    }

    /// Another file beside it.
    pub(crate) fn beside(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn run(telemetry: &Telemetry, hot: Hot) {
    let _attached = telemetry.attach("hot");
    let hook = telemetry.arena_hook();
    let pool = PoolId::new(2).unwrap();
    let buffer = Addr::new(0xb0f0);
    let fill = Event::Fill { pool, buffer, base: Addr::new(0x1000), size: 4096 };
    let phase = |from, to| telemetry.event(Event::Phase { from, to });
    phase("Boot", "Warmup");
    hook.event(Event::CreatePool { pool, options: PoolOptions::NONE, class: "MVFF" });
    hook.event(Event::Extend { pool, base: Addr::new(0x1000), size: 8192 });
    hook.event(Event::Grow { size: 8192 });
    hook.event(Event::CreatePoint { pool, buffer, ranks: RankSet::empty(), kind: BufferKind::Mutator });
    hook.event(fill);
    allocates_while_warm(&hook);
    phase("Warmup", "SteadyState");
    hook.event(fill);
    allocates_while_steady(&hook);
    let contract = ContractWords {
        threads: 1,
        thread_words: TALLY_THREAD_WORDS,
        numbers: TALLY_NUMBERS,
        classes: &CLASSES,
        detectors: &["allocator", "fault_poll"],
    };
    let words = telemetry.words_for(&contract).unwrap().unwrap();
    let word = |at: usize, value| words[at].store(value, Ordering::Relaxed);
    // A hot thread that was armed, held to both classes, with both detectors asked for and live.
    [0b111, 0b11, 0b11, 0b11].into_iter().enumerate().for_each(|(at, value)| word(at, value));
    words_of_text("hot", 24)
        .zip(TallyThreadWord::Name as usize..)
        .for_each(|(text, at)| word(at, text as usize));
    let tally = |class: usize, number: usize, value| {
        word(TALLY_THREAD_WORDS + number * CLASSES.len() + class, value);
    };
    // Count, bytes, excused, excused bytes; the same while armed.
    [5, 500, 0, 0].into_iter().enumerate().for_each(|(number, value)| tally(0, number, value));
    if hot == Hot::Violates {
        violates(telemetry);
        [1, 64]
            .into_iter()
            .enumerate()
            .for_each(|(number, value)| tally(0, TALLY_NUMBERS / 2 + number, value));
    }
    phase("SteadyState", "Teardown");
    hook.event(Event::Empty { pool, buffer, base: Addr::new(0x1000), size: 4096 });
}

/// Samples of three objects, at the caller, with the innermost frame in telemetry, as a sampler has it.
fn sample(hook: &dyn EventHook, site: &Site) {
    let within = Telemetry::mark as fn(&Telemetry, &str, u64) as *const () as usize + 1;
    sample_at(hook, &[&[within], site.frames()].concat());
}

/// Samples of three objects.
pub(crate) fn sample_at(hook: &dyn EventHook, frames: &[usize]) {
    let mean = Mean::new(1000).unwrap();
    for object in 1..=3 {
        let sample = Sample::new(100, object, mean).unwrap();
        let known = SampledObject::new(ObjectKind::Small, Addr::new(0x2000), sample);
        let sampled = SampledObject { pool: PoolId::new(2), type_name: Some("Order"), ..known };
        hook.event_at(sampled.event(), frames);
    }
}

#[inline(never)]
fn allocates_while_warm(hook: &dyn EventHook) {
    sample(hook, &Site::here());
}

#[inline(never)]
fn allocates_while_steady(hook: &dyn EventHook) {
    sample(hook, &Site::here());
}

#[inline(never)]
fn violates(telemetry: &Telemetry) {
    for kind in ["violation", "alarm"] {
        let violation =
            Event::Violation { kind, class: "alloc", slot: 0, count: 1, bytes: 64, address: 0, call: 0 };
        telemetry.event_at(violation, Site::here().frames());
    }
}
