//! Why the hot thread stopped, as plain words. The hot thread must not allocate, so a cold
//! thread makes the text (design/order-book.md `.failure.value`).

use core::fmt;

use hdrhistogram::CreationError;
use tripoint::Error;

use crate::books::Unkept;
use crate::malformed::Malformed;

/// What went wrong on the hot thread, and at which line of the input.
#[derive(Clone, Copy, Debug)]
pub struct HotFailure {
    /// Counted from one.
    pub line: Option<u64>,
    pub cause: HotCause,
}

/// What went wrong on the hot thread.
#[derive(Clone, Copy, Debug)]
pub enum HotCause {
    /// The contract refused to register the thread.
    NotRegistered(Error),
    /// There is no histogram for latencies.
    NoHistogram(CreationError),
    /// No pool had memory for the levels asked for.
    NoLevels(Error),
    /// There is no memory for updates that wait for a snapshot.
    NoKept(Error),
    /// There is no memory for the history.
    NoHistory(Error),
    /// No pool had memory for the entries of a record.
    NoScratch(Error),
    /// The line is not a record.
    Malformed(Malformed),
    /// The books do not take the record.
    Unkept(Unkept),
    /// The feed ended before the record that was to violate the contract.
    NothingInjected,
}

impl From<HotCause> for HotFailure {
    fn from(cause: HotCause) -> Self {
        Self { line: None, cause }
    }
}

impl fmt::Display for HotCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRegistered(error) => write!(f, "the contract refused the hot thread: {error}"),
            Self::NoHistogram(error) => write!(f, "latencies cannot be counted: {error}"),
            Self::NoLevels(error) => write!(f, "no memory for the levels asked for: {error} (see --levels)"),
            Self::NoKept(error) => {
                write!(f, "no memory for updates that wait for a snapshot: {error} (see --kept)")
            }
            Self::NoHistory(error) => {
                write!(f, "no memory for the history of trades: {error} (see --history)")
            }
            Self::NoScratch(error) => write!(f, "no memory for the entries of a record: {error}"),
            Self::Malformed(malformed) => malformed.fmt(f),
            Self::Unkept(unkept) => unkept.fmt(f),
            Self::NothingInjected => f.write_str("too few records in the steady part to inject a violation"),
        }
    }
}
