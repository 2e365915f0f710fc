//! The reader's thread: bytes of the input, cut at line ends into blocks.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use decompress::{decompress, explain, other, peek};
use indicatif::ProgressBar;

use crate::failure::Failure;
use crate::handoff::{BLOCK_SIZE, Receiver, Sender};
use crate::pace::Pace;
use crate::places::Places;

/// The name of the standard input.
const STDIN: &str = "-";

/// What else a file may be, by its first bytes, and what to do about it.
const OTHERS: &[(&[u8], &str, &str)] = &[
    (b"PAR1", "Parquet", "make lines of a receive time and a message of it (see --help)"),
    (&[0xd4, 0xc3, 0xb2, 0xa1], "pcap", "use packet-path --pcap FILE"),
    (&[0x4d, 0x3c, 0xb2, 0xa1], "pcap", "use packet-path --pcap FILE"),
    (&[0x0a, 0x0d, 0x0d, 0x0a], "pcapng", "use packet-path --pcap FILE"),
    // The length of a message and its type: the first is that the system begins.
    (&[0, 12, b'S'], "ITCH", "this is order by order: `exchange run --input FILE` keeps its books"),
];

/// Where records come from, or why they cannot.
pub type Input = Result<Box<dyn Read + Send>, Failure>;

/// The most first bytes that say what a file is.
const MAGIC_MAX: usize = 6;

/// Opens a file of lines, as [`open_any`] does.
///
/// # Errors
/// The operating system's, or the name of another format.
pub fn open(path: &Path, progress: &ProgressBar) -> Input {
    refuse_others(open_any(path, progress)?)
}

fn refuse_others(input: Box<dyn Read + Send>) -> Input {
    let (magic, input) = peek(input, MAGIC_MAX).map_err(|error| Failure::new(explain(&error)))?;
    if let Some((name, command)) = other(&magic) {
        return Err(Failure::new(format_args!("this is {name}: {command} | order-book --input -")));
    }
    if let Some((_, name, advice)) = OTHERS.iter().find(|(bytes, ..)| magic.starts_with(bytes)) {
        return Err(Failure::new(format_args!("this is {name}: {advice}")));
    }
    Ok(input)
}

/// Opens a file or the standard input, plain, gzip or zstd; `progress` counts the bytes of the
/// file itself.
///
/// # Errors
/// The operating system's.
pub fn open_any(path: &Path, progress: &ProgressBar) -> Result<Box<dyn Read + Send>, Failure> {
    let open = || {
        if path == Path::new(STDIN) {
            return decompress(stop::stdin()?);
        }
        let file = File::open(path)?;
        progress.inc_length(file.metadata()?.len());
        decompress(progress.wrap_read(stop::file(file)))
    };
    open().map_err(Failure::new)
}

/// Reads one input after the other, or until that `is_over`, into blocks from `empty`, and sends them to `full`; with
/// a pace, when they are due. Whole lines in front of a failure are sent (design/order-book.md `.input.end`).
/// Returns where records are.
///
/// # Errors
/// If an input cannot be read on, or a line is longer than a block.
pub fn read_all(
    inputs: Vec<Input>,
    names: Vec<String>,
    mut pace: Option<Pace>,
    is_over: impl Fn() -> bool,
    mut empty: Receiver,
    mut full: Sender,
) -> (Places, Result<(), Failure>) {
    let (mut places, mut records) = (Places::new(names), 0);
    for (number, input) in inputs.into_iter().enumerate() {
        places.begin(records);
        let outcome = input.and_then(|mut input| {
            let mut lines = 0;
            let pace = pace.as_mut();
            let outcome = read_input(&mut *input, number, &mut lines, pace, &is_over, &mut empty, &mut full);
            let begin = records;
            records += lines;
            outcome.map_err(|failure| failure.with_line(failure.line().map(|line| begin + line)))
        });
        if outcome.is_err() || is_over() {
            return (places, outcome);
        }
    }
    (places, Ok(()))
}

/// Reads all of one input, or until a signal ends it.
///
/// # Errors
/// If it cannot be read on, or a line is longer than a block.
pub fn read(input: &mut dyn Read, mut empty: Receiver, mut full: Sender) -> Result<(), Failure> {
    read_input(input, 0, &mut 0, None, &|| stop::signal().is_some(), &mut empty, &mut full)
}

fn read_input(
    input: &mut dyn Read,
    number: usize,
    lines: &mut u64,
    mut pace: Option<&mut Pace>,
    is_over: &dyn Fn() -> bool,
    empty: &mut Receiver,
    full: &mut Sender,
) -> Result<(), Failure> {
    let mut rest = Vec::with_capacity(BLOCK_SIZE);
    while let Some(mut block) = empty.receive() {
        let bytes = block.bytes_mut();
        bytes[..rest.len()].copy_from_slice(&rest);
        let (read, end) = fill(input, &mut bytes[rest.len()..]);
        let end = if is_over() { End::Stopped } else { end };
        let used = rest.len() + read;
        let whole = if matches!(end, End::OfInput) { used } else { whole_lines(&bytes[..used]) };
        rest.clear();
        rest.extend_from_slice(&bytes[whole..used]);
        block.truncate(whole);
        block.input = number;
        *lines += block.lines().count() as u64;
        let block_is_empty = whole == 0;
        if let Some(pace) = &mut pace {
            if !pace.send(block, is_over, empty, full) {
                return Ok(());
            }
        } else {
            full.send(block);
        }
        match end {
            End::OfBlock if block_is_empty => {
                return Err(Failure::at_line(
                    *lines + 1,
                    format_args!("longer than {BLOCK_SIZE} bytes, and no record may be"),
                ));
            }
            End::OfBlock => {}
            End::OfInput if *lines == 0 && block_is_empty => {
                return Err(Failure::at_line(1, "the input ends before the first record"));
            }
            End::OfInput | End::Stopped => return Ok(()),
            End::Failed(error) => return Err(Failure::at_line(*lines + 1, explain(&error))),
        }
    }
    Ok(())
}

/// Why filling a block stopped.
enum End {
    OfBlock,
    OfInput,
    Stopped,
    Failed(io::Error),
}

/// Fills `bytes`, and says how far it got and why it stopped.
fn fill(input: &mut dyn Read, bytes: &mut [u8]) -> (usize, End) {
    let mut used = 0;
    while used < bytes.len() {
        match input.read(&mut bytes[used..]) {
            Ok(0) => return (used, End::OfInput),
            Ok(size) => used += size,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (used, End::Failed(error)),
        }
    }
    (used, End::OfBlock)
}

/// The length of `bytes` up to the last line end, that included.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use decompress::compress::gzip;

    use super::*;
    use crate::handoff::Round;

    /// The lines that arrive, and how reading ended.
    fn lines_of(input: impl Read + Send) -> (Vec<Vec<u8>>, Result<(), Failure>) {
        let Round { to_hot: (sender, mut receiver), to_reader: (mut give_back, empty), .. } = Round::new();
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut input = input;
                read(&mut input, empty, sender)
            });
            let mut lines = Vec::new();
            while let Some(block) = receiver.receive() {
                lines.extend(block.lines().map(<[u8]>::to_vec));
                give_back.send(block);
            }
            (lines, reader.join().unwrap())
        })
    }

    fn numbered_lines(count: usize) -> Vec<u8> {
        (0..count)
            .flat_map(|number| format!("{number} {}\n", "x".repeat(number % 100)).into_bytes())
            .collect()
    }

    #[test]
    fn lines_arrive_whole_across_blocks() {
        let bytes = numbered_lines(60_000);
        assert!(bytes.len() > 2 * BLOCK_SIZE);
        let expected: Vec<_> =
            bytes.split_inclusive(|&byte| byte == b'\n').map(|line| &line[..line.len() - 1]).collect();
        let (lines, end) = lines_of(decompress(std::io::Cursor::new(bytes.clone())).unwrap());
        assert_eq!(end, Ok(()));
        assert_eq!(lines, expected);
        // Two members, with a line across them.
        let (first, second) = bytes.split_at(bytes.len() / 2 + 1);
        let members = [gzip(first), gzip(second)].concat();
        let (lines, end) = lines_of(decompress(std::io::Cursor::new(members)).unwrap());
        assert_eq!(end, Ok(()));
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_last_line_needs_no_line_end() {
        let (lines, end) = lines_of(&b"a\nb"[..]);
        assert_eq!((lines, end), (vec![b"a".to_vec(), b"b".to_vec()], Ok(())));
    }

    #[test]
    fn what_came_before_a_cut_arrives() {
        let bytes = gzip(&numbered_lines(10_000));
        let cut = std::io::Cursor::new(bytes[..bytes.len() / 2].to_vec());
        let (lines, end) = lines_of(decompress(cut).unwrap());
        assert!(lines.len() > 1_000);
        let expected = Failure::at_line(lines.len() as u64 + 1, "the gzip stream is cut off here");
        assert_eq!(end, Err(expected));
    }

    #[test]
    fn damage_is_no_end() {
        let mut bytes = gzip(&numbered_lines(10));
        let checksum = bytes.len() - 8;
        bytes[checksum] ^= 1;
        let (lines, end) = lines_of(decompress(std::io::Cursor::new(bytes)).unwrap());
        assert_eq!(lines.len(), 10);
        assert!(end.unwrap_err().to_string().starts_with("line 11: the gzip stream is damaged here"));
    }

    #[test]
    fn lines_longer_than_a_block_are_refused() {
        let long = [b"a\n".to_vec(), vec![b'x'; BLOCK_SIZE], b"\n".to_vec()].concat();
        let (lines, end) = lines_of(&long[..]);
        assert_eq!(lines, [b"a"]);
        assert_eq!(
            end,
            Err(Failure::at_line(2, format_args!("longer than {BLOCK_SIZE} bytes, and no record may be")))
        );
        let fits = [vec![b'x'; BLOCK_SIZE - 1], b"\nb\n".to_vec()].concat();
        assert_eq!(lines_of(&fits[..]).1, Ok(()));
    }

    /// A file that is not read says what it is, and what to do.
    #[test]
    fn other_formats_are_named() {
        for (bytes, name, advice) in OTHERS {
            let mut file = bytes.to_vec();
            file.extend_from_slice(&[0; 100]);
            let error = refuse_others(Box::new(std::io::Cursor::new(file))).err().unwrap().to_string();
            assert_eq!(error, format!("this is {name}: {advice}"));
        }
        let zip = refuse_others(Box::new(&b"PK\x03\x04..."[..])).err().unwrap().to_string();
        assert_eq!(zip, "this is zip: unzip -p FILE | order-book --input -");
        let shorter_than_that = std::io::Cursor::new(vec![0x28, 0xb5]);
        assert!(refuse_others(Box::new(shorter_than_that)).is_ok());
    }

    #[test]
    fn inputs_are_read_one_after_the_other() {
        let Round { to_hot: (sender, mut receiver), to_reader: (_give_back, empty), .. } = Round::new();
        let input = |bytes: &'static [u8]| -> Input { Ok(Box::new(bytes)) };
        let inputs = vec![input(b"a\nb"), input(b"c\n"), input(b"")];
        let names = ["x", "y", "z"].map(str::to_owned).to_vec();
        let (places, outcome) = read_all(inputs, names, None, || false, empty, sender);
        let failure = places.name(&outcome.unwrap_err()).to_string();
        assert_eq!(failure, "z: line 1: the input ends before the first record");
        assert_eq!(places.of(3).to_string(), "y: line 1");
        let mut found = Vec::new();
        while let Some(block) = receiver.receive() {
            found.extend(block.lines().map(|line| (block.input, line.to_vec())));
        }
        assert_eq!(found, [(0, b"a".to_vec()), (0, b"b".to_vec()), (1, b"c".to_vec())]);
    }

    #[test]
    fn an_empty_input_is_no_feed() {
        assert!(lines_of(&b""[..]).1.is_err());
    }
}
