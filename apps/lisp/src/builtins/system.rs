//! The interpreter itself: evaluating, errors, and the heap.

use super::{Builtin, compute, control, is_no};
use crate::failure::{Failure, Outcome};
use crate::heap::{Register, Value};
use crate::language::calls::Arguments;
use crate::language::machine::{Frame, Lisp, Step};
use crate::language::printer::{displayed, written};

pub(super) const BUILTINS: &[Builtin] = &[
    control("apply", 2..=2, apply),
    control("eval", 1..=1, |lisp, arguments| {
        lisp.store.set(Register::Expression, lisp.argument(arguments, 0));
        lisp.store.set(Register::Scope, Value::NIL);
        lisp.store.cut(arguments.place - 3);
        Ok(Step::Evaluate)
    }),
    control("catch", 2..=2, catch),
    compute("error", 1..=super::MANY, |lisp, arguments| {
        let mut text = displayed(lisp.argument(arguments, 0));
        for number in 1..arguments.count {
            text = text + " " + &written(lisp.argument(arguments, number));
        }
        Err(Failure::Raised(text))
    }),
    // Frees what nothing refers to, and leaves how many bytes that was.
    compute("gc", 0..=0, |lisp, _| {
        let freed = lisp.store.collect()?;
        lisp.leave(Value::count(freed))
    }),
    // How many collections there were.
    compute("collections", 0..=0, |lisp, _| {
        let count = i64::try_from(lisp.store.collections()).ok();
        lisp.leave_number(count)
    }),
    // How many symbols there are.
    compute("symbols", 0..=0, |lisp, _| lisp.leave(Value::count(lisp.store.symbol_count()))),
    // A list of the kinds of objects: name, number, bytes.
    compute("room", 0..=0, room),
];

/// `(apply function arguments)`
fn apply(lisp: &mut Lisp<'_, '_>, arguments: Arguments) -> Outcome<Step> {
    lisp.store.set(Register::Value, lisp.argument(arguments, 0));
    let list = lisp.argument(arguments, 1);
    lisp.store.cut(arguments.place - 3);
    lisp.push_operator()?;
    let (mut left, mut count) = (list, 0);
    while let Some(pair) = left.as_pair() {
        lisp.store.push(pair.first())?;
        (left, count) = (pair.rest(), count + 1);
    }
    if !left.is_nil() {
        return Err(is_no("list", list));
    }
    lisp.apply(count, lisp.line)
}

/// `(catch handler function)`: calls the function. If that fails, calls the handler with the text of the error.
fn catch(lisp: &mut Lisp<'_, '_>, arguments: Arguments) -> Outcome<Step> {
    let place = arguments.place - 3;
    lisp.store.set_value(place, lisp.argument(arguments, 0));
    lisp.store.set(Register::Value, lisp.argument(arguments, 1));
    lisp.store.cut(place + 1);
    lisp.frames.push(Frame::Catch { place });
    lisp.push_operator()?;
    lisp.apply(0, lisp.line)
}

fn room(lisp: &mut Lisp<'_, '_>, _: Arguments) -> Outcome {
    let census = lisp.store.census()?;
    for (kind, objects, bytes) in &census {
        lisp.store.make_text(kind)?;
        lisp.store.push(Value::count(*objects))?;
        lisp.store.push(Value::count(*bytes))?;
        lisp.store.make_list(3, 0)?;
    }
    lisp.store.make_list(census.len(), 0)?;
    lisp.leave_top()
}
