//! Special forms: those whose parts are not all evaluated. Each finds its whole expression in the register, and its scope
//! in another. All other forms are macros, in `prelude.lisp`.

use crate::failure::{Failure, Outcome};
use crate::heap::{Kind, Pair, Register, Value, View};
use crate::language::machine::{Frame, Lisp, Step};

/// A special form.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Lisp<'_, '_>) -> Outcome<Step>,
}

/// The number of `begin`.
pub(crate) const BEGIN: usize = 0;

pub(crate) const FORMS: &[Form] = &[
    Form { name: "begin", run: begin },
    Form { name: "quote", run: quote },
    Form { name: "if", run: condition },
    Form { name: "define", run: define },
    Form { name: "set!", run: set },
    Form { name: "lambda", run: lambda },
    Form { name: "defmacro", run: define_macro },
];

/// The part of the expression with this number.
fn part<'s>(lisp: &'s Lisp<'_, '_>, number: usize) -> Outcome<Value<'s>> {
    let list = rest(lisp, number)?;
    list.as_pair().map(Pair::first).ok_or_else(|| Failure::wrong("a part is missing"))
}

/// The parts of the expression from this number on.
fn rest<'s>(lisp: &'s Lisp<'_, '_>, number: usize) -> Outcome<Value<'s>> {
    let mut list = lisp.store.get(Register::Expression);
    for _ in 0..number {
        list = list.as_pair().map(Pair::rest).ok_or_else(|| Failure::wrong("a part is missing"))?;
    }
    Ok(list)
}

/// `(begin expression ...)`
fn begin(lisp: &mut Lisp<'_, '_>) -> Outcome<Step> {
    lisp.store.set(Register::Expression, rest(lisp, 1)?);
    lisp.evaluate_sequence()
}

/// `(quote value)`
fn quote(lisp: &mut Lisp<'_, '_>) -> Outcome<Step> {
    lisp.store.set(Register::Value, part(lisp, 1)?);
    Ok(Step::Return)
}

/// `(if condition then otherwise)`
fn condition(lisp: &mut Lisp<'_, '_>) -> Outcome<Step> {
    lisp.store.push(lisp.store.get(Register::Scope))?;
    lisp.store.push(rest(lisp, 2)?)?;
    lisp.store.set(Register::Expression, part(lisp, 1)?);
    lisp.frames.push(Frame::If);
    Ok(Step::Evaluate)
}

/// Evaluates one of `scope branches`.
pub(crate) fn branch(lisp: &mut Lisp<'_, '_>) -> Outcome<Step> {
    let is_true = lisp.store.get(Register::Value).is_true();
    let branches = lisp.store.pop().as_pair().ok_or_else(|| Failure::wrong("if: a part is missing"))?;
    let chosen = if is_true { Some(branches) } else { branches.rest().as_pair() };
    // Without a branch, the value is none.
    lisp.store.set(Register::Expression, chosen.map_or(Value::UNSPECIFIED, Pair::first));
    lisp.store.pop_to(Register::Scope);
    Ok(Step::Evaluate)
}

/// `(define name value)` or `(define (name parameter ...) expression ...)`
fn define(lisp: &mut Lisp<'_, '_>) -> Outcome<Step> {
    lisp.store.push(lisp.store.get(Register::Scope))?;
    let target = part(lisp, 1)?;
    let Some(header) = target.as_pair() else {
        target.as_symbol().ok_or_else(|| Failure::wrong("only symbols are defined"))?;
        lisp.store.push(target)?;
        lisp.store.set(Register::Expression, part(lisp, 2)?);
        lisp.frames.push(Frame::Define);
        return Ok(Step::Evaluate);
    };
    header.first().as_symbol().ok_or_else(|| Failure::wrong("only symbols are defined"))?;
    lisp.store.push(header.first())?;
    lisp.store.push(header.rest())?;
    make_closure(lisp, Kind::Function)?;
    finish_define(lisp)
}

/// Gives the symbol of `scope symbol` the value.
pub(crate) fn finish_define(lisp: &mut Lisp<'_, '_>) -> Outcome<Step> {
    let place = lisp.store.depth() - 2;
    lisp.store.set(Register::Scope, lisp.store.value(place));
    match lisp.store.value(place).view() {
        View::Scope(_) => bind_in_scope(lisp)?,
        _ => lisp.bind_global()?,
    }
    lisp.store.cut(place);
    lisp.store.set(Register::Value, Value::UNSPECIFIED);
    Ok(Step::Return)
}

/// Gives the symbol on top of the stack the value, in the scope in the register.
fn bind_in_scope(lisp: &mut Lisp<'_, '_>) -> Outcome {
    let value = lisp.store.get(Register::Value);
    let (View::Scope(scope), Some(symbol)) =
        (lisp.store.get(Register::Scope).view(), lisp.store.top().as_symbol())
    else {
        return Ok(());
    };
    if let Some(place) = scope.find(symbol) {
        place.set(value);
        return Ok(());
    }
    lisp.store.push(value)?;
    lisp.store.make_pair(0)?;
    if let View::Scope(scope) = lisp.store.get(Register::Scope).view() {
        lisp.store.push(scope.definitions())?;
    }
    lisp.store.make_pair(0)?;
    if let View::Scope(scope) = lisp.store.get(Register::Scope).view() {
        scope.set_definitions(lisp.store.top());
    }
    Ok(())
}

impl Lisp<'_, '_> {
    /// Gives the symbol on top of the stack the value, outside all functions, and takes it off.
    pub(crate) fn bind_global(&mut self) -> Outcome {
        let Some(symbol) = self.store.top().as_symbol() else {
            return Err(Failure::wrong("only symbols are defined"));
        };
        let is_new = symbol.value() == Value::constant(crate::heap::Constant::Unbound);
        symbol.set_value(self.store.get(Register::Value));
        if is_new {
            // The table of symbols does not keep it.
            self.store.push(self.store.get(Register::Globals))?;
            self.store.make_pair(0)?;
            self.store.pop_to(Register::Globals);
        } else {
            self.store.pop();
        }
        Ok(())
    }
}

/// `(set! name value)`
fn set(lisp: &mut Lisp<'_, '_>) -> Outcome<Step> {
    lisp.store.push(lisp.store.get(Register::Scope))?;
    let symbol = part(lisp, 1)?;
    symbol.as_symbol().ok_or_else(|| Failure::wrong("only symbols are assigned"))?;
    lisp.store.push(symbol)?;
    lisp.store.set(Register::Expression, part(lisp, 2)?);
    lisp.frames.push(Frame::Set);
    Ok(Step::Evaluate)
}

/// Assigns the value to the symbol of `scope symbol`.
pub(crate) fn finish_set(lisp: &mut Lisp<'_, '_>) -> Outcome<Step> {
    let store = &lisp.store;
    let value = store.get(Register::Value);
    let Some(symbol) = store.pop().as_symbol() else {
        return Err(Failure::wrong("only symbols are assigned"));
    };
    let mut scope = store.pop();
    store.set(Register::Value, Value::UNSPECIFIED);
    while let View::Scope(inner) = scope.view() {
        if let Some(place) = inner.find(symbol) {
            place.set(value);
            return Ok(Step::Return);
        }
        scope = inner.outer();
    }
    if symbol.value() == Value::constant(crate::heap::Constant::Unbound) {
        return Err(Failure::wrong(format!("set!: {} is not defined", symbol.name())));
    }
    symbol.set_value(value);
    Ok(Step::Return)
}

/// `(lambda (parameter ...) expression ...)`
fn lambda(lisp: &mut Lisp<'_, '_>) -> Outcome<Step> {
    lisp.store.push(part(lisp, 1)?)?;
    make_closure(lisp, Kind::Function)?;
    Ok(Step::Return)
}

/// `(defmacro name (parameter ...) expression ...)`
fn define_macro(lisp: &mut Lisp<'_, '_>) -> Outcome<Step> {
    lisp.store.push(lisp.store.get(Register::Scope))?;
    lisp.store.push(part(lisp, 1)?)?;
    lisp.store.push(part(lisp, 2)?)?;
    // The body begins one part later than that of a function.
    lisp.store.set(Register::Expression, rest(lisp, 1)?);
    make_closure(lisp, Kind::Macro)?;
    finish_define(lisp)
}

/// Makes a function of the parameters on top of the stack, which it takes off, and of the parts of the expression behind
/// the second.
fn make_closure(lisp: &mut Lisp<'_, '_>, kind: Kind) -> Outcome {
    let mut names = lisp.store.top();
    while let Some(pair) = names.as_pair() {
        pair.first().as_symbol().ok_or_else(|| Failure::wrong("parameters are symbols"))?;
        names = pair.rest();
    }
    if !names.is_nil() && names.as_symbol().is_none() {
        return Err(Failure::wrong("parameters are symbols"));
    }
    lisp.store.push(rest(lisp, 2)?)?;
    lisp.store.push(lisp.store.get(Register::Scope))?;
    lisp.store.make(kind, 0)?;
    lisp.store.pop_to(Register::Value);
    Ok(())
}
