//! All steps of a trace in memory, checked: each free and realloc is of an object that is live.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde::Serialize;

use super::error::TraceError;
use super::frame::{Header, Summary};
use super::operation::{Operation, Step};
use super::reader::Reader;

/// A trace in memory.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) header: Header,
    pub(crate) steps: Vec<Step>,
    /// What the recorder said at the end, if the file has an end.
    pub(crate) summary: Option<Summary>,
    pub(crate) totals: Totals,
}

/// Counts over a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) allocations: u64,
    pub(crate) reallocs: u64,
    pub(crate) frees: u64,
    pub(crate) threads: u32,
    /// How often a step is of another thread than the one before.
    pub(crate) switches: u64,
    /// The most bytes that were live at once, as they were asked for.
    pub(crate) peak_live: u64,
    /// The most objects that were live at once.
    pub(crate) peak_objects: u64,
    /// Bytes that are live at the end.
    pub(crate) final_live: u64,
}

impl History {
    /// Reads a trace. If the file is cut off or damaged, what comes before is returned, with the reason.
    pub(crate) fn load(path: &Path) -> Result<(Self, Option<TraceError>), TraceError> {
        Self::read(BufReader::new(File::open(path)?))
    }

    pub(crate) fn read(from: impl Read) -> Result<(Self, Option<TraceError>), TraceError> {
        let mut reader = Reader::open(from)?;
        let mut steps = Vec::new();
        let cut = loop {
            match reader.read_block(&mut steps) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(error),
            }
        };
        let summary = reader.summary().cloned();
        let (mut history, impossible) = Self::of(reader.header().clone(), steps);
        history.summary = summary;
        Ok((history, impossible.or(cut)))
    }

    /// A history of these steps, up to the first that is impossible.
    pub(crate) fn of(header: Header, mut steps: Vec<Step>) -> (Self, Option<TraceError>) {
        let mut account = Account::default();
        let wrong =
            steps.iter().enumerate().find_map(|(index, &step)| Some((index, account.step(step).err()?)));
        let error = wrong.map(|(index, what)| {
            steps.truncate(index);
            TraceError::Impossible { step: index as u64, what }
        });
        (Self { header, steps, summary: None, totals: account.finish() }, error)
    }
}

/// Which objects are live, step by step.
#[derive(Debug, Default)]
struct Account {
    /// The size of each object; none if it was freed.
    sizes: Vec<Option<u64>>,
    ended: Vec<bool>,
    live: u64,
    objects: u64,
    last: Option<u32>,
    totals: Totals,
}

impl Account {
    fn step(&mut self, step: Step) -> Result<(), &'static str> {
        let thread = step.thread as usize;
        if thread > self.ended.len() {
            return Err("a thread's number is too large");
        }
        if thread == self.ended.len() {
            self.ended.push(false);
        }
        if self.ended[thread] {
            return Err("its thread has ended");
        }
        match step.operation {
            Operation::Alloc { size, .. } => {
                self.sizes.push(Some(size));
                self.grow(size)?;
                self.objects += 1;
                self.totals.allocations += 1;
            }
            Operation::Realloc { object, size } => {
                let old = self.live_size(object)?;
                let old = old.replace(size).unwrap_or(0);
                self.live -= old;
                self.grow(size)?;
                self.totals.reallocs += 1;
            }
            Operation::Free { object } => {
                let old = self.live_size(object)?.take().unwrap_or(0);
                self.live -= old;
                self.objects -= 1;
                self.totals.frees += 1;
            }
            Operation::EndThread => self.ended[thread] = true,
            Operation::Fork { .. } => {}
        }
        self.totals.switches += u64::from(self.last.is_some_and(|last| last != step.thread));
        self.last = Some(step.thread);
        self.totals.peak_objects = self.totals.peak_objects.max(self.objects);
        Ok(())
    }

    fn grow(&mut self, size: u64) -> Result<(), &'static str> {
        // No process has more than half of its address space.
        self.live = self
            .live
            .checked_add(size)
            .filter(|&live| live <= i64::MAX as u64)
            .ok_or("a size is too large")?;
        self.totals.peak_live = self.totals.peak_live.max(self.live);
        Ok(())
    }

    /// The size of an object that must be live.
    fn live_size(&mut self, object: u64) -> Result<&mut Option<u64>, &'static str> {
        let size = usize::try_from(object).ok().and_then(|object| self.sizes.get_mut(object));
        size.filter(|size| size.is_some()).ok_or("its object is not live")
    }

    fn finish(self) -> Totals {
        Totals { threads: self.ended.len() as u32, final_live: self.live, ..self.totals }
    }
}
