//! The errors of opening a file.

use core::error::Error;
use core::fmt;
use std::boxed::Box;
use std::io;
use std::path::{Path, PathBuf};
use std::vec::Vec;

use crate::format::VERSION;
use crate::reader::file::Reader;

/// Why a telemetry file cannot be read, or not all of it.
#[non_exhaustive]
pub enum OpenError {
    /// The system refused a call.
    System {
        /// What the call was for.
        doing: &'static str,
        /// The path that was passed, if one was.
        path: Option<PathBuf>,
        /// The system's error.
        error: io::Error,
    },
    /// The file does not begin like a telemetry file. Nor is it a core file of a process that
    /// had one.
    NotTelemetry {
        /// The bytes of the file.
        bytes: u64,
    },
    /// The file has switches, not the data: it is for [`SwitchesFile`](crate::reader::SwitchesFile). The path of the
    /// data is the same without `.switches`.
    AreSwitches {
        /// The process whose switches these are.
        process: u64,
    },
    /// The file does not begin like one of switches.
    NotSwitches {
        /// Its path, if one was passed: that of the data with `.switches` added.
        path: Option<PathBuf>,
        /// The bytes of the file.
        bytes: u64,
    },
    /// The switches at `PATH.switches` are not those of the data at `PATH`. One of the two files was replaced
    /// without the other.
    OtherSwitches {
        /// The process that writes the data.
        data: u64,
        /// The process whose switches these are.
        switches: u64,
    },
    /// The process has not finished the header yet. Try again.
    Unfinished {
        /// The process that makes it; zero if the header does not say yet.
        process: u64,
    },
    /// A machine with the other byte order wrote the file. Read it on such a machine.
    ForeignByteOrder {
        /// The process that wrote it.
        process: u64,
        /// The version of its format.
        version: u64,
    },
    /// The format of the file is newer than this reader. Take a newer reader.
    Newer {
        /// The process that wrote it.
        process: u64,
        /// The version of its format.
        version: u64,
    },
    /// The file is shorter than its header says. What is still there can be read.
    Truncated {
        /// The bytes that there are.
        bytes: u64,
        /// The bytes that the file should have according to its header, or the bytes of a header if that is
        /// cut off.
        expected: u64,
        /// A reader of the part that is there; none if the header itself is cut off.
        readable: Option<Box<Reader>>,
    },
    /// The file begins like a telemetry file, but its header makes no sense.
    Damaged {
        /// What makes no sense.
        what: &'static str,
    },
    /// The process has no telemetry that this user may see, or has ended, and its file in memory with it.
    NoneFound {
        /// The process.
        process: u32,
    },
    /// The process has several telemetry files. Open one of them by its path, with the function `open` of the same
    /// type.
    Several {
        /// The process.
        process: u32,
        /// The files.
        files: Vec<PathBuf>,
    },
}

impl OpenError {
    /// A reader of what is readable in spite of the error.
    #[must_use]
    pub fn into_readable(self) -> Option<Reader> {
        match self {
            Self::Truncated { readable, .. } => readable.map(|reader| *reader),
            _ => None,
        }
    }

    /// A function that makes an [`OpenError`] of the system's error.
    pub(super) fn system(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::System { doing, path: None, error }
    }

    /// A system call that was about a path failed.
    pub(super) fn system_at(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::System { doing, path: Some(path.into()), error }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { doing, path, error } => {
                write!(f, "cannot {doing}{}: {error}", After(path))?;
                match error.kind() {
                    io::ErrorKind::PermissionDenied => f.write_str(
                        "; only the user whose process it is may read its telemetry, and root: read it as one of these",
                    ),
                    _ => Ok(()),
                }
            }
            Self::NotTelemetry { bytes } => {
                write!(
                    f,
                    "this file of {bytes} bytes has no telemetry; pass a telemetry file, or a core file of a process that had one"
                )
            }
            Self::AreSwitches { process } => write!(
                f,
                "these are the switches of process {process}, and not its data; pass the path without .switches, \
                 or open this file as switches"
            ),
            Self::NotSwitches { path, bytes } => {
                write!(
                    f,
                    "the file of {bytes} bytes{} has no switches; pass the path of a telemetry file with switches, \
                     or of its switches",
                    After(path)
                )
            }
            Self::OtherSwitches { data, switches } => write!(
                f,
                "the data is of process {data}, and the switches are of process {switches} or of other telemetry of that process; \
                 if one has just replaced the other, try again, and otherwise give each process a path of its own"
            ),
            Self::Unfinished { process } => {
                write!(f, "process {process} has not finished the header of this file; try again")
            }
            Self::ForeignByteOrder { process, version } => write!(
                f,
                "a machine with the other byte order wrote this file (process {process}, format {version}); \
                 read it on such a machine"
            ),
            Self::Newer { process, version } => write!(
                f,
                "process {process} wrote format {version}, and this reader knows formats up to {VERSION}; \
                 take a newer reader"
            ),
            Self::Truncated { bytes, expected, readable } => {
                let rest =
                    if readable.is_some() { "what is there can be read" } else { "nothing can be read" };
                write!(f, "the file ends after {bytes} of {expected} bytes; {rest}")
            }
            Self::Damaged { what } => write!(f, "the header is damaged ({what}); nothing can be read"),
            Self::NoneFound { process } => write!(
                f,
                "process {process} has ended, or has no telemetry in memory that this user may see; \
                 choose a process that has, or pass the path of a file"
            ),
            Self::Several { process, files } => {
                write!(f, "process {process} has {} telemetry files; open one of them:", files.len())?;
                files.iter().try_for_each(|file| write!(f, " {}", file.display()))
            }
        }
    }
}

/// A path after a space, if there is one.
struct After<'a>(&'a Option<PathBuf>);

impl fmt::Display for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |path| write!(f, " {}", path.display()))
    }
}

tripoint_core::debug_as_text!(OpenError: System, NotTelemetry, AreSwitches, NotSwitches, OtherSwitches, Unfinished, ForeignByteOrder, Newer, Truncated, Damaged, NoneFound, Several);

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}
