//! Calls of functions and macros. The operator and the arguments of a call lie on the stack:
//!
//! ```text
//!   scope | left | operator | argument | argument | ...
//! ```

use crate::builtins::{self, Action};
use crate::failure::{Failure, Outcome};
use crate::heap::{Closure, Constant, Kind, Pair, Register, Scope, Value, View};
use crate::language::machine::{Frame, Lisp, Step, prefix};
use crate::language::printer::written;

/// What lies below the arguments.
const BELOW: usize = 3;

/// The arguments of a builtin: that many from a place of the stack on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments {
    pub(crate) place: usize,
    pub(crate) count: usize,
}

impl Lisp<'_, '_> {
    /// Begins to evaluate the arguments of `scope call`, whose operator is in the register of the value.
    pub(crate) fn begin_call(&mut self) -> Outcome<Step> {
        let place = self.store.depth() - 1;
        let left = self.store.value(place).as_pair().map_or(Value::NIL, Pair::rest);
        self.store.set_value(place, left);
        self.store.push(self.store.get(Register::Value))?;
        self.next_argument(0, self.line)
    }

    /// Evaluates the next argument, or calls if there is none.
    pub(crate) fn next_argument(&mut self, count: usize, line: usize) -> Outcome<Step> {
        let base = self.store.depth() - count - BELOW;
        let left = self.store.value(base + 1);
        let Some(list) = left.as_pair() else {
            return if left.is_nil() { self.apply(count, line) } else { Err(improper()) };
        };
        self.store.set_value(base + 1, list.rest());
        self.store.set(Register::Expression, list.first());
        self.store.set(Register::Scope, self.store.value(base));
        self.frames.push(Frame::Argument { count, line });
        Ok(Step::Evaluate)
    }

    /// Puts what lies below the arguments on the stack, for the operator in the register of the value.
    pub(crate) fn push_operator(&self) -> Outcome {
        self.store.push(Value::NIL)?;
        self.store.push(Value::NIL)?;
        self.store.push(self.store.get(Register::Value))
    }

    /// Calls the operator that lies below `count` arguments.
    pub(crate) fn apply(&mut self, count: usize, line: usize) -> Outcome<Step> {
        self.line = line;
        let place = self.store.depth() - count;
        let operator = self.store.value(place - 1);
        match operator.view() {
            View::Constant(Constant::Builtin(number)) => {
                self.call_builtin(number, Arguments { place, count })
            }
            View::Function(_) | View::Macro(_) => self.call_function(Arguments { place, count }),
            _ => Err(Failure::wrong(format!("{} is no function", written(operator)))),
        }
    }

    fn call_builtin(&mut self, number: usize, arguments: Arguments) -> Outcome<Step> {
        let builtin = builtins::get(number);
        if !builtin.counts.contains(&arguments.count) {
            let (least, most) = (*builtin.counts.start(), *builtin.counts.end());
            return Err(prefix(builtin.name, wrong_count(arguments.count, least, most != least)));
        }
        match builtin.action {
            Action::Compute(compute) => {
                compute(self, arguments).map_err(|failure| prefix(builtin.name, failure))?;
                self.store.cut(arguments.place - BELOW);
                Ok(Step::Return)
            }
            Action::Control(control) => {
                control(self, arguments).map_err(|failure| prefix(builtin.name, failure))
            }
        }
    }

    /// Calls a function: its arguments become a scope, and its body what is evaluated.
    fn call_function(&mut self, arguments: Arguments) -> Outcome<Step> {
        let Arguments { place, count } = arguments;
        let (named, takes_rest) = self.parameters_of(place - 1)?;
        if count < named || count > named && !takes_rest {
            return Err(wrong_count(count, named, takes_rest));
        }
        if takes_rest {
            self.store.make_list(count - named, 0)?;
        }
        let closure = self.closure(place - 1)?;
        self.store.set(Register::Expression, closure.body());
        // These lie where the fields of the scope are expected: outer scope, names, definitions.
        self.store.set_value(place - BELOW, closure.scope());
        self.store.set_value(place - BELOW + 1, closure.parameters());
        self.store.set_value(place - BELOW + 2, Value::NIL);
        self.store.make(Kind::Scope, Scope::FRONT + named + usize::from(takes_rest))?;
        self.store.pop_to(Register::Scope);
        self.evaluate_sequence()
    }

    fn closure(&self, place: usize) -> Outcome<Closure<'_>> {
        match self.store.value(place).view() {
            View::Function(closure) | View::Macro(closure) => Ok(closure),
            _ => Err(Failure::wrong("no function")),
        }
    }

    /// How many parameters the function at a place has, and whether another one has all further arguments.
    fn parameters_of(&self, place: usize) -> Outcome<(usize, bool)> {
        let mut names = self.closure(place)?.parameters();
        let mut count = 0;
        while let Some(pair) = names.as_pair() {
            (names, count) = (pair.rest(), count + 1);
        }
        Ok((count, !names.is_nil()))
    }

    /// Calls a macro, which is in the register of the value, with the expressions of `scope call`.
    pub(crate) fn expand(&mut self) -> Outcome<Step> {
        self.frames.push(Frame::Expansion { line: self.line });
        let call = self.store.depth() - 1;
        self.push_operator()?;
        let mut left = self.store.value(call).as_pair().map_or(Value::NIL, Pair::rest);
        let mut count = 0;
        while let Some(pair) = left.as_pair() {
            self.store.push(pair.first())?;
            (left, count) = (pair.rest(), count + 1);
        }
        if left.is_nil() { self.apply(count, self.line) } else { Err(improper()) }
    }

    /// Evaluates the value, which a macro made of `scope call`. It replaces the call in the program, so that this is
    /// done once.
    pub(crate) fn evaluate_expansion(&mut self) -> Outcome<Step> {
        if self.store.get(Register::Value).as_pair().is_none() {
            self.store.push(Value::constant(Constant::Form(crate::language::forms::BEGIN)))?;
            self.store.push(self.store.get(Register::Value))?;
            self.store.make_list(2, 0)?;
            self.store.pop_to(Register::Value);
        }
        let call = self.store.pop();
        if let (Some(call), Some(made)) = (call.as_pair(), self.store.get(Register::Value).as_pair()) {
            call.set_first(made.first());
            call.set_rest(made.rest());
        }
        self.store.set(Register::Expression, call);
        self.store.pop_to(Register::Scope);
        Ok(Step::Evaluate)
    }
}

fn wrong_count(count: usize, least: usize, takes_more: bool) -> Failure {
    let more = if takes_more { " or more" } else { "" };
    Failure::wrong(format!("{count} arguments for a function that takes {least}{more}"))
}

fn improper() -> Failure {
    Failure::wrong("the arguments of a call are no list")
}
