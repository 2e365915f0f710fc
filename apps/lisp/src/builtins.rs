//! The functions that the interpreter itself provides.
//!
//! A builtin finds its arguments on the stack, and leaves its value in the register. It reads an argument again after it
//! has allocated: the compiler refuses it otherwise.

mod numbers;
mod objects;
mod pairs;
mod streams;
mod system;
mod texts;

use core::ops::RangeInclusive;

use crate::failure::{Failure, Outcome};
use crate::heap::{Constant, Pair, Register, Symbol, Table, Text, Value, Vector, View};
use crate::language::calls::Arguments;
use crate::language::machine::{Lisp, Step};
use crate::language::printer::written;

/// What a builtin does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Leaves a value in the register.
    Compute(fn(&mut Lisp<'_, '_>, Arguments) -> Outcome),
    /// Changes what is evaluated next.
    Control(fn(&mut Lisp<'_, '_>, Arguments) -> Outcome<Step>),
}

/// A function of the interpreter.
#[derive(Clone, Debug)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    /// How many arguments it takes.
    pub(crate) counts: RangeInclusive<usize>,
    pub(crate) action: Action,
}

const fn compute(
    name: &'static str,
    counts: RangeInclusive<usize>,
    action: fn(&mut Lisp<'_, '_>, Arguments) -> Outcome,
) -> Builtin {
    Builtin { name, counts, action: Action::Compute(action) }
}

const fn control(
    name: &'static str,
    counts: RangeInclusive<usize>,
    action: fn(&mut Lisp<'_, '_>, Arguments) -> Outcome<Step>,
) -> Builtin {
    Builtin { name, counts, action: Action::Control(action) }
}

/// As many arguments as there are.
const MANY: usize = usize::MAX;

/// All builtins, in files by what they are about.
const ALL: [&[Builtin]; 6] = [
    numbers::BUILTINS,
    pairs::BUILTINS,
    objects::BUILTINS,
    texts::BUILTINS,
    streams::BUILTINS,
    system::BUILTINS,
];

/// The numbers of a file's builtins begin with a multiple of this.
const GROUP: usize = 64;

/// The builtin with a number.
pub(crate) fn get(number: usize) -> &'static Builtin {
    &ALL[number / GROUP][number % GROUP]
}

pub(crate) fn name_of(number: usize) -> &'static str {
    get(number).name
}

/// The names of all builtins, with the constants that they stand for.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, Constant)> {
    ALL.into_iter().enumerate().flat_map(|(group, builtins)| {
        let numbered = builtins.iter().enumerate();
        numbered.map(move |(number, builtin)| (builtin.name, Constant::Builtin(group * GROUP + number)))
    })
}

/// What builtins ask of their arguments.
impl Lisp<'_, '_> {
    /// The argument with this number.
    fn argument(&self, arguments: Arguments, number: usize) -> Value<'_> {
        self.store.value(arguments.place + number)
    }

    fn number(&self, arguments: Arguments, number: usize) -> Outcome<i64> {
        let value = self.argument(arguments, number);
        value.as_number().ok_or_else(|| is_no("number", value))
    }

    /// A number that counts something.
    fn index(&self, arguments: Arguments, number: usize) -> Outcome<usize> {
        let value = self.argument(arguments, number);
        let index = value.as_number().and_then(|number| usize::try_from(number).ok());
        index.ok_or_else(|| is_no("index", value))
    }

    fn pair(&self, arguments: Arguments, number: usize) -> Outcome<Pair<'_>> {
        let value = self.argument(arguments, number);
        value.as_pair().ok_or_else(|| is_no("pair", value))
    }

    fn symbol(&self, arguments: Arguments, number: usize) -> Outcome<Symbol<'_>> {
        let value = self.argument(arguments, number);
        value.as_symbol().ok_or_else(|| is_no("symbol", value))
    }

    fn text(&self, arguments: Arguments, number: usize) -> Outcome<Text<'_>> {
        let value = self.argument(arguments, number);
        if let View::Text(text) = value.view() { Ok(text) } else { Err(is_no("string", value)) }
    }

    fn vector(&self, arguments: Arguments, number: usize) -> Outcome<Vector<'_>> {
        let value = self.argument(arguments, number);
        if let View::Vector(vector) = value.view() { Ok(vector) } else { Err(is_no("vector", value)) }
    }

    fn table(&self, arguments: Arguments, number: usize) -> Outcome<Table<'_>> {
        let value = self.argument(arguments, number);
        if let View::Table(table) = value.view() { Ok(table) } else { Err(is_no("table", value)) }
    }

    /// The number of a port.
    fn port(&self, arguments: Arguments, number: usize) -> Outcome<usize> {
        let value = self.argument(arguments, number);
        if let View::Port(port) = value.view() { Ok(port) } else { Err(is_no("port", value)) }
    }

    /// Leaves a value that is no object.
    fn leave(&self, value: Value<'static>) -> Outcome {
        self.store.set(Register::Value, value);
        Ok(())
    }

    fn leave_truth(&self, truth: bool) -> Outcome {
        self.leave(Value::truth(truth))
    }

    fn leave_number(&self, number: Option<i64>) -> Outcome {
        let value = number.and_then(Value::number);
        self.leave(value.ok_or_else(|| Failure::wrong("the result has too many digits"))?)
    }

    /// Leaves what is on top of the stack.
    fn leave_top(&self) -> Outcome {
        self.store.pop_to(Register::Value);
        Ok(())
    }
}

fn is_no(kind: &str, value: Value<'_>) -> Failure {
    Failure::wrong(format!("{} is no {kind}", written(value)))
}
