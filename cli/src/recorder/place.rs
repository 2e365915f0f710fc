//! The preloaded library and the rings, as files for as long as a recording lasts.

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

impl Place {
    pub(super) fn create() -> io::Result<Self> {
        // The loader splits its list at colons and spaces.
        let folder = std::env::temp_dir();
        let is_plain = !folder.to_string_lossy().contains([' ', ':']);
        let library = folder_in(if is_plain { &folder } else { Path::new("/tmp") })?;
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

fn folder_in(folder: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("tripoint-").tempdir_in(folder)
}

/// The file of the library.
fn library_in(folder: &TempDir) -> PathBuf {
    folder.path().join("tripoint.so")
}
