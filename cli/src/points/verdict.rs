//! What came of a replay.

use core::fmt;
use std::collections::BTreeMap;
use std::io::Write as _;

use serde::Serialize;

use super::state::State;
use crate::error::Error;
use crate::output::Output;

/// What came of a replay.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    /// The events of the log, and those up to where the replay ended.
    pub(super) events: u64,
    pub(super) replayed: u64,
    /// The calls that were made.
    pub(super) calls: u64,
    /// The threads of the log.
    pub(super) threads: usize,
    /// Where the replay went another way than the log. It ended there.
    pub(super) divergence: Option<Divergence>,
    /// How often each kind of event was in the log and in the replay. Only if pools were of another class.
    pub(super) kinds: Option<BTreeMap<&'static str, [u64; 2]>>,
    /// The calls that were served in the log and refused in the replay, and the other way round. Only if pools were of
    /// another class.
    pub(super) otherwise: Option<[u64; 2]>,
    pub(super) state: State,
}

/// Where a replay went another way than its log.
#[derive(Debug, Serialize)]
pub(crate) struct Divergence {
    /// The number of the event in the log.
    pub(super) event: u64,
    /// The call, and the number of its event.
    pub(super) call: String,
    pub(super) call_event: u64,
    pub(super) logged: String,
    pub(super) replayed: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, call, call_event, logged, replayed } = self;
        write!(
            f,
            "the replay diverges at event {event}, in the call of event {call_event}, {call}:\n  logged    {logged}\n  replayed  {replayed}"
        )
    }
}

impl Verdict {
    /// Whether the replay was not the same. A replay on another class may be another one.
    pub(crate) fn has_diverged(&self) -> bool {
        self.divergence.is_some()
    }

    pub(crate) fn write(&self, out: &mut Output) -> Result<(), Error> {
        let Self { events, replayed, calls, threads, .. } = self;
        writeln!(out, "{replayed} of {events} events replayed: {calls} calls of {threads} threads")?;
        if let Some(kinds) = &self.kinds {
            writeln!(out, "\n| event | log | replay |\n|---|--:|--:|")?;
            for (kind, [log, replay]) in kinds {
                writeln!(out, "| {kind} | {log} | {replay} |")?;
            }
        }
        if let Some([refused, served]) = self.otherwise {
            writeln!(
                out,
                "\n{refused} calls that were served are refused, and {served} the other way round"
            )?;
        }
        match &self.divergence {
            Some(divergence) => writeln!(out, "{divergence}")?,
            None if self.kinds.is_none() => writeln!(out, "every call has the same outcome")?,
            None => {}
        }
        writeln!(out)?;
        self.state.write(out)
    }
}
