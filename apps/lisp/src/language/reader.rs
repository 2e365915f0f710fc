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

/// The most bytes of a string that is read.
const TEXT_MOST: usize = 16 << 20;

/// Text that is read. An expression that is not whole is read on when there is more text.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    text: String,
    at: usize,
    line: usize,
    /// What was begun, and is not whole yet.
    open: Vec<Open>,
    /// How deep the stack was before it.
    ground: usize,
}

/// What is read when an expression within is complete.
#[derive(Debug)]
enum Open {
    /// The elements of a list are on the stack from this place on. After a dot, that many come before it.
    List { place: usize, line: usize, before_dot: Option<usize> },
    /// The symbol of a mark, such as `quote`, is on the stack.
    Mark { line: usize },
    /// A string, as far as it was read.
    Text { text: String, line: usize },
}

impl Open {
    /// The line that it begins in.
    const fn line(&self) -> usize {
        match *self {
            Self::List { line, .. } | Self::Mark { line } | Self::Text { line, .. } => line,
        }
    }
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
        Self { text, line: 1, ..Self::default() }
    }

    /// Adds text to what is read, which begins with a new token.
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

    /// Leaves out the rest of the text, and what was begun.
    pub(crate) fn skip_all(&mut self, store: &Store<'_, '_>) {
        self.forget_begun(store);
        self.line += self.text[self.at..].matches('\n').count();
        self.at = self.text.len();
    }

    fn forget_begun(&mut self, store: &Store<'_, '_>) {
        if !self.open.is_empty() {
            self.open.clear();
            store.cut(self.ground);
        }
    }

    /// Reads an expression, and puts it on the stack. What was begun stays on the stack.
    pub(crate) fn read(&mut self, store: &mut Store<'_, '_>) -> Outcome<Found> {
        if self.open.is_empty() {
            self.ground = store.depth();
        }
        let found = self.read_on(store);
        if found.is_err() {
            self.open.clear();
            store.cut(self.ground);
        }
        found
    }

    fn read_on(&mut self, store: &mut Store<'_, '_>) -> Outcome<Found> {
        loop {
            let Some((token, line)) = self.token()? else {
                return Ok(self.open.first().map_or(Found::End, |open| Found::Part { line: open.line() }));
            };
            match token {
                Token::Open => {
                    self.open(store, Open::List { place: store.depth(), line, before_dot: None })?;
                    continue;
                }
                Token::Mark(name) => {
                    store.intern(name)?;
                    self.open(store, Open::Mark { line })?;
                    continue;
                }
                Token::Atom(".") => {
                    let Some(Open::List { place, before_dot: before_dot @ None, .. }) = self.open.last_mut()
                    else {
                        return Err(Failure::wrong("a dot without a list"));
                    };
                    *before_dot = Some(store.depth() - *place);
                    continue;
                }
                Token::Close => close(store, self.open.pop())?,
                Token::Text(text) => store.make_text(&text)?,
                Token::Atom(atom) => read_atom(store, atom)?,
            }
            while let Some(Open::Mark { line }) = self.open.last() {
                store.make_list(2, *line)?;
                self.open.pop();
            }
            if self.open.is_empty() {
                return Ok(Found::Expression);
            }
        }
    }

    /// Begins what has others within.
    fn open(&mut self, store: &Store<'_, '_>, open: Open) -> Outcome {
        // What is nested deeper cannot be evaluated.
        if self.open.len() >= store.size() {
            return Err(Failure::TooDeep);
        }
        self.open.push(open);
        Ok(())
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

    /// The next token, and the line that it begins in; `None` if the text ends before or in it.
    fn token(&mut self) -> Outcome<Option<(Token<'_>, usize)>> {
        if !matches!(self.open.last(), Some(Open::Text { .. })) {
            self.skip_space();
            if self.text[self.at..].starts_with('"') {
                self.at += 1;
                self.open.push(Open::Text { text: String::new(), line: self.line });
            }
        }
        if let Some(&Open::Text { line, .. }) = self.open.last() {
            return Ok(self.rest_of_text()?.map(|text| (Token::Text(text), line)));
        }
        let (rest, line) = (&self.text[self.at..], self.line);
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '\'' => (Token::Mark("quote"), 1),
            '`' => (Token::Mark("quasiquote"), 1),
            ',' if rest.starts_with(",@") => (Token::Mark("unquote-splicing"), 2),
            ',' => (Token::Mark("unquote"), 1),
            _ => {
                let is_end = |c: char| c.is_whitespace() || "()'`,\";".contains(c);
                let length = rest.find(is_end).unwrap_or(rest.len());
                (Token::Atom(&rest[..length]), length)
            }
        };
        self.at += length;
        Ok(Some((token, line)))
    }

    /// The string that was begun, if it ends in the text.
    fn rest_of_text(&mut self) -> Outcome<Option<String>> {
        let Some(Open::Text { text, .. }) = self.open.last_mut() else { return Ok(None) };
        let mut characters = self.text[self.at..].char_indices();
        while let Some((at, character)) = characters.next() {
            let meant = match character {
                '"' => {
                    let text = core::mem::take(text);
                    self.at += at + 1;
                    self.open.pop();
                    return Ok(Some(text));
                }
                '\\' => match characters.next() {
                    // The text that is added begins with it.
                    None => {
                        self.at += at;
                        return Ok(None);
                    }
                    Some((_, 'n')) => '\n',
                    Some((_, 't')) => '\t',
                    Some((_, '\n')) => {
                        self.line += 1;
                        '\n'
                    }
                    Some((_, other)) => other,
                },
                '\n' => {
                    self.line += 1;
                    '\n'
                }
                other => other,
            };
            if text.len() >= TEXT_MOST {
                return Err(Failure::TooLarge);
            }
            text.push(meant);
        }
        self.at = self.text.len();
        Ok(None)
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
