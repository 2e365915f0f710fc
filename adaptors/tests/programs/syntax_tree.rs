//! A parser: text to tokens to a tree of boxes, and its value.

use tripoint_adaptors::PoolAllocator;
use tripoint_core::{ManualPool, PoolBox};

use super::{Numbers, PoolVec};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Token {
    Number(i64),
    Symbol(u8),
}

type Link<'p, P> = PoolBox<'p, Tree<'p, P>, P>;

enum Tree<'p, P: ManualPool> {
    Number(i64),
    Binary(u8, Link<'p, P>, Link<'p, P>),
}

impl<P: ManualPool> Tree<'_, P> {
    fn value(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            Self::Binary(operator, left, right) => apply(*operator, left.value(), right.value()),
        }
    }
}

fn apply(operator: u8, left: i64, right: i64) -> i64 {
    match operator {
        b'+' => left.wrapping_add(right),
        b'-' => left.wrapping_sub(right),
        _ => left.wrapping_mul(right),
    }
}

struct Parser<'p, P: ManualPool> {
    tokens: PoolVec<'p, Token, P>,
    next: usize,
    pool: &'p P,
}

impl<'p, P: ManualPool> Parser<'p, P> {
    fn new(text: &str, pool: &'p P) -> Self {
        let mut tokens = PoolVec::new_in(PoolAllocator::new(pool));
        for byte in text.bytes() {
            match (byte, tokens.last_mut()) {
                (b'0'..=b'9', Some(Token::Number(number))) => *number = *number * 10 + i64::from(byte - b'0'),
                (b'0'..=b'9', _) => tokens.push(Token::Number(i64::from(byte - b'0'))),
                _ => tokens.push(Token::Symbol(byte)),
            }
        }
        Self { tokens, next: 0, pool }
    }

    fn take(&mut self) -> Token {
        self.next += 1;
        self.tokens[self.next - 1]
    }

    fn takes_one_of(&mut self, symbols: &[u8]) -> Option<u8> {
        match self.tokens.get(self.next) {
            Some(&Token::Symbol(symbol)) if symbols.contains(&symbol) => {
                self.next += 1;
                Some(symbol)
            }
            _ => None,
        }
    }

    fn boxed(&self, tree: Tree<'p, P>) -> Link<'p, P> {
        PoolBox::new_in(tree, self.pool).unwrap()
    }

    fn sum(&mut self) -> Link<'p, P> {
        let mut left = self.product();
        while let Some(operator) = self.takes_one_of(b"+-") {
            let right = self.product();
            left = self.boxed(Tree::Binary(operator, left, right));
        }
        left
    }

    fn product(&mut self) -> Link<'p, P> {
        let mut left = self.factor();
        while let Some(operator) = self.takes_one_of(b"*") {
            let right = self.factor();
            left = self.boxed(Tree::Binary(operator, left, right));
        }
        left
    }

    fn factor(&mut self) -> Link<'p, P> {
        match self.take() {
            Token::Number(number) => self.boxed(Tree::Number(number)),
            Token::Symbol(_) => {
                let inner = self.sum();
                assert_eq!(self.take(), Token::Symbol(b')'));
                inner
            }
        }
    }
}

/// A text and its value, generated together.
fn expression(numbers: &mut Numbers, depth: u32) -> (String, i64) {
    if depth == 0 {
        let number = numbers.below(1000) as i64;
        return (number.to_string(), number);
    }
    let (left, left_value) = expression(numbers, depth - 1);
    let (right, right_value) = expression(numbers, depth - 1);
    let operator = b"+-*"[numbers.below(3) as usize];
    let text = format!("({left}{}{right})", char::from(operator));
    (text, apply(operator, left_value, right_value))
}

pub(crate) fn run<P: ManualPool>(pool: &P) {
    assert_eq!(Parser::new("2+3*4-5*(6-1)-1", pool).sum().value(), -12);
    let mut numbers = Numbers::new(5);
    for depth in 0..if cfg!(miri) { 4 } else { 8 } {
        let (text, expected) = expression(&mut numbers, depth);
        assert_eq!(Parser::new(&text, pool).sum().value(), expected, "{text}");
    }
}
