//! What is known of a trace before it is replayed: found in one pass, without keeping the steps
//! ([design/cli-traces.md `.memory`](crate::design::cli_traces)).

use core::alloc::Layout;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use super::layouts::layout_of;
use crate::error::Error;
use crate::error::TraceError;
use crate::trace::format::{Course, Header, Operation, Summary, Totals};

/// What is known of a trace before it is replayed.
#[derive(Debug)]
pub(crate) struct Outline {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    pub(crate) totals: Totals,
    /// How many steps can be read.
    pub(crate) steps: u64,
    /// How many of them are operations: not ends of threads, and no forks.
    pub(crate) operations: u64,
    /// The number of the operation after which the most bytes are live, for the first time.
    pub(super) peak: Option<u64>,
    /// The number of each thread's last operation, if it has one.
    pub(super) last_of: Vec<Option<u64>>,
    /// What the recorder said at the end, if all was read.
    pub(crate) summary: Option<Summary>,
    /// Why not all of the trace can be read.
    pub(crate) cut: Option<TraceError>,
}

/// Steps after which the bar goes on.
const BETWEEN: u64 = 1 << 18;

impl Outline {
    /// Reads at most `limit` steps of a trace: it may grow while it is read. If it is cut off or damaged, what comes before is
    /// outlined. The bar, of bytes, goes on.
    pub(crate) fn read(path: &Path, limit: u64, bar: &ProgressBar) -> Result<Self, Error> {
        let failed = |error| Error::Trace { path: path.to_owned(), error };
        let mut course = Course::open(path, limit).map_err(failed)?;
        bar.set_length(std::fs::metadata(path).map_or(0, |data| data.len()));
        bar.set_message("reading the trace");
        let mut outline = Self {
            path: path.to_owned(),
            header: course.header().clone(),
            totals: Totals::default(),
            steps: 0,
            operations: 0,
            peak: None,
            last_of: Vec::new(),
            summary: None,
            cut: None,
        };
        outline.cut = loop {
            match outline.take(&mut course) {
                Ok(true) if course.steps().is_multiple_of(BETWEEN) => bar.set_position(course.bytes()),
                Ok(true) => {}
                Ok(false) => break None,
                // What was read would not be replayed, either.
                Err(error @ Error::Trace { error: TraceError::Memory { .. }, .. }) => return Err(error),
                Err(Error::Trace { error, .. }) => break Some(error),
                Err(error) => return Err(error),
            }
        };
        outline.totals = course.totals();
        outline.steps = course.steps();
        outline.summary = course.summary().cloned();
        Ok(outline)
    }

    /// Takes a step. Returns whether there was one.
    fn take<R: Read>(&mut self, course: &mut Course<BufReader<R>>) -> Result<bool, Error> {
        let most = course.totals().peak_live;
        let failed = |error| Error::Trace { path: self.path.clone(), error };
        let Some((step, object)) = course.step().map_err(failed)? else { return Ok(false) };
        course.recycle();
        let size = match step.operation {
            Operation::Alloc { size, .. } | Operation::Realloc { size, .. } => size,
            Operation::Free { .. } => 0,
            Operation::EndThread | Operation::Fork { .. } => return Ok(true),
        };
        let layout: Result<Layout, _> =
            object.map_or(Ok(Layout::new::<u8>()), |object| layout_of(object.kind, size));
        layout.map_err(|why| Error::Unfit { path: self.path.clone(), why: why.to_owned() })?;
        let thread = step.thread as usize;
        if self.last_of.len() <= thread {
            let more = thread + 1 - self.last_of.len();
            let refused = |_| failed(TraceError::Memory { step: self.operations, entries: thread as u64 });
            self.last_of.try_reserve(more).map_err(refused)?;
            self.last_of.resize(thread + 1, None);
        }
        self.last_of[thread] = Some(self.operations);
        if course.live_bytes() > most {
            self.peak = Some(self.operations);
        }
        self.operations += 1;
        Ok(true)
    }
}
