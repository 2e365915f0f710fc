//! Files in which the kernel says something about itself.

use core::ffi::{CStr, c_int};
use core::fmt::{self, Write};

/// A file that is closed when it is dropped.
#[derive(Debug)]
pub(super) struct KernelFile(c_int);

impl KernelFile {
    /// Opens a file for reading; `None` if it cannot be opened.
    pub(super) fn open(path: &CStr) -> Option<Self> {
        // SAFETY: the path is a text that ends with a zero byte; a file that is only read needs no mode.
        let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        (file >= 0).then_some(Self(file))
    }

    /// Reads what comes next, as much as fits; empty at the end, `None` if that fails.
    pub(super) fn read<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        // SAFETY: the file is open, and the buffer has this length and is borrowed exclusively.
        let length = unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(length).ok().and_then(|length| buffer.get(..length))
    }

    /// Passes each line, without its end and cut off after `MOST` bytes. Returns false if the file cannot be read.
    pub(super) fn each_line<const MOST: usize>(&self, visit: &mut dyn FnMut(&[u8])) -> bool {
        let (mut line, mut buffer) = (Line::<MOST>::new(), [0; 4096]);
        loop {
            match self.read(&mut buffer) {
                None => return false,
                Some([]) => return true,
                Some(text) => text.iter().for_each(|&byte| line.push(byte, visit)),
            }
        }
    }
}

/// A line that is read byte by byte.
struct Line<const MOST: usize> {
    text: [u8; MOST],
    length: usize,
}

impl<const MOST: usize> Line<MOST> {
    const fn new() -> Self {
        Self { text: [0; MOST], length: 0 }
    }

    fn push(&mut self, byte: u8, visit: &mut dyn FnMut(&[u8])) {
        if byte == b'\n' {
            visit(&self.text[..core::mem::take(&mut self.length)]);
        } else if let Some(place) = self.text.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }
}

impl Drop for KernelFile {
    fn drop(&mut self) {
        // SAFETY: this value alone has the descriptor, which is not used again.
        let _ = unsafe { libc::close(self.0) };
    }
}

/// The number that a file contains.
pub(super) fn number(path: &CStr) -> Option<usize> {
    parse(KernelFile::open(path)?.read(&mut [0; 24])?)
}

fn parse(text: &[u8]) -> Option<usize> {
    core::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// A path that is put together from parts, of fewer than `ROOM` bytes. What does not fit makes it a path to nothing.
#[derive(Debug)]
pub(super) struct Path<const ROOM: usize = 128> {
    text: [u8; ROOM],
    length: usize,
}

impl Path {
    pub(super) fn new(parts: fmt::Arguments<'_>) -> Self {
        let mut path = Self { text: [0; 128], length: 0 };
        if path.write_fmt(parts).is_err() {
            path.text = [0; 128];
        }
        path
    }
}

impl<const ROOM: usize> Path<ROOM> {
    /// A path of any bytes.
    pub(super) fn of_bytes(bytes: impl Iterator<Item = u8>) -> Self {
        let mut path = Self { text: [0; ROOM], length: 0 };
        if !bytes.into_iter().all(|byte| path.push(&[byte])) {
            path.text = [0; ROOM];
        }
        path
    }

    pub(super) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.text).unwrap_or(c"")
    }

    /// Appends a part; false if it does not fit.
    fn push(&mut self, part: &[u8]) -> bool {
        let end = self.length + part.len();
        // The last byte stays zero.
        if end >= ROOM {
            return false;
        }
        self.text[self.length..end].copy_from_slice(part);
        self.length = end;
        true
    }
}

impl<const ROOM: usize> Write for Path<ROOM> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.push(part.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_setting_is_read_as_a_number_or_not_at_all() {
        assert_eq!(parse(b"65530\n"), Some(65_530));
        assert_eq!(parse(b"many\n"), None);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"\xff"), None);
        assert_eq!(number(c"/proc/self/no such file"), None);
    }

    #[test]
    fn a_path_is_its_parts_or_nothing() {
        let path = |width| Path::new(format_args!("/node{:0width$}", 7));
        assert_eq!(path(1).as_c_str(), c"/node7");
        assert_eq!(path(122).as_c_str().count_bytes(), 127);
        assert_eq!(path(123).as_c_str(), c"");
        let path = |length| Path::<8>::of_bytes(b"/odd\xff/long".iter().copied().take(length));
        assert_eq!((path(5).as_c_str(), path(8).as_c_str()), (c"/odd\xff", c""));
    }

    #[test]
    fn a_line_is_passed_at_its_end_and_cut_off() {
        let (mut line, mut found) = (Line::<4>::new(), Vec::new());
        for byte in *b"four\n\nlonger\nno end" {
            line.push(byte, &mut |text| found.push(text.to_vec()));
        }
        assert_eq!(found, [&b"four"[..], b"", b"long"]);
    }
}
