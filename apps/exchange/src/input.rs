//! Where messages come from: a generated day, files, pipes (design/exchange.md `.input`).

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::day::{Day, DayOptions};
use crate::frames::{Form, whole_frames};
use crate::itch::length_of;

/// The bytes of a block.
pub const BLOCK: usize = 1 << 20;

/// The name of the standard input.
const STDIN: &str = "-";

/// Whole frames of the input, and where they begin in it.
#[derive(Default)]
pub struct Block {
    pub bytes: Vec<u8>,
    pub offset: u64,
    /// The form of the input that it is of, and whether that begins here.
    pub form: Option<(Form, bool)>,
}

impl Block {
    /// A block whose memory has been written to.
    pub fn touched() -> Self {
        let mut bytes = vec![1; BLOCK];
        bytes.clear();
        Self { bytes, offset: 0, form: None }
    }
}

/// What fills blocks.
pub enum Source {
    Day(Box<Day>, u64),
    Files(Files),
}

impl Source {
    /// A generated day.
    pub fn day(options: DayOptions) -> Self {
        Self::Day(Box::new(Day::new(options)), 0)
    }

    /// Files, one after the other.
    ///
    /// # Errors
    /// If the first cannot be opened, or is of no form that is read.
    pub fn files(paths: &[PathBuf], form: Option<Form>) -> Result<Self, String> {
        let mut files =
            Files { paths: paths.to_vec(), at: 0, form, current: None, rest: Vec::new(), offset: 0 };
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
    at: usize,
    /// The form that was asked for.
    form: Option<Form>,
    current: Option<(Box<dyn Read + Send>, Form)>,
    /// What was read of a frame that is not whole yet.
    rest: Vec<u8>,
    offset: u64,
}

impl Files {
    fn name(&self) -> String {
        self.paths.get(self.at).map_or_else(String::new, |path| path.display().to_string())
    }

    fn open(&mut self) -> Result<(), String> {
        let name = self.name();
        let failed = |error: io::Error| format!("{name}: {error}");
        let input = self.paths.get(self.at).map(|path| open(path)).transpose().map_err(failed)?;
        let Some(input) = input else { return Ok(()) };
        let (begin, input) = peek(input).map_err(failed)?;
        let (begin, input) = unzip(begin, input).map_err(|why| format!("{name}: {why}"))?;
        let form = self.form.map_or_else(|| form_of(&begin), Ok).map_err(|why| format!("{name}: {why}"))?;
        self.current = Some((input, form));
        self.rest = begin;
        self.offset = 0;
        Ok(())
    }

    fn fill(&mut self, block: &mut Block) -> Result<bool, String> {
        loop {
            let name = self.name();
            let Some((input, form)) = &mut self.current else { return Ok(false) };
            block.offset = self.offset;
            block.form = Some((*form, self.offset == 0));
            block.bytes.append(&mut self.rest);
            let end = read_up_to(input, &mut block.bytes);
            let whole = whole_frames(&block.bytes);
            match end {
                Ok(false) => self.rest.extend_from_slice(&block.bytes[whole..]),
                // What is not whole is in the last block, for the deframer to name.
                Ok(true) => {
                    self.at += 1;
                    self.current = None;
                    self.open()?;
                    if block.bytes.is_empty() {
                        continue;
                    }
                    return Ok(true);
                }
                Err(error) => {
                    let at = self.offset + block.bytes.len() as u64;
                    self.current = None;
                    if whole == 0 {
                        return Err(format!("{name}: byte {at}: {}", explain(&error)));
                    }
                    // First what came before, then the error.
                    let why = format!("byte {at}: {}", explain(&error));
                    self.current = Some((Box::new(Failing(why)), *form_ref(block)));
                }
            }
            block.bytes.truncate(whole);
            self.offset += whole as u64;
            return Ok(true);
        }
    }
}

/// The form of a block that has one.
fn form_ref(block: &Block) -> &Form {
    block.form.as_ref().map_or(&Form::File, |(form, _)| form)
}

/// An input that has failed.
struct Failing(String);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other(self.0.clone()))
    }
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "the gzip stream is cut off here".to_owned(),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            format!("the gzip stream is damaged here: {error}")
        }
        _ => error.to_string(),
    }
}

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    if path == Path::new(STDIN) { Ok(Box::new(io::stdin())) } else { Ok(Box::new(File::open(path)?)) }
}

/// The bytes by which a form is known.
const PEEKED: usize = 24;

/// Reads the first bytes.
fn peek(mut input: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut begin = Vec::with_capacity(BLOCK);
    input.by_ref().take(PEEKED as u64).read_to_end(&mut begin)?;
    Ok((begin, input))
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

const GZIP: [u8; 2] = [0x1f, 0x8b];

#[cfg(feature = "gzip")]
fn unzip(begin: Vec<u8>, input: Box<dyn Read + Send>) -> Result<(Vec<u8>, Box<dyn Read + Send>), String> {
    if !begin.starts_with(&GZIP) {
        return Ok((begin, input));
    }
    let whole = io::Cursor::new(begin).chain(input);
    let zipped = flate2::bufread::MultiGzDecoder::new(io::BufReader::with_capacity(BLOCK, whole));
    peek(Box::new(zipped)).map_err(|error| format!("the gzip stream: {error}"))
}

#[cfg(not(feature = "gzip"))]
fn unzip(begin: Vec<u8>, input: Box<dyn Read + Send>) -> Result<(Vec<u8>, Box<dyn Read + Send>), String> {
    if begin.starts_with(&GZIP) {
        return Err(
            "compressed by gzip: build with the feature `gzip`, or `zcat FILE | exchange run --input -`"
                .into(),
        );
    }
    Ok((begin, input))
}

/// What else files begin with, and what to do about it.
const OTHER_FORMS: [(&[u8], &str); 9] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "compressed by zstd: `zstdcat FILE | exchange run --input -`"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "compressed by xz: `xzcat FILE | exchange run --input -`"),
    (b"BZh", "compressed by bzip2: `bzcat FILE | exchange run --input -`"),
    (b"PK\x03\x04", "a zip archive: `unzip -p FILE | exchange run --input -`"),
    (&[0xd4, 0xc3, 0xb2, 0xa1], PCAP),
    (&[0xa1, 0xb2, 0xc3, 0xd4], PCAP),
    (&[0x4d, 0x3c, 0xb2, 0xa1], PCAP),
    (&[0x0a, 0x0d, 0x0d, 0x0a], PCAP),
    (b"{", "JSON: this reads ITCH 5.0; `order-book --input FILE` reads JSON of another exchange"),
];

const PCAP: &str =
    "a capture of frames: extract the payloads of UDP, each with its length in front, two bytes, big-endian";

/// Which form an input has that begins so.
fn form_of(begin: &[u8]) -> Result<Form, String> {
    if begin.is_empty() {
        return Err("empty: a day of ITCH 5.0 begins with a system event".into());
    }
    if let Some((_, what)) = OTHER_FORMS.iter().find(|(magic, _)| begin.starts_with(magic)) {
        return Err((*what).to_owned());
    }
    let length = begin.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length)));
    let kind = begin.get(2).copied();
    if length == kind.and_then(length_of) && length.is_some() {
        return Ok(Form::File);
    }
    let is_session =
        begin.get(2..12).is_some_and(|session| session.iter().all(|byte| matches!(byte, b' '..=b'~')));
    if is_session && length.is_some_and(|length| length >= 20) {
        return Ok(Form::Packets);
    }
    Err("neither messages of ITCH 5.0, each with its length (two bytes, big-endian), nor packets of MoldUDP64 so: if it \
         begins with damage, say which with --form"
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
        let (begin, input) = peek(Box::new(io::Cursor::new(file))).unwrap();
        let (begin, input) = unzip(begin, input)?;
        let form = form_of(&begin)?;
        let files = Files {
            paths: vec!["test".into()],
            at: 0,
            form: None,
            current: Some((input, form)),
            rest: begin,
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
        assert_eq!(all(&mut Source::day(options)), (file, Ok(())));
    }

    #[cfg(feature = "gzip")]
    #[test]
    fn what_came_before_a_cut_of_gzip_is_kept() {
        use std::io::Write;
        let file = small_day();
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&file).unwrap();
        let zipped = encoder.finish().unwrap();
        assert_eq!(all(&mut of(zipped.clone()).unwrap()), (file.clone(), Ok(())));
        let (bytes, end) = all(&mut of(zipped[..zipped.len() / 2].to_vec()).unwrap());
        assert!(file.starts_with(&bytes) && bytes.len() > BLOCK);
        assert!(end.unwrap_err().contains("the gzip stream is cut off here"));
    }

    #[test]
    fn forms_are_known_or_named() {
        let file = small_day();
        assert_eq!(form_of(&file), Ok(Form::File));
        let (mut packets, mut sequence) = (Vec::new(), 1);
        pack(&file, &mut sequence, 1_400, &mut packets);
        pack_end(sequence, &mut packets);
        assert_eq!(form_of(&packets), Ok(Form::Packets));
        assert!(form_of(&[0x28, 0xb5, 0x2f, 0xfd, 0]).unwrap_err().contains("zstdcat"));
        assert!(form_of(b"").unwrap_err().contains("empty"));
        assert!(form_of(b"\x00\x01xyz").unwrap_err().contains("--form"));
    }
}
