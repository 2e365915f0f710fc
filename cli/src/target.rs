//! What a subcommand looks at: a process, or a file, whose first bytes say what it is.

use core::fmt;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::builder::{MapValueParser, OsStringValueParser, TypedValueParser as _, ValueParserFactory};
use tripoint_telemetry::format::LOG_MAGIC;

/// The first bytes of a trace.
pub(crate) const TRACE: [u8; 8] = *b"TRIPTRC\n";

/// The first bytes of a capture.
pub(crate) const CAPTURE: &[u8] = b"{\"tripoint_capture\":";

/// A process, or a file.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Process(u32),
    File(PathBuf),
}

/// A number is that of a process; a file whose name is a number is `./NUMBER`.
impl From<OsString> for Target {
    fn from(text: OsString) -> Self {
        let number = text.to_str().and_then(|text| text.parse().ok());
        number.map_or_else(|| Self::File(text.into()), Self::Process)
    }
}

/// Paths need not be UTF-8.
impl ValueParserFactory for Target {
    type Parser = MapValueParser<OsStringValueParser, fn(OsString) -> Self>;

    fn value_parser() -> Self::Parser {
        OsStringValueParser::new().map(Self::from)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(process) => write!(f, "process {process}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Target {
    /// The path of a trace.
    pub(crate) fn as_trace(&self) -> Option<&Path> {
        match self {
            Self::File(path) if is_trace(path) => Some(path),
            _ => None,
        }
    }

    /// The path of a report in JSON, which is no capture.
    pub(crate) fn as_report(&self) -> Option<&Path> {
        match self {
            Self::File(path) if begins_with(path, b"{") && !is_capture(path) => Some(path),
            _ => None,
        }
    }
}

pub(crate) fn is_trace(path: &Path) -> bool {
    begins_with(path, &TRACE)
}

/// Whether it is a log of points.
pub(crate) fn is_log(path: &Path) -> bool {
    begins_with(path, &LOG_MAGIC)
}

pub(crate) fn is_capture(path: &Path) -> bool {
    begins_with(path, CAPTURE)
}

/// Whether a file begins so. One that cannot be read does not, and opening it tells why.
fn begins_with(path: &Path, expected: &[u8]) -> bool {
    // Opening a pipe would wait for its writer.
    if !path.is_file() {
        return false;
    }
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(expected.len() as u64).read_to_end(&mut begin));
    read.is_ok() && begin == expected
}
