//! How a subcommand ends ([design/cli.md `.status`](crate::design::cli)).
//!
//! | file | |
//! |---|---|
//! | `refusal` | a refusal of the system's, with the limit that it comes from |
//! | `trace_error` | why a trace cannot be read, or not all of it |
//! | `unrecordable` | why a program cannot be recorded |
//! | `unwatchable` | why a process cannot be watched from outside |

mod refusal;
mod trace_error;
#[cfg(recorder)]
mod unrecordable;
#[cfg(target_os = "linux")]
mod unwatchable;

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tripoint_telemetry::reader::OpenError;

use crate::core_file::NotCore;
use crate::target::{self, Target};

pub(crate) use self::refusal::Refusal;
pub(crate) use self::trace_error::TraceError;
#[cfg(recorder)]
pub(crate) use self::unrecordable::Unrecordable;
#[cfg(target_os = "linux")]
pub(crate) use self::unwatchable::Unwatchable;

/// A subcommand did what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing was found that should not be. Status 0.
    Fine,
    /// A breach or a violation was found. Status 1.
    Found,
    /// Another program ran, and this is its status.
    #[cfg(recorder)]
    Program(u8),
}

impl Outcome {
    /// Whether something was found that should not be.
    pub(crate) const fn found(is_found: bool) -> Self {
        if is_found { Self::Found } else { Self::Fine }
    }
}

/// A subcommand could not do what it was asked, or not all of it. Status 2.
#[derive(Debug)]
pub(crate) enum Error {
    /// Standard output could not be written.
    Output(io::Error),
    /// The system refused a call that was about a path.
    System {
        /// What the call was for.
        doing: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    /// The system does not let signals be taken.
    Signals { error: io::Error },
    /// The terminal cannot be used any more.
    Terminal { error: io::Error },
    /// The standard input or output is no terminal.
    NoTerminal,
    /// It is a trace of allocations, which other subcommands read.
    IsTrace { path: PathBuf },
    /// It is a log of points, which only a replay reads.
    IsLog { path: PathBuf },
    /// It is a capture, of which nothing more comes.
    IsCapture { path: PathBuf },
    /// A capture makes no sense.
    Capture { path: PathBuf, why: String },
    /// A budget makes no sense.
    Budget { path: PathBuf, why: String },
    /// Nothing of a recording can be read.
    Recording { target: Target, error: OpenError },
    /// What is watched from outside has to be a process.
    #[cfg(target_os = "linux")]
    NoProcess { target: Target },
    /// A process cannot be watched from outside.
    #[cfg(target_os = "linux")]
    Unwatchable(Unwatchable),
    /// A file is not a core file that this program can show.
    NotCore { path: PathBuf, why: NotCore },
    /// There is no heap, or it has not what was asked for.
    NoHeap { target: Target, why: String },
    /// No process has this number.
    #[cfg(target_os = "linux")]
    NotThere { process: u32 },
    /// A process cannot be read, or cannot be stopped for it.
    #[cfg(target_os = "linux")]
    Unread { process: u32, stops: bool, error: io::Error },
    /// A gate did not see what its budget needs.
    Blind { target: Target, unseen: Vec<String> },
    /// Only a part of a recording could be read.
    Partial { target: Target, faults: Vec<String> },
    /// A trace cannot be read, or not all of it.
    Trace { path: PathBuf, error: TraceError },
    /// A trace cannot be replayed on this machine.
    Unfit { path: PathBuf, why: String },
    /// No event of a recording names an object.
    NoObjects { target: Target },
    /// A process that replays a trace did not end well.
    Replay { contender: String, why: String },
    /// A picture cannot be drawn as it was asked for.
    Undrawn { path: PathBuf, why: String },
    /// A program cannot be recorded.
    #[cfg(recorder)]
    Unrecordable { program: PathBuf, why: Unrecordable },
}

impl Error {
    /// A function that makes an error of the system's.
    pub(crate) fn system(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::System { doing, path, error }
    }

    /// An error of the system's when a process was read, which was to be stopped for it or not.
    #[cfg(target_os = "linux")]
    pub(crate) fn unread(process: u32, stops: bool, error: io::Error) -> Self {
        let is_there = std::path::Path::new("/proc").join(process.to_string()).exists();
        if is_there { Self::Unread { process, stops, error } } else { Self::NotThere { process } }
    }

    /// A function that makes an error of a file that was to be a core file. Files that this program wrote are named, with what
    /// reads them.
    pub(crate) fn not_core(path: &Path) -> impl FnOnce(NotCore) -> Self {
        let path = path.to_owned();
        move |why| match () {
            () if target::is_trace(&path) => Self::IsTrace { path },
            () if target::is_log(&path) => Self::IsLog { path },
            () if target::is_capture(&path) => Self::IsCapture { path },
            () => Self::NotCore { path, why },
        }
    }

    /// A function that makes an error of a replay that the system refused.
    pub(crate) fn replay(doing: &'static str, contender: impl Into<String>) -> impl Fn(io::Error) -> Self {
        let contender = contender.into();
        move |error| Self::Replay {
            contender: contender.clone(),
            why: format!("cannot {doing}: {}", Refusal(&error)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => write!(f, "cannot write the output: {}", Refusal(error)),
            Self::System { doing, path, error } => {
                write!(f, "cannot {doing} {}: {}", path.display(), Refusal(error))
            }
            Self::Signals { error } => write!(f, "cannot handle signals: {error}"),
            Self::Terminal { error } => write!(f, "cannot use the terminal: {error}"),
            Self::NoTerminal => f.write_str("this needs a terminal; --once prints text, and --json JSON"),
            Self::IsTrace { path } => write!(
                f,
                "{} is a trace of allocations; `tripoint replay` and `tripoint advise` read it",
                path.display()
            ),
            Self::IsLog { path } => {
                write!(f, "{} is a log of points; `tripoint replay` replays it", path.display())
            }
            Self::IsCapture { path } => write!(
                f,
                "{} is a capture, which no process writes; `tripoint report` shows it, and `plot` and `gate` read it",
                path.display()
            ),
            Self::Capture { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Budget { path, why } => write!(f, "{} is not a budget: {why}", path.display()),
            // These errors name it themselves.
            Self::Recording { target: Target::Process(_), error }
            | Self::Recording { error: error @ OpenError::System { path: Some(_), .. }, .. } => error.fmt(f),
            Self::Recording { target, error } => write!(f, "{target}: {error}"),
            #[cfg(target_os = "linux")]
            Self::NoProcess { target } => {
                write!(f, "{target} is not a process; --kernel needs the number of a process")
            }
            #[cfg(target_os = "linux")]
            Self::Unwatchable(why) => why.fmt(f),
            Self::NotCore { path, why } => write!(f, "{}: {why}", path.display()),
            Self::NoHeap { target, why } => write!(f, "{target}: {why}"),
            #[cfg(target_os = "linux")]
            Self::NotThere { process } => {
                write!(f, "there is no process {process}; a core file of this name is ./{process}")
            }
            #[cfg(target_os = "linux")]
            Self::Unread { process, stops, error } => {
                let stopped = if *stops { "stopped and read" } else { "read" };
                write!(f, "process {process} cannot be {stopped}: {error}")?;
                match error.kind() {
                    io::ErrorKind::PermissionDenied => f.write_str(
                        "; its own user may, if kernel.yama.ptrace_scope is 0 and no debugger traces it, and root",
                    ),
                    io::ErrorKind::TimedOut => f.write_str("; try again later, or pass --no-stop"),
                    _ => Ok(()),
                }
            }
            Self::Blind { target, unseen } => {
                write!(f, "{target}: refused, because not all was seen that the budget needs:")?;
                unseen.iter().try_for_each(|unseen| write!(f, "\n  {unseen}"))
            }
            Self::Partial { target, faults } => {
                write!(f, "{target}: not all of it could be read:")?;
                faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
            }
            Self::Trace { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Unfit { path, why } => write!(f, "cannot replay {}: {why}", path.display()),
            Self::NoObjects { target } => write!(
                f,
                "{target}: no event names an object by its address: report objects through a `LoggedStore`, or at points with a `PointLogger`, with events and addresses switched on"
            ),
            Self::Replay { contender, why } => write!(f, "the replay on {contender} failed: {why}"),
            Self::Undrawn { path, why } => write!(f, "cannot draw {}: {why}", path.display()),
            #[cfg(recorder)]
            Self::Unrecordable { program, why } => write!(f, "cannot record {}: {why}", program.display()),
        }
    }
}

/// Errors of writing to [`Output`](crate::output::Output) become this.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Output(error) | Self::System { error, .. } => Some(error),
            Self::Signals { error } | Self::Terminal { error } => Some(error),
            Self::Recording { error, .. } => Some(error),
            Self::Trace { error, .. } => Some(error),
            Self::NotCore { why, .. } => why.source(),
            #[cfg(target_os = "linux")]
            Self::NoProcess { .. } | Self::NotThere { .. } | Self::Unwatchable(_) => None,
            #[cfg(target_os = "linux")]
            Self::Unread { error, .. } => Some(error),
            Self::IsTrace { .. } | Self::IsLog { .. } | Self::IsCapture { .. } => None,
            Self::NoTerminal | Self::Budget { .. } | Self::Capture { .. } | Self::Partial { .. } => None,
            Self::Blind { .. } | Self::Unfit { .. } | Self::Replay { .. } | Self::Undrawn { .. } => None,
            Self::NoObjects { .. } | Self::NoHeap { .. } => None,
            #[cfg(recorder)]
            Self::Unrecordable { .. } => None,
        }
    }
}
