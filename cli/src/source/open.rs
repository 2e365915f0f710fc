//! Opens a recording, and reads all of it that can be read (design/cli.md `.req.readable`).

use tripoint_telemetry::reader::{OpenError, Reader};

use crate::error::Error;
use crate::source::capture::Capture;
use crate::source::end::End;
use crate::source::event::Event;
use crate::source::live;
use crate::source::look::Entry;
use crate::target::{self, Target};

impl Target {
    /// Opens the telemetry of a process, or in a file. A file that is cut off is open as far as it can be read, and
    /// has faults.
    pub(crate) fn reader(&self) -> Result<(Reader, Vec<String>), Error> {
        let opened = match self {
            Self::File(path) if target::is_capture(path) => {
                return Err(Error::IsCapture { path: path.clone() });
            }
            Self::File(path) if target::is_log(path) => return Err(Error::IsLog { path: path.clone() }),
            Self::Process(process) => Reader::attach(*process),
            Self::File(path) => Reader::open(path),
        };
        let mut faults = Vec::new();
        let reader = match opened {
            Ok(reader) => reader,
            Err(OpenError::Truncated { readable: Some(reader), bytes, expected }) => {
                faults.push(format!("the file ends after {bytes} of {expected} bytes"));
                *reader
            }
            Err(error) => return Err(Error::Recording { target: self.clone(), error }),
        };
        faults.extend(reader.damage().iter().map(ToString::to_string));
        Ok((reader, faults))
    }
}

/// A recording that is open.
pub(crate) struct Recording {
    target: Target,
    source: Source,
    faults: Vec<String>,
}

enum Source {
    Reader(Box<Reader>),
    Capture(Capture),
}

impl Recording {
    /// Opens a recording: of a process, in a telemetry file or a core file, or a capture of one.
    ///
    /// # Errors
    /// If nothing can be read.
    pub(crate) fn open(target: &Target) -> Result<Self, Error> {
        let (source, faults) = match target {
            Target::File(path) if target::is_trace(path) => {
                return Err(Error::IsTrace { path: path.clone() });
            }
            Target::File(path) if target::is_capture(path) => {
                (Source::Capture(Capture::open(path)?), Vec::new())
            }
            _ => {
                let (reader, faults) = target.reader()?;
                (Source::Reader(Box::new(reader)), faults)
            }
        };
        Ok(Self { target: target.clone(), source, faults })
    }

    /// The number of the process, as it sees its own.
    pub(crate) fn process(&self) -> u64 {
        match &self.source {
            Source::Reader(reader) => reader.info().process,
            Source::Capture(capture) => capture.head.process,
        }
    }

    /// Whether it is a capture: what was true when that was made may not be so any more.
    pub(crate) fn is_capture(&self) -> bool {
        matches!(self.source, Source::Capture(_))
    }

    /// The time at which the recording began, in seconds since 1970.
    pub(crate) fn made(&self) -> Option<u64> {
        match &self.source {
            Source::Reader(reader) => live::made(reader),
            Source::Capture(capture) => capture.head.made,
        }
    }

    /// Passes on the events that are there now, by time, and reads the rest. What cannot be read is a
    /// fault, and all else is returned.
    pub(crate) fn read(&mut self, mut each: impl FnMut(&Event)) -> End {
        self.read_all(|entry| {
            if let Entry::Event(event) = entry {
                each(event);
            }
        })
    }

    /// As [`Self::read`], with the looks that a capture has.
    pub(crate) fn read_all(&mut self, each: impl FnMut(Entry<'_>)) -> End {
        let faults = &mut self.faults;
        match &mut self.source {
            Source::Reader(reader) => live::read(reader, &self.target, each, faults),
            Source::Capture(capture) => capture.read(each, faults),
        }
    }

    /// What could not be read.
    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Fails if something could not be read.
    pub(crate) fn check_whole(self) -> Result<(), Error> {
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(Error::Partial { target: self.target, faults: self.faults }),
        }
    }
}
