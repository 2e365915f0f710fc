//! Why a program cannot be recorded.

use core::fmt;
use std::io;

use crate::error::refusal::Refusal;

/// Why a program cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unrecordable {
    NotFound,
    Static,
    OtherUser,
    OtherWidth,
    /// The system does not run it, with this error.
    Refused(i32),
}

impl Unrecordable {
    /// The exit status, if it is the program that is bad: what `env` and shells return.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::NotFound => 127,
            Self::Refused(_) => 126,
            Self::Static | Self::OtherUser | Self::OtherWidth => 2,
        }
    }
}

impl fmt::Display for Unrecordable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused(error) => return Refusal(&io::Error::from_raw_os_error(*error)).fmt(f),
            Self::NotFound => "there is no such program",
            Self::Static => {
                "it is linked statically, so no library can be preloaded: link it dynamically to record it"
            }
            Self::OtherUser => {
                "it runs as another user (setuid or setgid), so the loader preloads nothing: record a copy without that bit, or as that user"
            }
            Self::OtherWidth => "it is a 32-bit program, and the preloaded library has 64 bits: record a 64-bit build",
        })
    }
}
