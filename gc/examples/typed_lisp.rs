//! A small Lisp whose values are typed objects: all of it is safe code.
//!
//! It evaluates a program, expression by expression. Between two of them only the definitions are rooted, and
//! the heap is collected when that is due.

use core::error::Error;
use core::time::Duration;
use std::collections::VecDeque;

use tripoint_core::{ClientArena, ClientArenaOptions, SymmetricFence};
use tripoint_gc::{
    Gc, Heap, HeapOptions, Inside, Link, Policy, Rooted, SweptOptions, TypedObjects, object_types,
};

object_types! {
    /// A value: an atom, or a pair.
    #[derive(Clone, Copy)]
    enum Value<'g> {
        Nil,
        Number(i64),
        Symbol(Gc<'g, str>),
        Pair(Gc<'g, Pair<'g>>),
        Closure(Gc<'g, Closure<'g>>),
    }

    struct Pair<'g> {
        first: Value<'g>,
        rest: Value<'g>,
    }

    struct Closure<'g> {
        parameters: Value<'g>,
        body: Value<'g>,
        scope: Gc<'g, Scope<'g>>,
    }

    /// Names and their values: the newest first.
    struct Scope<'g> {
        bindings: Link<'g, Binding<'g>>,
        outer: Option<Gc<'g, Scope<'g>>>,
    }

    struct Binding<'g> {
        name: Gc<'g, str>,
        value: Value<'g>,
        next: Option<Gc<'g, Binding<'g>>>,
    }
}

type In<'g, 'm> = Inside<'g, &'m ClientArena<'m>, SymmetricFence>;
type Outcome<T> = Result<T, Box<dyn Error>>;

fn list<'g>(inside: &In<'g, '_>, items: &[Value<'g>]) -> Outcome<Value<'g>> {
    items
        .iter()
        .rev()
        .try_fold(Value::Nil, |rest, &first| Ok(Value::Pair(inside.alloc(Pair { first, rest })?)))
}

fn items(mut value: Value<'_>) -> Vec<Value<'_>> {
    let mut items = Vec::new();
    while let Value::Pair(pair) = value {
        items.push(pair.first);
        value = pair.rest;
    }
    items
}

/// Reads one expression.
fn read<'g>(inside: &In<'g, '_>, words: &mut VecDeque<&str>) -> Outcome<Value<'g>> {
    match words.pop_front().ok_or("the program ends within an expression")? {
        "(" => {
            let mut found = Vec::new();
            while words.front() != Some(&")") {
                found.push(read(inside, words)?);
            }
            words.pop_front();
            list(inside, &found)
        }
        word => match word.parse() {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) => Ok(Value::Symbol(inside.text(word)?)),
        },
    }
}

fn define<'g>(
    inside: &In<'g, '_>,
    scope: Gc<'g, Scope<'g>>,
    name: Gc<'g, str>,
    value: Value<'g>,
) -> Outcome<()> {
    let binding = inside.alloc(Binding { name, value, next: scope.bindings.get() })?;
    scope.bindings.set(inside, binding);
    Ok(())
}

fn look_up<'g>(scope: Gc<'g, Scope<'g>>, name: &str) -> Option<Value<'g>> {
    let scopes = core::iter::successors(Some(scope), |scope| scope.outer);
    let mut bindings =
        scopes.flat_map(|scope| core::iter::successors(scope.bindings.get(), |binding| binding.next));
    bindings.find(|binding| &*binding.name == name).map(|binding| binding.value)
}

fn evaluate<'g>(inside: &In<'g, '_>, scope: Gc<'g, Scope<'g>>, value: Value<'g>) -> Outcome<Value<'g>> {
    let pair = match value {
        Value::Symbol(name) => {
            return look_up(scope, &name).ok_or_else(|| format!("{} is not defined", &*name).into());
        }
        Value::Pair(pair) => pair,
        atom => return Ok(atom),
    };
    let form = if let Value::Symbol(name) = pair.first { name.get() } else { "" };
    let arguments = items(pair.rest);
    match (form, &*arguments) {
        ("define", &[Value::Symbol(name), value]) => {
            define(inside, scope, name, evaluate(inside, scope, value)?)?;
            Ok(Value::Nil)
        }
        ("lambda", &[parameters, body]) => {
            Ok(Value::Closure(inside.alloc(Closure { parameters, body, scope })?))
        }
        ("if", &[condition, then, otherwise]) => match evaluate(inside, scope, condition)? {
            Value::Nil => evaluate(inside, scope, otherwise),
            _ => evaluate(inside, scope, then),
        },
        _ => {
            let values: Result<Vec<_>, _> =
                arguments.iter().map(|&argument| evaluate(inside, scope, argument)).collect();
            match (form, &*values?) {
                ("+", &[Value::Number(a), Value::Number(b)]) => Ok(Value::Number(a.wrapping_add(b))),
                ("-", &[Value::Number(a), Value::Number(b)]) => Ok(Value::Number(a.wrapping_sub(b))),
                ("<", &[Value::Number(a), Value::Number(b)]) if a < b => Ok(Value::Number(1)),
                ("<", &[Value::Number(_), Value::Number(_)]) => Ok(Value::Nil),
                ("list", values) => list(inside, values),
                (_, values) => apply(inside, evaluate(inside, scope, pair.first)?, values),
            }
        }
    }
}

fn apply<'g>(inside: &In<'g, '_>, function: Value<'g>, arguments: &[Value<'g>]) -> Outcome<Value<'g>> {
    let Value::Closure(closure) = function else { return Err("only functions are called".into()) };
    let scope = inside.alloc(Scope { bindings: Link::default(), outer: Some(closure.scope) })?;
    for (parameter, &argument) in items(closure.parameters).into_iter().zip(arguments) {
        let Value::Symbol(name) = parameter else { return Err("parameters are names".into()) };
        define(inside, scope, name, argument)?;
    }
    evaluate(inside, scope, closure.body)
}

fn show(value: Value<'_>) -> String {
    match value {
        Value::Nil => "()".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Symbol(name) => name.to_string(),
        Value::Closure(_) => "a function".to_owned(),
        Value::Pair(_) => {
            let items: Vec<_> = items(value).into_iter().map(show).collect();
            format!("({})", items.join(" "))
        }
    }
}

const PROGRAM: &str = "
    (define fib (lambda (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))))
    (define count (lambda (n) (if (< n 1) 0 (+ 1 (count (- n 1))))))
    (count 100)
    (fib 15)
    (list (fib 10) (quoted 1))
    (define quoted (lambda (x) (list x x)))
    (list (fib 10) (quoted 1))
";

fn main() -> Outcome<()> {
    let mut memory = Box::new_uninit_slice(8 << 20);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    let heap = Heap::create(&arena, HeapOptions::default())?;
    heap.set_policy(Policy::with_capacity(64 << 10));
    let objects = TypedObjects::create(&heap, SweptOptions::default())?;
    let mut mutator = objects.register()?;

    let globals: Rooted<'_, Scope<'static>> = mutator.enter(|inside| -> Outcome<_> {
        let globals = inside.alloc(Scope { bindings: Link::default(), outer: None })?;
        Ok(objects.root(inside, globals)?)
    })?;
    let program = PROGRAM.replace('(', " ( ").replace(')', " ) ");
    let mut words: VecDeque<_> = program.split_whitespace().collect();
    let mut results = Vec::new();
    while !words.is_empty() {
        let result = mutator.enter(|inside| -> Outcome<_> {
            let expression = read(inside, &mut words)?;
            Ok(show(evaluate(inside, globals.get(inside)?, expression)?))
        });
        results.push(result.unwrap_or_else(|error| error.to_string()));
    }
    println!("{results:#?}");
    assert_eq!(results[2..], ["100", "610", "quoted is not defined", "()", "(55 (1 1))"]);

    println!("{} collections were due", heap.counts().collections.get());
    assert_ne!(heap.counts().collections.get(), 0);
    drop(globals);
    mutator.collect(Duration::MAX)?;
    drop(mutator);
    heap.collect(Duration::MAX)?;
    assert_eq!(objects.sizes().total, 0);
    Ok(())
}
