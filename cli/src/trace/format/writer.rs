//! Steps to a file.

use std::io::{self, Write};

use super::coding::{self, Place};
use super::frame::{BLOCK, Header, PartHead, PartKind, Summary, VERSION};
use super::operation::{Operation, Step};
use crate::target::TRACE;

/// Writes a trace, block by block.
#[derive(Debug)]
pub(crate) struct Writer<W: Write> {
    to: W,
    /// The coded steps of a block that is not full.
    block: Vec<u8>,
    /// How many steps these are.
    steps_in_block: u32,
    /// The number of the next object at the begin of the block.
    first: u64,
    place: Place,
    steps: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub(crate) fn begin(mut to: W, header: &Header) -> io::Result<Self> {
        to.write_all(&TRACE)?;
        to.write_all(&VERSION.to_le_bytes())?;
        let mut writer = Self {
            to,
            block: Vec::with_capacity(BLOCK + coding::MAX_STEP),
            steps_in_block: 0,
            first: 0,
            place: Place::at_begin_of_block(0),
            steps: 0,
        };
        writer.write_part(PartKind::Header, &serde_json::to_vec(header)?)?;
        Ok(writer)
    }

    /// The number that the next object will have.
    pub(crate) fn next_object(&self) -> u64 {
        self.place.next
    }

    /// Writes a step.
    ///
    /// # Errors
    /// Those of writing, and [`InvalidInput`](io::ErrorKind::InvalidInput) for an object that was not allocated.
    pub(crate) fn write(&mut self, step: Step) -> io::Result<()> {
        if let Operation::Realloc { object, .. } | Operation::Free { object } = step.operation
            && object >= self.place.next
        {
            let text = format!("object {object} of {} was not allocated", self.place.next);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        coding::encode(&mut self.block, &mut self.place, step);
        self.steps_in_block += 1;
        self.steps += 1;
        if self.block.len() >= BLOCK { self.write_block() } else { Ok(()) }
    }

    /// Writes the steps that are not written yet, so that a reader finds them whatever happens to this process.
    pub(crate) fn write_block(&mut self) -> io::Result<()> {
        if self.steps_in_block != 0 {
            let block = core::mem::take(&mut self.block);
            self.write_part(PartKind::Steps, &block)?;
            self.block = block;
            self.block.clear();
            self.steps_in_block = 0;
            self.first = self.place.next;
            self.place = Place::at_begin_of_block(self.first);
        }
        self.to.flush()
    }

    /// Writes the rest and the end. The numbers of steps and objects are added to the summary.
    pub(crate) fn finish(mut self, summary: Summary) -> io::Result<Summary> {
        self.write_block()?;
        let summary = Summary { steps: self.steps, objects: self.place.next, ..summary };
        self.write_part(PartKind::End, &serde_json::to_vec(&summary)?)?;
        self.to.flush()?;
        Ok(summary)
    }

    fn write_part(&mut self, kind: PartKind, bytes: &[u8]) -> io::Result<()> {
        let stored = lz4_flex::block::compress(bytes);
        let part = |size: usize| u32::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge);
        let (size, length) = (part(bytes.len())?, part(stored.len())?);
        let head = PartHead { kind, size, stored: length, steps: self.steps_in_block, next: self.first };
        self.to.write_all(&head.to_bytes(&stored))?;
        self.to.write_all(&stored)
    }
}
