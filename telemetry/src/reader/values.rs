//! The values of an event's fields: numbers, texts and sites.

use core::fmt::{self, Write};

use tripoint_core::internal::Json;

use crate::format::{Field, FieldForm, MAX_FRAMES, MAX_TEXT_BYTES, text_from_words, text_words};

/// A text that another process wrote.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text {
    bytes: [u8; MAX_TEXT_BYTES],
    kept: u8,
    whole: u32,
}

impl Text {
    /// No text.
    pub(super) const EMPTY: Self = Self { bytes: [0; MAX_TEXT_BYTES], kept: 0, whole: 0 };

    /// The text that these words begin with, and the number of its words.
    pub(super) fn from_words(words: &[u64]) -> Option<(Self, usize)> {
        let mut text = Self::EMPTY;
        let (kept, whole) = text_from_words(words, &mut text.bytes)?;
        (text.kept, text.whole) = (u8::try_from(kept.len()).ok()?, u32::try_from(whole).ok()?);
        Some((text, 1 + text_words(usize::from(text.kept))))
    }

    /// The bytes up to the first zero.
    pub(super) fn until_zero(words: &[u64]) -> Self {
        let mut text = Self::EMPTY;
        for (to, word) in text.bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_ne_bytes();
        }
        let kept = text.bytes.iter().take_while(|&&byte| byte != 0).count();
        text.bytes[kept..].fill(0);
        // At most MAX_TEXT_BYTES.
        (text.kept, text.whole) = (kept as u8, kept as u32);
        text
    }

    /// The bytes that were kept. They need not be UTF-8.
    #[must_use]
    pub fn kept_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.kept)]
    }

    /// The text, if it is UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        core::str::from_utf8(self.kept_bytes()).ok()
    }

    /// The bytes that it had before it was cut off.
    #[must_use]
    pub const fn whole_bytes(&self) -> usize {
        self.whole as usize
    }

    /// Whether it was cut off.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.whole > self.kept as u32
    }

    /// The text as it is, with U+FFFD in place of what is not UTF-8.
    pub(super) fn lossy(&self) -> impl fmt::Display {
        fmt_from_fn(|f| {
            for chunk in self.kept_bytes().utf8_chunks() {
                f.write_str(chunk.valid())?;
                if !chunk.invalid().is_empty() {
                    f.write_char(char::REPLACEMENT_CHARACTER)?;
                }
            }
            Ok(())
        })
    }
}

/// A value that displays what a function writes.
fn fmt_from_fn(write: impl Fn(&mut fmt::Formatter<'_>) -> fmt::Result) -> impl fmt::Display {
    struct FromFn<F>(F);
    impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Display for FromFn<F> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            (self.0)(f)
        }
    }
    FromFn(write)
}

/// Characters that cannot be printed are escaped, so that a text of another process does not control the
/// terminal.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(self.kept_bytes(), self.is_cut(), f)
    }
}

/// Writes a text of another process, with characters escaped that cannot be printed.
pub(super) fn write_escaped(text: &[u8], is_cut: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\'' | '\\' => f.write_char(character)?,
                other => write!(f, "{}", other.escape_debug())?,
            }
        }
        chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
    }
    if is_cut { f.write_char('…') } else { Ok(()) }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Where in the code something happened: code addresses of the process that wrote them, the
/// innermost first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodeAddresses {
    addresses: [u64; MAX_FRAMES],
    frames: u8,
}

impl CodeAddresses {
    /// The innermost of these addresses, at most [`MAX_FRAMES`].
    fn new(addresses: &[u64]) -> Self {
        let frames = addresses.len().min(MAX_FRAMES);
        let mut kept = [0; MAX_FRAMES];
        kept[..frames].copy_from_slice(&addresses[..frames]);
        // At most MAX_FRAMES.
        Self { addresses: kept, frames: frames as u8 }
    }

    /// The addresses, the innermost first; none if they were left out.
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        &self.addresses[..usize::from(self.frames)]
    }
}

impl fmt::Debug for CodeAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice().iter().map(|address| fmt_hex(*address))).finish()
    }
}

fn fmt_hex(number: u64) -> impl fmt::Display + fmt::Debug {
    struct Hex(u64);
    impl fmt::Display for Hex {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{:#x}", self.0)
        }
    }
    impl fmt::Debug for Hex {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt::Display::fmt(self, f)
        }
    }
    Hex(number)
}

/// A value of a field, which is taken from the front of words.
pub(super) trait Value: Sized {
    /// Takes the value. `None` if there are too few words.
    fn take(words: &mut &[u64]) -> Option<Self>;

    /// Writes ` name=value`.
    fn show(&self, field: &Field, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Writes a member of a JSON object.
    fn json(&self, field: &Field, json: &mut Json<'_>) -> fmt::Result;

    /// The value, if it is a site.
    fn as_site(&self) -> Option<&CodeAddresses> {
        None
    }
}

impl Value for u64 {
    fn take(words: &mut &[u64]) -> Option<Self> {
        words.split_off_first().copied()
    }

    fn show(&self, field: &Field, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match field.form {
            FieldForm::Address | FieldForm::Handle => write!(f, " {}={self:#x}", field.name),
            _ => write!(f, " {}={self}", field.name),
        }
    }

    fn json(&self, field: &Field, json: &mut Json<'_>) -> fmt::Result {
        match field.form {
            // Many programs read numbers of JSON exactly only up to 2^53.
            FieldForm::Address | FieldForm::Handle => json.text(field.name, fmt_hex(*self)),
            _ => json.number(field.name, self),
        }
    }
}

impl Value for Text {
    fn take(words: &mut &[u64]) -> Option<Self> {
        let (text, taken) = Self::from_words(words)?;
        *words = words.get(taken..)?;
        Some(text)
    }

    fn show(&self, field: &Field, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {}=\"{self}\"", field.name)
    }

    fn json(&self, field: &Field, json: &mut Json<'_>) -> fmt::Result {
        json.text(field.name, self.lossy())
    }
}

impl Value for CodeAddresses {
    fn as_site(&self) -> Option<&CodeAddresses> {
        Some(self)
    }

    fn take(words: &mut &[u64]) -> Option<Self> {
        Some(Self::new(core::mem::take(words)))
    }

    fn show(&self, _: &Field, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.frames == 0 { Ok(()) } else { f.write_str(" at") }?;
        self.as_slice().iter().try_for_each(|address| write!(f, " {address:#x}"))
    }

    fn json(&self, field: &Field, json: &mut Json<'_>) -> fmt::Result {
        json.name(field.name)?;
        json.array(&mut self.as_slice().iter(), |json, address| json.value_text(fmt_hex(*address)))
    }
}
