//! A file to steps.

use std::collections::TryReserveError;
use std::io::{self, Read};

use lz4_flex::block::get_maximum_output_size;

use super::coding::{self, Place};
use super::frame::{BLOCK, Header, PartHead, PartKind, Summary, VERSION};
use super::operation::Step;
use crate::error::TraceError;
use crate::target::TRACE;

/// Reads a trace, block by block. It takes memory for one block, whatever the file claims, and keeps it.
#[derive(Debug)]
pub(crate) struct Reader<R: Read> {
    from: R,
    /// The last part, as it is in the file and decompressed.
    stored: Vec<u8>,
    part: Vec<u8>,
    header: Header,
    /// Where in the file the next part begins.
    at: u64,
    /// The number of the next object.
    next: u64,
    summary: Option<Summary>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub(crate) fn open(from: R) -> Result<Self, TraceError> {
        let (stored, part) = Default::default();
        let mut reader =
            Self { from, stored, part, header: Header::default(), at: 0, next: 0, summary: None };
        reader.make_room(BLOCK + coding::MAX_STEP, get_maximum_output_size(BLOCK + coding::MAX_STEP))?;
        let mut magic = [0; TRACE.len()];
        if fill(&mut reader.from, &mut magic)? != magic.len() || magic != TRACE {
            return Err(TraceError::Foreign);
        }
        let mut version = [0; 2];
        if fill(&mut reader.from, &mut version)? != version.len() {
            return Err(TraceError::Truncated { at: 0 });
        }
        let found = u16::from_le_bytes(version);
        if found != VERSION {
            return Err(TraceError::Version { found, known: VERSION });
        }
        reader.at = (magic.len() + version.len()) as u64;
        let begin = reader.at;
        match reader.read_part()? {
            Some(PartHead { kind: PartKind::Header, .. }) => {
                let parsed = serde_json::from_slice(&reader.part);
                reader.header = parsed
                    .map_err(|_| TraceError::Damaged { at: begin, what: "the header is not understood" })?;
                Ok(reader)
            }
            Some(_) => Err(TraceError::Damaged { at: begin, what: "the first block is not a header" }),
            None => Err(TraceError::Truncated { at: begin }),
        }
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// How many bytes of the file were read.
    pub(crate) fn bytes(&self) -> u64 {
        self.at
    }

    /// The end of the trace, if it was reached.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// Appends the steps of the next block. Returns whether there was one. After an error, all steps that were
    /// appended by earlier calls are good, and none of this one were appended.
    pub(crate) fn read_block(&mut self, steps: &mut Vec<Step>) -> Result<bool, TraceError> {
        if self.summary.is_some() {
            return Ok(false);
        }
        let at = self.at;
        let damaged = |what| TraceError::Damaged { at, what };
        let Some(head) = self.read_part()? else {
            return Err(TraceError::Truncated { at });
        };
        match head.kind {
            PartKind::Header => Err(damaged("a second header")),
            PartKind::End => {
                let summary =
                    serde_json::from_slice(&self.part).map_err(|_| damaged("the end is not understood"))?;
                self.summary = Some(summary);
                Ok(false)
            }
            PartKind::Steps => {
                let before = steps.len();
                steps.try_reserve(head.steps as usize).map_err(no_memory)?;
                let decoded = self.decode(head, steps);
                if decoded.is_err() {
                    steps.truncate(before);
                }
                decoded.map(|()| true).map_err(damaged)
            }
        }
    }

    fn decode(&mut self, head: PartHead, steps: &mut Vec<Step>) -> Result<(), &'static str> {
        let mut bytes = &self.part[..];
        if head.next != self.next {
            return Err("a block is missing before it");
        }
        let mut place = Place::at_begin_of_block(head.next);
        for _ in 0..head.steps {
            steps.push(coding::decode(&mut bytes, &mut place)?);
        }
        self.next = place.next;
        if bytes.is_empty() { Ok(()) } else { Err("bytes follow the last step") }
    }

    /// Reads the next part, and decompresses it; none if the file ends before it or in it.
    fn read_part(&mut self) -> Result<Option<PartHead>, TraceError> {
        let at = self.at;
        let damaged = |what| TraceError::Damaged { at, what };
        let mut bytes = [0; PartHead::SIZE];
        if fill(&mut self.from, &mut bytes)? != bytes.len() {
            return Ok(None);
        }
        let head = PartHead::from_bytes(&bytes).map_err(damaged)?;
        self.make_room(head.size as usize, head.stored as usize)?;
        self.stored.resize(head.stored as usize, 0);
        if fill(&mut self.from, &mut self.stored)? != self.stored.len() {
            return Ok(None);
        }
        if !PartHead::is_whole(&bytes, &self.stored) {
            return Err(damaged("its checksum is wrong"));
        }
        self.part.resize(head.size as usize, 0);
        let size = lz4_flex::block::decompress_into(&self.stored, &mut self.part);
        if size.map_err(|_| damaged("it does not decompress"))? != self.part.len() {
            return Err(damaged("its size is wrong"));
        }
        self.at += (bytes.len() + self.stored.len()) as u64;
        Ok(Some(head))
    }

    /// Writes to each page of the memory for parts, so that it is there.
    pub(crate) fn touch(&mut self) {
        for buffer in [&mut self.part, &mut self.stored] {
            buffer.resize(buffer.capacity(), 1);
            buffer.clear();
        }
    }

    /// Takes memory for a part of these sizes, decompressed and in the file.
    fn make_room(&mut self, size: usize, stored: usize) -> io::Result<()> {
        self.part.clear();
        self.stored.clear();
        self.part.try_reserve(size).and(self.stored.try_reserve(stored)).map_err(no_memory)
    }
}

fn no_memory(_: TryReserveError) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, "there is no memory for a block of the trace")
}

/// Reads as many bytes as there are, up to the length of `bytes`, and returns how many that were.
fn fill(from: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match from.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
