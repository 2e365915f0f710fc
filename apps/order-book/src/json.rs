//! JSON, read in one pass: the caller says what comes next, and takes it as it comes. Nothing
//! allocates, not even an error (design/order-book.md `.wire.scan`).

use crate::decimal::Decimal;
use crate::malformed::{Cause, Malformed};

/// How deep values may be nested.
const DEPTH_MAX: usize = 128;

/// The longest string with escapes that can be read, in bytes.
const ESCAPED_MAX: usize = 128;

pub type Result<T> = core::result::Result<T, Malformed>;

/// A place in a text.
#[derive(Clone)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    /// At the start of `text`.
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// Returns the error for this place.
    pub const fn malformed<T>(&self, cause: Cause) -> Result<T> {
        Err(Malformed { at: self.at, cause })
    }

    /// The next byte, also if it is white space.
    pub fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space, and returns the next byte.
    pub fn peek(&mut self) -> Option<u8> {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.byte()
    }

    /// Takes a byte if it comes next, after white space.
    pub fn take(&mut self, byte: u8) -> bool {
        let comes = self.peek() == Some(byte);
        self.at += usize::from(comes);
        comes
    }

    /// Takes a byte; anything else is an error.
    pub fn expect(&mut self, byte: u8, what: &'static str) -> Result<()> {
        if self.take(byte) { Ok(()) } else { self.expected(what) }
    }

    fn expected<T>(&self, what: &'static str) -> Result<T> {
        match self.byte() {
            Some(_) => self.malformed(Cause::Expected(what)),
            None => self.malformed(Cause::Wrong("the record ends too early")),
        }
    }

    /// Takes decimal digits, and returns how many.
    pub fn digits(&mut self) -> usize {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    /// Checks that nothing but white space follows.
    pub fn end(&mut self) -> Result<()> {
        match self.peek() {
            Some(_) => self.malformed(Cause::Expected("the end of the line")),
            None => Ok(()),
        }
    }

    /// Reads an object, which an error calls `what`; `member` takes the value of each key.
    pub fn object(
        &mut self,
        what: &'static str,
        mut member: impl FnMut(&mut Self, Text<'a>) -> Result<()>,
    ) -> Result<()> {
        self.expect(b'{', what)?;
        if self.take(b'}') {
            return Ok(());
        }
        self.nested(|scanner| {
            loop {
                let key = scanner.string("a key")?;
                scanner.expect(b':', "a colon")?;
                member(scanner, key)?;
                if !scanner.take(b',') {
                    return scanner.expect(b'}', "a comma or a closing brace");
                }
            }
        })
    }

    /// Reads a list, which an error calls `what`; `element` takes each value.
    pub fn list(
        &mut self,
        what: &'static str,
        mut element: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.expect(b'[', what)?;
        if self.take(b']') {
            return Ok(());
        }
        self.nested(|scanner| {
            loop {
                element(scanner)?;
                if !scanner.take(b',') {
                    return scanner.expect(b']', "a comma or a closing bracket");
                }
            }
        })
    }

    fn nested(&mut self, inside: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.depth == DEPTH_MAX {
            return self.malformed(Cause::Wrong("values are nested too deep"));
        }
        self.depth += 1;
        inside(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// Reads a string, which an error calls `what`.
    pub fn string(&mut self, what: &'static str) -> Result<Text<'a>> {
        self.expect(b'"', what)?;
        let (start, mut is_escaped) = (self.at, false);
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    self.at += 1;
                    self.escape()?;
                }
                Some(0..0x20) => return self.malformed(Cause::Wrong("a control character in a string")),
                Some(_) => self.at += 1,
                None => return self.expected(what),
            }
        }
        let raw = &self.text[start..self.at];
        self.at += 1;
        Ok(Text { raw, is_escaped, at: start - 1 })
    }

    /// Reads what follows a backslash.
    fn escape(&mut self) -> Result<()> {
        let size = match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 1,
            Some(b'u') if self.is_hexadecimal(self.at + 1..self.at + 5) => 5,
            _ => return self.expected("an escape"),
        };
        self.at += size;
        Ok(())
    }

    fn is_hexadecimal(&self, range: core::ops::Range<usize>) -> bool {
        self.text.as_bytes().get(range).is_some_and(|bytes| bytes.iter().all(u8::is_ascii_hexdigit))
    }

    /// Reads a decimal number in a string.
    pub fn decimal(&mut self) -> Result<Decimal> {
        let text = self.string("a decimal number in a string")?;
        text.read(Decimal::parse)?.map_err(|error| Malformed { at: text.at, cause: Cause::Decimal(error) })
    }

    /// Reads a whole number that fits.
    pub fn whole_number(&mut self) -> Result<u64> {
        const WHAT: Cause = Cause::Expected("a whole number below 2^64");
        self.peek();
        let start = self.at;
        self.number()?;
        let number = self.text[start..self.at].parse();
        number.map_err(|_| Malformed { at: start, cause: WHAT })
    }

    /// Reads a number of any size.
    fn number(&mut self) -> Result<()> {
        self.take_here(b'-');
        if !self.take_here(b'0') && self.digits() == 0 {
            return self.expected("a value");
        }
        if self.take_here(b'.') && self.digits() == 0 {
            return self.expected("a digit");
        }
        if self.take_here(b'e') || self.take_here(b'E') {
            let _ = self.take_here(b'+') || self.take_here(b'-');
            if self.digits() == 0 {
                return self.expected("a digit");
            }
        }
        Ok(())
    }

    fn take_here(&mut self, byte: u8) -> bool {
        let comes = self.byte() == Some(byte);
        self.at += usize::from(comes);
        comes
    }

    /// Skips a value. Its numbers may have any size.
    pub fn skip(&mut self) -> Result<()> {
        match self.peek() {
            Some(b'{') => self.object("an object", |scanner, _key| scanner.skip()),
            Some(b'[') => self.list("a list", Self::skip),
            Some(b'"') => self.string("a string").map(drop),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &'static str) -> Result<()> {
        if !self.text[self.at..].starts_with(word) {
            return self.expected("a value");
        }
        self.at += word.len();
        Ok(())
    }

    /// Returns what `read` reads, or its error. In both cases the scanner is past the value.
    pub fn try_read<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Result<T>> {
        let start = self.clone();
        let value = read(self);
        if value.is_err() {
            *self = start;
            self.skip()?;
        }
        Ok(value)
    }
}

/// A string as it is written.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    raw: &'a str,
    is_escaped: bool,
    /// Where the string begins.
    at: usize,
}

impl Text<'_> {
    /// Passes the text that the string stands for to `read`.
    ///
    /// # Errors
    /// If the string has escapes and is long, or has half of a surrogate pair.
    #[inline]
    pub fn read<T>(self, read: impl FnOnce(&str) -> T) -> Result<T> {
        const UNREADABLE: Cause = Cause::Wrong("an escaped text that is too long or stands for none");
        if !self.is_escaped {
            return Ok(read(self.raw));
        }
        let malformed = Malformed { at: self.at, cause: UNREADABLE };
        self.decode(&mut [0; ESCAPED_MAX]).map(read).ok_or(malformed)
    }

    #[cold]
    fn decode<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b str> {
        let (mut rest, mut used) = (self.raw, 0);
        while let Some(first) = rest.chars().next() {
            let (decoded, size) = if first == '\\' { unescape(rest)? } else { (first, first.len_utf8()) };
            let room = buffer.get_mut(used..used + decoded.len_utf8())?;
            used += decoded.encode_utf8(room).len();
            rest = &rest[size..];
        }
        core::str::from_utf8(&buffer[..used]).ok()
    }
}

/// The character that the escape at the start of `text` stands for, and the escape's size.
/// The scanner has checked its form.
fn unescape(text: &str) -> Option<(char, usize)> {
    let plain = match text.as_bytes().get(1)? {
        b'u' => return unescape_unicode(text),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        &other => char::from(other),
    };
    Some((plain, 2))
}

/// A `\uXXXX`, or a surrogate pair of two.
fn unescape_unicode(text: &str) -> Option<(char, usize)> {
    const SIZE: usize = 6;
    let unit = |escape: &str| u16::from_str_radix(escape.strip_prefix("\\u")?, 16).ok();
    let first = unit(text.get(..SIZE)?)?;
    if let Some(Ok(alone)) = char::decode_utf16([first]).next() {
        return Some((alone, SIZE));
    }
    let second = unit(text.get(SIZE..2 * SIZE)?)?;
    Some((char::decode_utf16([first, second]).next()?.ok()?, 2 * SIZE))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    fn skips(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.skip().and_then(|()| scanner.end()).is_ok()
    }

    fn is_json(text: &str) -> bool {
        serde_json::from_str::<IgnoredAny>(text).is_ok()
    }

    fn string(text: &str) -> Option<String> {
        Scanner::new(text).string("a string").ok()?.read(str::to_owned).ok()
    }

    #[test]
    fn numbers_that_are_skipped_need_not_fit() {
        for number in ["1e400", "-1e-400", &"9".repeat(400), "0.1E+9", "-0", "0"] {
            assert!(skips(number) && is_json(number), "{number}");
        }
        for number in ["01", "-", "1.", ".5", "1e", "1e+", "+1", "0x1", "--1", "1.e1", "NaN"] {
            assert!(!skips(number) && !is_json(number), "{number}");
        }
    }

    #[test]
    fn nesting_has_an_end() {
        let nested = |depth| "[".repeat(depth) + "1" + &"]".repeat(depth);
        assert!(skips(&nested(DEPTH_MAX)));
        assert!(!skips(&nested(DEPTH_MAX + 1)));
        assert!(!skips(&"[".repeat(1_000_000)));
    }

    #[test]
    fn escapes_stand_for_what_they_do_elsewhere() {
        for text in [r#""a\"\\\/\b\f\n\r\tz""#, r#""\u0041\u00e9\ud83d\ude00 é😀""#, r#""""#, r#""\u0000""#]
        {
            assert_eq!(string(text), serde_json::from_str(text).ok(), "{text}");
            assert!(string(text).is_some());
        }
        for text in [r#""\ud83d""#, r#""\ud83dx""#, r#""\ude00\ud83d""#, r#""\ud83d\u0041""#] {
            assert_eq!(string(text), None, "{text}");
        }
        assert_eq!(string(&format!(r#""\n{}""#, "x".repeat(ESCAPED_MAX))), None);
        assert_eq!(string(&format!(r#""{}""#, "x".repeat(ESCAPED_MAX))), Some("x".repeat(ESCAPED_MAX)));
    }

    proptest! {
        /// Pieces of JSON in any order: mostly broken, sometimes not.
        #[test]
        fn takes_what_another_parser_takes(pieces in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\\", "\\u00", "1", "0", "-", ".", "e", "E+", "5",
                "true", "false", "null", "tru", " ", "\t", "é", "\u{1}", "\"\\n\"", "{\"a\":", "[1,",
            ]), 0..12)) {
            let text = pieces.concat();
            prop_assert_eq!(skips(&text), is_json(&text), "{}", text);
        }

        #[test]
        fn takes_every_value(value in any_json()) {
            let text = value.to_string();
            prop_assert!(skips(&text), "{}", text);
            for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
                prop_assert_eq!(skips(&text[..end]), is_json(&text[..end]), "{}", &text[..end]);
            }
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        use serde_json::Value;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9_f64).prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }
}
