//! Why a process cannot be watched from outside.

use core::fmt;
use std::io;

/// Why a process cannot be watched from outside.
#[derive(Debug)]
pub(crate) enum Unwatchable {
    /// There is no such process, or none of its threads has one of the names.
    NoThreads { process: u32, names: Vec<String> },
    /// The system does not let this user watch it.
    Forbidden { process: u32, paranoid: String },
    /// The system refused something else.
    System { process: u32, error: io::Error },
}

impl fmt::Display for Unwatchable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoThreads { process, names } if names.is_empty() => {
                write!(f, "there is no process {process}")
            }
            Self::NoThreads { process, names } => write!(
                f,
                "process {process} has no thread with the name {}; /proc/{process}/task/*/comm has their names",
                names.join(" or ")
            ),
            Self::Forbidden { process, paranoid } => write!(
                f,
                "this user may not watch process {process} (kernel.perf_event_paranoid is {paranoid}); run this as root or \
                 with CAP_PERFMON and CAP_SYS_PTRACE; page faults of one's own processes need only a value up to 2"
            ),
            Self::System { process, error } if error.raw_os_error() == Some(libc::EMFILE) => write!(
                f,
                "process {process} has too many threads for the limit of open files; raise it (ulimit -n), or choose threads \
                 with --threads: each takes three for every processor"
            ),
            Self::System { process, error } => {
                write!(f, "cannot watch process {process} from outside: {error}")
            }
        }
    }
}
