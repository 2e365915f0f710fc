//! A capture: what `tripoint attach` saw of a process, as lines of JSON (design/cli.md `.capture`).

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tripoint_telemetry::reader::Item;

use crate::error::Error;
use crate::source::end::End;
use crate::source::event::Event;
use crate::source::look::{Entry, Look};
use crate::words::counted;

/// The version of the form that this program writes, and the newest that it reads. Version 1 has no looks, and no
/// time in its last line.
const VERSION: u64 = 2;

/// How the last line begins; no event does.
const END: &str = "{\"counters\":";

/// How a look begins; no event does.
const LOOK: &str = "{\"look\":";

/// The first line.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Head {
    #[serde(rename = "tripoint_capture")]
    version: u64,
    /// The number of the process, as it sees its own.
    pub(crate) process: u64,
    /// When its recording began, in seconds since 1970.
    pub(crate) made: Option<u64>,
}

/// A capture to read.
pub(crate) struct Capture {
    pub(super) head: Head,
    lines: BufReader<File>,
}

impl Capture {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::system("open the capture", path))?;
        let mut lines = BufReader::new(file);
        let mut line = String::new();
        lines.read_line(&mut line).map_err(Error::system("read the capture", path))?;
        let bad = |why: String| Error::Capture { path: path.into(), why };
        if !line.ends_with('\n') {
            return Err(bad(
                "it is cut off within its first line, so nothing can be read; capture it again".to_owned()
            ));
        }
        let head: Head =
            serde_json::from_str(&line).map_err(|error| bad(format!("its first line: {error}")))?;
        if head.version > VERSION {
            let newer =
                format!("it has version {}, and this program knows versions up to {VERSION}", head.version);
            return Err(bad(newer));
        }
        Ok(Self { head, lines })
    }

    /// Passes on events and looks, and returns the rest. A line that makes no sense is a fault.
    pub(super) fn read(&mut self, mut each: impl FnMut(Entry<'_>), faults: &mut Vec<String>) -> End {
        let mut line = Vec::new();
        let (mut bad_lines, mut first, mut number) = (0u64, None, 1u64);
        loop {
            line.clear();
            number += 1;
            match self.lines.read_until(b'\n', &mut line) {
                Ok(_) if !line.ends_with(b"\n") => {
                    let cut = if line.is_empty() { "before" } else { "within" };
                    faults.push(format!(
                        "it has no last line: it is cut off {cut} line {number}, or still being written"
                    ));
                }
                Err(error) => faults.push(format!("it cannot be read any more: {error}")),
                Ok(_) if line.starts_with(END.as_bytes()) => match serde_json::from_slice(&line) {
                    Ok(end) => {
                        let end: End = end;
                        faults.extend(end.unseen.iter().cloned());
                        return told(end, bad_lines, first, faults);
                    }
                    Err(error) => faults.push(format!("its last line: {error}")),
                },
                Ok(_) => {
                    if let Err(error) = read_line(&line, &mut each) {
                        bad_lines += 1;
                        first.get_or_insert_with(|| format!("line {number}: {error}"));
                    }
                    continue;
                }
            }
            return told(End::default(), bad_lines, first, faults);
        }
    }
}

/// Passes on the event or the look of a line.
fn read_line(line: &[u8], each: &mut impl FnMut(Entry<'_>)) -> Result<(), String> {
    if line.starts_with(LOOK.as_bytes()) {
        let Looked { look } = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        each(Entry::Look(&look));
    } else {
        let line = core::str::from_utf8(line).map_err(|error| error.to_string())?;
        each(Entry::Event(&Event::from_json(line)?));
    }
    Ok(())
}

/// The line of a look.
#[derive(Deserialize, Serialize)]
struct Looked<L> {
    look: L,
}

/// Adds the fault of lines that were left out.
fn told(end: End, bad_lines: u64, first: Option<String>, faults: &mut Vec<String>) -> End {
    let lines = counted(bad_lines, "line");
    faults.extend(first.map(|first| format!("{lines} could not be read, the first: {first}")));
    end
}

/// A capture that is being written.
pub(crate) struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    line: String,
}

impl Writer {
    /// Begins a capture. There must be no such file: telemetry that is cut off under a running process ends
    /// the process.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn create(path: &Path, process: u64, made: Option<u64>) -> Result<Self, Error> {
        let file = File::create_new(path).map_err(Error::system("create the capture", path))?;
        let mut writer = Self { path: path.into(), file: BufWriter::new(file), line: String::new() };
        let head = serde_json::to_string(&Head { version: VERSION, process, made });
        writer.line = head.map_err(|error| writer.refused(error.into()))?;
        writer.write_line()?;
        Ok(writer)
    }

    /// Adds an event or a gap.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn add(&mut self, item: &Item) -> Result<(), Error> {
        self.line.clear();
        item.write_json(&mut self.line).map_err(|error| self.refused(io::Error::other(error)))?;
        self.write_line()
    }

    /// Adds a line of another source, in the form of an event or a gap.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn add_line(&mut self, line: &impl Serialize) -> Result<(), Error> {
        self.line = serde_json::to_string(line).map_err(|error| self.refused(error.into()))?;
        self.write_line()
    }

    /// Adds a look.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn add_look(&mut self, look: &Look) -> Result<(), Error> {
        self.line = serde_json::to_string(&Looked { look }).map_err(|error| self.refused(error.into()))?;
        self.write_line()
    }

    /// Writes out what is buffered: what was captured stays if this program is killed.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.file.flush().map_err(|error| self.refused(error))
    }

    /// Ends the capture, and returns its bytes.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn finish(mut self, end: &End) -> Result<u64, Error> {
        self.line = serde_json::to_string(end).map_err(|error| self.refused(error.into()))?;
        self.write_line()?;
        self.flush()?;
        self.file.get_ref().metadata().map(|file| file.len()).map_err(|error| self.refused(error))
    }

    fn write_line(&mut self) -> Result<(), Error> {
        self.line.push('\n');
        self.file.write_all(self.line.as_bytes()).map_err(|error| self.refused(error))
    }

    fn refused(&self, error: io::Error) -> Error {
        Error::system("write the capture", &self.path)(error)
    }
}
