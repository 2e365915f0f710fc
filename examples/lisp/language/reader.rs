//! The reader: text becomes lists. Lists that are not closed yet are on the stack of the store, so they may be nested as
//! deep as that has room.

use crate::failure::{Failure, Outcome};
use crate::heap::{Constant, Store, Value};

/// What was found in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An expression, which is on the stack.
    Expression,
    /// Nothing more.
    End,
    /// The begin of an expression, in this line. It goes on in text that is not there yet.
    Part { line: usize },
}

/// Text that is read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    text: String,
    at: usize,
    line: usize,
}

/// What is read when an expression within is complete.
#[derive(Clone, Copy, Debug)]
enum Open {
    /// The elements of a list are on the stack from this place on. After a dot, so many come before it.
    List { place: usize, line: usize, before_dot: Option<usize> },
    /// The symbol of a mark, such as `quote`, is on the stack.
    Mark { line: usize },
}

enum Token<'t> {
    Open,
    Close,
    Mark(&'static str),
    Text(String),
    Atom(&'t str),
}

impl Reader {
    pub(crate) fn new(text: String) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// Adds text to what is read.
    pub(crate) fn add(&mut self, text: &str) {
        self.text.drain(..self.at);
        self.at = 0;
        self.text.push_str(text);
        self.line = self.line.max(1);
    }

    /// The line that is read.
    pub(crate) const fn line(&self) -> usize {
        self.line
    }

    /// Leaves out the rest of the text.
    pub(crate) fn skip_all(&mut self) {
        self.line += self.text[self.at..].matches('\n').count();
        self.at = self.text.len();
    }

    /// Reads an expression, and puts it on the stack. If it is not whole, it is read again from its begin when there
    /// is more text.
    pub(crate) fn read(&mut self, store: &mut Store<'_, '_>) -> Outcome<Found> {
        self.skip_space();
        let (at, line, depth) = (self.at, self.line, store.depth());
        let found = self.read_whole(store);
        if !matches!(found, Ok(Found::Expression)) {
            store.cut(depth);
        }
        if let Ok(Found::Part { .. }) = found {
            (self.at, self.line) = (at, line);
        }
        found
    }

    fn read_whole(&mut self, store: &mut Store<'_, '_>) -> Outcome<Found> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.skip_space();
            let line = self.line;
            let is_at_end = self.at == self.text.len();
            let Some(token) = self.token()? else {
                return Ok(match open.first() {
                    Some(Open::List { line, .. } | Open::Mark { line }) => Found::Part { line: *line },
                    None if is_at_end => Found::End,
                    None => Found::Part { line },
                });
            };
            match token {
                Token::Open => {
                    open.push(Open::List { place: store.depth(), line, before_dot: None });
                    continue;
                }
                Token::Mark(name) => {
                    store.intern(name)?;
                    open.push(Open::Mark { line });
                    continue;
                }
                Token::Atom(".") => {
                    let Some(Open::List { place, before_dot: before_dot @ None, .. }) = open.last_mut()
                    else {
                        return Err(Failure::wrong("a dot without a list"));
                    };
                    *before_dot = Some(store.depth() - *place);
                    continue;
                }
                Token::Close => close(store, open.pop())?,
                Token::Text(text) => store.make_text(&text)?,
                Token::Atom(atom) => read_atom(store, atom)?,
            }
            while let Some(Open::Mark { line }) = open.last() {
                store.make_list(2, *line)?;
                open.pop();
            }
            if open.is_empty() {
                return Ok(Found::Expression);
            }
        }
    }

    fn skip_space(&mut self) {
        let mut is_comment = false;
        for (at, character) in self.text[self.at..].char_indices() {
            match character {
                '\n' => (self.line, is_comment) = (self.line + 1, false),
                ';' => is_comment = true,
                _ if is_comment || character.is_whitespace() => {}
                _ => {
                    self.at += at;
                    return;
                }
            }
        }
        self.at = self.text.len();
    }

    /// The next token; `None` if the text ends before or in it.
    fn token(&mut self) -> Outcome<Option<Token<'_>>> {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '\'' => (Token::Mark("quote"), 1),
            '`' => (Token::Mark("quasiquote"), 1),
            ',' if rest.starts_with(",@") => (Token::Mark("unquote-splicing"), 2),
            ',' => (Token::Mark("unquote"), 1),
            '"' => {
                let Some((text, length)) = read_text(rest) else { return Ok(None) };
                self.line += rest[..length].matches('\n').count();
                (Token::Text(text), length)
            }
            _ => {
                let is_end = |c: char| c.is_whitespace() || "()'`,\";".contains(c);
                let length = rest.find(is_end).unwrap_or(rest.len());
                (Token::Atom(&rest[..length]), length)
            }
        };
        self.at += length;
        Ok(Some(token))
    }
}

/// The string that a text begins with, and how long it is there.
fn read_text(rest: &str) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1);
    loop {
        match characters.next()? {
            (at, '"') => return Some((text, at + 1)),
            (_, '\\') => text.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            (_, character) => text.push(character),
        }
    }
}

fn read_atom(store: &mut Store<'_, '_>, atom: &str) -> Outcome {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match atom {
        "#t" => store.push(Value::constant(Constant::True)),
        "#f" => store.push(Value::FALSE),
        _ if is_number(atom.strip_prefix('-').unwrap_or(atom)) => {
            let number = atom.parse().ok().and_then(Value::number);
            store.push(number.ok_or_else(|| Failure::wrong(format!("{atom} has too many digits")))?)
        }
        _ => store.intern(atom),
    }
}

/// Makes a list of what lies on the stack since it was opened.
fn close(store: &mut Store<'_, '_>, open: Option<Open>) -> Outcome {
    let Some(Open::List { place, line, before_dot }) = open else {
        return Err(Failure::wrong("a parenthesis is closed that was not opened"));
    };
    let count = store.depth() - place;
    match before_dot {
        None => store.make_list(count, line),
        Some(before) if before > 0 && count == before + 1 => {
            (0..before).try_for_each(|_| store.make_pair(line))
        }
        Some(_) => Err(Failure::wrong("a dot has expressions before it, and one behind it")),
    }
}
