//! The file of a trace, while it is recorded ([design/cli-traces.md `.output`](crate::design::cli_traces)).

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// A file that no other recording writes as long as this exists. What is in it stays until [`empty`](Self::empty).
#[derive(Debug)]
pub(super) struct TraceFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// Whether there was no such file before.
    is_new: bool,
}

impl TraceFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let (opened, is_new) = match options.write(true).create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // It may go away meanwhile, and then it is made again.
                (options.create_new(false).create(true).truncate(false).open(path), false)
            }
            made => (made, true),
        };
        let file = opened?;
        // Other errors are of file systems without locks.
        if let Err(rustix::io::Errno::WOULDBLOCK) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another recording writes it: name another file",
            ));
        }
        Ok(Self { file, path: path.to_owned(), is_new })
    }

    /// Takes an older trace out of it.
    pub(super) fn empty(&self) -> io::Result<()> {
        // What is no file, such as a pipe, has no length.
        if self.file.metadata()?.is_file() { self.file.set_len(0) } else { Ok(()) }
    }

    /// Leaves things as they were before, if nothing was written to it.
    pub(super) fn give_up(&self) {
        if self.is_new {
            // If it cannot be removed, it stays, empty.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
