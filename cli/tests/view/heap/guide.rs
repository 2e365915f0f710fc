//! The program whose heap the guide shows, and the test that the page has what the command prints of it.

use core::time::Duration;
use std::path::Path;

use serde_json::Value;
use tripoint_gc::{Gc, Link, Rooted, object_types};

use super::child::{self, In, Objects};
use super::{Stays, run};

object_types! {
    /// An order, and the one behind it.
    pub struct Order<'g> { number: u64, next: Link<'g, Order<'g>> }

    /// The orders of one price.
    pub struct Level<'g> { price: u64, first: Link<'g, Order<'g>> }

    /// Four prices.
    pub struct Book<'g> { levels: [Link<'g, Level<'g>>; 4] }
}

fn orders<'g>(inside: &In<'g, '_>, count: u64) -> Option<Gc<'g, Order<'g>>> {
    (0..count).fold(None, |next, number| Some(inside.alloc(Order { number, next: Link::new(next) }).unwrap()))
}

/// A book of orders that a collection has kept, and orders that were made since and have no place in it.
fn book<'o>(objects: &'o Objects<'_, '_>) -> Rooted<'o, Book<'static>> {
    let mut mutator = objects.register().unwrap();
    let book = mutator.enter(|inside| {
        let levels = [100, 101, 102, 103].map(|price| {
            let first = Link::new(orders(inside, 250));
            Link::new(Some(inside.alloc(Level { price, first }).unwrap()))
        });
        let book = inside.alloc(Book { levels }).unwrap();
        objects.root(inside, book).unwrap()
    });
    mutator.collect(Duration::MAX).unwrap();
    mutator.enter(|inside| _ = orders(inside, 40));
    core::mem::forget(mutator);
    book
}

/// What the child runs.
pub(super) fn child() {
    child::with_objects(|_, objects| {
        let book = book(objects);
        child::stay(&Value::Null);
        drop(book);
    });
}

/// What two programs of one name print alike: their words, without addresses and times, and with the module of the guide.
fn plain(text: &str) -> Vec<Vec<String>> {
    let word = |word: &str| {
        let word = word.replace(concat!(module_path!(), "::"), "orders::");
        let (number, rest) = word.split_at(word.find(',').unwrap_or(word.len()));
        if number.starts_with("0x") { format!("0x{rest}") } else { word }
    };
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| line.split_whitespace().map(word).collect()).collect()
}

/// (guide/src/command.md, "Look at the objects of a heap")
#[test]
fn the_guide_has_what_the_command_prints() {
    let child = Stays::start("guide");
    let process = child.child.id().to_string();
    let order = concat!(module_path!(), "::Order");
    let stopped = run(&["heap", "--path", order], Path::new(&process));
    assert_eq!((stopped.status, stopped.err.as_str()), (Some(0), ""), "{}", stopped.out);
    let as_it_runs = run(&["heap", "--path", order, "--no-stop"], Path::new(&process));
    let (first, rest) = stopped.out.split_once('\n').unwrap();
    assert!(first.starts_with(&format!("process {process} was stopped for ")), "{first}");
    assert_eq!(plain(rest), plain(&as_it_runs.out), "the process waits");

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guide/src/command.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("## Look at the objects of a heap\n").unwrap();
    let (_, shown) = section.split_once("```text\n").unwrap();
    let (shown, _) = shown.split_once("```\n").unwrap();
    let (of_stop, of_program) = shown.split_once('\n').unwrap();
    assert!(of_stop.starts_with("process 4711 was stopped for ") && of_stop.ends_with(" ms, and goes on"));
    let (program, of_heap) = of_program.split_once('\n').unwrap();
    assert_eq!(program, "/home/ann/orders/target/release/orders");
    let (_, found) = rest.split_once('\n').unwrap();
    assert_eq!(plain(of_heap), plain(found), "the page should have\n{found}");
}
