//! A replay from the beginning of a log to its end.

use core::mem::MaybeUninit;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use tripoint::{Arena, ArenaVm, ArenaVmOptions, ClientArena, ClientArenaOptions, Prefault};
use tripoint_telemetry::reader::{Fields, RecordedEvent};
use tripoint_telemetry::{LogError, LogReader};

use super::driver::{Aim, Driver, Stopped};
use super::fates::Fates;
use super::hook::Hook;
use super::verdict::Verdict;
use crate::error::Error;

/// The alignment that the memory of a client arena has in the replay as in the log, in bytes: objects that are more
/// aligned may lie elsewhere.
const ALIGN: usize = 2 << 20;

type Log = LogReader<BufReader<File>>;

/// Replays a log.
pub(crate) fn replay(path: &Path, aim: Aim) -> Result<Verdict, Error> {
    let unfit = |why: String| Error::Unfit { path: path.to_owned(), why };
    let open = || -> Result<Log, Error> {
        let file = File::open(path).map_err(Error::system("read", path))?;
        LogReader::open(BufReader::new(file)).map_err(|error| unfit(error.to_string()))
    };
    let fates = Fates::read(open()?, aim.until).map_err(|error| match error {
        LogError::Truncated { event: missing @ 1.. } => {
            unfit(format!("{error}; what there is of it is replayed with --until {}", missing - 1))
        }
        error => unfit(error.to_string()),
    })?;
    let mut log = open()?;
    let first = log.next_event().map_err(|error| unfit(error.to_string()))?;
    let first = first.filter(|event| matches!(event.fields, Fields::CreateArena { .. }));
    let created = first.ok_or_else(|| {
        unfit(
            "it does not begin with its arena: make the log the hook of the arena when you create that"
                .into(),
        )
    })?;
    // The hook of an arena of the system's memory is never dropped, and neither is this one.
    let start = Start { log, fates: &fates, aim, created, hook: Box::leak(Box::default()) };
    start.run().map_err(unfit)
}

/// What a replay begins with.
struct Start<'f> {
    log: Log,
    fates: &'f Fates,
    aim: Aim,
    created: RecordedEvent,
    hook: &'static Hook,
}

impl Start<'_> {
    /// Makes the arena, and replays in it.
    fn run(self) -> Result<Verdict, String> {
        let Fields::CreateArena {
            grain,
            commit_limit,
            memory_base,
            memory_size,
            commit_policy,
            prefault_size,
            class,
            ..
        } = self.created.fields
        else {
            return Err("it has no arena".into());
        };
        let (grain, commit_limit, size) = (grain as usize, commit_limit as usize, memory_size as usize);
        match class.as_str() {
            Some("ClientArena") => {
                let mut memory: Vec<u8> = Vec::new();
                let whole = size.checked_add(ALIGN).ok_or("its arena is larger than all memory")?;
                memory
                    .try_reserve_exact(whole)
                    .map_err(|error| format!("its arena needs {size} bytes: {error}"))?;
                let memory = placed(memory.spare_capacity_mut(), memory_base as usize, size);
                let options = ClientArenaOptions { grain: Some(grain), event_hook: Some(self.hook) };
                let arena = ClientArena::create(memory, options).map_err(|error| error.to_string())?;
                self.run_in(&arena)
            }
            Some("ArenaVm") => {
                let options = ArenaVmOptions {
                    reserve: size,
                    reserve_floor: size,
                    grain,
                    commit_limit,
                    spare_share: commit_policy as u8,
                    prefault: prefault_of(commit_policy, prefault_size as usize),
                    guard: commit_policy & 1 << 17 != 0,
                    huge_pages: commit_policy & 1 << 18 != 0,
                    event_hook: Some(self.hook),
                    ..ArenaVmOptions::default()
                };
                let arena = ArenaVm::create(options).map_err(|error| error.to_string())?;
                self.run_in(&arena)
            }
            _ => Err(format!("arenas of type {class} are not replayed")),
        }
    }

    fn run_in<A: Arena>(self, arena: &A) -> Result<Verdict, String> {
        let Self { log, fates, aim, created, hook } = self;
        let mut driver = Driver::new(arena, hook, log, fates, aim, created);
        match driver.run() {
            Ok(()) => Ok(driver.verdict(None)),
            // Of the last call of a log without an end, not all may be there to compare.
            Err(Stopped::Log(LogError::Truncated { .. })) if fates.is_cut => Ok(driver.verdict(None)),
            Err(Stopped::Diverged(divergence)) => Ok(driver.verdict(Some(*divergence))),
            Err(Stopped::Log(error)) => Err(error.to_string()),
            Err(Stopped::Impossible { event, why }) => Err(format!("event {event}: {}", why.0)),
        }
    }
}

/// How grains are prefaulted by this policy (`ArenaVmOptions::commit_policy` has its bits); if they have memory for
/// another reason, when they are committed.
fn prefault_of(commit_policy: u64, size: usize) -> Prefault {
    match commit_policy >> 8 & 0xff {
        2 => Prefault::Ahead(size),
        3 => Prefault::Size(size),
        4 => Prefault::Everything,
        _ if commit_policy & 1 << 16 != 0 => Prefault::AtFill,
        _ => Prefault::None,
    }
}

/// The part of `memory` that has `size` bytes, and lies as memory at `base` does.
fn placed(memory: &mut [MaybeUninit<u8>], base: usize, size: usize) -> &mut [MaybeUninit<u8>] {
    let skipped = base.wrapping_sub(memory.as_ptr().addr()) % ALIGN;
    let rest = memory.get_mut(skipped..).unwrap_or_default();
    let size = size.min(rest.len());
    &mut rest[..size]
}
