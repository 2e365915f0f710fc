//! Reading a program and evaluating it, expression by expression.

use std::io::{BufRead, IsTerminal, Write};

use crate::failure::{Failure, Outcome};
use crate::heap::{Constant, Register, Store, Value};
use crate::language::machine::Lisp;
use crate::language::printer::written;
use crate::language::reader::{Found, Reader};

/// What the interpreter provides in its own language.
const PRELUDE: &str = include_str!("prelude.lisp");

/// An interpreter that knows the prelude.
pub(crate) fn begin<'p, 'h>(store: Store<'p, 'h>) -> Outcome<Lisp<'p, 'h>> {
    let mut lisp = Lisp::new(store)?;
    let mut reader = Reader::new(PRELUDE.to_owned());
    while read(&mut lisp, &mut reader)? == Found::Expression {
        lisp.evaluate()?;
    }
    Ok(lisp)
}

/// Evaluates a program. Returns how many of its expressions failed.
pub(crate) fn run(lisp: &mut Lisp<'_, '_>, name: &str, program: String) -> usize {
    let (mut reader, mut failures) = (Reader::new(program), 0);
    loop {
        let result = match read(lisp, &mut reader) {
            Ok(Found::Expression) => lisp.evaluate(),
            Ok(Found::End) => return failures,
            Ok(Found::Part { line }) => {
                lisp.line = line;
                reader.skip_all();
                Err(Failure::wrong("the program ends in the expression that begins here"))
            }
            Err(failure) => {
                lisp.line = reader.line();
                reader.skip_all();
                Err(failure)
            }
        };
        finish(lisp);
        if let Err(failure) = result {
            failures += 1;
            eprintln!("{name}:{}: {failure}", lisp.line);
        }
    }
}

/// Evaluates what is typed, and prints each value.
pub(crate) fn talk(lisp: &mut Lisp<'_, '_>, input: &mut dyn BufRead) {
    let (mut reader, is_person) = (Reader::default(), std::io::stdin().is_terminal());
    let mut prompt = "> ";
    let mut line = String::new();
    loop {
        if is_person {
            print!("{prompt}");
            // If it cannot be written, there is nowhere else to report that.
            let _ = std::io::stdout().flush();
        }
        line.clear();
        let count = input.read_line(&mut line).unwrap_or(0);
        reader.add(&line);
        prompt = if answer(lisp, &mut reader) { "> " } else { "  " };
        if count == 0 {
            if prompt != "> " {
                println!("error: line {}: the expression is not whole", reader.line());
            }
            return;
        }
    }
}

/// Evaluates the expressions that there are. Returns whether none is left that is not whole.
fn answer(lisp: &mut Lisp<'_, '_>, reader: &mut Reader) -> bool {
    loop {
        let result = match read(lisp, reader) {
            Ok(Found::Expression) => lisp.evaluate(),
            Ok(Found::End) => return true,
            Ok(Found::Part { .. }) => return false,
            Err(failure) => {
                lisp.line = reader.line();
                reader.skip_all();
                Err(failure)
            }
        };
        match result {
            Ok(()) => {
                let value = lisp.store.get(Register::Value);
                if value != Value::constant(Constant::Unspecified) {
                    println!("{}", written(value));
                }
            }
            Err(failure) => println!("error: line {}: {failure}", lisp.line),
        }
        finish(lisp);
    }
}

/// Reads an expression.
fn read(lisp: &mut Lisp<'_, '_>, reader: &mut Reader) -> Outcome<Found> {
    let found = reader.read(&mut lisp.store);
    lisp.line = reader.line();
    found
}

/// What is done between two expressions.
fn finish(lisp: &mut Lisp<'_, '_>) {
    lisp.ports.close_dropped(&lisp.store);
}
