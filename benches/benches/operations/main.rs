//! Single operations, to be counted from outside: `benches/instructions` runs this
//! under callgrind and prints what design documents quote.
//!
//! `operations --list` prints the names; `operations NAME COUNT` runs one of them COUNT
//! times. What is counted runs in [`counted`], everything else around it.
//! (design/frames.md `.req.constant`, design/pool-tlsf.md `.req.constant`.)

mod any_size;
mod arenas;
mod global;
mod points;
mod sampled;
mod stacks;
mod telemetry;

/// An operation and its name. The function prepares it and runs it as often as
/// asked.
type Operation = (&'static str, fn(usize));

/// Runs an operation in a function of its own, by which callgrind knows it: an entry and
/// a return are counted too.
#[inline(never)]
fn counted<R>(operation: impl FnOnce() -> R) -> R {
    operation()
}

fn nothing(count: usize) {
    for round in 0..count {
        counted(|| core::hint::black_box(round));
    }
}

fn operations() -> impl Iterator<Item = Operation> {
    let nothing: Operation = ("nothing", nothing);
    [nothing]
        .into_iter()
        .chain(stacks::OPERATIONS)
        .chain(any_size::OPERATIONS)
        .chain(arenas::OPERATIONS)
        .chain(sampled::OPERATIONS)
        .chain(global::OPERATIONS)
        .chain(points::OPERATIONS)
        .chain(telemetry::OPERATIONS)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [name, count, ..] if !name.starts_with("--") => {
            let (_, run) = operations().find(|(known, _)| known == name).expect("the name of an operation");
            run(count.parse().expect("a count"));
        }
        // `cargo bench` runs this, too.
        _ => operations().for_each(|(name, _)| println!("{name}")),
    }
}
