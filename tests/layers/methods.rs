//! Which file defines the methods that a file calls.
//!
//! Two rules stand in for the compiler, which knows types:
//!
//! - `Type::name`, and in an `impl` block of `Type` also `Self::name` and `self.name(…)`, lead to the files
//!   that define `name` in an `impl` block of `Type`. Blocks that implement a trait come last.
//! - Any other call `….name(…)` leads to the file that defines `name`, if only one file of the crate does.
//!   Names that are common elsewhere are left out (`ELSEWHERE`). A call through a trait leads to the trait,
//!   not to what implements it.
//!
//! A call on another value than `self` is not seen if several files define its name.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Expr, ImplItem, Item, ItemImpl, ItemTrait, TraitItem, Type};

use crate::cycles::{self, Path, is_test, path_of};
use crate::{PROGRAMS, crates, repository};

/// Names that methods of other crates have too, most of them the standard library's. Without them, calls of
/// those would look like calls of ours, and cycles would be found where none are.
const ELSEWHERE: [&str; 22] = [
    "add",
    "all",
    "as_ptr",
    "as_slice",
    "base",
    "checked_add",
    "finish",
    "get",
    "inspect",
    "into_inner",
    "is_empty",
    "iter",
    "len",
    "limit",
    "next",
    "pop",
    "reach",
    "size",
    "take",
    "trim",
    "with",
    "with_addr",
];

/// Further names that programs call of `std` and of libraries, ours among them.
const ELSEWHERE_OF_PROGRAMS: [&str; 26] = [
    "align", "clear", "create", "drain", "extend", "fill", "flush", "insert", "last", "lines", "look",
    "made", "map", "open", "parse", "push", "range", "read", "reserve", "resize", "ring", "set", "sort",
    "status", "time", "wait",
];

/// A type as it is named in a module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    pub(crate) module: Path,
    pub(crate) path: Path,
}

/// The file that defines a type, and the type's name.
type Definition = (String, String);

/// A method that a file defines for a type.
#[derive(Debug)]
struct Method {
    of: Named,
    name: String,
    file: String,
    is_of_trait: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    file: String,
    /// The type that the method is looked up in, if it is known.
    of: Option<Named>,
    name: String,
    /// Whether it is called on a value, and not by a path.
    on_value: bool,
}

/// The methods that a crate defines, and those that it calls.
#[derive(Debug, Default)]
pub(crate) struct Methods {
    defined: Vec<Method>,
    /// The files that define a method of a name, implementations of traits left out.
    named: BTreeMap<String, BTreeSet<String>>,
    calls: BTreeSet<Call>,
}

impl Methods {
    /// Enters the methods that an item defines, and those that it calls.
    pub(crate) fn read(&mut self, file: &str, module: &Path, item: &Item) {
        match item {
            Item::Impl(item) => self.read_impl(file, module, item),
            Item::Trait(item) => self.read_trait(file, item),
            _ => {}
        }
        Calls { methods: self, file, module, own: None }.visit_item(item);
    }

    fn read_impl(&mut self, file: &str, module: &Path, item: &ItemImpl) {
        let of = type_path(&item.self_ty).map(|path| Named { module: module.clone(), path });
        let is_of_trait = item.trait_.is_some();
        let methods = item.items.iter().filter_map(|member| match member {
            ImplItem::Fn(method) if !is_test(&method.attrs) => Some(method),
            _ => None,
        });
        for method in methods {
            let name = method.sig.ident.to_string();
            if !is_of_trait {
                self.named.entry(name.clone()).or_default().insert(file.to_owned());
            }
            if let Some(of) = of.clone() {
                self.defined.push(Method { of, name, file: file.to_owned(), is_of_trait });
            }
        }
    }

    fn read_trait(&mut self, file: &str, item: &ItemTrait) {
        for member in &item.items {
            if let TraitItem::Fn(method) = member {
                self.named.entry(method.sig.ident.to_string()).or_default().insert(file.to_owned());
            }
        }
    }

    /// Which file calls a method of which. `definition` finds a type by its name.
    pub(crate) fn uses(
        &self,
        definition: impl Fn(&Named) -> Option<Definition>,
    ) -> BTreeSet<(String, String)> {
        let mut of_types: BTreeMap<(Definition, &str), BTreeMap<bool, BTreeSet<&String>>> = BTreeMap::new();
        for method in &self.defined {
            if let Some(of) = definition(&method.of) {
                let files = of_types.entry((of, &method.name)).or_default();
                files.entry(method.is_of_trait).or_default().insert(&method.file);
            }
        }
        let mut uses = BTreeSet::new();
        for call in &self.calls {
            let of = call.of.as_ref().and_then(&definition);
            let files = match of.and_then(|of| of_types.get(&(of, &call.name))) {
                Some(files) => files.values().next().unwrap().clone(),
                None if call.on_value && !is_common(&call.file, &call.name) => self.by_name(&call.name),
                None => BTreeSet::new(),
            };
            if !files.contains(&call.file) {
                uses.extend(files.into_iter().map(|file| (call.file.clone(), file.clone())));
            }
        }
        uses
    }

    fn by_name(&self, name: &str) -> BTreeSet<&String> {
        self.named.get(name).filter(|files| files.len() == 1).into_iter().flatten().collect()
    }
}

/// Whether a method of this name, which a file calls, may well be another crate's.
fn is_common(file: &str, name: &str) -> bool {
    let is_program = PROGRAMS.iter().any(|folder| file.starts_with(folder));
    ELSEWHERE.contains(&name) || is_program && ELSEWHERE_OF_PROGRAMS.contains(&name)
}

/// The path that names a type.
fn type_path(of: &Type) -> Option<Path> {
    match of {
        Type::Path(of) => Some(path_of(&of.path)),
        Type::Reference(of) => type_path(&of.elem),
        _ => None,
    }
}

/// Collects the calls in an item.
struct Calls<'m> {
    methods: &'m mut Methods,
    file: &'m str,
    module: &'m Path,
    /// The type of the `impl` block, or the trait, around the call.
    own: Option<Path>,
}

impl Calls<'_> {
    fn enter(&mut self, of: Option<Path>, name: String, on_value: bool) {
        let of = of.map(|path| Named { module: self.module.clone(), path });
        self.methods.calls.insert(Call { file: self.file.to_owned(), of, name, on_value });
    }

    fn within(&mut self, own: Option<Path>, visit: impl FnOnce(&mut Self)) {
        let before = core::mem::replace(&mut self.own, own);
        visit(self);
        self.own = before;
    }
}

impl<'a> Visit<'a> for Calls<'_> {
    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        self.within(type_path(&item.self_ty), |calls| visit::visit_item_impl(calls, item));
    }

    fn visit_item_trait(&mut self, item: &'a ItemTrait) {
        self.within(Some(vec![item.ident.to_string()]), |calls| visit::visit_item_trait(calls, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let on_self = matches!(&*call.receiver, Expr::Path(path) if path.path.is_ident("self"));
        let of = self.own.clone().filter(|_| on_self);
        self.enter(of, call.method.to_string(), true);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let mut of = path_of(path);
        if let Some(name) = of.pop()
            && !of.is_empty()
        {
            let of = if of == ["Self"] { self.own.clone() } else { Some(of) };
            self.enter(of, name, false);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'a syn::Macro) {
        let tokens = item.tokens.to_string().replace('.', " . ").replace('(', " ( ");
        let words: Vec<_> = tokens.split_whitespace().collect();
        for words in words.windows(4) {
            if let [on, ".", name, "("] = words {
                let of = self.own.clone().filter(|_| *on == "self");
                self.enter(of, (*name).to_owned(), true);
            }
        }
        visit::visit_macro(self, item);
    }
}

#[test]
fn names_from_elsewhere_are_names_of_ours() {
    let of = |folder: &&str| cycles::methods(folder, &repository::texts(folder, &["rs"]));
    let methods: Vec<_> = crates().map(of).collect();
    let is_ours = |name: &&&str| methods.iter().any(|methods| methods.named.contains_key(**name));
    let others: Vec<_> =
        ELSEWHERE.iter().chain(&ELSEWHERE_OF_PROGRAMS).filter(|name| !is_ours(name)).collect();
    assert_eq!(others, [&""; 0]);
}

#[test]
fn names_of_std_are_common_in_programs_only() {
    assert!(is_common("cli/src/x.rs", "push") && is_common("ap/src/x.rs", "len"));
    assert!(!is_common("ap/src/x.rs", "push") && !is_common("cli/src/x.rs", "write_json"));
}
