//! JSON without an allocator: written as it goes. Every method returns the error of the writer
//! that it writes to.

use core::fmt::{self, Write};

/// A writer of one JSON value.
pub struct Json<'out> {
    out: &'out mut dyn Write,
    /// Whether the next member or element needs a comma before it.
    comma: bool,
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Json").field("comma", &self.comma).finish_non_exhaustive()
    }
}

/// Escapes what is written through it.
struct Escaping<'out>(&'out mut dyn Write);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '"' | '\\' => write!(self.0, "\\{character}")?,
                control if control < ' ' => write!(self.0, "\\u{:04x}", u32::from(control))?,
                other => self.0.write_char(other)?,
            }
        }
        Ok(())
    }
}

impl<'out> Json<'out> {
    /// A writer to `out`.
    pub fn new(out: &'out mut dyn Write) -> Self {
        Self { out, comma: false }
    }

    fn separate(&mut self) -> fmt::Result {
        if self.comma {
            self.out.write_char(',')?;
        }
        self.comma = true;
        Ok(())
    }

    fn bracket(
        &mut self,
        open: char,
        close: char,
        inside: impl FnOnce(&mut Self) -> fmt::Result,
    ) -> fmt::Result {
        self.out.write_char(open)?;
        self.comma = false;
        inside(self)?;
        self.comma = true;
        self.out.write_char(close)
    }

    /// An object, as a value.
    pub fn object(&mut self, inside: impl FnOnce(&mut Self) -> fmt::Result) -> fmt::Result {
        self.bracket('{', '}', inside)
    }

    /// An array, as a value; `each` writes one value.
    pub fn array<T>(
        &mut self,
        values: &mut dyn Iterator<Item = T>,
        mut each: impl FnMut(&mut Self, T) -> fmt::Result,
    ) -> fmt::Result {
        self.bracket('[', ']', |json| {
            for value in values {
                json.separate()?;
                each(json, value)?;
            }
            Ok(())
        })
    }

    /// A member's name; its value comes next.
    pub fn name(&mut self, name: &str) -> fmt::Result {
        self.separate()?;
        self.value_text(name)?;
        self.out.write_char(':')
    }

    /// Text, as a value.
    pub fn value_text(&mut self, text: impl fmt::Display) -> fmt::Result {
        self.out.write_char('"')?;
        write!(Escaping(self.out), "{text}")?;
        self.out.write_char('"')
    }

    /// A number or a truth value, as a value.
    pub fn value(&mut self, value: impl fmt::Display) -> fmt::Result {
        write!(self.out, "{value}")
    }

    /// A member with text.
    pub fn text(&mut self, name: &str, text: impl fmt::Display) -> fmt::Result {
        self.name(name)?;
        self.value_text(text)
    }

    /// A member with a number or a truth value.
    pub fn number(&mut self, name: &str, value: impl fmt::Display) -> fmt::Result {
        self.name(name)?;
        self.value(value)
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;

    use super::*;

    #[test]
    fn strange_text_survives() {
        let strange = "a \"quoted\" \\ path\n\u{1}\u{e9}";
        let mut out = String::new();
        let mut json = Json::new(&mut out);
        json.object(|json| {
            json.text("text", strange)?;
            json.name("numbers")?;
            json.array(&mut [1, 2].iter(), |json, number| json.value(number))?;
            json.name("none")?;
            json.array(&mut core::iter::empty::<u8>(), |json, number| json.value(number))?;
            json.number("truth", true)
        })
        .unwrap();
        let read: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(read, serde_json::json!({"text": strange, "numbers": [1, 2], "none": [], "truth": true}));
    }
}
