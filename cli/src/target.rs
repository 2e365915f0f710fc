//! What a subcommand looks at.

use core::fmt;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{MapValueParser, OsStringValueParser, TypedValueParser as _, ValueParserFactory};

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
