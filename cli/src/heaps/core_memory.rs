//! Memory of a core file. What a process had mapped of a file and never wrote is not dumped: it is read from the file, if
//! that is the one that was mapped.

use core::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use object::Endianness;
use tripoint_telemetry::reader::LoadedObject;

use crate::core_file::CoreFile;
use crate::memory::{Extent, Memory, Thread};
use crate::symbols;

/// A core file and the files that its process had mapped.
pub(crate) struct CoreMemory<'c> {
    core: &'c CoreFile,
    objects: Vec<LoadedObject>,
    files: RefCell<HashMap<PathBuf, Option<File>>>,
}

impl<'c> CoreMemory<'c> {
    pub(crate) fn new(core: &'c CoreFile) -> Self {
        Self { core, objects: core.objects().entries, files: RefCell::default() }
    }

    /// The files that memory was looked for in, and that are gone or were replaced.
    pub(crate) fn missing(&self) -> BTreeSet<PathBuf> {
        let files = self.files.borrow();
        // Other files that were mapped are data, of which nothing is needed.
        let is_object = |path: &Path| self.objects.iter().any(|object| object.path == path);
        let missing = files.iter().filter(|(path, file)| file.is_none() && is_object(path));
        missing.map(|(path, _)| path.clone()).collect()
    }

    /// The file of a program or a library, if it is the one that was loaded.
    fn open(&self, path: &Path) -> Option<File> {
        let object = self.objects.iter().find(|object| object.path == path)?;
        // Opening a pipe or a device may wait, or do more.
        let is_same = path.is_file() && symbols::is_of(path, object);
        is_same.then(|| File::open(path).ok()).flatten()
    }

    fn read_file(&self, address: u64, bytes: &mut [u8]) -> usize {
        let has_it = |address: u64| {
            let files = &self.core.notes.mapped;
            files.iter().find(move |file| (file.start..file.end).contains(&address))
        };
        let Some(mapped) = has_it(address) else { return 0 };
        let mut files = self.files.borrow_mut();
        let file = files.entry(mapped.path.clone()).or_insert_with(|| self.open(&mapped.path));
        let (at, left) =
            (address - mapped.start, usize::try_from(mapped.end - address).unwrap_or(usize::MAX));
        let length = bytes.len().min(left);
        let from = mapped.offset.saturating_add(at);
        file.as_ref().and_then(|file| file.read_at(&mut bytes[..length], from).ok()).unwrap_or(0)
    }
}

impl Memory for CoreMemory<'_> {
    fn word(&self) -> usize {
        self.core.word()
    }

    fn endian(&self) -> Endianness {
        self.core.endian()
    }

    fn statics(&self) -> Vec<Extent> {
        self.core.statics()
    }

    fn threads(&self) -> Vec<Thread> {
        self.core.threads()
    }

    fn read_some(&self, address: u64, bytes: &mut [u8]) -> usize {
        match self.core.read_some(address, bytes) {
            0 => self.read_file(address, bytes),
            read => read,
        }
    }
}
