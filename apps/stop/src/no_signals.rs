//! For systems without signals: nothing ends the input early.

use std::fs::File;
use std::io::{self, Read};

/// Installs nothing.
pub const fn install() -> io::Result<()> {
    Ok(())
}

/// No signal ever comes.
pub const fn signal() -> Option<u32> {
    None
}

/// Does nothing: there are no signals.
pub const fn leave_to_others() {}

/// The file as it is.
pub const fn file(file: File) -> File {
    file
}

/// The standard input as it is.
pub fn stdin() -> io::Result<impl Read> {
    Ok(io::stdin())
}
