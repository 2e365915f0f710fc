//! Pairs, and when two values are the same.

use super::{Builtin, MANY, compute};
use crate::failure::{Failure, Outcome};
use crate::heap::{Register, Value, Vector, View};
use crate::language::machine::Lisp;

/// The most parts of two values that are compared: cycles would have no end.
const MOST: usize = 1_000_000;

pub(super) const BUILTINS: &[Builtin] = &[
    compute("cons", 2..=2, |lisp, _| {
        lisp.store.make_pair(0)?;
        leave_made(lisp)
    }),
    compute("list", 0..=MANY, |lisp, arguments| {
        lisp.store.make_list(arguments.count, 0)?;
        leave_made(lisp)
    }),
    compute("car", 1..=1, |lisp, arguments| {
        lisp.store.set(Register::Value, lisp.pair(arguments, 0)?.first());
        Ok(())
    }),
    compute("cdr", 1..=1, |lisp, arguments| {
        lisp.store.set(Register::Value, lisp.pair(arguments, 0)?.rest());
        Ok(())
    }),
    compute("set-car!", 2..=2, |lisp, arguments| {
        lisp.pair(arguments, 0)?.set_first(lisp.argument(arguments, 1));
        lisp.leave(Value::UNSPECIFIED)
    }),
    compute("set-cdr!", 2..=2, |lisp, arguments| {
        lisp.pair(arguments, 0)?.set_rest(lisp.argument(arguments, 1));
        lisp.leave(Value::UNSPECIFIED)
    }),
    compute("eq?", 2..=2, |lisp, arguments| {
        lisp.leave_truth(lisp.argument(arguments, 0) == lisp.argument(arguments, 1))
    }),
    compute("equal?", 2..=2, |lisp, arguments| {
        lisp.leave_truth(are_equal(lisp.argument(arguments, 0), lisp.argument(arguments, 1))?)
    }),
];

/// Leaves what was made of all arguments, and lies in their place.
fn leave_made(lisp: &Lisp<'_, '_>) -> Outcome {
    lisp.store.set(Register::Value, lisp.store.top());
    Ok(())
}

/// What is left to compare.
enum Left<'s> {
    Values(Value<'s>, Value<'s>),
    /// The elements of two vectors of one length, from this one on.
    Elements(Vector<'s>, Vector<'s>, usize),
}

/// Whether two values have the same parts.
fn are_equal(first: Value<'_>, second: Value<'_>) -> Outcome<bool> {
    let mut left = vec![Left::Values(first, second)];
    let mut parts = 0;
    while let Some(next) = left.pop() {
        let (first, second) = match next {
            Left::Values(first, second) => (first, second),
            Left::Elements(first, second, index) => {
                let (Some(one), Some(other)) = (first.get(index), second.get(index)) else { continue };
                left.push(Left::Elements(first, second, index + 1));
                (one, other)
            }
        };
        parts += 1;
        if parts > MOST {
            return Err(Failure::wrong(format!("more than {MOST} parts")));
        }
        match (first.view(), second.view()) {
            (View::Pair(first), View::Pair(second)) => {
                left.extend([
                    Left::Values(first.rest(), second.rest()),
                    Left::Values(first.first(), second.first()),
                ]);
            }
            (View::Vector(first), View::Vector(second)) if first.length() == second.length() => {
                left.push(Left::Elements(first, second, 0));
            }
            (View::Text(first), View::Text(second)) if first.get() == second.get() => {}
            _ if first == second => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}
