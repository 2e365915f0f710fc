//! All steps of a trace in memory, for tests.

use std::io::Read;

use super::account::{Account, Refusal, Totals};
use super::course::Course;
use super::frame::{Header, Summary};
use super::operation::Step;
use crate::error::TraceError;

/// A trace in memory.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) header: Header,
    pub(crate) steps: Vec<Step>,
    /// What the recorder said at the end, if the file has an end.
    pub(crate) summary: Option<Summary>,
    pub(crate) totals: Totals,
}

impl History {
    /// Reads a trace. If the file is cut off or damaged, what comes before is returned, with the reason.
    pub(crate) fn read(from: impl Read) -> Result<(Self, Option<TraceError>), TraceError> {
        let mut course = Course::of(from, u64::MAX)?;
        let mut steps = Vec::new();
        let cut = loop {
            match course.step() {
                Ok(Some((step, _))) => steps.push(step),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let (header, summary) = (course.header().clone(), course.summary().cloned());
        Ok((Self { header, steps, summary, totals: course.totals() }, cut))
    }

    /// A history of these steps, up to the first that is impossible.
    pub(crate) fn of(header: Header, mut steps: Vec<Step>) -> (Self, Option<TraceError>) {
        let mut account = Account::default();
        let wrong =
            steps.iter().enumerate().find_map(|(index, &step)| Some((index, account.step(step).err()?)));
        let error = wrong.map(|(index, refusal)| {
            steps.truncate(index);
            match refusal {
                Refusal::Impossible(what) => TraceError::Impossible { step: index as u64, what },
                Refusal::Memory { entries } => TraceError::Memory { step: index as u64, entries },
            }
        });
        (Self { header, steps, summary: None, totals: account.totals() }, error)
    }
}
