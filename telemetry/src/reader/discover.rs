//! Finds the processes that have telemetry, by what `/proc` shows of their descriptors
//! ([design/telemetry.md `.reader.discover`](crate::design::telemetry)).

use core::ffi::CStr;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::time::SystemTime;
use std::vec::Vec;

use crate::format::{DATA_NAME, SWITCHES_NAME};
use crate::reader::error::OpenError;
use crate::reader::file::Reader;
use crate::reader::switches::SwitchesFile;

/// A telemetry file in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number of the process that writes, as this process sees it.
    pub process: u32,
    /// The name of its program, as the system shortens it.
    pub program: String,
    /// The time at which it made the file, if the file says so.
    pub made: Option<SystemTime>,
    /// A path with which [`Reader::open`] can open the file as long as the process has it open.
    pub path: PathBuf,
}

/// Lists the telemetry files in memory of all processes that this user may look at. Files with a path
/// are not among them.
///
/// # Errors
/// If there is no `/proc`.
pub fn discover() -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let number = process.file_name().to_str().and_then(|name| name.parse().ok());
        // Processes may end meanwhile, and this user may not look at all of them.
        found.extend(number.and_then(|number| files_of(number).ok()).unwrap_or_default());
    }
    Ok(found)
}

impl Reader {
    /// Opens the telemetry file in the memory of a process, by the number of the process.
    ///
    /// # Errors
    /// [`OpenError::NoneFound`] if it has none or has ended, [`OpenError::Unfinished`] if it is creating it,
    /// [`OpenError::Several`] if it has more than one, and the errors of [`open`](Self::open).
    pub fn attach(process: u32) -> Result<Self, OpenError> {
        let mut files = files_of(process).map_err(|error| not_looked_at(process, error))?;
        match (files.pop(), files.is_empty()) {
            (None, _) => Err(OpenError::NoneFound { process }),
            (Some(file), true) => Self::open(file.path).map_err(|error| match error {
                // It has its name, and nothing else yet.
                OpenError::NotTelemetry { .. } => OpenError::Unfinished { process: process.into() },
                error => error,
            }),
            (Some(last), false) => {
                files.push(last);
                Err(OpenError::Several { process, files: files.into_iter().map(|file| file.path).collect() })
            }
        }
    }
}

impl SwitchesFile {
    /// Opens the switches of a process whose telemetry file is in memory, by the number of the process.
    ///
    /// # Errors
    /// [`OpenError::NoneFound`] if it has none or has ended, [`OpenError::Several`] if it has more than one (each of
    /// its paths can be [opened](Self::open), and [`belong_to`](Self::belong_to) says which telemetry it is for), and
    /// others as for [`open`](Self::open).
    pub fn attach(process: u32) -> Result<Self, OpenError> {
        let own = own_number(process);
        let mut found: Option<Self> = None;
        let mut paths = named(process, SWITCHES_NAME).map_err(|error| not_looked_at(process, error))?;
        paths.retain(|path| match Self::open_itself(path) {
            Ok(switches) if own.is_none_or(|own| own == switches.process()) => {
                found = Some(switches);
                true
            }
            _ => false,
        });
        if paths.len() > 1 {
            return Err(OpenError::Several { process, files: paths });
        }
        found.ok_or(OpenError::NoneFound { process })
    }
}

/// Why the descriptors of a process could not be looked at. A process that has ended has none.
fn not_looked_at(process: u32, error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::NotFound => OpenError::NoneFound { process },
        _ => OpenError::system_at("look at the descriptors of the process, in", &folder(process).join("fd"))(
            error,
        ),
    }
}

/// The files that a process writes. A forked child also has the descriptors of its parent's files, which
/// are left out.
fn files_of(process: u32) -> io::Result<Vec<Found>> {
    let own = own_number(process);
    let mut found = Vec::new();
    for path in named(process, DATA_NAME)? {
        let info = Reader::open(&path).ok().map(|reader| *reader.info());
        if info.is_some_and(|info| own.is_some_and(|own| own != info.process)) {
            continue;
        }
        let made = info.and_then(|info| info.made());
        found.push(Found { process, program: program(process), made, path });
    }
    Ok(found)
}

/// The descriptors of a process that are files in memory of this name, one for each file.
fn named(process: u32, name: &CStr) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut files = Vec::new();
    for descriptor in fs::read_dir(folder(process).join("fd"))?.flatten() {
        if is_named(&descriptor, name)
            && let Ok(file) = fs::metadata(descriptor.path())
        {
            let identity = (file.dev(), file.ino());
            if !files.contains(&identity) {
                files.push(identity);
                paths.push(descriptor.path());
            }
        }
    }
    Ok(paths)
}

/// Whether a descriptor is a file in memory of this name. The system says that it is deleted,
/// because no folder has it.
fn is_named(descriptor: &DirEntry, name: &CStr) -> bool {
    let target = fs::read_link(descriptor.path());
    target.is_ok_and(|target| {
        let link = target.to_str().and_then(|target| target.strip_prefix("/memfd:"));
        link.is_some_and(|link| link.strip_suffix(" (deleted)").unwrap_or(link).as_bytes() == name.to_bytes())
    })
}

fn folder(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// The number that the process itself sees, which is different in a container.
fn own_number(process: u32) -> Option<u64> {
    let status = fs::read_to_string(folder(process).join("status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// The name of the process's program; empty if the system does not say.
fn program(process: u32) -> String {
    let name = fs::read(folder(process).join("comm")).unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
}
