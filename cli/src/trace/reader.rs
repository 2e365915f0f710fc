//! A file to steps.

use std::io::{self, Read};

use super::coding::{self, Place};
use super::error::TraceError;
use super::frame::{Header, MAGIC, PartHead, PartKind, Summary, VERSION};
use super::operation::Step;

/// Reads a trace, block by block. It takes memory for one block, whatever the file claims.
#[derive(Debug)]
pub(crate) struct Reader<R: Read> {
    from: R,
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
        let mut reader = Self { from, header: Header::default(), at: 0, next: 0, summary: None };
        let mut magic = [0; MAGIC.len()];
        if reader.fill(&mut magic)? != magic.len() || magic != MAGIC {
            return Err(TraceError::Foreign);
        }
        let mut version = [0; 2];
        if reader.fill(&mut version)? != version.len() {
            return Err(TraceError::Truncated { at: 0 });
        }
        let found = u16::from_le_bytes(version);
        if found != VERSION {
            return Err(TraceError::Version { found, known: VERSION });
        }
        reader.at = (magic.len() + version.len()) as u64;
        let begin = reader.at;
        match reader.read_part()? {
            Some((PartHead { kind: PartKind::Header, .. }, text)) => {
                let parsed = serde_json::from_slice(&text);
                reader.header = parsed
                    .map_err(|_| TraceError::Damaged { at: begin, what: "the header is not understood" })?;
                Ok(reader)
            }
            Some(_) => Err(TraceError::Damaged { at: begin, what: "the first block is no header" }),
            None => Err(TraceError::Truncated { at: begin }),
        }
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
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
        let Some((head, bytes)) = self.read_part()? else {
            return Err(TraceError::Truncated { at });
        };
        match head.kind {
            PartKind::Header => Err(damaged("a second header")),
            PartKind::End => {
                let summary =
                    serde_json::from_slice(&bytes).map_err(|_| damaged("the end is not understood"))?;
                self.summary = Some(summary);
                Ok(false)
            }
            PartKind::Steps => {
                let before = steps.len();
                let decoded = self.decode(head, &bytes, steps);
                if decoded.is_err() {
                    steps.truncate(before);
                }
                decoded.map(|()| true).map_err(damaged)
            }
        }
    }

    fn decode(
        &mut self,
        head: PartHead,
        mut bytes: &[u8],
        steps: &mut Vec<Step>,
    ) -> Result<(), &'static str> {
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

    /// The next part, decompressed; none if the file ends before it or in it.
    fn read_part(&mut self) -> Result<Option<(PartHead, Vec<u8>)>, TraceError> {
        let at = self.at;
        let damaged = |what| TraceError::Damaged { at, what };
        let mut bytes = [0; PartHead::SIZE];
        if self.fill(&mut bytes)? != bytes.len() {
            return Ok(None);
        }
        let head = PartHead::from_bytes(&bytes).map_err(damaged)?;
        let mut stored = vec![0; head.stored as usize];
        if self.fill(&mut stored)? != stored.len() {
            return Ok(None);
        }
        if !PartHead::is_whole(&bytes, &stored) {
            return Err(damaged("its checksum is wrong"));
        }
        let part = lz4_flex::block::decompress(&stored, head.size as usize);
        let part = part.map_err(|_| damaged("it does not decompress"))?;
        if part.len() != head.size as usize {
            return Err(damaged("its size is wrong"));
        }
        self.at += (bytes.len() + stored.len()) as u64;
        Ok(Some((head, part)))
    }

    /// Reads as many bytes as there are, up to the length of `bytes`, and returns how many that were.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.from.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}
