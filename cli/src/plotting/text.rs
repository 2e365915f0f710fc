//! Texts that fit, and that any reader of XML accepts.

/// The width of a character in parts of the size of its text, of the widest fonts that are in use.
const WIDTH: f64 = 0.62;

/// How many plain characters a character is as wide as: those of East Asian scripts take two.
fn units(character: char) -> usize {
    if character >= '\u{1100}' && character != '…' { 2 } else { 1 }
}

/// About how many pixels a text of this size is wide.
pub(super) fn width(text: &str, size: u32) -> i32 {
    let units: usize = text.chars().map(units).sum();
    // This cast saturates.
    (units as f64 * f64::from(size) * WIDTH).ceil() as i32
}

/// The text, or its beginning and its end if it is wider than that many pixels; nothing if there is room for
/// next to nothing.
pub(super) fn fitted(text: &str, size: u32, room: i32) -> String {
    let text = plain(text);
    if width(&text, size) <= room {
        return text;
    }
    // This cast saturates.
    let room = (f64::from(room) / (f64::from(size) * WIDTH)) as usize;
    if room < 4 {
        return String::new();
    }
    let (begin, end) = (room / 2, room - 1 - room / 2);
    let begin = taken(text.chars(), begin);
    let end: String = taken(text.chars().rev(), end).chars().rev().collect();
    format!("{begin}…{end}")
}

/// The text in lines of whole words, each of which fits.
pub(super) fn lines(text: &str, size: u32, room: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in plain(text).split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= room => line.extend([" ", word]),
            _ => lines.push(fitted(word, size, room)),
        }
    }
    lines
}

/// The first characters, as many as have room.
fn taken(characters: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    let fits = |character: &char| {
        used += units(*character);
        used <= room
    };
    characters.take_while(fits).collect()
}

/// A text without characters that XML does not have or that are not to be seen.
pub(crate) fn plain(text: &str) -> String {
    let shown = |character: char| match character {
        '\t' | '\n' | '\r' => ' ',
        // Those that turn the direction of text, too.
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        control if control.is_control() => '\u{fffd}',
        other => other,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_ends_and_fits() {
        let long = format!("begin{}end", "x".repeat(1000));
        for room in [60, 100, 500] {
            let text = fitted(&long, 12, room);
            assert!(width(&text, 12) <= room && text.contains('…'), "{room}: {text}");
            assert!(text.starts_with('b') && text.ends_with('d'), "{room}: {text}");
        }
        assert_eq!(fitted("short", 12, 500), "short");
        assert_eq!(fitted(&long, 12, 10), "");
        let wide = fitted(&"池".repeat(100), 12, 200);
        assert!(width(&wide, 12) <= 200 && wide.len() > 20, "{wide}");
    }

    #[test]
    fn a_text_is_broken_between_words() {
        assert_eq!(lines("one two three", 12, width("one two", 12)), ["one two", "three"]);
        let narrow = lines(&format!("a {}", "b".repeat(100)), 12, 60);
        assert!(narrow.len() == 2 && narrow.iter().all(|line| width(line, 12) <= 60), "{narrow:?}");
        assert!(lines("", 12, 60).is_empty());
    }

    #[test]
    fn no_character_breaks_the_file_or_the_line() {
        assert_eq!(
            plain("a\u{0}b\u{1b}[31m\nc\u{202e}d\u{ffff}"),
            "a\u{fffd}b\u{fffd}[31m c\u{fffd}d\u{fffd}"
        );
    }
}
