//! The evaluator. It is a loop: what is left to do after an expression is a [`Frame`], and the values that it needs are on
//! the stack of the store. So a program that is nested too deep is an error, and a call at the end of a function takes no
//! room at all.

use crate::builtins;
use crate::failure::{Failure, Outcome};
use crate::heap::{Constant, Register, Store, Symbol, Value, View};
use crate::language::forms::{self, FORMS};
use crate::ports::Ports;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Evaluate the expression in its register.
    Evaluate,
    /// The value is in its register: do what is left.
    Return,
}

/// What is left to do when an expression has a value. The comment says what lies on the stack for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frame {
    /// `scope call`: the value is what is called.
    Operator { line: usize },
    /// `scope left operator argument ...`: the value is one more argument.
    Argument { count: usize, line: usize },
    /// `scope call`: the value is what a macro made of the call.
    Expansion { line: usize },
    /// `scope left`: the value is that of an expression in a row, and not used.
    Sequence,
    /// `scope branches`: the value is a condition.
    If,
    /// `scope symbol`: the value is that of a definition.
    Define,
    /// `scope symbol`: the value is assigned.
    Set,
    /// `handler`, at this place: the value is that of the function for which it handles errors.
    Catch { place: usize },
}

/// An interpreter.
pub(crate) struct Lisp<'p, 'h> {
    pub(crate) store: Store<'p, 'h>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) ports: Ports,
    /// The line of the call that is evaluated.
    pub(crate) line: usize,
}

impl<'p, 'h> Lisp<'p, 'h> {
    /// An interpreter with the names that the program itself provides.
    pub(crate) fn new(store: Store<'p, 'h>) -> Outcome<Self> {
        let mut lisp = Self { store, frames: Vec::new(), ports: Ports::default(), line: 0 };
        lisp.store.begin_symbols()?;
        let forms = FORMS.iter().enumerate().map(|(number, form)| (form.name, Constant::Form(number)));
        for (name, constant) in forms.chain(builtins::names()) {
            lisp.store.intern(name)?;
            lisp.store.push(Value::constant(constant))?;
            lisp.store.pop_to(Register::Value);
            lisp.bind_global()?;
        }
        Ok(lisp)
    }

    /// Evaluates the expression on top of the stack, and takes it off. The value is in its register.
    ///
    /// # Errors
    /// What the program did wrong. Nothing of the expression is left then.
    pub(crate) fn evaluate(&mut self) -> Outcome {
        self.store.pop_to(Register::Expression);
        self.store.set(Register::Scope, Value::NIL);
        let (ground, mut step) = (self.store.depth(), Step::Evaluate);
        let outcome = loop {
            let next = match step {
                Step::Evaluate => self.evaluate_expression(),
                Step::Return => match self.frames.pop() {
                    Some(frame) => self.go_on(frame),
                    None => break Ok(()),
                },
            };
            step = match next.or_else(|failure| self.handle(failure)) {
                Ok(step) => step,
                Err(failure) => break Err(failure),
            };
        };
        self.frames.clear();
        self.store.cut(ground);
        // What was evaluated last is not kept.
        self.store.set(Register::Expression, Value::NIL);
        self.store.set(Register::Scope, Value::NIL);
        if outcome.is_err() {
            self.store.set(Register::Value, Value::NIL);
        }
        outcome
    }

    fn evaluate_expression(&mut self) -> Outcome<Step> {
        let expression = self.store.get(Register::Expression);
        match expression.view() {
            View::Symbol(symbol) => {
                let value = self.look_up(symbol)?;
                self.store.set(Register::Value, value);
            }
            View::Pair(call) => {
                if call.line() != 0 {
                    self.line = call.line();
                }
                self.store.push(self.store.get(Register::Scope))?;
                self.store.push(expression)?;
                if let View::Symbol(symbol) = call.first().view() {
                    let operator = self.look_up(symbol)?;
                    self.store.set(Register::Value, operator);
                    return self.operate();
                }
                self.store.set(Register::Expression, call.first());
                self.frames.push(Frame::Operator { line: self.line });
                return Ok(Step::Evaluate);
            }
            // All others are their own values.
            _ => self.store.set(Register::Value, expression),
        }
        Ok(Step::Return)
    }

    /// The value of a name where the expression stands.
    fn look_up<'s>(&'s self, symbol: Symbol<'s>) -> Outcome<Value<'s>> {
        let mut scope = self.store.get(Register::Scope);
        while let View::Scope(inner) = scope.view() {
            if let Some(place) = inner.find(symbol) {
                return Ok(place.get());
            }
            scope = inner.outer();
        }
        match symbol.value().as_constant() {
            Some(Constant::Unbound) => Err(Failure::wrong(format!("{} is not defined", symbol.name()))),
            _ => Ok(symbol.value()),
        }
    }

    /// Begins a call, `scope call`, whose operator is in the register of the value.
    fn operate(&mut self) -> Outcome<Step> {
        match self.store.get(Register::Value).view() {
            View::Constant(Constant::Form(number)) => {
                // The scope is in its register.
                self.store.pop_to(Register::Expression);
                self.store.pop();
                (FORMS[number].run)(self).map_err(|failure| prefix(FORMS[number].name, failure))
            }
            View::Macro(_) => self.expand(),
            _ => self.begin_call(),
        }
    }

    /// Does what is left.
    fn go_on(&mut self, frame: Frame) -> Outcome<Step> {
        match frame {
            Frame::Operator { line } => {
                self.line = line;
                self.store.set(Register::Scope, self.store.value(self.store.depth() - 2));
                self.operate()
            }
            Frame::Argument { count, line } => {
                self.store.push(self.store.get(Register::Value))?;
                self.next_argument(count + 1, line)
            }
            Frame::Expansion { line } => {
                self.line = line;
                self.evaluate_expansion()
            }
            Frame::Sequence => {
                self.store.pop_to(Register::Expression);
                self.store.pop_to(Register::Scope);
                self.evaluate_sequence()
            }
            Frame::If => forms::branch(self),
            Frame::Define => forms::finish_define(self),
            Frame::Set => forms::finish_set(self),
            Frame::Catch { place } => {
                self.store.cut(place);
                Ok(Step::Return)
            }
        }
    }

    /// Evaluates the list of expressions in the register, one after the other. The last takes the place of the list.
    pub(crate) fn evaluate_sequence(&mut self) -> Outcome<Step> {
        let Some(list) = self.store.get(Register::Expression).as_pair() else {
            self.store.set(Register::Value, Value::UNSPECIFIED);
            return Ok(Step::Return);
        };
        if !list.rest().is_nil() {
            self.store.push(self.store.get(Register::Scope))?;
            self.store.push(list.rest())?;
            self.frames.push(Frame::Sequence);
        }
        self.store.set(Register::Expression, list.first());
        Ok(Step::Evaluate)
    }

    /// Has the innermost handler handle a failure: calls it with the text.
    fn handle(&mut self, failure: Failure) -> Outcome<Step> {
        let mut failure = failure;
        while let Some(frame) = self.frames.pop() {
            let Frame::Catch { place } = frame else { continue };
            self.store.cut(place + 1);
            self.store.pop_to(Register::Value);
            match self.call_handler(&failure) {
                Ok(step) => return Ok(step),
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }

    /// Calls the function in the register of the value with the text of a failure.
    fn call_handler(&mut self, failure: &Failure) -> Outcome<Step> {
        self.push_operator()?;
        self.store.make_text(&failure.to_string())?;
        self.apply(1, self.line)
    }
}

/// A failure with the name of what failed.
pub(crate) fn prefix(name: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Wrong(text) => Failure::Wrong(format!("{name}: {text}")),
        other => other,
    }
}
