//! The values of constants that only the code knows, read from its source.

use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit};

use crate::page;
use crate::repository::{self, Text};

/// The constants of a name in some sources, as expressions.
struct Found<'n>(&'n str, Vec<Expr>);

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if item.ident == self.0 {
            self.1.push((*item.expr).clone());
        }
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        if item.ident == self.0 {
            self.1.push(item.expr.clone());
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }
}

/// The value of numbers, sums, products and shifts, of the size of a word, and of the one that counts outside of
/// models and on 64 bits.
pub(crate) fn value(expression: &Expr) -> Option<u128> {
    match expression {
        Expr::Path(path) => {
            let names: Vec<_> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            (names == ["usize", "MAX"]).then_some(usize::MAX as u128)
        }
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        Expr::Paren(inner) => value(&inner.expr),
        Expr::Binary(binary) => {
            let (left, right) = (value(&binary.left)?, value(&binary.right)?);
            match binary.op {
                BinOp::Add(_) => Some(left + right),
                BinOp::Mul(_) => Some(left * right),
                BinOp::Shl(_) => Some(left << right),
                _ => None,
            }
        }
        // `if cfg!(…) { the model's } else { the real one }`
        Expr::If(branches) => match &*branches.else_branch.as_ref()?.1 {
            Expr::Block(block) => match block.block.stmts.as_slice() {
                [syn::Stmt::Expr(last, None)] => value(last),
                _ => None,
            },
            other => value(other),
        },
        Expr::Call(call) => {
            let Expr::Path(function) = &*call.func else { return None };
            (function.path.segments.last()?.ident == "size_of").then_some(size_of::<usize>() as u128)
        }
        _ => None,
    }
}

/// The value of the constant of a file that an expression names, if there is one of that name.
pub(crate) fn constant_of(file: &syn::File, expression: &Expr) -> Option<u128> {
    let Expr::Path(path) = expression else { return None };
    let name = path.path.get_ident()?.to_string();
    let mut found = Found(&name, Vec::new());
    found.visit_file(file);
    match found.1.as_slice() {
        [one] => value(one),
        _ => None,
    }
}

fn constant_in(sources: &[Text], name: &str) -> Result<u128, String> {
    let mut found = Found(name, Vec::new());
    for source in sources.iter().filter(|source| source.text.contains(name)) {
        found
            .visit_file(&syn::parse_file(&source.text).map_err(|error| format!("{}: {error}", source.path))?);
    }
    match found.1.as_slice() {
        [one] => value(one).ok_or_else(|| format!("the value of {name} is not a plain number")),
        several => Err(format!("{} constants are called {name}", several.len())),
    }
}

/// The value of the only constant of this name in the sources of a folder. It may move to another file there.
pub(crate) fn constant(folder: &str, name: &str) -> u128 {
    constant_in(&repository::texts(folder, &["rs"]), name).unwrap_or_else(|error| panic!("{folder}: {error}"))
}

#[test]
fn constants_are_evaluated() {
    let check = |text: &str| constant_in(&[page("a.rs", text)], "N");
    assert_eq!(check("const N: usize = 1_024;"), Ok(1_024));
    assert_eq!(check("struct S; impl S { pub(crate) const N: usize = 3 * (2 << 10) + 1; }"), Ok(6_145));
    assert_eq!(check("const N: u32 = if cfg!(a) { 1 } else { 256 };"), Ok(256));
    assert_eq!(
        check("mod m { const N: usize = 2 * size_of::<usize>(); }"),
        Ok(2 * size_of::<usize>() as u128)
    );
    assert_eq!(check("const N: u8 = 1; mod tests { const N: u8 = 2; }"), Ok(1));
    for wrong in ["const M: u8 = 1;", "const N: u8 = 1; mod m { const N: u8 = 2; }", "const N: u8 = f();"] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
}
