//! Which file of a crate uses which, and the cycles among them (design/core.md `.req.storeys`).
//!
//! A file uses another if it names an item that the other defines: names are followed through
//! re-exports to the definition, so that a re-export by itself is not a use. It uses another as well if it
//! calls a method that the other defines (`methods`). Test modules are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

use crate::methods::{Methods, Named};
use crate::repository::{self, Text};

/// The way to a module from the crate's root, or to an item from a module.
pub(crate) type Path = Vec<String>;

/// What a name in a module stands for.
#[derive(Clone, Debug)]
enum Name {
    /// An item that this file defines.
    Item(String),
    /// A child module.
    Module,
    /// What an import leads to.
    Import(Path),
}

#[derive(Debug, Default)]
struct Module {
    /// Names with more than one meaning are defined under different `cfg`s.
    names: BTreeMap<String, Vec<Name>>,
    globs: Vec<Path>,
}

/// A path as it is written in a module.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mention {
    file: String,
    module: Path,
    path: Path,
}

/// A crate's modules, and every path that they mention.
#[derive(Debug, Default)]
struct Source {
    modules: BTreeMap<Path, Module>,
    mentions: BTreeSet<Mention>,
    /// Files of `macro_rules!`, by name: these macros have textual scope.
    macros: BTreeMap<String, String>,
    methods: Methods,
}

/// Which file uses which in a crate, by path.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(crate) edges: BTreeSet<(String, String)>,
    /// Paths into the crate that lead to no definition.
    pub(crate) unresolved: BTreeSet<String>,
    /// Files that are no module's.
    pub(crate) undeclared: BTreeSet<String>,
}

/// How the files of a crate use each other. The crate's root is `lib.rs` in `folder`; its programs, `main.rs` and
/// those in `bin`, are above it.
pub(crate) fn uses(folder: &str, sources: &[Text]) -> Uses {
    let source = Source::read(folder, sources);
    let mut uses = Uses::default();
    for mention in &source.mentions {
        let files = source.definitions(&mention.module, &mention.path, 0);
        if files.is_none() && is_local(&mention.path) {
            uses.unresolved.insert(format!("{} names {}", mention.file, mention.path.join("::")));
        }
        let others = files.unwrap_or_default().into_iter().filter(|file| *file != mention.file);
        uses.edges.extend(others.map(|file| (mention.file.clone(), file)));
    }
    uses.edges.extend(source.methods.uses(|of| source.definition_of(of)));
    let is_program = |path: &&String| {
        let below = path.strip_prefix(folder).unwrap_or_default();
        below == "/main.rs" || below.starts_with("/bin/")
    };
    let paths = sources.iter().map(|source| &source.path);
    uses.undeclared = paths.filter(|path| !is_program(path)).cloned().collect();
    declare(&format!("{folder}/lib.rs"), sources, &mut uses.undeclared);
    uses
}

/// The uses in a crate of the repository, which are found once.
pub(crate) fn uses_of(folder: &str) -> Arc<Uses> {
    static FOUND: Mutex<BTreeMap<String, Arc<Uses>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let find = || Arc::new(uses(folder, &repository::texts(folder, &["rs"])));
    Arc::clone(found.entry(folder.to_owned()).or_insert_with(find))
}

/// Takes a file and those of its modules, modules for tests included, from what is undeclared.
fn declare(file: &str, sources: &[Text], undeclared: &mut BTreeSet<String>) {
    if undeclared.remove(file) {
        declare_modules(&folder_of(file), &parse(file, sources).items, sources, undeclared);
    }
}

fn declare_modules(folder: &str, items: &[Item], sources: &[Text], undeclared: &mut BTreeSet<String>) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        match &module.content {
            Some((_, items)) => {
                declare_modules(&format!("{folder}{}/", module.ident), items, sources, undeclared);
            }
            None => {
                for file in files_of(folder, &module.ident) {
                    declare(&file, sources, undeclared);
                }
            }
        }
    }
}

/// The methods of a crate. The crate's root is `lib.rs` in `folder`.
pub(crate) fn methods(folder: &str, sources: &[Text]) -> Methods {
    Source::read(folder, sources).methods
}

fn child_of(module: &Path, name: &str) -> Path {
    let mut path = module.clone();
    path.push(name.to_owned());
    path
}

fn parse(file: &str, sources: &[Text]) -> syn::File {
    let text = sources.iter().find(|source| source.path == file);
    let text = text.unwrap_or_else(|| panic!("{file} is not there"));
    syn::parse_file(&text.text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The folder of the modules that a file declares.
fn folder_of(file: &str) -> String {
    match file.strip_suffix("lib.rs").or(file.strip_suffix("mod.rs")) {
        Some(folder) => folder.to_owned(),
        None => format!("{}/", file.trim_end_matches(".rs")),
    }
}

/// The files that a module of a folder may be in.
fn files_of(folder: &str, module: impl core::fmt::Display) -> [String; 2] {
    [format!("{folder}{module}.rs"), format!("{folder}{module}/mod.rs")]
}

/// The names of a path, without their parameters.
pub(crate) fn path_of(path: &syn::Path) -> Path {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

fn is_local(path: &Path) -> bool {
    matches!(path[0].as_str(), "crate" | "self" | "super") && path.len() > 1
}

/// Cycles among the files of a crate, and among the folders at each level: each a list of names.
pub(crate) fn cycles(uses: &Uses) -> Vec<Vec<String>> {
    let files = uses.edges.iter().flat_map(|(from, to)| [from, to]);
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for file in files {
        folders.extend(file.match_indices('/').map(|(at, _)| file[..at].to_owned()));
    }
    let mut found: Vec<_> = components(&uses.edges).into_iter().collect();
    for folder in folders {
        let within = |file: &String| room(&folder, file);
        let edges = uses.edges.iter().filter_map(|(from, to)| Some((within(from)?, within(to)?)));
        found.extend(components(&edges.filter(|(from, to)| from != to).collect()));
    }
    found.sort();
    found.dedup();
    found
}

/// The file or folder next below `folder` on the way to `file`. A file `x.rs` counts as part of
/// the folder `x` beside it.
fn room(folder: &str, file: &str) -> Option<String> {
    let below = file.strip_prefix(folder)?.strip_prefix('/')?;
    let name = below.split('/').next().unwrap().trim_end_matches(".rs");
    // The root re-exports and documents; it is above all folders.
    (name != "lib").then(|| format!("{folder}/{name}"))
}

/// All that a node leads to, over what is next to each.
fn reached<'n>(start: &'n String, next: &BTreeMap<&String, Vec<&'n String>>) -> BTreeSet<&'n String> {
    let mut seen = BTreeSet::new();
    let mut left = vec![start];
    while let Some(node) = left.pop() {
        left.extend(next.get(node).into_iter().flatten().filter(|to| seen.insert(**to)));
    }
    seen
}

/// Sets of more than one node each of which leads to all others.
fn components(edges: &BTreeSet<(String, String)>) -> BTreeSet<Vec<String>> {
    let mut next: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().push(to);
    }
    let nodes: BTreeSet<_> = edges.iter().flat_map(|(from, to)| [from, to]).collect();
    let reach: BTreeMap<_, _> = nodes.iter().map(|node| (*node, reached(node, &next))).collect();
    let cycle = |node: &&String| {
        let members = reach[*node].iter().filter(|other| reach[**other].contains(*node));
        members.map(|other| (*other).clone()).collect::<Vec<_>>()
    };
    nodes.iter().map(cycle).filter(|cycle| cycle.len() > 1).collect()
}

impl Source {
    fn read(folder: &str, sources: &[Text]) -> Self {
        let mut source = Self::default();
        source.read_file(&format!("{folder}/lib.rs"), Vec::new(), sources);
        source
    }

    fn read_file(&mut self, file: &str, module: Path, sources: &[Text]) {
        self.read_items(file, &folder_of(file), module, &parse(file, sources).items, sources);
    }

    fn read_items(&mut self, file: &str, folder: &str, module: Path, items: &[Item], sources: &[Text]) {
        self.modules.entry(module.clone()).or_default();
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            match item {
                // A file of another folder counts as a part of the one that takes it in.
                Item::Mod(child) if child.attrs.iter().any(|attribute| attribute.path().is_ident("path")) => {
                    self.define(&module, &child.ident.to_string(), Name::Item(file.to_owned()));
                }
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let inner = child_of(&module, &name);
                    self.define(&module, &name, Name::Module);
                    match &child.content {
                        Some((_, items)) => {
                            self.read_items(file, &format!("{folder}{name}/"), inner, items, sources);
                        }
                        None => {
                            let [beside, within] = files_of(folder, &name);
                            let is_there = sources.iter().any(|source| source.path == beside);
                            self.read_file(if is_there { &beside } else { &within }, inner, sources);
                        }
                    }
                }
                Item::Use(item) => {
                    let exports = !matches!(item.vis, Visibility::Inherited);
                    self.import(file, &module, &item.tree, Vec::new(), exports);
                }
                other => {
                    for name in defined_names(other) {
                        self.define(&module, &name, Name::Item(file.to_owned()));
                    }
                    if let Item::Macro(item) = other
                        && let Some(name) = &item.ident
                    {
                        self.macros.insert(name.to_string(), file.to_owned());
                        // Exported macros are at the root; the others are re-exported where they are.
                        for place in [&Vec::new(), &module] {
                            self.define(place, &name.to_string(), Name::Item(file.to_owned()));
                        }
                    }
                    self.methods.read(file, &module, other);
                    Mentions { source: self, file, module: &module }.visit_item(other);
                }
            }
        }
    }

    fn define(&mut self, module: &Path, name: &str, meaning: Name) {
        let names = &mut self.modules.entry(module.clone()).or_default().names;
        names.entry(name.to_owned()).or_default().push(meaning);
    }

    /// Enters what an import names; one that is not a re-export is a use as well.
    fn import(&mut self, file: &str, module: &Path, tree: &UseTree, mut path: Path, exports: bool) {
        match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.import(file, module, &tree.tree, path, exports);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(file, module, tree, path.clone(), exports);
                }
            }
            UseTree::Glob(_) => self.modules.entry(module.clone()).or_default().globs.push(path),
            UseTree::Name(_) | UseTree::Rename(_) => {
                let (named, alias) = match tree {
                    UseTree::Rename(rename) => (rename.ident.to_string(), rename.rename.to_string()),
                    UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
                    _ => unreachable!(),
                };
                let alias = if named == "self" { path.last().unwrap().clone() } else { alias };
                if named != "self" {
                    path.push(named);
                }
                if !exports {
                    self.mention(file, module, path.clone());
                }
                // `use x::y::self` and `use x;` of a child would lead to themselves.
                if path.len() > 1 {
                    self.define(module, &alias, Name::Import(path));
                }
            }
        }
    }

    fn mention(&mut self, file: &str, module: &Path, path: Path) {
        self.mentions.insert(Mention { file: file.to_owned(), module: module.clone(), path });
    }

    /// The files that define what a path names: no file for a module, and none for an item of
    /// another crate. `None` if the path does not begin in this crate, or leads nowhere.
    fn definitions(&self, module: &Path, path: &Path, depth: usize) -> Option<BTreeSet<String>> {
        assert!(depth < 50, "imports in a cycle: {path:?}");
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.below(&Vec::new(), rest, depth),
            "self" => self.below(module, rest, depth),
            "super" => self.below(&module[..module.len().checked_sub(1)?].to_vec(), rest, depth),
            _ => self.below(module, path, depth).or_else(|| {
                let file = self.macros.get(first).filter(|_| rest.is_empty())?;
                Some(BTreeSet::from([file.clone()]))
            }),
        }
    }

    /// The file that defines a type, and the type's name. `None` for a type of another crate.
    fn definition_of(&self, of: &Named) -> Option<(String, String)> {
        let files = self.definitions(&of.module, &of.path, 0)?;
        Some((files.into_iter().next()?, of.path.last()?.clone()))
    }

    fn below(&self, module: &Path, path: &[String], depth: usize) -> Option<BTreeSet<String>> {
        let Some((first, rest)) = path.split_first() else { return Some(BTreeSet::new()) };
        if first == "super" {
            return self.below(&module[..module.len().checked_sub(1)?].to_vec(), rest, depth);
        }
        let here = &self.modules[module];
        let Some(meanings) = here.names.get(first) else {
            return here.globs.iter().find_map(|glob| self.imported(module, glob, path, depth));
        };
        // Only a module has names below it: an import of the same name is a function's.
        let is_module = !rest.is_empty() && meanings.iter().any(|meaning| matches!(meaning, Name::Module));
        let is_meant = |meaning: &&Name| !is_module || matches!(meaning, Name::Module);
        let mut files = None;
        for meaning in meanings.iter().filter(is_meant) {
            let found = match meaning {
                Name::Item(file) => Some(BTreeSet::from([file.clone()])),
                Name::Module => self.below(&child_of(module, first), rest, depth),
                Name::Import(import) => {
                    self.imported(module, import, rest, depth).or_else(|| Some(BTreeSet::new()))
                }
            };
            if let Some(found) = found {
                files.get_or_insert_with(BTreeSet::new).extend(found);
            }
        }
        files
    }

    /// The files that define what `rest` names below an import. `None` if the import begins in another
    /// crate. An import may have the name of the module that it begins with.
    fn imported(
        &self,
        module: &Path,
        import: &Path,
        rest: &[String],
        depth: usize,
    ) -> Option<BTreeSet<String>> {
        let path = [import.as_slice(), rest].concat();
        if matches!(import[0].as_str(), "crate" | "self" | "super") {
            return self.definitions(module, &path, depth + 1);
        }
        let meanings = self.modules[module].names.get(&import[0])?;
        meanings.iter().find_map(|meaning| match meaning {
            Name::Module => self.below(&child_of(module, &import[0]), &path[1..], depth + 1),
            Name::Item(file) => Some(BTreeSet::from([file.clone()])),
            Name::Import(_) => None,
        })
    }
}

/// Collects the paths in an item.
struct Mentions<'s> {
    source: &'s mut Source,
    file: &'s str,
    module: &'s Path,
}

impl<'a> Visit<'a> for Mentions<'_> {
    fn visit_path(&mut self, path: &'a syn::Path) {
        self.source.mention(self.file, self.module, path_of(path));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'a syn::Macro) {
        for path in paths_in(&item.tokens.to_string()) {
            self.source.mention(self.file, self.module, path);
        }
        visit::visit_macro(self, item);
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        // An import in a function: what it names counts there and then.
        self.source.import(self.file, self.module, &item.tree, Vec::new(), false);
    }

    fn visit_attribute(&mut self, _: &'a Attribute) {}
}

/// Paths in the tokens of a macro, which are parted by blanks.
fn paths_in(tokens: &str) -> Vec<Path> {
    let mut paths: Vec<Path> = Vec::new();
    let mut goes_on = false;
    for word in tokens.replace("::", " :: ").split_whitespace() {
        let is_name = word.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_alphanumeric() || c == '_');
        match (word, goes_on) {
            ("::", _) => goes_on = !paths.is_empty(),
            (name, true) if is_name => {
                paths.last_mut().unwrap().push(name.to_owned());
                goes_on = false;
            }
            (name, _) if is_name => paths.push(vec![name.to_owned()]),
            _ => goes_on = false,
        }
    }
    paths
}

/// Whether the attributes reserve an item for tests.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.meta.require_list().map(|list| list.tokens.to_string().replace(' ', ""));
        attribute.path().is_ident("cfg")
            && condition.is_ok_and(|condition| condition == "test" || condition.starts_with("all(test,"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The names that an item defines. A macro of items defines what follows a keyword in it.
fn defined_names(item: &Item) -> Vec<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) if item.ident.is_none() => {
            let tokens = item.mac.tokens.to_string();
            let words: Vec<_> = tokens.split_whitespace().collect();
            let keywords = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];
            let names = words.windows(2).filter(|pair| keywords.contains(&pair[0]));
            return names.map(|pair| pair[1].to_owned()).collect();
        }
        _ => return Vec::new(),
    };
    vec![name.to_string()]
}
