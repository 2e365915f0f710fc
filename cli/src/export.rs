//! What samples say of each stack, in the forms of programs that draw it (design/cli.md `.exports`).

pub(crate) mod collapsed;
pub(crate) mod pprof;
pub(crate) mod speedscope;

use std::io::Write as _;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::Error;

/// Writes a file under another name and gives it its own when it is complete. A file that was there is replaced, not
/// written to: a running process may have it in its memory.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let refused = || Error::system("write", path);
    let mut file = NamedTempFile::new_in(folder).map_err(refused())?;
    file.write_all(bytes).map_err(refused())?;
    file.persist(path).map_err(|error| refused()(error.error))?;
    Ok(())
}
