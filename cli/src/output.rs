//! What the command prints: text or JSON on standard output, the rest on standard error
//! ([design/cli.md `.output`](crate::design::cli)).

use core::fmt;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use crate::error::Error;

/// A writer whose reader may end, as `head` does: then the rest is left out, and the exit status is what it would have been.
struct UntilClosed<W>(W);

impl<W: Write> UntilClosed<W> {
    fn forgive<T>(result: io::Result<T>, all: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(all),
            other => other,
        }
    }
}

impl<W: Write> Write for UntilClosed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::forgive(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::forgive(self.0.flush(), ())
    }
}

/// The standard output of a subcommand.
pub(crate) struct Output {
    writer: BufWriter<Box<dyn Write>>,
    json: bool,
}

impl Output {
    pub(crate) fn standard(json: bool) -> Self {
        Self { writer: BufWriter::new(Box::new(UntilClosed(anstream::stdout().lock()))), json }
    }

    /// Whether JSON was asked for.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn write_json(&mut self, value: &impl serde::Serialize) -> Result<(), Error> {
        serde_json::to_writer(&mut self.writer, value).map_err(io::Error::from)?;
        Ok(self.writer.write_all(b"\n")?)
    }

    /// Writes out what is buffered.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        Ok(self.writer.flush()?)
    }
}

/// For text. Colours are left out where none are wanted.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Prints help, or what is wrong with the arguments, and returns the status. Help that cannot be written is an error.
pub(crate) fn told(help: &clap::Error) -> ExitCode {
    match UntilClosed::<io::Stdout>::forgive(help.print().and_then(|()| io::stdout().flush()), ()) {
        Ok(()) if help.use_stderr() => ExitCode::from(2),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&Error::Output(error));
            ExitCode::from(2)
        }
    }
}

/// Writes a line on standard error that is not a part of the result.
pub(crate) fn complain(about: &dyn fmt::Display) {
    // There is no other place to say that standard error cannot be written.
    let _ = writeln!(anstream::stderr(), "tripoint: {about}");
}
