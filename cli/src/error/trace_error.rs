//! Why a trace cannot be read, or not all of it.

use core::fmt;
use std::io;

/// What is wrong with a trace. Steps that were read before are good
/// ([design/cli-traces.md `.req.cut`](crate::design::cli_traces)).
#[derive(Debug)]
pub(crate) enum TraceError {
    /// The system refused to read or write.
    Io(io::Error),
    /// The file does not begin as a trace does.
    Foreign,
    /// The file is of a version that this program does not know.
    Version { found: u16, known: u16 },
    /// The file ends in the middle of the block that begins at this byte.
    Truncated { at: u64 },
    /// The block that begins at this byte is not what was written.
    Damaged { at: u64, what: &'static str },
    /// A step that no program can have made, for example a free of an object that was freed.
    Impossible { step: u64, what: &'static str },
    /// There is no memory to keep account of this many live objects, or threads.
    Memory { step: u64, entries: u64 },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Foreign => f.write_str("this is not a trace: make one with `tripoint record`, and of telemetry or a capture with `--telemetry`"),
            Self::Version { found, known } => write!(
                f,
                "this trace is of version {found}, and this program reads version {known}: use the program that recorded it"
            ),
            Self::Truncated { at } => write!(
                f,
                "the trace has no end, and no whole block from byte {at} on: the recorder did not finish, or the file is cut off"
            ),
            Self::Damaged { at, what } => {
                write!(
                    f,
                    "the trace is damaged in the block that begins at byte {at} ({what}): copy or record it again"
                )
            }
            Self::Impossible { step, what } => {
                write!(f, "step {step} of the trace is impossible: {what}")
            }
            Self::Memory { step, entries } => write!(
                f,
                "there is no memory to keep account of {entries} live objects, at step {step} of the trace: raise the limit (`ulimit -v`), or use a machine with more"
            ),
        }
    }
}

impl core::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
