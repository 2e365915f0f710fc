//! The files of this repository, for tests that read them.

use std::path::{Path, PathBuf};

/// The repository's own folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the repository: its path from the root, with `/` between the parts,
/// and its text.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All files under `folder` (the root itself for an empty name) with one of
/// these extensions (an empty one: none), sorted by path. Build output and hidden
/// folders are left out.
pub(crate) fn texts(folder: &str, extensions: &[&str]) -> Vec<Text> {
    let mut paths = Vec::new();
    collect(&root().join(folder), extensions, &mut paths);
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn collect(folder: &Path, extensions: &[&str], paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                collect(&path, extensions, paths);
            }
        } else if extensions.iter().any(|extension| path.extension().unwrap_or_default() == *extension) {
            paths.push(path);
        }
    }
}

fn read(path: &Path) -> Text {
    let parts = path.strip_prefix(root()).unwrap().iter().map(|part| part.to_str().unwrap());
    Text { path: parts.collect::<Vec<_>>().join("/"), text: std::fs::read_to_string(path).unwrap() }
}
