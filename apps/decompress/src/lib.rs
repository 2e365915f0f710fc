//! Inputs of programs: plain, gzip or zstd, known by their first bytes.

#[cfg(any(test, feature = "compress"))]
pub mod compress;

use core::error::Error;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Bytes that are read at a time, and the window that a frame of zstd may have.
const BUFFER: usize = 1 << 20;
const WINDOW: u64 = 128 << 20;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The last block of a frame, without contents, and a checksum, which is not looked at.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// The first of the magic numbers of frames that are skipped; the others differ from it in four bits.
const SKIPPABLE: u32 = 0x184d_2a50;

/// Forms that no decoder here reads, by their first bytes, and the command that makes them plain.
const OTHERS: [(&[u8], &str, &str); 5] = [
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "xzcat FILE"),
    (b"BZh", "bzip2", "bzcat FILE"),
    (b"PK\x03\x04", "zip", "unzip -p FILE"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4", "lz4cat FILE"),
    (b"7z\xbc\xaf\x27\x1c", "7-zip", "7z x -so FILE"),
];

/// What an input is that is compressed in a form that is not read here, and the command that makes it plain.
pub fn other(begin: &[u8]) -> Option<(&'static str, &'static str)> {
    OTHERS.iter().find(|(magic, ..)| begin.starts_with(magic)).map(|&(_, name, command)| (name, command))
}

/// An input of any kind.
pub type Input = Box<dyn Read + Send>;

/// The first bytes of an input, at most that many, and an input that still has them.
///
/// # Errors
/// The input's.
pub fn peek(mut input: Input, most: usize) -> io::Result<(Vec<u8>, Input)> {
    let mut begin = Vec::with_capacity(most);
    input.by_ref().take(most as u64).read_to_end(&mut begin)?;
    Ok((begin.clone(), Box::new(Cursor::new(begin).chain(input))))
}

/// What a plain input has, and what one has that gzip or zstd has compressed. Both may be of several members or frames.
///
/// What is damaged is an error of the kind `InvalidData`, a stream that is cut off one of the kind `UnexpectedEof`; both say
/// so. What came before is read first. Fewer than four bytes are no stream yet, and are read as they are.
///
/// # Errors
/// If the first bytes cannot be read.
pub fn decompress(input: impl Read + Send + 'static) -> io::Result<Input> {
    let (begin, input) = peek(Box::new(BufReader::with_capacity(BUFFER, input)), ZSTD.len())?;
    // A chain has no buffer, and decoders read single bytes.
    let buffered = |input| BufReader::with_capacity(BUFFER, input);
    let is_skippable = begin.first_chunk().is_some_and(|magic| u32::from_le_bytes(*magic) & !15 == SKIPPABLE);
    Ok(if begin.starts_with(GZIP) {
        Box::new(Named { input: MultiGzDecoder::new(buffered(input)), name: "gzip" })
    } else if begin == ZSTD || is_skippable {
        Box::new(Named { input: Zstd::new(buffered(input)), name: "zstd" })
    } else {
        input
    })
}

/// Says why an input could not be read on.
pub fn explain(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData => error.to_string(),
        _ => format!("cannot be read: {error}"),
    }
}

/// A decoder, whose errors say what it reads.
struct Named<R> {
    input: R,
    name: &'static str,
}

impl<R: Read> Read for Named<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let name = self.name;
        self.input.read(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                io::Error::new(ErrorKind::UnexpectedEof, format!("the {name} stream is cut off here"))
            }
            ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                io::Error::new(ErrorKind::InvalidData, format!("the {name} stream is damaged here: {error}"))
            }
            _ => error,
        })
    }
}

/// The frames of zstd, one after the other.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
    /// Why the frame ends before its end, once what it had is read.
    cut: Option<io::Error>,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        Self { source, decoder, is_in_frame: false, cut: None }
    }

    /// Begins with the next frame that has contents. Returns whether there is one.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(of_frame(error)),
            }
        }
        Ok(false)
    }

    /// Compares what was decoded with the sum that the frame may have.
    fn end_frame(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(sum) if self.decoder.get_calculated_checksum() != Some(sum) => {
                Err(io::Error::new(ErrorKind::InvalidData, "its checksum is another"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.is_in_frame && !self.begin_frame()? {
                return Ok(0);
            }
            self.is_in_frame = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = || BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.source, one()).map_err(of_frame) {
                    if error.kind() != ErrorKind::UnexpectedEof || self.cut.is_some() {
                        return Err(error);
                    }
                    // It keeps a window for blocks to come. After a last one without contents it keeps nothing.
                    self.decoder.decode_blocks(&mut &LAST_BLOCK[..], one()).map_err(of_frame)?;
                    self.cut = Some(error);
                }
            }
            let size = self.decoder.read(bytes)?;
            if size > 0 {
                return Ok(size);
            }
            self.is_in_frame = false;
            if let Some(cut) = self.cut.take() {
                return Err(cut);
            }
            self.end_frame()?;
        }
    }
}

/// The error of the source, if that is why a frame could not be read; else the frame is damaged.
fn of_frame(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&dyn Error> = Some(&error);
    while let Some(current) = cause {
        if let Some(of_source) = current.downcast_ref::<io::Error>() {
            return io::Error::new(of_source.kind(), of_source.to_string());
        }
        cause = current.source();
    }
    io::Error::new(ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::compress::{gzip, zstd};
    use super::*;

    /// What `zstd --check` makes of [`TWO_LINES`].
    const TWO_LINES_ZSTD: [u8; 35] = [
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0xb1, 0x00, 0x00, 0x6f, 0x6e, 0x65, 0x20, 0x6c, 0x69, 0x6e, 0x65,
        0x0a, 0x61, 0x6e, 0x6f, 0x74, 0x68, 0x65, 0x72, 0x20, 0x6c, 0x69, 0x6e, 0x65, 0x0a, 0xd3, 0x21, 0xda,
        0xb2,
    ];
    const TWO_LINES: &[u8] = b"one line\nanother line\n";

    /// More than a block of either.
    fn text() -> Vec<u8> {
        (0..50_000_u32)
            .flat_map(|number| format!("{}\n", number.wrapping_mul(2_654_435_761)).into_bytes())
            .collect()
    }

    /// What comes out, and how it ends.
    fn read(bytes: &[u8]) -> (Vec<u8>, Result<(), String>) {
        let (mut all, mut input) = (Vec::new(), decompress(Cursor::new(bytes.to_vec())).unwrap());
        let mut part = vec![0; 10_000];
        loop {
            match input.read(&mut part) {
                Ok(0) => return (all, Ok(())),
                Ok(size) => all.extend_from_slice(&part[..size]),
                Err(error) => return (all, Err(explain(&error))),
            }
        }
    }

    #[test]
    fn all_forms_have_what_was_put_in() {
        let text = text();
        let (first, second) = text.split_at(text.len() / 3);
        assert_eq!(read(&text), (text.clone(), Ok(())));
        assert_eq!(read(&gzip(&text)), (text.clone(), Ok(())));
        assert_eq!(read(&[gzip(first), gzip(second)].concat()), (text.clone(), Ok(())));
        assert_eq!(read(&zstd(&text)), (text.clone(), Ok(())));
        assert_eq!(read(&TWO_LINES_ZSTD), (TWO_LINES.to_vec(), Ok(())));
        // Frames, with one between them and one in front that are skipped.
        let skipped = [&(SKIPPABLE + 3).to_le_bytes()[..], &5_u32.to_le_bytes(), b"notes"].concat();
        let frames = [&skipped[..], &zstd(first), &skipped, &zstd(second)].concat();
        assert_eq!(read(&frames), (text, Ok(())));
        assert_eq!(read(b""), (vec![], Ok(())));
        assert_eq!(read(&zstd(b"")), (vec![], Ok(())));
    }

    #[test]
    fn what_came_before_a_cut_is_read_and_the_cut_is_named() {
        let text = text();
        for (name, whole) in [("gzip", gzip(&text)), ("zstd", zstd(&text))] {
            let (all, end) = read(&whole[..whole.len() / 2]);
            assert!(all.len() > 100_000 && text.starts_with(&all), "{name}: {}", all.len());
            assert_eq!(end, Err(format!("the {name} stream is cut off here")));
        }
        // All but the last block, of at most 128 KiB, even if the window is larger.
        let whole = zstd(&text);
        let (all, _) = read(&whole[..whole.len() - 10]);
        assert!(
            all.len() + (128 << 10) >= text.len() && text.starts_with(&all),
            "{} of {}",
            all.len(),
            text.len()
        );
        // Within the header, the checksum, and what is skipped.
        for cut in [5, 10, TWO_LINES_ZSTD.len() - 1] {
            assert_eq!(read(&TWO_LINES_ZSTD[..cut]).1, Err("the zstd stream is cut off here".to_owned()));
        }
        let skipped = [&SKIPPABLE.to_le_bytes()[..], &5_u32.to_le_bytes(), b"note"].concat();
        assert_eq!(read(&skipped).1, Err("the zstd stream is cut off here".to_owned()));
    }

    #[test]
    fn damage_is_named() {
        for at in [20, TWO_LINES_ZSTD.len() - 1] {
            let mut damaged = TWO_LINES_ZSTD;
            damaged[at] ^= 1;
            let end = read(&damaged).1.unwrap_err();
            assert_eq!(end, "the zstd stream is damaged here: its checksum is another");
        }
        let behind = [&TWO_LINES_ZSTD[..], b"plain"].concat();
        let (all, end) = read(&behind);
        assert_eq!(all, TWO_LINES);
        assert!(end.unwrap_err().starts_with("the zstd stream is damaged here"));
        let mut damaged = gzip(TWO_LINES);
        let checksum = damaged.len() - 8;
        damaged[checksum] ^= 1;
        assert!(read(&damaged).1.unwrap_err().starts_with("the gzip stream is damaged here"));
    }

    #[test]
    fn other_forms_are_known() {
        for (magic, name, command) in OTHERS {
            assert_eq!(other(&[magic, b"..."].concat()), Some((name, command)));
        }
        assert_eq!(other(b"plain"), None);
    }
}
