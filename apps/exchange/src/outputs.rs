//! Files that a program writes (design/exchange.md `.outputs.same`).

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// Refuses outputs that are one file, or an input: one would overwrite the other.
///
/// # Errors
/// If two are the same file, with both names. Nothing was opened.
pub fn refuse_same<'p>(
    inputs: impl Iterator<Item = &'p Path>,
    outputs: &[Option<&Path>],
) -> Result<(), String> {
    let inputs: Vec<_> = inputs.map(|path| (path, identity(path))).collect();
    let outputs: Vec<_> = outputs.iter().flatten().map(|path| (*path, identity(path))).collect();
    for (at, (path, own)) in outputs.iter().enumerate() {
        if let Some((other, _)) =
            inputs.iter().chain(&outputs[..at]).find(|(_, other)| own.is_some() && own == other)
        {
            return Err(format!(
                "{} and {} are one file: name another output",
                path.display(),
                other.display()
            ));
        }
    }
    Ok(())
}

/// Refuses an output that cannot be written, before there is anything to write. Its contents stay, and a file that was not
/// there is not there afterwards.
///
/// # Errors
/// If one cannot be opened, with its name.
pub fn refuse_unwritable(outputs: &[Option<&Path>]) -> Result<(), String> {
    outputs.iter().flatten().try_for_each(|path| {
        let is_new = !path.exists();
        let tried = OpenOptions::new().append(true).create(true).open(path).and_then(|file| {
            drop(file);
            if is_new { std::fs::remove_file(path) } else { Ok(()) }
        });
        tried.map_err(|error| format!("{}: {error}", path.display()))
    })
}

/// What is the same for all names of a file. Devices and pipes have none: they overwrite nothing.
#[derive(PartialEq, Eq)]
enum Identity {
    #[cfg(unix)]
    Node(u64, u64),
    Path(PathBuf),
}

fn identity(path: &Path) -> Option<Identity> {
    #[cfg(unix)]
    if let Ok(known) = std::fs::metadata(path) {
        use std::os::unix::fs::MetadataExt;
        return known.is_file().then(|| Identity::Node(known.dev(), known.ino()));
    }
    // There is no such file yet.
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let parent =
        path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let folder = parent.and_then(|parent| parent.canonicalize().ok());
    Some(match (folder, path.file_name()) {
        (Some(folder), Some(name)) => Identity::Path(folder.join(name)),
        _ => Identity::Path(absolute()),
    })
}
