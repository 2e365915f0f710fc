//! What values are; vectors, and tables whose keys are weak.

use super::{Builtin, MANY, compute};
use crate::failure::{Failure, Outcome};
use crate::heap::{Constant, Register, Value, View};
use crate::language::calls::Arguments;
use crate::language::machine::Lisp;

pub(super) const BUILTINS: &[Builtin] = &[
    compute("null?", 1..=1, |lisp, arguments| lisp.leave_truth(lisp.argument(arguments, 0).is_nil())),
    compute("pair?", 1..=1, |lisp, arguments| is(lisp, arguments, |view| matches!(view, View::Pair(_)))),
    compute("symbol?", 1..=1, |lisp, arguments| is(lisp, arguments, |view| matches!(view, View::Symbol(_)))),
    compute("number?", 1..=1, |lisp, arguments| is(lisp, arguments, |view| matches!(view, View::Number(_)))),
    compute("string?", 1..=1, |lisp, arguments| is(lisp, arguments, |view| matches!(view, View::Text(_)))),
    compute("vector?", 1..=1, |lisp, arguments| is(lisp, arguments, |view| matches!(view, View::Vector(_)))),
    compute("table?", 1..=1, |lisp, arguments| is(lisp, arguments, |view| matches!(view, View::Table(_)))),
    compute("port?", 1..=1, |lisp, arguments| is(lisp, arguments, |view| matches!(view, View::Port(_)))),
    compute("end?", 1..=1, |lisp, arguments| {
        is(lisp, arguments, |view| matches!(view, View::Constant(Constant::End)))
    }),
    compute("function?", 1..=1, |lisp, arguments| {
        is(lisp, arguments, |view| matches!(view, View::Function(_) | View::Constant(Constant::Builtin(_))))
    }),
    compute("make-vector", 2..=2, |lisp, arguments| {
        let count = lisp.index(arguments, 0)?;
        lisp.store.make_vector(count)?;
        lisp.leave_top()
    }),
    compute("vector", 0..=MANY, |lisp, arguments| {
        lisp.store.make(crate::heap::Kind::Vector, arguments.count)?;
        lisp.leave_top()
    }),
    compute("vector-length", 1..=1, |lisp, arguments| {
        lisp.leave(Value::count(lisp.vector(arguments, 0)?.length()))
    }),
    compute("vector-ref", 2..=2, |lisp, arguments| {
        let element = lisp.vector(arguments, 0)?.get(lisp.index(arguments, 1)?);
        lisp.store.set(Register::Value, element.ok_or_else(no_element)?);
        Ok(())
    }),
    compute("vector-set!", 3..=3, |lisp, arguments| {
        let index = lisp.index(arguments, 1)?;
        let is_set = lisp.vector(arguments, 0)?.set(index, lisp.argument(arguments, 2));
        if is_set { lisp.leave(Value::UNSPECIFIED) } else { Err(no_element()) }
    }),
    compute("make-table", 0..=0, |lisp, _| {
        lisp.store.make_table()?;
        lisp.leave_top()
    }),
    compute("table-set!", 3..=3, |lisp, arguments| {
        lisp.store.table_set(arguments.place)?;
        lisp.leave(Value::UNSPECIFIED)
    }),
    // `(table-ref table key otherwise)`
    compute("table-ref", 3..=3, |lisp, arguments| {
        let found = lisp.store.table_get(lisp.table(arguments, 0)?, lisp.argument(arguments, 1));
        lisp.store.set(Register::Value, found.unwrap_or(lisp.argument(arguments, 2)));
        Ok(())
    }),
    compute("table-delete!", 2..=2, |lisp, arguments| {
        let is_found = lisp.store.table_delete(lisp.table(arguments, 0)?, lisp.argument(arguments, 1));
        lisp.leave_truth(is_found)
    }),
    compute("table-count", 1..=1, |lisp, arguments| {
        lisp.leave(Value::count(lisp.table(arguments, 0)?.count()))
    }),
    compute("table-keys", 1..=1, table_keys),
];

fn is(lisp: &Lisp<'_, '_>, arguments: Arguments, is_wanted: fn(View<'_>) -> bool) -> Outcome {
    lisp.leave_truth(is_wanted(lisp.argument(arguments, 0).view()))
}

fn no_element() -> Failure {
    Failure::wrong("the vector has no element with this index")
}

/// A list of the keys, in no order. From when it is made it keeps them.
fn table_keys(lisp: &mut Lisp<'_, '_>, arguments: Arguments) -> Outcome {
    let entries = lisp.table(arguments, 0)?.entries();
    for (key, _) in &entries {
        lisp.store.push(*key)?;
    }
    let count = entries.len();
    lisp.store.make_list(count, 0)?;
    lisp.leave_top()
}
