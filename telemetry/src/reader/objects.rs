//! Which program or library a code address is in, also after the process has ended
//! ([design/telemetry.md `.objects`](crate::design::telemetry)).

use core::fmt;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::vec::Vec;

use tripoint_core::internal::Json;

use crate::format::{
    MAX_BUILD_ID_BYTES, MAX_PATH_BYTES, OBJECT_WORDS, ObjectWord, SectionKind, text_from_words,
};
use crate::reader::file::Reader;
use crate::reader::table::{Table, table};
use crate::reader::values::write_escaped;

/// The program or a library, as it was loaded in the process that wrote the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedObject {
    /// The path from which it was loaded. It need not be the path of a file.
    pub path: PathBuf,
    /// Whether the path was cut off.
    pub is_path_cut: bool,
    /// The bytes by which a linker tells builds of the object apart; empty if they are not known.
    pub build_id: Vec<u8>,
    /// What the loader added to the addresses that the object's file has.
    pub base: u64,
    /// The first address of its first segment.
    pub start: u64,
    /// The address after its last segment.
    pub end: u64,
}

impl LoadedObject {
    fn from_entry(entry: &[u64; OBJECT_WORDS]) -> Self {
        let word = |word: ObjectWord| entry[word as usize];
        let id = &entry[ObjectWord::BuildId as usize..ObjectWord::Path as usize];
        let mut build_id: Vec<u8> = id.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let bytes = usize::try_from(word(ObjectWord::BuildIdBytes)).unwrap_or(MAX_BUILD_ID_BYTES);
        build_id.truncate(bytes);
        let mut bytes = [0; MAX_PATH_BYTES];
        let (path, whole) =
            text_from_words(&entry[ObjectWord::Path as usize..], &mut bytes).unwrap_or((&[], 0));
        Self {
            path: OsString::from_vec(path.to_vec()).into(),
            is_path_cut: whole > path.len(),
            build_id,
            base: word(ObjectWord::Base),
            start: word(ObjectWord::Start),
            end: word(ObjectWord::End),
        }
    }

    /// The build identifier in hexadecimal digits, as debuggers and servers of debug information have it.
    #[must_use]
    pub fn build_id_text(&self) -> impl fmt::Display {
        BuildId(&self.build_id)
    }

    fn fields(&self) -> [(&'static str, u64); 3] {
        [("base", self.base), ("start", self.start), ("end", self.end)]
    }

    /// Writes the object as one line of JSON, without the end of the line. Addresses are text in hexadecimal.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut json = Json::new(out);
        json.object(|json| {
            json.text("object", self.path.display())?;
            json.text("build_id", self.build_id_text())?;
            self.fields().iter().try_for_each(|(name, value)| json.text(name, format_args!("{value:#x}")))
        })
    }
}

struct BuildId<'a>(&'a [u8]);

impl fmt::Display for BuildId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Characters of the path that cannot be printed are escaped.
impl fmt::Display for LoadedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(self.path.as_os_str().as_bytes(), self.is_path_cut, f)
    }
}

/// A place in an object's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePlace<'o> {
    /// The program or the library.
    pub object: &'o LoadedObject,
    /// The address of the call, as the object's file counts addresses: what `addr2line` takes. It is in the
    /// instruction before the one to which the call returns.
    pub offset: u64,
}

/// The path and the offset, as `path+0x1234`.
impl fmt::Display for CodePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.object, self.offset)
    }
}

impl Reader {
    /// The program and its libraries, as far as the process has noted them; none if the file has no such section.
    ///
    /// # Errors
    /// If the file cannot be read any more.
    pub fn objects(&self) -> io::Result<Table<LoadedObject>> {
        table(self, SectionKind::Objects, LoadedObject::from_entry)
    }
}

impl Table<LoadedObject> {
    /// Where the call of a frame of a [site](crate::reader::CodeAddresses) is
    /// ([design/telemetry.md `.objects.place`](crate::design::telemetry)); `None` if it is in no object that was noted.
    #[must_use]
    pub fn place(&self, frame: u64) -> Option<CodePlace<'_>> {
        let call = frame.checked_sub(1)?;
        // If two were loaded there, the later one came after the earlier one was removed.
        let is_there = |object: &&LoadedObject| object.start <= call && call < object.end;
        let object = self.entries.iter().rev().find(is_there)?;
        Some(CodePlace { object, offset: call.wrapping_sub(object.base) })
    }
}
