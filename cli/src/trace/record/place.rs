//! The preloaded library and the rings, as files for as long as `record` runs.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The library, compiled by `build.rs`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));

/// Memory that a file system should have free, to be used for rings: some processes at a time.
const ROOM: u64 = 256 << 20;

/// Folders that only this user can read, removed when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    library: TempDir,
    rings: TempDir,
}

/// Where else the library may be, if nothing can be loaded from the folder for temporary files.
const OTHERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

impl Place {
    pub(super) fn create() -> io::Result<Self> {
        let folder = std::env::temp_dir();
        let library = folder_for_library(&folder, why_not_loadable)?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(library_in(&library))?;
        file.write_all(LIBRARY)?;
        // A file system in memory has nothing to write back.
        let memory = Path::new("/dev/shm");
        let has_room =
            rustix::fs::statvfs(memory).is_ok_and(|volume| volume.f_bavail * volume.f_frsize >= ROOM);
        let rings = if has_room { folder_in(memory) } else { folder_in(&folder) };
        Ok(Self { library, rings: rings.or_else(|_| folder_in(&folder))? })
    }

    /// What to preload: the library, and what was to be preloaded anyway.
    pub(super) fn preload(&self) -> OsString {
        let mut list = library_in(&self.library).into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            list.push(":");
            list.push(others);
        }
        list
    }

    pub(super) fn folder_of_rings(&self) -> &Path {
        self.rings.path()
    }

    pub(super) fn ring(&self, number: u32) -> PathBuf {
        self.rings.path().join(number.to_string())
    }
}

/// A folder that the loader can load from: in this one, or else in one of [`OTHERS`]
/// ([design/cli-traces.md `.preload.place`](crate::design::cli_traces)).
fn folder_for_library(first: &Path, why_not: impl Fn(&Path) -> Option<&'static str>) -> io::Result<TempDir> {
    let mut refusals = Vec::new();
    for folder in core::iter::once(first).chain(OTHERS.map(Path::new)) {
        let made = match why_not(folder) {
            Some(why) => Err(why.to_owned()),
            None => folder_in(folder).map_err(|error| error.to_string()),
        };
        match made {
            Ok(made) => return Ok(made),
            Err(why) => refusals.push(format!("{}: {why}", folder.display())),
        }
    }
    let text = format!("set TMPDIR to a folder that libraries can be loaded from ({})", refusals.join("; "));
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Why the loader does not load from a folder, as far as that can be told.
fn why_not_loadable(folder: &Path) -> Option<&'static str> {
    if folder.to_string_lossy().contains([' ', ':', '$']) {
        return Some(
            "the loader divides its list at spaces and colons, and replaces words that begin with $",
        );
    }
    let volume = rustix::fs::statvfs(folder).ok()?;
    volume.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC).then_some("mounted noexec")
}

fn folder_in(folder: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("tripoint-").tempdir_in(folder)
}

/// The file of the library.
fn library_in(folder: &TempDir) -> PathBuf {
    folder.path().join("tripoint.so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_loaded_from_where_the_loader_would_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(why_not_loadable(folder.path()), None);
        assert!(why_not_loadable(&folder.path().join("a b")).is_some());
        let why_not = |tried: &Path| (tried == folder.path()).then_some("for a test");
        let made = folder_for_library(folder.path(), why_not).unwrap();
        assert!(!made.path().starts_with(folder.path()), "{made:?}");
    }

    #[test]
    fn without_a_folder_to_load_from_the_error_names_them_all() {
        let error =
            folder_for_library(Path::new("/no/such"), |_| Some("for a test")).unwrap_err().to_string();
        for part in ["set TMPDIR", "/no/such: for a test", "/var/tmp: for a test"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
