//! Telemetry in a file that other processes map ([design/telemetry.md `.file`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use core::ffi::CStr;
use core::hash::{BuildHasher, Hasher};
use std::collections::hash_map::RandomState;
use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::vec::Vec;

use crate::clock::Clock;
use crate::file::plan::{Plan, Room};
use crate::format::{DATA_NAME, HeaderFlags, SWITCHES_NAME, SWITCHES_WORDS, WORD_BYTES};
use crate::linux::mapping::Mapping;
use crate::linux::native_system::Linux;
use crate::linux::system::System;
use crate::recorder::report::{Refusal, Report, SystemCall, TelemetryError};
use crate::recorder::telemetry::{Parts, Telemetry};

/// Options for telemetry in a file.
#[derive(Clone, Debug)]
pub struct FileOptions<'p> {
    /// The path of the file; the file of the switches has the same path with `.switches` added. `None`, the
    /// default, is for a file in memory without a path, which readers find by the number of the process. If the
    /// path has a file already, that is replaced, and its readers keep the old one.
    pub path: Option<&'p Path>,
    /// How much the file has room for.
    pub room: Room,
    /// The clock that the times of events are from.
    pub clock: Clock,
    /// Whether to lock the file in memory, true by default. If the system refuses, the report says so.
    pub lock: bool,
    /// Whether to leave addresses and sites out for good, false by default: then no switch, of this
    /// process or another one, has them written. Buffers keep their numbers, from which readers cannot compute
    /// addresses, so there is no telemetry if the system refuses random numbers for them.
    pub without_addresses: bool,
}

impl Default for FileOptions<'_> {
    fn default() -> Self {
        Self {
            path: None,
            room: Room::default(),
            clock: Clock::default(),
            lock: true,
            without_addresses: false,
        }
    }
}

impl Telemetry {
    /// Creates telemetry in a file that other processes of the same user may read. Its memory is never
    /// unmapped. This takes about 1 ms for each 4 MiB, and 2 ms more if the clock is the time-stamp counter.
    ///
    /// # Errors
    /// - [`TelemetryError::System`] if the system refuses the file, its name or its memory.
    /// - [`TelemetryError::Path`] if the path cannot be used.
    /// - [`TelemetryError::TooLarge`] if the room is more than the format allows.
    ///
    /// Other refusals of the system are in the [report](Self::report).
    pub fn create(options: &FileOptions<'_>) -> Result<Self, TelemetryError> {
        create_on(&Linux, options)
    }
}

/// The two paths of a file: one while it is made, and one from then on.
struct Paths {
    new: CString,
    last: CString,
}

impl Paths {
    fn of(path: &Path, extension: &str) -> Option<Self> {
        path.file_name()?;
        let with = |more: &str| {
            let mut name = OsString::from(path);
            name.push(extension);
            name.push(more);
            CString::new(name.into_vec()).ok()
        };
        // Processes of two containers may have the same number and the same directory.
        let random = RandomState::new().build_hasher().finish();
        Some(Self { new: with(&std::format!(".{}-{random:x}.new", std::process::id()))?, last: with("")? })
    }
}

/// A new file, which is removed unless it has received its last path.
struct NewFile<'s> {
    system: &'s dyn System,
    paths: Option<Paths>,
}

impl NewFile<'_> {
    /// Has the file receive its last path, and does the rest. If that fails, the file is removed.
    fn keep(mut self, rest: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
        let Some(Paths { new, last }) = &self.paths else { return rest() };
        let renamed = self.system.rename_file(new, last);
        renamed.map_err(|code| Refusal { call: SystemCall::Rename, code, bytes: 0 })?;
        rest().inspect_err(|_| self.system.remove_file(last))?;
        self.paths = None;
        Ok(())
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if let Some(paths) = &self.paths {
            self.system.remove_file(&paths.new);
        }
    }
}

/// Creates a file with the path, or without one.
fn create_file<'s>(
    system: &'s dyn System,
    name: &CStr,
    paths: Option<Paths>,
) -> Result<(OwnedFd, NewFile<'s>), Refusal> {
    let (call, created) = match &paths {
        None => (SystemCall::CreateAnonymous, system.create_anonymous(name)),
        Some(paths) => (SystemCall::CreateFile, system.create_file(&paths.new)),
    };
    let file = created.map_err(|code| Refusal { call, code, bytes: 0 })?;
    Ok((file, NewFile { system, paths }))
}

fn paths_of(path: Option<&Path>, extension: &str) -> Result<Option<Paths>, TelemetryError> {
    path.map(|path| Paths::of(path, extension).ok_or(TelemetryError::Path)).transpose()
}

/// Creates telemetry on a system.
///
/// # Errors
/// As [`Telemetry::create`].
pub fn create_on(system: &dyn System, options: &FileOptions<'_>) -> Result<Telemetry, TelemetryError> {
    let (plan, bytes) = Plan::new(&options.room).zip(options.room.bytes()).ok_or(TelemetryError::TooLarge)?;
    let map = |name, extension, bytes| {
        let (file, new) =
            create_file(system, name, paths_of(options.path, extension)?).map_err(TelemetryError::System)?;
        Ok((Mapping::new(system, file, bytes).map_err(TelemetryError::System)?, new))
    };
    let (data, new_data) = map(DATA_NAME, "", plan.words * WORD_BYTES)?;
    let (switches, new_switches) = map(SWITCHES_NAME, ".switches", SWITCHES_WORDS * WORD_BYTES)?;

    let place = if options.path.is_some() { HeaderFlags::PATH } else { HeaderFlags::ANONYMOUS };
    let mut report = Report::new(place | HeaderFlags::PREFAULTED | HeaderFlags::SWITCHES, bytes);
    report.note(HeaderFlags::IN_MEMORY, is_in_memory(system, options, &data));
    if options.lock {
        report.note(
            HeaderFlags::LOCKED,
            data.lock_in_memory().and_then(|()| switches.lock_in_memory()).map(|()| true),
        );
    }
    let sealed = if options.path.is_some() { Ok(false) } else { seal(system, &data, &switches) };
    report.note(HeaderFlags::SEALED, sealed);
    let refused = |call| move |code| Refusal { call, code, bytes: 0 };
    let parent = system.word_of_the_parent().map_err(refused(SystemCall::WipeOnFork));
    report.note(HeaderFlags::PARENT_ONLY, parent.map(|_| true));
    let secret = system.random_numbers().map_err(refused(SystemCall::Random));
    if options.without_addresses {
        secret.map_err(TelemetryError::System)?;
    }
    report.note(HeaderFlags::empty(), secret.map(|_| true));
    report.note(HeaderFlags::WITHOUT_ADDRESSES, Ok(options.without_addresses));

    let (words, data_file) = data.into_words();
    let (switch_words, switches_file) = switches.into_words();
    let small = TelemetryError::TooSmall { needed: bytes, bytes: size_of_val(words) };
    let telemetry = Telemetry::new(Parts {
        words,
        switches: switch_words.first_chunk().ok_or(small)?,
        plan,
        clock: options.clock,
        parent: parent.ok(),
        secret: secret.ok(),
        without_addresses: options.without_addresses,
        process: u64::from(std::process::id()),
        report,
        files: if options.path.is_some() { Vec::new() } else { Vec::from([data_file, switches_file]) },
    })?;
    telemetry.note_objects();
    new_switches.keep(|| new_data.keep(|| Ok(()))).map_err(TelemetryError::System)?;
    Ok(telemetry)
}

fn is_in_memory(system: &dyn System, options: &FileOptions<'_>, data: &Mapping<'_>) -> Result<bool, Refusal> {
    if options.path.is_none() {
        return Ok(true);
    }
    system.is_in_memory(data.file.as_fd()).map_err(|code| Refusal {
        call: SystemCall::FileSystem,
        code,
        bytes: 0,
    })
}

/// Seals both files: the data against all new writers, the switches only against changes of their size. If the
/// system cannot seal against writers, at least the size of the data is sealed.
fn seal(system: &dyn System, data: &Mapping<'_>, switches: &Mapping<'_>) -> Result<bool, Refusal> {
    let sealed = system.seal_file(switches.file.as_fd(), false).and_then(|()| {
        system.seal_file(data.file.as_fd(), true).inspect_err(|_| {
            let _ = system.seal_file(data.file.as_fd(), false);
        })
    });
    sealed.map(|()| true).map_err(|code| Refusal { call: SystemCall::Seal, code, bytes: 0 })
}
