//! Telemetry in a file that other processes map ([design/telemetry.md `.file`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use core::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::vec::Vec;

use crate::clock::Clock;
use crate::file::plan::{Plan, Room};
use crate::format::{DATA_NAME, HeaderFlags, SWITCHES_NAME, SWITCHES_WORDS, WORD_BYTES};
use crate::linux::mapping::Mapping;
use crate::linux::names::{NewFile, publish};
use crate::linux::native_system::Linux;
use crate::linux::system::System;
use crate::native;
use crate::recorder::report::{Refusal, Report, SystemCall, TelemetryError};
use crate::recorder::telemetry::{Parts, Telemetry};

/// Options for telemetry in a file.
#[derive(Clone, Debug)]
pub struct FileOptions<'p> {
    /// The path of the file; the file of the switches has the same path with `.switches` added. `None`, the
    /// default, is for a file in memory without a path, which readers find by the number of the process. If the
    /// path has a file already, that file is replaced, and its readers keep it. If a process still writes to it, the
    /// [report](Telemetry::report) says so ([`Report::replaced`]).
    pub path: Option<&'p Path>,
    /// How much the file has room for.
    pub room: Room,
    /// The clock that the times of events are from.
    pub clock: Clock,
    /// Whether to lock the file in memory, true by default. If the system refuses, the report says so. What is locked
    /// counts towards the process's limit (`RLIMIT_MEMLOCK`, by default 8 MiB, and 64 KiB before Linux 5.16), of which
    /// the default room takes 5.0 MiB. What the program locks later may be refused then.
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
    /// Creates telemetry in a file that other processes of the same user may read. Its memory is never unmapped, not
    /// even if this is dropped: create it once in a process. Each time, three mappings (of 65,530 that a process may
    /// have by default, `vm.max_map_count`) and the locked memory are used up until the process ends. This takes about
    /// 1 ms for each 4 MiB, and 2 ms more if the clock is the time-stamp counter. With a path it may take
    /// a second more, if another process has the directory locked.
    ///
    /// # Errors
    /// - [`TelemetryError::System`] if the system refuses the file, its name or its memory.
    /// - [`TelemetryError::Path`] if the path cannot be used.
    /// - [`TelemetryError::TooLarge`] if the room is more than the format allows.
    /// - [`TelemetryError::NoMemory`] if the telemetry needs more memory than is available. This holds for a file on a
    ///   disk, too, because all of the file is written when it is created.
    ///
    /// Other refusals of the system are in the [report](Self::report).
    #[cfg_attr(docsrs, doc(cfg(all(feature = "linux", target_os = "linux"))))]
    pub fn create(options: &FileOptions<'_>) -> Result<Self, TelemetryError> {
        create_on(&Linux, options)
    }
}

/// Creates a file that will have a path, or one without.
fn create_file(system: &dyn System, name: &CStr, new: Option<&NewFile<'_>>) -> Result<OwnedFd, Refusal> {
    let (call, created) = match new {
        None => (SystemCall::CreateAnonymous, system.create_anonymous(name)),
        Some(new) => (SystemCall::CreateFile, system.create_file(new.temporary_name())),
    };
    created.map_err(|code| Refusal { call, code, bytes: 0 })
}

/// A number that no other telemetry has, not zero. Without random numbers it is made of the time and the process.
fn identity(system: &dyn System) -> u64 {
    let process = u64::from(std::process::id());
    let made =
        || native::clock::unix().rotate_left(32) ^ native::clock::nanoseconds() ^ process.rotate_left(24);
    system.random_numbers().map_or_else(|_| made(), |[number, _]| number).max(1)
}

/// Creates telemetry on a system.
///
/// # Errors
/// As [`Telemetry::create`].
pub fn create_on(system: &dyn System, options: &FileOptions<'_>) -> Result<Telemetry, TelemetryError> {
    let (plan, bytes) = Plan::new(&options.room).zip(options.room.bytes()).ok_or(TelemetryError::TooLarge)?;
    let refused = |call| move |code| Refusal { call, code, bytes: 0 };
    // This is checked before anything is allocated, because the system may end this process or others instead of
    // refusing.
    let available = system.available_memory().map_err(refused(SystemCall::AvailableMemory));
    if let Ok(available) = available
        && bytes as u64 > available
    {
        return Err(TelemetryError::NoMemory { needed: bytes, available });
    }
    let secret = system.random_numbers().map_err(refused(SystemCall::Random));
    if options.without_addresses {
        secret.map_err(TelemetryError::System)?;
    }
    let identity = identity(system);
    let names = options.path.map(|path| {
        let named = |extension| NewFile::at(system, path, extension, identity);
        named("").zip(named(".switches")).ok_or(TelemetryError::Path)
    });
    let names = names.transpose()?;
    let (new_data, new_switches) = names.as_ref().map(|(data, switches)| (data, switches)).unzip();
    let map = |name, new, bytes| {
        let mapped = create_file(system, name, new).and_then(|file| Mapping::new(system, file, bytes));
        mapped.map_err(TelemetryError::System)
    };
    let data = map(DATA_NAME, new_data, plan.words * WORD_BYTES)?;
    let switches = map(SWITCHES_NAME, new_switches, SWITCHES_WORDS * WORD_BYTES)?;

    let place = if options.path.is_some() { HeaderFlags::PATH } else { HeaderFlags::ANONYMOUS };
    let mut report = Report::new(place | HeaderFlags::PREFAULTED | HeaderFlags::SWITCHES, bytes);
    report.note(HeaderFlags::empty(), available.map(|_| true));
    if options.path.is_none() {
        let restricted =
            [&data, &switches].iter().try_for_each(|mapping| system.restrict_file(mapping.file.as_fd()));
        report.note(HeaderFlags::empty(), restricted.map(|()| true).map_err(refused(SystemCall::Mode)));
    }
    report.note(HeaderFlags::IN_MEMORY, is_in_memory(system, options, &data));
    if options.lock {
        report.note(
            HeaderFlags::LOCKED,
            data.lock_in_memory().and_then(|()| switches.lock_in_memory()).map(|()| true),
        );
    }
    let sealed = if options.path.is_some() { Ok(false) } else { seal(system, &data, &switches) };
    report.note(HeaderFlags::SEALED, sealed);
    let parent = system.word_of_the_parent().map_err(refused(SystemCall::WipeOnFork));
    report.note(HeaderFlags::PARENT_ONLY, parent.map(|_| true));
    report.note(HeaderFlags::empty(), secret.map(|_| true));
    report.note(HeaderFlags::WITHOUT_ADDRESSES, Ok(options.without_addresses));

    let (words, data_file) = data.into_words();
    let (switch_words, switches_file) = switches.into_words();
    let small = TelemetryError::TooSmall { needed: bytes, bytes: size_of_val(words) };
    let mut telemetry = Telemetry::new(Parts {
        words,
        switches: switch_words.first_chunk().ok_or(small)?,
        plan,
        clock: options.clock,
        parent: parent.ok(),
        secret: secret.ok(),
        without_addresses: options.without_addresses,
        process: u64::from(std::process::id()),
        identity,
        report,
        files: if names.is_some() { Vec::from([data_file]) } else { Vec::from([data_file, switches_file]) },
    })?;
    telemetry.note_objects();
    if let (Some((data, switches)), Some(file)) = (&names, telemetry.files().first()) {
        let published = publish(data, switches, file.as_fd()).map_err(TelemetryError::System)?;
        telemetry.report_mut().note(HeaderFlags::empty(), published.locked.map(|()| true));
        telemetry.report_mut().note_replaced(published.replaced);
    }
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
