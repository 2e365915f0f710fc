//! Where messages come from: a generated day, files, pipes (design/exchange.md `.input`).

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use decompress::{Input, decompress, explain, other, peek};

use crate::day::{Day, DayOptions};
use crate::frames::{Form, whole_frames};
use crate::itch::length_of;
use crate::lobster;
use crate::notes::{Notes, Wanted};

/// The bytes of a block.
pub const BLOCK: usize = 1 << 20;

/// The most inputs: a file of LOBSTER has a locate code of its own.
const INPUTS: usize = 60_000;

/// The name of the standard input.
const STDIN: &str = "-";

/// Whole frames of the input, and where they begin in it.
#[derive(Default)]
pub struct Block {
    pub bytes: Vec<u8>,
    pub offset: u64,
    /// The form of the input that it is of, and whether that begins here.
    pub form: Option<(Form, bool)>,
    /// What the hot thread noted of them.
    pub notes: Notes,
}

impl Block {
    /// A block whose memory has been written to.
    pub fn touched() -> Self {
        Self::with_notes(Wanted::default())
    }

    /// The same, with room for all that may be noted.
    pub fn with_notes(wanted: Wanted) -> Self {
        let mut bytes = vec![1; BLOCK];
        bytes.clear();
        Self { bytes, offset: 0, form: None, notes: Notes::touched(wanted) }
    }
}

/// What fills blocks.
pub enum Source {
    Day(Box<Day>, u64),
    Files(Files),
}

impl Source {
    /// A generated day, with or without a burst.
    pub fn day(options: DayOptions, has_burst: bool) -> Self {
        let day = Day::new(options);
        Self::Day(Box::new(if has_burst { day.with_burst() } else { day }), 0)
    }

    /// Files, one after the other. For files of LOBSTER there may be the orderbook file of each.
    ///
    /// # Errors
    /// If the first cannot be opened, or is of no form that is read.
    pub fn files(paths: &[PathBuf], orderbooks: &[PathBuf], form: Option<Form>) -> Result<Self, String> {
        if !orderbooks.is_empty() && orderbooks.len() != paths.len() {
            let counts = (orderbooks.len(), paths.len());
            return Err(format!("{} orderbook files for {} inputs: each has one", counts.0, counts.1));
        }
        if paths.len() > INPUTS {
            return Err(format!("{} inputs, and at most {INPUTS} are read", paths.len()));
        }
        let mut files = Files {
            paths: paths.to_vec(),
            orderbooks: orderbooks.to_vec(),
            at: 0,
            form,
            is_lobster: None,
            current: None,
            failed: None,
            rest: Vec::new(),
            offset: 0,
        };
        files.open()?;
        Ok(Self::Files(files))
    }

    /// Fills a block. Returns whether there is anything in it; if not, the input is over.
    ///
    /// # Errors
    /// If the input cannot be read on. What came before has been in blocks.
    pub fn fill(&mut self, block: &mut Block) -> Result<bool, String> {
        block.bytes.clear();
        match self {
            Self::Day(day, offset) => {
                if stop::signal().is_some() {
                    return Ok(false);
                }
                block.offset = *offset;
                block.form = Some((Form::File, *offset == 0));
                day.fill(&mut block.bytes, BLOCK);
                *offset += block.bytes.len() as u64;
                Ok(!block.bytes.is_empty())
            }
            Self::Files(files) => files.fill(block),
        }
    }
}

/// Files that are read one after the other.
pub struct Files {
    paths: Vec<PathBuf>,
    orderbooks: Vec<PathBuf>,
    at: usize,
    /// The form that was asked for.
    form: Option<Form>,
    /// Whether the inputs so far were of LOBSTER.
    is_lobster: Option<bool>,
    current: Option<(Input, Form)>,
    /// Why the current one cannot be read on. What came before is handed on first.
    failed: Option<String>,
    /// What was read of a frame that is not whole yet.
    rest: Vec<u8>,
    offset: u64,
}

impl Files {
    /// Opens the next, if there is one.
    fn open(&mut self) -> Result<(), String> {
        let Some(path) = self.paths.get(self.at) else { return Ok(()) };
        let (input, form) = open_form(path, self.form).map_err(|why| format!("{}: {why}", path.display()))?;
        let is_lobster = form == Form::Lobster;
        if *self.is_lobster.get_or_insert(is_lobster) != is_lobster {
            return Err(format!("{}: files of LOBSTER and days of ITCH cannot be one run", path.display()));
        }
        let input = match self.orderbooks.get(self.at) {
            None => input,
            Some(rows) if is_lobster => {
                let name = rows.display().to_string();
                let rows = open(rows).map_err(|error| format!("{name}: {}", explain(&error)))?;
                Box::new(Joined::new(input, rows, name))
            }
            Some(_) => return Err("--orderbook: only files of LOBSTER have one".to_owned()),
        };
        self.current = Some((input, form));
        self.offset = 0;
        Ok(())
    }

    fn fill(&mut self, block: &mut Block) -> Result<bool, String> {
        loop {
            if let Some(why) = self.failed.take() {
                return Err(why);
            }
            let Some((input, form)) = &mut self.current else { return Ok(false) };
            let form = *form;
            block.offset = self.offset;
            block.form = Some((form, self.offset == 0));
            block.bytes.append(&mut self.rest);
            let end = read_up_to(input, &mut block.bytes);
            let mut whole = whole_frames(form, &block.bytes);
            if stop::signal().is_some() {
                // What is not whole was not read to its end, and no decompressor either.
                self.current = None;
                block.bytes.truncate(whole);
                return Ok(whole > 0);
            }
            match end {
                Ok(false) if whole == 0 => {
                    self.failed = Some(self.failure(&format!("a line is longer than {BLOCK} bytes")));
                }
                Ok(false) => self.rest.extend_from_slice(&block.bytes[whole..]),
                // What is not whole is in the last block, for the deframer to name.
                Ok(true) => {
                    whole = block.bytes.len();
                    self.at += 1;
                    self.current = None;
                    self.failed = self.open().err();
                    if whole == 0 {
                        continue;
                    }
                    return Ok(true);
                }
                Err(error) => {
                    let at = self.offset + block.bytes.len() as u64;
                    let place = if form == Form::Lobster { String::new() } else { format!("byte {at}: ") };
                    self.failed = Some(self.failure(&format!("{place}{}", explain(&error))));
                    self.current = None;
                }
            }
            block.bytes.truncate(whole);
            self.offset += whole as u64;
            if whole > 0 {
                return Ok(true);
            }
        }
    }

    /// What is said of the current input.
    fn failure(&self, why: &str) -> String {
        let name = self.paths.get(self.at).map_or_else(String::new, |path| path.display().to_string());
        format!("{name}: {why}")
    }
}

/// Opens an input, whatever it is compressed by.
fn open(path: &Path) -> io::Result<Input> {
    if path == Path::new(STDIN) {
        decompress(stop::stdin()?)
    } else {
        decompress(stop::file(File::open(path)?))
    }
}

/// Opens an input, and finds out its form, unless it was asked for.
fn open_form(path: &Path, asked: Option<Form>) -> Result<(Input, Form), String> {
    let (begin, input) = open(path).and_then(|input| peek(input, PEEKED)).map_err(|error| explain(&error))?;
    let form = match asked {
        Some(form) if !begin.is_empty() => form,
        _ => form_of(&begin)?,
    };
    Ok((input, form))
}

/// The bytes by which a form is known.
const PEEKED: usize = 40;

/// The lines of a message file, each with the line of the orderbook file that belongs to it.
struct Joined {
    messages: BufReader<Input>,
    rows: BufReader<Input>,
    name: String,
    line: Vec<u8>,
    /// How much of the line was read.
    used: usize,
    number: u64,
}

impl Joined {
    fn new(messages: Input, rows: Input, name: String) -> Self {
        let [messages, rows] = [messages, rows].map(|input| BufReader::with_capacity(BLOCK, input));
        Self { messages, rows, name, line: Vec::new(), used: 0, number: 0 }
    }

    /// Reads the next line of both. Returns whether there is one.
    fn next(&mut self) -> io::Result<bool> {
        self.line.clear();
        self.used = 0;
        let of_rows = |error: io::Error| io::Error::other(format!("{}: {}", self.name, explain(&error)));
        if self.messages.read_until(b'\n', &mut self.line)? == 0 {
            if self.rows.fill_buf().map_err(of_rows)?.is_empty() {
                return Ok(false);
            }
            return Err(other_count(&self.name, "has more lines than there are messages", self.number));
        }
        self.number += 1;
        while self.line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.pop();
        }
        self.line.push(lobster::JOINT);
        if self.rows.read_until(b'\n', &mut self.line).map_err(of_rows)? == 0 {
            return Err(other_count(&self.name, "has fewer lines than there are messages", self.number - 1));
        }
        if self.line.last() != Some(&b'\n') {
            self.line.push(b'\n');
        }
        Ok(true)
    }
}

fn other_count(name: &str, what: &str, lines: u64) -> io::Error {
    io::Error::other(format!("after line {lines}: {name} {what}"))
}

impl Read for Joined {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.used == self.line.len() && !self.next()? {
            return Ok(0);
        }
        let mut rest = &self.line[self.used..];
        let size = rest.read(bytes)?;
        self.used += size;
        Ok(size)
    }
}

/// Reads until the block is full or the input is over. Returns whether it is over.
fn read_up_to(input: &mut dyn Read, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut used = bytes.len();
    bytes.resize(BLOCK, 0);
    let end = loop {
        if used == BLOCK {
            break Ok(false);
        }
        match input.read(&mut bytes[used..]) {
            Ok(0) => break Ok(true),
            Ok(size) => used += size,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    bytes.truncate(used);
    end
}

/// What else files begin with, and what to do about it.
const OTHER_FORMS: [(&[u8], &str); 7] = [
    (&[0xd4, 0xc3, 0xb2, 0xa1], PCAP),
    (&[0xa1, 0xb2, 0xc3, 0xd4], PCAP),
    (&[0x4d, 0x3c, 0xb2, 0xa1], PCAP),
    (&[0x0a, 0x0d, 0x0d, 0x0a], PCAP),
    (b"{", "JSON: this reads orders; `order-book --input FILE` reads the JSON of Binance"),
    (
        b"time,",
        "LOBSTER with a heading, which its files do not have: `tail -n +2 FILE | exchange run --input -`",
    ),
    (b"PAR1", "Parquet: make lines of LOBSTER of it, or messages of ITCH 5.0"),
];

const PCAP: &str =
    "a capture of frames: extract the payloads of UDP, each with its length in front, two bytes, big-endian";

/// Which form an input has that begins so.
fn form_of(begin: &[u8]) -> Result<Form, String> {
    if begin.is_empty() {
        return Err("empty: there is no message in it".into());
    }
    if let Some((name, command)) = other(begin) {
        return Err(format!("compressed by {name}: `{command} | exchange run --input -`"));
    }
    if let Some((_, what)) = OTHER_FORMS.iter().find(|(magic, _)| begin.starts_with(magic)) {
        return Err((*what).to_owned());
    }
    if lobster::is_line(begin) {
        return Ok(Form::Lobster);
    }
    let length = begin.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length)));
    let kind = begin.get(2).copied();
    if length == kind.and_then(length_of) && length.is_some() {
        return Ok(Form::File);
    }
    let is_session =
        begin.get(2..12).is_some_and(|session| session.iter().all(|byte| matches!(byte, b' '..=b'~')));
    // The number of a packet's first message has eight bytes, which text has no zeros for.
    let is_session = is_session && begin.get(12) == Some(&0);
    if is_session && length.is_some_and(|length| length >= 20) {
        return Ok(Form::Packets);
    }
    Err("neither messages of ITCH 5.0, each with its length (two bytes, big-endian), nor packets of MoldUDP64 so, nor \
         lines of LOBSTER: if it begins with damage, say which with --form"
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{pack, pack_end};

    fn small_day() -> Vec<u8> {
        let mut file = Vec::new();
        Day::new(DayOptions { seed: 1, messages: 150_000, live: 100, symbols: 20 })
            .fill(&mut file, usize::MAX);
        file
    }

    fn all(source: &mut Source) -> (Vec<u8>, Result<(), String>) {
        let (mut bytes, mut block) = (Vec::new(), Block::touched());
        loop {
            match source.fill(&mut block) {
                Ok(true) => {
                    assert_eq!(block.offset, bytes.len() as u64);
                    bytes.extend_from_slice(&block.bytes);
                }
                Ok(false) => return (bytes, Ok(())),
                Err(error) => return (bytes, Err(error)),
            }
        }
    }

    fn of(file: Vec<u8>) -> Result<Source, String> {
        let input = decompress(io::Cursor::new(file)).unwrap();
        let (begin, input) = peek(input, PEEKED).unwrap();
        let form = form_of(&begin)?;
        let files = Files {
            paths: vec!["test".into()],
            orderbooks: Vec::new(),
            at: 0,
            form: None,
            is_lobster: None,
            current: Some((input, form)),
            failed: None,
            rest: Vec::new(),
            offset: 0,
        };
        Ok(Source::Files(files))
    }

    #[test]
    fn blocks_are_the_file_in_whole_frames() {
        let file = small_day();
        assert!(file.len() > 2 * BLOCK);
        assert_eq!(all(&mut of(file.clone()).unwrap()), (file.clone(), Ok(())));
        // What is cut is there too, for the deframer to name.
        let cut = file[..file.len() - 3].to_vec();
        assert_eq!(all(&mut of(cut.clone()).unwrap()), (cut, Ok(())));
        let options = DayOptions { seed: 1, messages: 150_000, live: 100, symbols: 20 };
        assert_eq!(all(&mut Source::day(options, false)), (file, Ok(())));
    }

    #[test]
    fn what_came_before_a_cut_of_gzip_is_kept() {
        let file = small_day();
        let zipped = decompress::compress::gzip(&file);
        assert_eq!(all(&mut of(zipped.clone()).unwrap()), (file.clone(), Ok(())));
        let (bytes, end) = all(&mut of(zipped[..zipped.len() / 2].to_vec()).unwrap());
        assert!(file.starts_with(&bytes) && bytes.len() > BLOCK);
        let end = end.unwrap_err();
        assert!(
            end.starts_with("test: byte ") && end.ends_with(": the gzip stream is cut off here"),
            "{end}"
        );
    }

    fn joined(messages: &'static str, rows: &'static str) -> (String, Result<(), String>) {
        let mut text = Vec::new();
        let end = Joined::new(Box::new(messages.as_bytes()), Box::new(rows.as_bytes()), "rows".to_owned())
            .read_to_end(&mut text);
        (String::from_utf8(text).unwrap(), end.map(|_| ()).map_err(|error| error.to_string()))
    }

    #[test]
    fn lines_of_two_files_are_joined() {
        assert_eq!(joined("a\nb\r\nc", "1\n2\n3"), ("a|1\nb|2\nc|3\n".to_owned(), Ok(())));
        let fewer = "after line 1: rows has fewer lines than there are messages".to_owned();
        assert_eq!(joined("a\nb\n", "1\n"), ("a|1\n".to_owned(), Err(fewer)));
        let more = "after line 1: rows has more lines than there are messages".to_owned();
        assert_eq!(joined("a\n", "1\n2\n"), ("a|1\n".to_owned(), Err(more)));
    }

    #[test]
    fn a_line_longer_than_a_block_is_refused() {
        let mut file = b"1,1,1,1,1,1\n1,1,".to_vec();
        file.resize(2 * BLOCK, b'1');
        let (bytes, end) = all(&mut of(file).unwrap());
        assert_eq!(bytes, b"1,1,1,1,1,1\n");
        assert!(end.unwrap_err().contains("longer than"));
    }

    #[test]
    fn forms_are_known_or_named() {
        let file = small_day();
        assert_eq!(form_of(&file), Ok(Form::File));
        let (mut packets, mut sequence) = (Vec::new(), 1);
        pack(&file, &mut sequence, 1_400, &mut packets);
        pack_end(sequence, &mut packets);
        assert_eq!(form_of(&packets), Ok(Form::Packets));
        assert_eq!(form_of(b"34200.017459617,5,0,1,2238200,-1\n34200"), Ok(Form::Lobster));
        assert!(form_of(b"\xfd7zXZ\x00...").unwrap_err().contains("`xzcat FILE | exchange run --input -`"));
        assert!(form_of(b"").unwrap_err().contains("empty"));
        assert!(form_of(b"\x00\x01xyz").unwrap_err().contains("--form"));
    }
}
