//! The names of files with a path: how the two files receive theirs, together
//! ([design/telemetry.md `.names`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use core::ffi::CStr;
use core::time::Duration;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread;

use crate::format::{FileState, HeaderWord, MAGIC, WORD_BYTES};
use crate::linux::system::System;
use crate::recorder::report::{Refusal, SystemCall};

/// The names of a file.
#[derive(Debug)]
struct Names {
    /// The name while the file is made.
    new: CString,
    /// The name from then on.
    last: CString,
    /// A second name of the former file, until it is certain that the file is not needed.
    former: CString,
}

/// A new file that will have a path. What is left under another name is removed.
#[derive(Debug)]
pub(super) struct NewFile<'s> {
    system: &'s dyn System,
    names: Names,
}

impl<'s> NewFile<'s> {
    /// Names a file at the path with this extension. `None` if the path has no file name, or a zero byte.
    ///
    /// `identity` is a number that no other telemetry has: processes of two containers may have the same number
    /// and the same directory.
    pub(super) fn at(system: &'s dyn System, path: &Path, extension: &str, identity: u64) -> Option<Self> {
        // A path with a slash at its end has the name before that, but is not a file's.
        let name = path.file_name()?;
        path.as_os_str().as_bytes().ends_with(name.as_bytes()).then_some(())?;
        let with = |more: &str| {
            let mut name = OsString::from(path);
            name.push(extension);
            name.push(more);
            CString::new(name.into_vec()).ok()
        };
        let process = std::process::id();
        let new = with(&std::format!(".{process}-{identity:x}.new"))?;
        let former = with(&std::format!(".{process}-{identity:x}.old"))?;
        Some(Self { system, names: Names { new, last: with("")?, former } })
    }

    /// The name of the file while it is made.
    pub(super) fn temporary_name(&self) -> &CStr {
        &self.names.new
    }

    /// Gives the file its last name.
    fn rename(&self) -> Result<(), Refusal> {
        self.move_file(&self.names.new)
    }

    fn move_file(&self, from: &CStr) -> Result<(), Refusal> {
        let renamed = self.system.rename_file(from, &self.names.last);
        renamed.map_err(|code| Refusal { call: SystemCall::Rename, code, bytes: 0 })
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        self.system.remove_file(&self.names.new);
        self.system.remove_file(&self.names.former);
    }
}

/// What came of giving two files their names.
#[derive(Debug)]
pub(super) struct Published {
    /// Why no lock kept other processes from giving files the same names meanwhile.
    pub(super) locked: Result<(), Refusal>,
    /// The process that still has the data which had the name before.
    pub(super) replaced: Option<u64>,
}

/// Gives the switches and the data their last names, while no other process does the same in this directory. If that
/// fails, the files that had these names have them again.
///
/// As long as `file`, the data, is open, other processes see that it is in use.
pub(super) fn publish(
    data: &NewFile<'_>,
    switches: &NewFile<'_>,
    file: BorrowedFd<'_>,
) -> Result<Published, Refusal> {
    let system = data.system;
    let directory = LockedDirectory::of(system, &data.names.last);
    // The data also if the directory cannot be locked: so the next process sees at least that this one is replaced.
    let in_use = system.lock_file(file);
    let locked = directory.as_ref().map_err(|code| *code).and(in_use);
    let replaced = user_of(system, &data.names.last);
    let has_former = system.link_file(&switches.names.last, &switches.names.former).is_ok();
    // Readers that find the data find its switches.
    switches.rename()?;
    data.rename().inspect_err(|_| {
        if !has_former || switches.move_file(&switches.names.former).is_err() {
            system.remove_file(&switches.names.last);
        }
    })?;
    let locked = locked.map_err(|code| Refusal { call: SystemCall::FileLock, code, bytes: 0 });
    Ok(Published { locked, replaced })
}

/// A directory that is locked until this is dropped.
struct LockedDirectory<'s> {
    system: &'s dyn System,
    directory: File,
}

/// How often the lock is tried. Another process has it for a few system calls, unless that process is stopped, so this
/// is about a second.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

impl<'s> LockedDirectory<'s> {
    /// Locks the directory that a file is in. Waits for another process, for about a second.
    fn of(system: &'s dyn System, file: &CStr) -> Result<Self, i32> {
        let parent = Path::new(OsStr::from_bytes(file.to_bytes())).parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let directory = File::open(parent).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
        for _ in 1..ATTEMPTS {
            match system.lock_file(directory.as_fd()) {
                Err(libc::EWOULDBLOCK) => thread::sleep(PAUSE),
                outcome => return outcome.map(|()| Self { system, directory }),
            }
        }
        system.lock_file(directory.as_fd()).map(|()| Self { system, directory })
    }
}

impl Drop for LockedDirectory<'_> {
    fn drop(&mut self) {
        // Closing the file would not be enough if the process was forked meanwhile: the child has the lock as well.
        self.system.unlock_file(self.directory.as_fd());
    }
}

/// The process that writes to the telemetry file at a path, if one does.
fn user_of(system: &dyn System, path: &CStr) -> Option<u64> {
    let path = OsStr::from_bytes(path.to_bytes());
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    let word = |at: HeaderWord| {
        let mut bytes = [0; WORD_BYTES];
        file.read_exact_at(&mut bytes, (at as usize * WORD_BYTES) as u64)
            .ok()
            .map(|()| u64::from_ne_bytes(bytes))
    };
    // A child that was forked meanwhile has the lock even if the file was closed.
    let is_open = word(HeaderWord::Magic)? == u64::from_ne_bytes(MAGIC)
        && word(HeaderWord::State)? == FileState::Open as u64
        && system.is_locked(file.as_fd());
    is_open.then(|| word(HeaderWord::Process)).flatten()
}
