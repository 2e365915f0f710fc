//! A trace, step by step, each checked.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::account::{Account, Object, Refusal, Totals};
use super::frame::{BLOCK, Header, Summary};
use super::operation::{Operation, Step};
use super::reader::Reader;
use crate::error::TraceError;

/// Reads the steps of a trace, and keeps account of what is live. It takes memory for what is live and for one block, however long
/// the trace is.
#[derive(Debug)]
pub(crate) struct Course<R: Read> {
    reader: Reader<R>,
    block: Vec<Step>,
    /// Where in the block the next step is.
    next: usize,
    /// How many steps were read, and how many are read at most.
    steps: u64,
    limit: u64,
    account: Account,
}

impl Course<BufReader<File>> {
    /// Reads this many steps of a file at most.
    pub(crate) fn open(path: &Path, limit: u64) -> Result<Self, TraceError> {
        Self::of(BufReader::new(File::open(path)?), limit)
    }
}

impl<R: Read> Course<R> {
    pub(crate) fn of(from: R, limit: u64) -> Result<Self, TraceError> {
        let (reader, account) = (Reader::open(from)?, Account::default());
        let mut block = Vec::new();
        // Room for the steps of any block that is written: later there may be no memory.
        let refused = |_| TraceError::Memory { step: 0, entries: BLOCK as u64 };
        block.try_reserve_exact(BLOCK).map_err(refused)?;
        Ok(Self { reader, block, next: 0, steps: 0, limit, account })
    }

    /// The next step, and the object that it is about: as it is before the step, or after it if it is new. None at the end.
    ///
    /// # Errors
    /// If the file is cut off or damaged, or the step is impossible. What came before is good.
    pub(crate) fn step(&mut self) -> Result<Option<(Step, Option<Object>)>, TraceError> {
        if self.steps == self.limit {
            return Ok(None);
        }
        while self.next == self.block.len() {
            self.block.clear();
            self.next = 0;
            if !self.reader.read_block(&mut self.block)? {
                return Ok(None);
            }
        }
        let step = self.block[self.next];
        let object = self.account.step(step).map_err(|refusal| self.error(refusal))?;
        self.next += 1;
        self.steps += 1;
        Ok(Some((step, object)))
    }

    fn error(&self, refusal: Refusal) -> TraceError {
        match refusal {
            Refusal::Impossible(what) => TraceError::Impossible { step: self.steps, what },
            Refusal::Memory { entries } => TraceError::Memory { step: self.steps, entries },
        }
    }

    /// Lets the slots of objects that were freed be used again.
    pub(crate) fn recycle(&mut self) {
        self.account.recycle();
    }

    /// Takes all memory now, before the first step, for this many live objects at most: each page is written to.
    pub(crate) fn reserve(&mut self, objects: u64) -> Result<(), TraceError> {
        self.reader.touch();
        self.block.resize(self.block.capacity(), Step { thread: 0, operation: Operation::EndThread });
        self.block.clear();
        self.account.reserve(objects).map_err(|refusal| self.error(refusal))
    }

    pub(crate) fn header(&self) -> &Header {
        self.reader.header()
    }

    /// What the recorder said at the end, if that was reached.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.reader.summary()
    }

    /// How many steps were read.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// How many bytes of the file were read.
    pub(crate) fn bytes(&self) -> u64 {
        self.reader.bytes()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.account.totals()
    }

    /// The bytes that are live.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.account.live_bytes()
    }

    /// How many objects are live.
    pub(crate) fn live_objects(&self) -> usize {
        self.account.live_objects()
    }

    /// The objects that are live, with their numbers, in no order.
    pub(crate) fn live(&self) -> impl Iterator<Item = (u64, Object)> {
        self.account.live()
    }
}
