//! Writes packets one by one.

use std::path::Path;

use crate::error::Error;
use crate::export::perfetto::packet::{Annotation, Kind, Packet, Track, TrackEvent};
use crate::whole_file::WholeFile;

/// The field of a trace that has its packets.
const PACKETS: u32 = 1;

/// All packets are of one writer; which number it has says nothing.
const SEQUENCE: u32 = 1;

/// A trace that is being written.
pub(super) struct Writer {
    file: WholeFile,
    bytes: Vec<u8>,
    /// Why it could not be written any more.
    refused: Option<Error>,
}

impl Writer {
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self { file: WholeFile::begin(path)?, bytes: Vec::new(), refused: None })
    }

    pub(super) fn describe(&mut self, track: Track) {
        self.write(&Packet { timestamp: None, sequence: SEQUENCE, event: None, track: Some(track) });
    }

    pub(super) fn begin(&mut self, track: u64, ns: u64, name: &str, annotations: Vec<Annotation>) {
        self.event(
            ns,
            track,
            Kind::Begin,
            TrackEvent { name: Some(name.into()), annotations, ..<_>::default() },
        );
    }

    /// Ends slices. What the event says is said of the outermost.
    pub(super) fn end(&mut self, track: u64, ns: u64, count: usize, annotations: Vec<Annotation>) {
        for _ in 1..count {
            self.event(ns, track, Kind::End, TrackEvent::default());
        }
        if count > 0 {
            self.event(ns, track, Kind::End, TrackEvent { annotations, ..<_>::default() });
        }
    }

    pub(super) fn instant(&mut self, track: u64, ns: u64, name: &str, annotations: Vec<Annotation>) {
        self.event(
            ns,
            track,
            Kind::Instant,
            TrackEvent { name: Some(name.into()), annotations, ..<_>::default() },
        );
    }

    pub(super) fn count(&mut self, track: u64, ns: u64, value: i64) {
        self.event(ns, track, Kind::Counter, TrackEvent { counter: Some(value), ..<_>::default() });
    }

    fn event(&mut self, ns: u64, track: u64, kind: Kind, event: TrackEvent) {
        let event = Some(TrackEvent { track, kind: Some(kind.into()), ..event });
        self.write(&Packet { timestamp: Some(ns), sequence: SEQUENCE, event, track: None });
    }

    /// After an error nothing is written any more.
    fn write(&mut self, packet: &Packet) {
        if self.refused.is_none() {
            self.bytes.clear();
            prost::encoding::message::encode(PACKETS, packet, &mut self.bytes);
            self.refused = self.file.write(&self.bytes).err();
        }
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<(), Error> {
        match self.refused {
            Some(error) => Err(error),
            None => self.file.finish(),
        }
    }
}
