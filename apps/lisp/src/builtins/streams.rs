//! Ports: what programs read from and write to.

use super::{Builtin, compute};
use crate::failure::{Failure, Outcome};
use crate::heap::{Constant, Register, Value};
use crate::language::calls::Arguments;
use crate::language::machine::Lisp;
use crate::language::printer::{displayed, written};
use crate::ports::Stream;

pub(super) const BUILTINS: &[Builtin] = &[
    compute("open-input-file", 1..=1, |lisp, arguments| {
        let stream = Stream::open_file(lisp.text(arguments, 0)?.get())?;
        open(lisp, stream)
    }),
    compute("open-output-file", 1..=1, |lisp, arguments| {
        let stream = Stream::create_file(lisp.text(arguments, 0)?.get())?;
        open(lisp, stream)
    }),
    compute("open-input-string", 1..=1, |lisp, arguments| {
        let stream = Stream::of_text(lisp.text(arguments, 0)?.get());
        open(lisp, stream)
    }),
    compute("open-output-string", 0..=0, |lisp, _| open(lisp, Stream::Text(String::new()))),
    compute("read-line", 1..=1, read_line),
    compute("write-string", 2..=2, |lisp, arguments| {
        let port = lisp.port(arguments, 1)?;
        let text = displayed(lisp.argument(arguments, 0));
        lisp.ports.stream(port)?.write(&text)?;
        lisp.leave(Value::UNSPECIFIED)
    }),
    compute("get-output-string", 1..=1, |lisp, arguments| {
        let port = lisp.port(arguments, 0)?;
        let text = lisp.ports.stream(port)?.text()?.to_owned();
        lisp.store.make_text(&text)?;
        lisp.leave_top()
    }),
    // Whether it was open.
    compute("close-port", 1..=1, |lisp, arguments| {
        let port = lisp.port(arguments, 0)?;
        let was_open = lisp.ports.close(port)?;
        lisp.leave_truth(was_open)
    }),
    compute("port-open?", 1..=1, |lisp, arguments| {
        let port = lisp.port(arguments, 0)?;
        lisp.leave_truth(lisp.ports.is_open(port))
    }),
    // How many are open.
    compute("open-ports", 0..=0, |lisp, _| lisp.leave(Value::count(lisp.ports.open_count()))),
    // How many were closed because nothing referred to them any more.
    compute("dropped-ports", 0..=0, |lisp, _| lisp.leave(Value::count(lisp.ports.dropped_count()))),
    compute("display", 1..=1, |lisp, arguments| {
        print(&displayed(lisp.argument(arguments, 0)))?;
        lisp.leave(Value::UNSPECIFIED)
    }),
    compute("write", 1..=1, |lisp, arguments| {
        print(&written(lisp.argument(arguments, 0)))?;
        lisp.leave(Value::UNSPECIFIED)
    }),
    compute("newline", 0..=0, |lisp, _| {
        print("\n")?;
        lisp.leave(Value::UNSPECIFIED)
    }),
];

/// Leaves a port of a stream.
fn open(lisp: &mut Lisp<'_, '_>, stream: Stream) -> Outcome {
    let number = lisp.ports.open(stream);
    let made = lisp.store.make_port(number);
    if made.is_err() {
        // Nothing refers to it, and the heap does not know it.
        lisp.ports.forget(number);
    }
    made?;
    lisp.leave_top()
}

/// The next line of a port, without its end, or the end of the port.
fn read_line(lisp: &mut Lisp<'_, '_>, arguments: Arguments) -> Outcome {
    let port = lisp.port(arguments, 0)?;
    match lisp.ports.stream(port)?.read_line()? {
        None => lisp.store.set(Register::Value, Value::constant(Constant::End)),
        Some(line) => {
            lisp.store.make_text(&line)?;
            lisp.leave_top()?;
        }
    }
    Ok(())
}

fn print(text: &str) -> Outcome {
    use std::io::Write;
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::wrong)
}
