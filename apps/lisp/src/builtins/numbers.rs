//! Numbers: whole ones, of almost as many bits as a word.

use super::{Builtin, MANY, compute};
use crate::failure::{Failure, Outcome};
use crate::language::calls::Arguments;
use crate::language::machine::Lisp;

pub(super) const BUILTINS: &[Builtin] = &[
    compute("+", 0..=MANY, |lisp, arguments| fold(lisp, arguments, 0, i64::checked_add)),
    compute("*", 0..=MANY, |lisp, arguments| fold(lisp, arguments, 1, i64::checked_mul)),
    compute("-", 1..=MANY, subtract),
    compute("quotient", 2..=2, |lisp, arguments| divide(lisp, arguments, i64::checked_div)),
    compute("remainder", 2..=2, |lisp, arguments| divide(lisp, arguments, i64::checked_rem)),
    compute("=", 2..=MANY, |lisp, arguments| compare(lisp, arguments, |a, b| a == b)),
    compute("<", 2..=MANY, |lisp, arguments| compare(lisp, arguments, |a, b| a < b)),
    compute(">", 2..=MANY, |lisp, arguments| compare(lisp, arguments, |a, b| a > b)),
    compute("<=", 2..=MANY, |lisp, arguments| compare(lisp, arguments, |a, b| a <= b)),
    compute(">=", 2..=MANY, |lisp, arguments| compare(lisp, arguments, |a, b| a >= b)),
];

type Operation = fn(i64, i64) -> Option<i64>;

fn fold(lisp: &mut Lisp<'_, '_>, arguments: Arguments, first: i64, operation: Operation) -> Outcome {
    let mut result = Some(first);
    for number in 0..arguments.count {
        let number = lisp.number(arguments, number)?;
        result = result.and_then(|result| operation(result, number));
    }
    lisp.leave_number(result)
}

fn subtract(lisp: &mut Lisp<'_, '_>, arguments: Arguments) -> Outcome {
    let first = lisp.number(arguments, 0)?;
    if arguments.count == 1 {
        return lisp.leave_number(first.checked_neg());
    }
    let Arguments { place, count } = arguments;
    fold(lisp, Arguments { place: place + 1, count: count - 1 }, 0, i64::checked_add)?;
    let sum = lisp.store.get(crate::heap::Register::Value).as_number();
    lisp.leave_number(sum.and_then(|sum| first.checked_sub(sum)))
}

fn divide(lisp: &mut Lisp<'_, '_>, arguments: Arguments, operation: Operation) -> Outcome {
    let [dividend, divisor] = [lisp.number(arguments, 0)?, lisp.number(arguments, 1)?];
    if divisor == 0 {
        return Err(Failure::wrong("a division by zero"));
    }
    lisp.leave_number(operation(dividend, divisor))
}

fn compare(lisp: &mut Lisp<'_, '_>, arguments: Arguments, holds: fn(i64, i64) -> bool) -> Outcome {
    let mut all_hold = true;
    for number in 1..arguments.count {
        all_hold &= holds(lisp.number(arguments, number - 1)?, lisp.number(arguments, number)?);
    }
    lisp.leave_truth(all_hold)
}
