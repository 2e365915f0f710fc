//! The name of what is traded.

use core::fmt;

/// The longest name, in bytes.
const SYMBOL_MAX: usize = 31;

/// The name of what is traded, in capitals, as `s` has it: `BTCUSDT`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol {
    /// Zeros after the name.
    bytes: [u8; SYMBOL_MAX],
    length: u8,
}

impl Symbol {
    /// The symbol of this name; `None` if it is empty, or too long.
    pub fn new(name: &str) -> Option<Self> {
        let mut symbol = Self { bytes: [0; SYMBOL_MAX], length: u8::try_from(name.len()).ok()? };
        symbol.bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        symbol.bytes.make_ascii_uppercase();
        (!name.is_empty()).then_some(symbol)
    }

    /// Its name; empty for the default.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.length == 0 { "(no symbol)" } else { self.as_str() })
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_capitals_and_of_bounded_length() {
        let symbol = |name: &str| Symbol::new(name).map(|symbol| symbol.to_string());
        assert_eq!(symbol("btcusd_200925").as_deref(), Some("BTCUSD_200925"));
        assert_eq!(symbol("币安人生usdt").as_deref(), Some("币安人生USDT"));
        assert_eq!(symbol(&"x".repeat(SYMBOL_MAX)), Some("X".repeat(SYMBOL_MAX)));
        assert_eq!((symbol(""), symbol(&"x".repeat(SYMBOL_MAX + 1))), (None, None));
        assert_eq!(Symbol::new("a"), Symbol::new("A"));
    }
}
