//! A flame graph: allocated bytes by call stack, the outermost function at the bottom.

use core::hash::{Hash as _, Hasher as _};
use std::collections::BTreeMap;
use std::hash::DefaultHasher;

use crate::plotting::{Axis, Block, Chart, Content, Theme, Unit};
use crate::summary::Stack;

/// Blocks that are narrower than this part of the whole are left out.
const NARROWEST: f64 = 0.002;

/// How many calls deep it goes.
const DEEPEST: usize = 40;

/// In place of the calls that are deeper.
const DEEPER: &str = "[deeper calls are not drawn]";

/// A function with those that it called.
#[derive(Default)]
struct Node<'s> {
    bytes: f64,
    called: BTreeMap<&'s str, Node<'s>>,
}

impl<'s> Node<'s> {
    fn add(&mut self, bytes: f64, names: &[&'s str]) {
        self.bytes += bytes;
        if let [name, rest @ ..] = names {
            self.called.entry(name).or_default().add(bytes, rest);
        }
    }

    /// Draws what was called from here, side by side from `left` on.
    fn draw(&self, left: f64, depth: usize, least: f64, blocks: &mut Vec<Block>) {
        let mut left = left;
        for (name, node) in &self.called {
            if node.bytes >= least {
                blocks.push(Block {
                    x: (left, left + node.bytes),
                    y: (depth as f64, depth as f64 + 1.0),
                    colour: colour(name),
                    strength: 0.7,
                    text: short(name),
                });
                node.draw(left, depth + 1, least, blocks);
            }
            left += node.bytes;
        }
    }
}

pub(super) fn charts(stacks: &[Stack]) -> Vec<Chart> {
    let mut root = Node::default();
    for stack in stacks {
        let thread = core::iter::once(stack.thread.as_str());
        let functions = stack.outermost_first().map(|named| named.function.as_str());
        root.add(stack.bytes, &fitted(thread.chain(functions).collect()));
    }
    let mut blocks = Vec::new();
    root.draw(0.0, 0, root.bytes * NARROWEST, &mut blocks);
    vec![Chart {
        title: "Threads at the bottom, above each function those that it called".to_owned(),
        x: Axis::new("allocated, estimated from samples", Unit::Bytes),
        y: Axis::new("depth of calls", Unit::Count),
        moments: Vec::new(),
        content: Content::Blocks { names: Vec::new(), blocks },
        if_empty: "the recording has no samples; the program has to sample, with sites".to_owned(),
    }]
}

/// The outermost names, as many as are drawn.
fn fitted(mut names: Vec<&str>) -> Vec<&str> {
    if names.len() > DEEPEST {
        names.truncate(DEEPEST - 1);
        names.push(DEEPER);
    }
    names
}

/// The last two parts of a function's path, and what closures are in.
fn short(name: &str) -> String {
    let (mut depth, mut parts) = (0_i32, vec![0]);
    for (at, character) in name.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            ':' if depth == 0 && name[at..].starts_with("::") => parts.push(at + 2),
            _ => {}
        }
    }
    let is_plain = |at: &&usize| !name[**at..].starts_with("{{");
    let named = parts.iter().rev().filter(is_plain).nth(1).or(parts.first());
    name[named.copied().unwrap_or(0)..].to_owned()
}

/// A function has the same colour wherever it is.
fn colour(name: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    // Less than the number of colours.
    (hasher.finish() % (Theme::COLOURS as u64 - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_are_too_deep_to_be_drawn_are_one_block_that_says_so() {
        for calls in [DEEPEST - 1, DEEPEST, DEEPEST + 1, 2 * DEEPEST] {
            let names = fitted(vec!["f"; calls]);
            assert_eq!(names.len(), calls.min(DEEPEST));
            assert_eq!(names.last() == Some(&DEEPER), calls > DEEPEST);
        }
    }

    #[test]
    fn a_function_has_the_last_parts_of_its_path() {
        for (name, shown) in [
            ("main", "main"),
            ("order_book::levels::insert", "levels::insert"),
            ("a::b::Hot<c::L, d::S>::run", "Hot<c::L, d::S>::run"),
            ("a::b::spawn::{{closure}}::{{closure}}", "b::spawn::{{closure}}::{{closure}}"),
            ("<a::B as c::D>::e", "<a::B as c::D>::e"),
            ("hot 池::>", "hot 池::>"),
            ("", ""),
        ] {
            assert_eq!(short(name), shown);
        }
    }
}
