//! Ports: files and strings that programs read or write. A port of the program is an object with a number, and what the
//! number stands for is here.
//!
//! A port that is open while nothing refers to it any more would stay open forever. So every port is registered for
//! finalization, and between two expressions the interpreter closes those that a collection found.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read, Write};

use crate::failure::{Failure, Outcome};
use crate::heap::Store;

/// The most bytes of a line: there are files that have no end, and no lines.
const LINE_MOST: usize = 1 << 20;

/// Reads a line, with its end. It is empty at the end of the input.
///
/// # Errors
/// - [`ErrorKind::InvalidData`] if the line is no text: it was read
/// - [`ErrorKind::FileTooLarge`] if it is too long: only a part of it was read
/// - those of the input
pub(crate) fn read_line(input: &mut dyn BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    input.take(LINE_MOST as u64 + 1).read_until(b'\n', &mut line)?;
    if line.len() > LINE_MOST {
        let text = format!("a line has more than {LINE_MOST} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    String::from_utf8(line).map_err(|_| io::Error::new(ErrorKind::InvalidData, "a line that is not UTF-8"))
}

/// What a port reads or writes.
pub(crate) enum Stream {
    Input(Box<dyn BufRead>),
    Output(File),
    Text(String),
}

impl Stream {
    pub(crate) fn open_file(path: &str) -> Outcome<Self> {
        let file = File::open(path).map_err(|error| Failure::wrong(format!("{path}: {error}")))?;
        Ok(Self::Input(Box::new(BufReader::new(file))))
    }

    pub(crate) fn create_file(path: &str) -> Outcome<Self> {
        let file = File::create(path).map_err(|error| Failure::wrong(format!("{path}: {error}")))?;
        Ok(Self::Output(file))
    }

    pub(crate) fn of_text(text: &str) -> Self {
        Self::Input(Box::new(Cursor::new(text.to_owned())))
    }

    /// The next line, without its end; `None` at the end.
    pub(crate) fn read_line(&mut self) -> Outcome<Option<String>> {
        let Self::Input(input) = self else { return Err(Failure::wrong("the port is for output")) };
        let mut line = read_line(input).map_err(Failure::wrong)?;
        let is_at_end = line.is_empty();
        if line.ends_with('\n') {
            line.pop();
        }
        Ok((!is_at_end).then_some(line))
    }

    pub(crate) fn write(&mut self, text: &str) -> Outcome {
        match self {
            Self::Input(_) => return Err(Failure::wrong("the port is for input")),
            Self::Output(file) => file.write_all(text.as_bytes()).map_err(Failure::wrong)?,
            Self::Text(written) => written.push_str(text),
        }
        Ok(())
    }

    /// What was written to a string.
    pub(crate) fn text(&self) -> Outcome<&str> {
        if let Self::Text(text) = self { Ok(text) } else { Err(Failure::wrong("the port writes no string")) }
    }
}

/// What a number stands for.
#[derive(Default)]
enum Port {
    /// No object has this number.
    #[default]
    Free,
    Closed,
    Open(Stream),
}

/// The ports of an interpreter.
#[derive(Default)]
pub(crate) struct Ports {
    ports: Vec<Port>,
    dropped: usize,
}

impl Ports {
    /// Opens a port. Returns its number, which belongs to it until its object is freed.
    pub(crate) fn open(&mut self, stream: Stream) -> usize {
        let free = self.ports.iter().position(|port| matches!(port, Port::Free));
        let number = free.unwrap_or_else(|| {
            self.ports.push(Port::Free);
            self.ports.len() - 1
        });
        self.ports[number] = Port::Open(stream);
        number
    }

    /// Closes a port. Returns whether it was open.
    pub(crate) fn close(&mut self, number: usize) -> Outcome<bool> {
        let was_open = self.is_open(number);
        let port = self.ports.get_mut(number).ok_or_else(|| Failure::wrong("there is no such port"))?;
        *port = Port::Closed;
        Ok(was_open)
    }

    pub(crate) fn is_open(&self, number: usize) -> bool {
        matches!(self.ports.get(number), Some(Port::Open(_)))
    }

    /// What an open port reads or writes.
    pub(crate) fn stream(&mut self, number: usize) -> Outcome<&mut Stream> {
        match self.ports.get_mut(number) {
            Some(Port::Open(stream)) => Ok(stream),
            _ => Err(Failure::wrong("the port is closed")),
        }
    }

    pub(crate) fn open_count(&self) -> usize {
        self.ports.iter().filter(|port| matches!(port, Port::Open(_))).count()
    }

    /// How many ports were closed because nothing referred to them.
    pub(crate) fn dropped_count(&self) -> usize {
        self.dropped
    }

    /// Closes a port that no object refers to, and lets its number be used again.
    pub(crate) fn forget(&mut self, number: usize) {
        if let Some(port) = self.ports.get_mut(number) {
            *port = Port::Free;
        }
    }

    /// Closes all ports that collections found to be dropped.
    pub(crate) fn close_dropped(&mut self, store: &Store<'_, '_>) {
        while let Some(number) = store.next_dropped_port() {
            self.dropped += usize::from(self.is_open(number));
            self.forget(number);
        }
    }
}
