//! The reader's thread: bytes of the input, cut at line ends into blocks.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use indicatif::ProgressBar;

use crate::failure::Failure;
use crate::handoff::{BLOCK_SIZE, Receiver, Sender};
use crate::stop;

/// The name of the standard input.
const STDIN: &str = "-";

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Opens a file or the standard input, plain or gzip; `progress` counts the bytes of the
/// file itself.
///
/// # Errors
/// The operating system's.
pub fn open(path: &Path, progress: &ProgressBar) -> Result<Box<dyn Read + Send>, Failure> {
    let open = || {
        if path == Path::new(STDIN) {
            return plain_or_gzip(stop::stdin()?);
        }
        let file = File::open(path)?;
        progress.set_length(file.metadata()?.len());
        plain_or_gzip(progress.wrap_read(stop::file(file)))
    };
    open().map_err(Failure::new)
}

fn plain_or_gzip(input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut input = BufReader::with_capacity(BLOCK_SIZE, input);
    let mut magic = Vec::with_capacity(GZIP_MAGIC.len());
    input.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut magic)?;
    let gzip = magic == GZIP_MAGIC;
    let whole = io::Cursor::new(magic).chain(input);
    Ok(if gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

/// Reads all of `input`, or until a signal ends it, into blocks from `empty`, and sends
/// them to `full`. Whole lines in front of a failure are sent
/// (design/order-book.md `.input.end`).
///
/// # Errors
/// If the input cannot be read on, or a line is longer than a block.
pub fn read(input: &mut dyn Read, mut empty: Receiver, mut full: Sender) -> Result<(), Failure> {
    let mut rest = Vec::with_capacity(BLOCK_SIZE);
    let mut lines = 0;
    while let Some(mut block) = empty.receive() {
        let bytes = block.bytes_mut();
        bytes[..rest.len()].copy_from_slice(&rest);
        let (read, end) = fill(input, &mut bytes[rest.len()..]);
        let end = if stop::signal().is_some() { End::Stopped } else { end };
        let used = rest.len() + read;
        let whole = if matches!(end, End::OfInput) { used } else { whole_lines(&bytes[..used]) };
        rest.clear();
        rest.extend_from_slice(&bytes[whole..used]);
        block.truncate(whole);
        lines += count_lines(block.contents());
        let block_is_empty = whole == 0;
        full.send(block);
        match end {
            End::OfBlock if block_is_empty => {
                return Err(Failure::at_line(lines + 1, format_args!("longer than {BLOCK_SIZE} bytes")));
            }
            End::OfBlock => {}
            End::OfInput if lines == 0 && block_is_empty => {
                return Err(Failure::at_line(1, "the input ends before the first record"));
            }
            End::OfInput | End::Stopped => return Ok(()),
            End::Failed(error) => return Err(Failure::at_line(lines + 1, explain(&error))),
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

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte == b'\n')).sum()
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "the gzip stream is cut off here".to_owned(),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            format!("the gzip stream is damaged here: {error}")
        }
        _ => format!("cannot be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::handoff::Round;
    use std::io::Write;

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

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
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
        let (lines, end) = lines_of(plain_or_gzip(std::io::Cursor::new(bytes.clone())).unwrap());
        assert_eq!(end, Ok(()));
        assert_eq!(lines, expected);
        // Two members, with a line across them.
        let (first, second) = bytes.split_at(bytes.len() / 2 + 1);
        let members = [gzip(first), gzip(second)].concat();
        let (lines, end) = lines_of(plain_or_gzip(std::io::Cursor::new(members)).unwrap());
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
        let (lines, end) = lines_of(plain_or_gzip(cut).unwrap());
        assert!(lines.len() > 1_000);
        let expected = Failure::at_line(lines.len() as u64 + 1, "the gzip stream is cut off here");
        assert_eq!(end, Err(expected));
    }

    #[test]
    fn damage_is_no_end() {
        let mut bytes = gzip(&numbered_lines(10));
        let checksum = bytes.len() - 8;
        bytes[checksum] ^= 1;
        let (lines, end) = lines_of(plain_or_gzip(std::io::Cursor::new(bytes)).unwrap());
        assert_eq!(lines.len(), 10);
        assert!(end.unwrap_err().to_string().starts_with("line 11: the gzip stream is damaged here"));
    }

    #[test]
    fn lines_longer_than_a_block_are_refused() {
        let long = [b"a\n".to_vec(), vec![b'x'; BLOCK_SIZE], b"\n".to_vec()].concat();
        let (lines, end) = lines_of(&long[..]);
        assert_eq!(lines, [b"a"]);
        assert_eq!(end, Err(Failure::at_line(2, format_args!("longer than {BLOCK_SIZE} bytes"))));
        let fits = [vec![b'x'; BLOCK_SIZE - 1], b"\nb\n".to_vec()].concat();
        assert_eq!(lines_of(&fits[..]).1, Ok(()));
    }

    #[test]
    fn an_empty_input_is_no_feed() {
        assert!(lines_of(&b""[..]).1.is_err());
    }
}
