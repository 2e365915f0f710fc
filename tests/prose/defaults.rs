//! The default of an option that its documentation states is the one that it has.

use syn::{Expr, File, ImplItem, Item, ItemStruct, Stmt};

use crate::constants::{constant_of, value};
use crate::page;
use crate::repository::{self, Text};

/// The default that a field's documentation states: a number, with its unit if it has one.
fn stated(documentation: &str) -> Option<u128> {
    let text = documentation.to_lowercase();
    // "64 by default: 32 KiB", or "64 KiB by default".
    let before = text.split_once(" by default").and_then(|(before, _)| {
        let (rest, last) = before.rsplit_once(' ').unwrap_or(("", before));
        let with_unit = || number(&format!("{} {last}", rest.rsplit(' ').next()?));
        number(last).or_else(|| unit(last).and_then(|_| with_unit()))
    });
    before.or_else(|| {
        let after = ["default: ", "by default, ", "by default "].iter();
        after.filter_map(|words| text.split_once(words)).find_map(|(_, rest)| number(rest))
    })
}

/// The number that a text begins with.
fn number(text: &str) -> Option<u128> {
    if text.starts_with("`usize::max`") {
        return Some(usize::MAX as u128);
    }
    let digits: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
    let number: u128 = digits.replace(',', "").parse().ok()?;
    let unit = text[digits.len()..].trim_start().split(|c: char| !c.is_alphanumeric()).next()?;
    Some(number * self::unit(unit).unwrap_or(1))
}

/// How much a unit is, in bytes or ns.
fn unit(name: &str) -> Option<u128> {
    let units = [("bytes", 1), ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("tib", 1 << 40)];
    let times = [("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    units.iter().chain(&times).find(|(unit, _)| *unit == name).map(|(_, factor)| *factor)
}

/// The lines of an item's documentation, as one.
fn documentation(attributes: &[syn::Attribute]) -> String {
    let line = |attribute: &syn::Attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).map(|line| line.trim().to_owned()).collect::<Vec<_>>().join(" ")
}

/// The fields of `Self { … }` in the `Default` of a type, if it is no more than that.
fn defaults<'f>(file: &'f File, of: &ItemStruct) -> Vec<&'f syn::FieldValue> {
    let body = file.items.iter().find_map(|item| {
        let Item::Impl(item) = item else { return None };
        let is_default = item.trait_.as_ref().is_some_and(|(_, path, _)| path.is_ident("Default"));
        let syn::Type::Path(named) = &*item.self_ty else { return None };
        let is_of = named.path.segments.last().is_some_and(|segment| segment.ident == of.ident);
        match item.items.first() {
            Some(ImplItem::Fn(function)) if is_default && is_of => function.block.stmts.last(),
            _ => None,
        }
    });
    match body {
        Some(Stmt::Expr(Expr::Struct(literal), None)) => literal.fields.iter().collect(),
        _ => Vec::new(),
    }
}

/// How many stated defaults a source has, and those that are not the ones of the code.
fn check(source: &Text) -> (usize, Vec<String>) {
    let file = syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.path));
    let (mut checked, mut wrong) = (0, Vec::new());
    for item in &file.items {
        let Item::Struct(item) = item else { continue };
        let defaults = defaults(&file, item);
        for field in &item.fields {
            let is_field = |value: &&&syn::FieldValue| match &value.member {
                syn::Member::Named(name) => Some(name) == field.ident.as_ref(),
                syn::Member::Unnamed(_) => false,
            };
            let Some(default) = defaults.iter().find(is_field) else { continue };
            let real = value(&default.expr).or_else(|| constant_of(&file, &default.expr));
            if let Some((stated, real)) = stated(&documentation(&field.attrs)).zip(real) {
                checked += 1;
                let name = field.ident.as_ref().unwrap();
                let differs =
                    (stated != real).then(|| format!("{}: {name}: {real}, not {stated}", source.path));
                wrong.extend(differs);
            }
        }
    }
    (checked, wrong)
}

#[test]
fn stated_defaults_are_those_of_the_code() {
    let mut sources = repository::texts("", &["rs"]);
    sources.retain(|source| source.path.contains("/src/") && source.text.contains("Default for"));
    let (checked, wrong): (Vec<_>, Vec<_>) = sources.iter().map(check).unzip();
    assert_eq!(wrong.concat(), [""; 0]);
    assert!(checked.iter().sum::<usize>() > 20, "{checked:?}");
}

#[test]
fn wrong_defaults_are_found() {
    let check = |documentation: &str, default: &str| {
        let text = format!(
            "const C: usize = 1 << 16; pub struct O {{ /// {documentation}\n a: usize }}\n\
             impl Default for O {{ fn default() -> Self {{ Self {{ a: {default} }} }} }}"
        );
        check(&page("x/src/a.rs", &text))
    };
    assert_eq!(check("By how much. Default: 64 KiB.", "64 << 10"), (1, vec![]));
    assert_eq!(check("By how much; by default 64 KiB.", "C"), (1, vec![]));
    assert_eq!(check("1,024 by default: 128 KiB.", "1024"), (1, vec![]));
    assert_eq!(check("How much, at most 64 KiB by default, of it.", "C"), (1, vec![]));
    assert_eq!(check("32 KiB by default.", "C"), (1, vec!["x/src/a.rs: a: 65536, not 32768".to_owned()]));
    assert_eq!(check("Half of it by default.", "C"), (0, vec![]));
    assert_eq!(check("Default: `usize::MAX`, everything.", "usize::MAX"), (1, vec![]));
    assert_eq!(check("Default: none.", "0"), (0, vec![]));
    assert_eq!(check("Default: 32 KiB.", "C"), (1, vec!["x/src/a.rs: a: 65536, not 32768".to_owned()]));
}
