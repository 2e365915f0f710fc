//! Writes a file as a whole, or not at all.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::Error;

/// A file that is written under another name and gets its own when it is complete. A file that was there is replaced, not
/// written to: a running process may have it in its memory. A device or a pipe is written to, as there is no other way.
pub(crate) struct WholeFile {
    path: PathBuf,
    file: BufWriter<Place>,
}

enum Place {
    New(NamedTempFile),
    There(File),
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            // Its errors name no file of ours.
            Self::New(file) => file.as_file_mut().write(bytes),
            Self::There(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WholeFile {
    pub(crate) fn begin(path: &Path) -> Result<Self, Error> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = match std::fs::metadata(path) {
            Ok(there) if !there.is_file() && !there.is_dir() => {
                OpenOptions::new().write(true).open(path).map(Place::There)
            }
            _ => as_others_are(folder).map(Place::New),
        };
        let file = file.map_err(Error::system("write", path))?;
        Ok(Self { path: path.into(), file: BufWriter::new(file) })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(Error::system("write", &self.path))
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        let Self { path, file } = self;
        let file = file.into_inner().map_err(|error| Error::system("write", &path)(error.into_error()))?;
        if let Place::New(file) = file {
            file.persist(&path).map_err(|error| Error::system("write", &path)(error.error))?;
        }
        Ok(())
    }
}

/// A new file, with the permissions that the process gives to any new file.
fn as_others_are(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)
}

/// Writes a file at once.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = WholeFile::begin(path)?;
    file.write(bytes)?;
    file.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_permissions_of_any_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        File::create(folder.path().join("any")).unwrap();
        write(&folder.path().join("whole"), b"bytes").unwrap();
        assert_eq!(mode("whole"), mode("any"));
    }
}
