//! What came of a replay.

use core::fmt;
use std::collections::BTreeMap;
use std::io::Write as _;

use serde::Serialize;

use super::classes::OtherClass;
use super::heap_account::HeapCounts;
use super::objects::Impossible;
use super::state::State;
use crate::error::Error;
use crate::output::Output;
use crate::words::counted;

/// What came of a replay.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    /// The events of the log, and those up to where the replay ended.
    pub(super) events: u64,
    pub(super) replayed: u64,
    /// Whether the log has no end: its program did not end it, or the file is cut off.
    pub(super) is_cut: bool,
    /// The events up to there that are not replayed: memory returned to the system, and what an arena with a heap did.
    pub(super) passed_over: u64,
    /// What was checked of heaps, up to there; none if the log has no heap.
    pub(super) heaps: Option<HeapCounts>,
    /// The calls that were made.
    pub(super) calls: u64,
    /// The threads of the log.
    pub(super) threads: u64,
    /// Where the replay went another way than the log. It ended there.
    pub(super) divergence: Option<Divergence>,
    /// How often each kind of event was in the log and in the replay. Only if pools were of another class.
    pub(super) kinds: Option<BTreeMap<&'static str, [u64; 2]>>,
    /// Only if pools were of another class.
    pub(super) otherwise: Option<Otherwise>,
    pub(super) state: State,
}

/// The calls with another outcome on another class.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Otherwise {
    /// The pools that were of the other class.
    pub(super) pools: u64,
    /// Served in the log, and refused in the replay.
    pub(super) refused: u64,
    /// Refused in the log, and served in the replay.
    pub(super) served: u64,
    /// Left out: the replay does not have the pool, point or object, or the class cannot free a part of the batch.
    left_out: u64,
}

impl Otherwise {
    /// On another class, counts a call that cannot be made. On the same class it is an error.
    pub(super) fn leave_out_if(
        &mut self,
        other: Option<OtherClass>,
        made: Result<(), Impossible>,
    ) -> Result<(), Impossible> {
        if other.is_none() {
            return made;
        }
        self.left_out += u64::from(made.is_err());
        Ok(())
    }
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
        let Self { events, replayed, passed_over, heaps, calls, threads, .. } = self;
        let (calls, threads) = (counted(*calls, "call"), counted(*threads, "thread"));
        writeln!(out, "{replayed} of {events} events replayed: {calls} of {threads}")?;
        if self.is_cut {
            writeln!(out, "the log has no end: its program did not end it, or the file is cut off")?;
        }
        if *passed_over != 0 {
            let whose = if heaps.is_some() { "the arena and its heap" } else { "the arena" };
            writeln!(out, "passed over: {} of {whose}", counted(*passed_over, "event"))?;
        }
        heaps.iter().try_for_each(|heaps| heaps.write(out))?;
        if let Some(kinds) = &self.kinds {
            writeln!(out, "\n| event | log | replay |\n|---|--:|--:|")?;
            for (kind, [log, replay]) in kinds {
                writeln!(out, "| {kind} | {log} | {replay} |")?;
            }
        }
        if let Some(Otherwise { pools: 0, .. }) = self.otherwise {
            writeln!(out, "\nnothing was replayed on the other class: no pool of the log is a manual one")?;
        } else if let Some(Otherwise { refused, served, left_out, .. }) = self.otherwise {
            writeln!(
                out,
                "\n{refused} calls that were served are refused, {served} the other way round, and {left_out} are left out"
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
