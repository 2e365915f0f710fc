//! The printer: values become text. It has a list of what is left to print, so nesting takes no stack, and it stops after
//! that many characters, so that cycles end.

use core::fmt::Write;

use crate::builtins;
use crate::heap::{Constant, Value, Vector, View};

/// The most characters of a value.
const MOST: usize = 10_000;

enum Left<'s> {
    Value(Value<'s>),
    /// What follows the first part of a pair.
    Rest(Value<'s>),
    /// The elements of a vector from this one on.
    Elements(Vector<'s>, usize),
    Text(&'static str),
}

/// The text of a value, as a program has it.
pub(crate) fn written(value: Value<'_>) -> String {
    print(value, true)
}

/// The text of a value, as people read it: strings have no marks.
pub(crate) fn displayed(value: Value<'_>) -> String {
    print(value, false)
}

fn print(value: Value<'_>, has_marks: bool) -> String {
    if let View::Text(text) = value.view()
        && !has_marks
    {
        return text.get().to_owned();
    }
    let (mut text, mut left) = (String::new(), vec![Left::Value(value)]);
    while let Some(next) = left.pop() {
        if text.len() > MOST {
            text.push_str("...");
            break;
        }
        match next {
            Left::Text(part) => text.push_str(part),
            Left::Rest(rest) => match rest.view() {
                View::Constant(Constant::Nil) => text.push(')'),
                View::Pair(pair) => {
                    text.push(' ');
                    left.extend([Left::Rest(pair.rest()), Left::Value(pair.first())]);
                }
                _ => left.extend([Left::Text(")"), Left::Value(rest), Left::Text(" . ")]),
            },
            Left::Elements(vector, index) => match vector.get(index) {
                None => text.push(')'),
                Some(element) => {
                    text.push_str(if index > 0 { " " } else { "" });
                    left.extend([Left::Elements(vector, index + 1), Left::Value(element)]);
                }
            },
            Left::Value(value) => match value.view() {
                View::Pair(pair) => {
                    text.push('(');
                    left.extend([Left::Rest(pair.rest()), Left::Value(pair.first())]);
                }
                View::Vector(vector) => {
                    text.push_str("#(");
                    left.push(Left::Elements(vector, 0));
                }
                _ => print_atom(&mut text, value, has_marks),
            },
        }
    }
    text
}

fn print_atom(text: &mut String, value: Value<'_>, has_marks: bool) {
    let written = match value.view() {
        View::Number(number) => write!(text, "{number}"),
        View::Symbol(symbol) => write!(text, "{}", symbol.name()),
        View::Text(string) if has_marks => write!(text, "{:?}", string.get()),
        View::Text(string) => write!(text, "{}", string.get()),
        View::Function(_) => write!(text, "#<function>"),
        View::Macro(_) => write!(text, "#<macro>"),
        View::Table(table) => write!(text, "#<table {}>", table.count()),
        View::Port(number) => write!(text, "#<port {number}>"),
        View::Scope(_) | View::Hidden | View::Pair(_) | View::Vector(_) => write!(text, "#<hidden>"),
        View::Constant(constant) => match constant {
            Constant::Nil => write!(text, "()"),
            Constant::True => write!(text, "#t"),
            Constant::False => write!(text, "#f"),
            Constant::End => write!(text, "#<end>"),
            Constant::Builtin(number) => write!(text, "#<builtin {}>", builtins::name_of(number)),
            Constant::Form(_) => write!(text, "#<form>"),
            Constant::Unbound | Constant::Unspecified | Constant::Empty | Constant::Deleted => {
                write!(text, "#<nothing>")
            }
        },
    };
    debug_assert!(written.is_ok(), "strings take all text");
}
