//! Strings and the names of symbols.

use super::{Builtin, MANY, compute};
use crate::failure::{Failure, Outcome};
use crate::heap::Value;
use crate::language::calls::Arguments;
use crate::language::machine::Lisp;
use crate::language::printer::written;

pub(super) const BUILTINS: &[Builtin] = &[
    compute("string-append", 0..=MANY, |lisp, arguments| {
        let mut text = String::new();
        for number in 0..arguments.count {
            text.push_str(lisp.text(arguments, number)?.get());
        }
        leave_text(lisp, &text)
    }),
    compute("string-length", 1..=1, |lisp, arguments| {
        lisp.leave(Value::count(lisp.text(arguments, 0)?.get().chars().count()))
    }),
    compute("substring", 3..=3, substring),
    compute("symbol->string", 1..=1, |lisp, arguments| {
        let name = lisp.symbol(arguments, 0)?.name().to_owned();
        leave_text(lisp, &name)
    }),
    compute("string->symbol", 1..=1, |lisp, arguments| {
        let name = lisp.text(arguments, 0)?.get().to_owned();
        lisp.store.intern(&name)?;
        lisp.leave_top()
    }),
    compute("number->string", 1..=1, |lisp, arguments| {
        let text = lisp.number(arguments, 0)?.to_string();
        leave_text(lisp, &text)
    }),
    compute("string->number", 1..=1, |lisp, arguments| {
        let number = lisp.text(arguments, 0)?.get().parse().ok().and_then(Value::number);
        lisp.leave(number.unwrap_or(Value::FALSE))
    }),
    // The text of any value.
    compute("written", 1..=1, |lisp, arguments| {
        let text = written(lisp.argument(arguments, 0));
        leave_text(lisp, &text)
    }),
];

/// `(substring text from to)`: characters are counted from zero.
fn substring(lisp: &mut Lisp<'_, '_>, arguments: Arguments) -> Outcome {
    let (from, to) = (lisp.index(arguments, 1)?, lisp.index(arguments, 2)?);
    let text = lisp.text(arguments, 0)?.get();
    if from > to || to > text.chars().count() {
        return Err(Failure::wrong("the string has no such part"));
    }
    let part: String = text.chars().skip(from).take(to - from).collect();
    leave_text(lisp, &part)
}

fn leave_text(lisp: &mut Lisp<'_, '_>, text: &str) -> Outcome {
    lisp.store.make_text(text)?;
    lisp.leave_top()
}
