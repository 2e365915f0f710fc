//! Names and lines of another process's code addresses (design/cli.md `.symbols`).

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::{Object as _, ObjectSection as _};
use serde::Serialize;
use tripoint_contract::internal::{Frame, Innermost};
use tripoint_telemetry::reader::{LoadedObject, Table};

/// Where systems keep debug information apart from programs.
pub(crate) const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// A place in the code, as far as it could be named.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub(crate) struct Named {
    pub(crate) function: String,
    /// The file and the line, as `src/main.rs:7`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<String>,
}

impl Named {
    /// The file and the number of the line, if they are known.
    pub(crate) fn file_and_line(&self) -> Option<(&str, u32)> {
        let (file, line) = self.line.as_deref()?.rsplit_once(':')?;
        Some((file, line.parse().ok()?))
    }
}

impl core::fmt::Display for Named {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.function)?;
        self.line.as_ref().map_or(Ok(()), |line| write!(f, " at {line}"))
    }
}

impl From<Frame> for Named {
    fn from(frame: Frame) -> Self {
        Self { function: frame.function, line: frame.place }
    }
}

/// What is known of an object's file: its own symbols, and debug information that is kept apart.
struct Sources(Vec<Loader>);

impl Sources {
    /// The functions at an address of the object's file, the innermost first.
    fn frames(&self, offset: u64, mangled: &mut HashMap<String, String>) -> Vec<Frame> {
        let known = self.0.iter().map(|loader| frames_of(loader, offset, mangled));
        known.into_iter().find(|frames| !frames.is_empty()).unwrap_or_else(|| {
            let symbol = self.0.iter().find_map(|loader| loader.find_symbol(offset));
            let frame = |name| Frame { function: demangled(name, mangled), place: None };
            symbol.map(frame).into_iter().collect()
        })
    }
}

/// Those that debug information tells, functions that were inlined included.
fn frames_of(loader: &Loader, offset: u64, mangled: &mut HashMap<String, String>) -> Vec<Frame> {
    let mut found = Vec::new();
    let Ok(mut frames) = loader.find_frames(offset) else { return found };
    while let Ok(Some(frame)) = frames.next() {
        let raw = frame.function.as_ref().and_then(|name| Some(name.raw_name().ok()?.into_owned()));
        let function = frame.function.as_ref().and_then(|name| Some(name.demangle().ok()?.into_owned()));
        if let Some((raw, function)) = raw.zip(function.as_ref()).filter(|(raw, function)| raw != *function) {
            mangled.entry(function.clone()).or_insert(raw);
        }
        let function = function.or_else(|| loader.find_symbol(offset).map(|name| demangled(name, mangled)));
        let place =
            frame.location.and_then(|location| Some(format!("{}:{}", location.file?, location.line?)));
        if function.is_some() || place.is_some() {
            found.push(Frame { function: function.unwrap_or_else(|| "?".to_owned()), place });
        }
    }
    found
}

fn demangled(name: &str, mangled: &mut HashMap<String, String>) -> String {
    let function = addr2line::demangle_auto(name.into(), None).into_owned();
    if function != name {
        mangled.entry(function.clone()).or_insert_with(|| name.to_owned());
    }
    function
}

/// Names code addresses by the files of the program and its libraries.
pub(crate) struct Symbols {
    objects: Table<LoadedObject>,
    debug_folders: Vec<PathBuf>,
    sources: HashMap<PathBuf, Sources>,
    names: HashMap<u64, Vec<Frame>>,
    /// The names of functions as linkers have them, by those that people read.
    mangled: HashMap<String, String>,
    replaced: Vec<PathBuf>,
}

impl Symbols {
    /// Debug information that is kept apart is looked for in these folders, as debuggers do.
    pub(crate) fn new(objects: Option<Table<LoadedObject>>, debug_folders: &[PathBuf]) -> Self {
        let none = Table { entries: Vec::new(), left_out: 0, unsteady: 0 };
        Self {
            objects: objects.unwrap_or(none),
            debug_folders: debug_folders.to_vec(),
            sources: HashMap::new(),
            names: HashMap::new(),
            mangled: HashMap::new(),
            replaced: Vec::new(),
        }
    }

    /// The name of the program's file, if it is known.
    pub(crate) fn program(&self) -> Option<String> {
        let name = self.objects.entries.first()?.path.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Reads the program's debug information, so that the first name does not take as long as that.
    pub(crate) fn prepare(&mut self) {
        if let Some(start) = self.objects.entries.first().map(|program| program.start) {
            self.look_up(start);
        }
    }

    /// The functions at a frame of a site, the innermost first; at least one.
    pub(crate) fn frames(&mut self, address: u64) -> Vec<Frame> {
        if let Some(known) = self.names.get(&address) {
            return known.clone();
        }
        let frames = self.look_up(address);
        self.names.insert(address, frames.clone());
        frames
    }

    fn look_up(&mut self, address: u64) -> Vec<Frame> {
        let bare = |function: String| vec![Frame { function, place: None }];
        let Some(place) = self.objects.place(address) else { return bare(format!("{address:#x}")) };
        let sources = self.sources.entry(place.object.path.clone()).or_insert_with(|| {
            let found = sources_of(place.object, &self.debug_folders);
            if found.is_none() {
                self.replaced.push(place.object.path.clone());
            }
            Sources(found.unwrap_or_default())
        });
        let frames = sources.frames(place.offset, &mut self.mangled);
        if frames.is_empty() { bare(place.to_string()) } else { frames }
    }

    /// The functions of a stack, inlined ones too, the innermost first.
    pub(crate) fn stack(&mut self, site: &[u64]) -> Vec<Named> {
        site.iter().flat_map(|address| self.frames(*address)).map(Named::from).collect()
    }

    /// The name of a site: of the innermost line of the program's own code.
    pub(crate) fn name(&mut self, site: &[u64]) -> Named {
        let mut innermost = Innermost::default();
        for &address in site {
            let of_program = self.is_of_program(address);
            self.frames(address).into_iter().for_each(|frame| innermost.look(frame, of_program));
            if innermost.is_found() {
                break;
            }
        }
        let unknown = || Named { function: "not known".to_owned(), line: None };
        innermost.frame().map_or_else(unknown, Named::from)
    }

    /// Whether an address is in the program itself, which is noted first, and not in a library.
    fn is_of_program(&self, address: u64) -> bool {
        let program = self.objects.entries.first();
        self.objects.place(address).map(|place| place.object) == program
    }

    /// The name of a function as a linker has it; the same name if it is not known, or was not mangled.
    pub(crate) fn system_name<'n>(&'n self, function: &'n str) -> &'n str {
        self.mangled.get(function).map_or(function, String::as_str)
    }

    /// The program and its libraries.
    pub(crate) fn objects(&self) -> &[LoadedObject] {
        &self.objects.entries
    }

    /// The index of the object that an address is in.
    pub(crate) fn object_of(&self, address: u64) -> Option<usize> {
        let place = self.objects.place(address)?;
        self.objects.entries.iter().position(|object| core::ptr::eq(object, place.object))
    }

    /// The programs and libraries whose files are not those that the process loaded.
    pub(crate) fn replaced(&self) -> &[PathBuf] {
        &self.replaced
    }
}

/// What there is about an object; `None` if its file was replaced. Files that cannot be read are left out.
fn sources_of(object: &LoadedObject, debug_folders: &[PathBuf]) -> Option<Vec<Loader>> {
    let mut paths = vec![object.path.clone()];
    if let Ok(bytes) = fs::read(&object.path)
        && let Ok(file) = object::File::parse(&*bytes)
    {
        let build_id = file.build_id().ok().flatten().unwrap_or_default();
        if !object.build_id.is_empty() && build_id != object.build_id {
            return None;
        }
        if file.section_by_name(".debug_line").is_none_or(|section| section.size() == 0) {
            let link = file.gnu_debuglink().ok().flatten().map(|(name, _)| name);
            paths.extend(debug_file(object, link, debug_folders));
        }
    } else {
        // The file is gone, and its debug information may still be there.
        paths.extend(debug_file(object, None, debug_folders));
    }
    Some(paths.iter().filter_map(|path| Loader::new(path).ok()).collect())
}

/// The file with an object's debug information: named by the build identifier, or by the object's link to it, which
/// may be beside the object.
fn debug_file(object: &LoadedObject, link: Option<&[u8]>, folders: &[PathBuf]) -> Option<PathBuf> {
    let id = object.build_id_text().to_string();
    let by_id = id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty()).map(|(first, rest)| {
        let path = Path::new(".build-id").join(first).join(format!("{rest}.debug"));
        folders.iter().map(move |folder| folder.join(&path)).collect::<Vec<_>>()
    });
    let beside = object.path.parent();
    let by_link = link.and_then(|name| core::str::from_utf8(name).ok()).zip(beside).map(|(name, beside)| {
        let inside = beside.strip_prefix("/").unwrap_or(beside);
        let apart = folders.iter().map(|folder| folder.join(inside).join(name));
        [beside.join(name), beside.join(".debug").join(name)].into_iter().chain(apart).collect::<Vec<_>>()
    });
    let candidates = by_id.into_iter().chain(by_link).flatten();
    candidates.filter(|path| *path != object.path).find(|path| is_of(path, object))
}

/// Whether a file has the build identifier of an object; also if either has none.
pub(crate) fn is_of(path: &Path, object: &LoadedObject) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    let Ok(file) = object::File::parse(&*bytes) else { return false };
    let id = file.build_id().ok().flatten().unwrap_or_default();
    id.is_empty() || object.build_id.is_empty() || id == object.build_id
}
