//! Reading a program and evaluating it, expression by expression.

use std::io::{BufRead, ErrorKind, IsTerminal, Write};

use crate::failure::{Failure, Outcome};
use crate::heap::{Constant, Register, Store, Value};
use crate::language::machine::Lisp;
use crate::language::printer::written;
use crate::language::reader::{Found, Reader};
use crate::ports::read_line;

/// What the interpreter provides in its own language.
const PRELUDE: &str = include_str!("../prelude.lisp");

/// An interpreter that knows the prelude.
pub(crate) fn begin<'p, 'h>(store: Store<'p, 'h>) -> Outcome<Lisp<'p, 'h>> {
    let mut lisp = Lisp::new(store)?;
    let mut reader = Reader::new(PRELUDE.to_owned());
    while read(&mut lisp, &mut reader)? == Found::Expression {
        lisp.evaluate()?;
    }
    Ok(lisp)
}

/// Evaluates a program, as far as it is UTF-8. Returns how many of its expressions failed.
pub(crate) fn run(lisp: &mut Lisp<'_, '_>, name: &str, program: &[u8]) -> usize {
    let begin = program.utf8_chunks().next();
    let (text, mut is_text) = begin.map_or(("", true), |part| (part.valid(), part.invalid().is_empty()));
    let (mut reader, mut failures) = (Reader::new(text.to_owned()), 0);
    loop {
        let result = match read(lisp, &mut reader) {
            Ok(Found::Expression) => lisp.evaluate(),
            Ok(Found::End | Found::Part { .. }) if !is_text => {
                is_text = true;
                reader.skip_all(&lisp.store);
                Err(Failure::wrong("from here on the program is not UTF-8"))
            }
            Ok(Found::End) => return failures,
            Ok(Found::Part { line }) => {
                lisp.line = line;
                reader.skip_all(&lisp.store);
                Err(Failure::wrong("the program ends in the expression that begins here"))
            }
            Err(failure) => {
                reader.skip_all(&lisp.store);
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

/// Evaluates what is typed, and prints each value. Returns whether all of it could be read.
pub(crate) fn talk(lisp: &mut Lisp<'_, '_>, input: &mut dyn BufRead) -> bool {
    let (mut reader, is_person) = (Reader::new(String::new()), std::io::stdin().is_terminal());
    let mut begun = None;
    loop {
        if is_person {
            print!("{}", if begun.is_none() { "> " } else { "  " });
            // If it cannot be written, there is nowhere else to report that.
            let _ = std::io::stdout().flush();
        }
        let line = read_line(input).or_else(|error| {
            println!("error: line {}: {error}", reader.line());
            reader.skip_all(&lisp.store);
            let is_over = error.kind() != ErrorKind::InvalidData;
            if is_over { Err(error) } else { Ok("\n".to_owned()) }
        });
        let Ok(line) = line else { return false };
        reader.add(&line);
        begun = answer(lisp, &mut reader);
        if line.is_empty() {
            if let Some(line) = begun {
                println!("error: line {line}: the expression is not whole");
            }
            return true;
        }
    }
}

/// Evaluates the expressions that there are. Returns the line in which one begins that is not whole.
fn answer(lisp: &mut Lisp<'_, '_>, reader: &mut Reader) -> Option<usize> {
    loop {
        let result = match read(lisp, reader) {
            Ok(Found::Expression) => lisp.evaluate(),
            Ok(Found::End) => return None,
            Ok(Found::Part { line }) => return Some(line),
            Err(failure) => {
                reader.skip_all(&lisp.store);
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
