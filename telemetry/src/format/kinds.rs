//! The kinds of events, with the fields of each, made from the table of events in `tripoint_core`; only those of
//! telemetry itself are declared here
//! ([design/telemetry.md `.kinds`](crate::design::telemetry)).

#![forbid(unsafe_code)]

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, for people and for JSON.
    pub name: &'static str,
    /// The form of its value.
    pub form: FieldForm,
}

/// The form of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// One word: a number that names something.
    Number,
    /// One word that stands for something, for instance computed from its address and a secret. It may be
    /// any number of 64 bits, and is equal for the same thing.
    Handle,
    /// One word: how many.
    Count,
    /// One word: bytes.
    Bytes,
    /// One word: an address; zero if addresses are left out.
    Address,
    /// A text: the word with its length, then its bytes
    /// ([design/telemetry.md `.text`](crate::design::telemetry)).
    Text,
    /// Code addresses, the innermost first, one word each, up to the end of the record.
    Site,
}

/// Passes the list of all kinds to a macro, after what is to be passed on to it in brackets: those of the table of
/// events ([`tripoint_core::for_each_event`]), and telemetry's own.
macro_rules! with_kinds {
    ([$make:ident $($more:tt)*] $(
        $(#[$doc:meta])*
        $number:literal: $name:ident, $probe:ident, since $since:literal $(, of $arena:ident)? {
            $($(#[$field_doc:meta])* $field:ident: $type:ty as $form:ident,)*
        } $(parts {
            $($(#[$part_doc:meta])* $part:ident: $part_type:ty as {
                $($(#[$word_doc:meta])* $word:ident: $word_form:ident,)+
            },)+
        })? $(texts {
            $($(#[$text_doc:meta])* $text:ident: $text_type:ty,)+
        })?
    )+) => {
        $make! {
            [$($more)*]
            /// A thread attached, with a name.
            2: ThreadAttach, thread_attach, since "0.1.0" {
                /// The name.
                name: Text,
            }
            /// A thread that had attached is about to return its ring.
            3: ThreadDetach, thread_detach, since "0.1.0" {}
            /// The program marked a place in the stream of events.
            4: Marker, marker, since "0.1.0" {
                /// A number of the program's.
                value: Number,
                /// The name of the mark.
                name: Text,
                /// The code addresses of the call, if they are known, and not left out.
                site: Site,
            }
            /// The program noted the sizes of a pool.
            55: NoteSizes, note_sizes, since "0.1.0" {
                /// The number of the arena.
                arena: Number,
                /// The pool.
                pool: Number,
                /// The bytes that the pool has from its arena.
                total: Bytes,
                /// The bytes of these that are free.
                free: Bytes,
                /// The bytes of the largest free block.
                largest_free: Bytes,
                /// The most bytes that the pool had from its arena.
                high_water: Bytes,
            }
            $(
                $(#[$doc])*
                $number: $name, $probe, since $since {
                    $(
                        /// The number of the arena.
                        $arena: Number,
                    )?
                    $($(#[$field_doc])* $field: $form,)*
                    $($($($(#[$word_doc])* $word: $word_form,)+)+)?
                    $($($(#[$text_doc])* $text: Text,)+)?
                    /// The code addresses where it happened, if they are known, and not left out.
                    site: Site,
                }
            )+
        }
    };
    ($make:ident $($more:tt)*) => {
        tripoint_core::for_each_event! { with_kinds $make $($more)* }
    };
}

#[cfg(all(feature = "reader", unix, not(tripoint_loom)))]
pub(crate) use with_kinds;

/// Declares the kinds of the list.
macro_rules! declare {
    ([$(#[$about:meta])* pub enum $EventKind:ident] $(
        $(#[$doc:meta])*
        $number:literal: $name:ident, $probe:ident, since $since:literal {
            $($(#[$field_doc:meta])* $field:ident: $form:ident,)*
        }
    )+) => {
        $(#[$about])*
        pub enum $EventKind {
            $(
                $(#[$doc])*
                #[doc = ""]
                #[doc = concat!("Since version ", $since, ".")]
                $name = $number,
            )+
        }

        /// All kinds, in the order of their declarations.
        const DECLARED: &[$EventKind] = &[$($EventKind::$name),+];

        impl $EventKind {
            /// The name, for people and for JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => {
                        const NAME: [u8; stringify!($probe).len()] = spaced(stringify!($probe));
                        const { text(&NAME) }
                    })+
                }
            }

            /// The fields, in the order in which they follow the head of a record.
            #[must_use]
            pub const fn fields(self) -> &'static [Field] {
                match self {
                    $(Self::$name => &[
                        $(Field { name: stringify!($field), form: FieldForm::$form }),*
                    ],)+
                }
            }
        }
    };
}

with_kinds! {
    declare

    /// The kinds of events. The number of a kind is in its records, and is the number of its bit
    /// in the switch for events; all are below 64.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    #[repr(u16)]
    pub enum EventKind
}

/// The bytes of a name, with spaces for `_`.
const fn spaced<const BYTES: usize>(name: &str) -> [u8; BYTES] {
    let (mut bytes, mut at) = ([b' '; BYTES], 0);
    while at < BYTES {
        if name.as_bytes()[at] != b'_' {
            bytes[at] = name.as_bytes()[at];
        }
        at += 1;
    }
    bytes
}

/// The text of these bytes. Only constants are made by it, so what is no text is refused when it is compiled.
const fn text(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("a name with spaces is text"),
    }
}

/// How many numbers kinds can have: as many as a word has bits.
const NUMBERS: usize = u64::BITS as usize;

/// The kind of each number.
const BY_NUMBER: [Option<EventKind>; NUMBERS] = {
    let mut kinds = [None; NUMBERS];
    let mut rest = DECLARED;
    while let [kind, others @ ..] = rest {
        kinds[*kind as usize] = Some(*kind);
        rest = others;
    }
    kinds
};

/// The kinds in the order of their numbers.
const IN_ORDER: [EventKind; DECLARED.len()] = {
    let (mut kinds, mut found, mut number) = ([DECLARED[0]; DECLARED.len()], 0, 0);
    while number < NUMBERS {
        if let Some(kind) = BY_NUMBER[number] {
            kinds[found] = kind;
            found += 1;
        }
        number += 1;
    }
    kinds
};

impl EventKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: &'static [Self] = &IN_ORDER;

    /// The mask of this kind in the switch [`Events`](super::SwitchWord::Events).
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self as u64
    }

    /// The kind with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        if (number as usize) < NUMBERS { BY_NUMBER[number as usize] } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::path::Path;
    use std::string::{String, ToString};
    use std::vec::Vec;

    use super::*;
    use crate::format::record::{HEAD_WORDS, MAX_FRAMES, MAX_RECORD_WORDS, MAX_TEXT_BYTES};
    use crate::format::text::text_words;

    fn most_words(form: FieldForm) -> usize {
        match form {
            FieldForm::Text => 1 + text_words(MAX_TEXT_BYTES),
            FieldForm::Site => MAX_FRAMES,
            _ => 1,
        }
    }

    #[test]
    fn every_kind_has_a_bit_a_name_and_room_in_a_record() {
        let order = |form| match form {
            FieldForm::Text => 1,
            FieldForm::Site => 2,
            _ => 0,
        };
        for (index, &kind) in EventKind::ALL.iter().enumerate() {
            assert!((kind as u16) < 64 && kind as u16 > 1);
            assert!(EventKind::ALL[..index].iter().all(|other| *other < kind && other.name() != kind.name()));
            assert_eq!(EventKind::from_number(kind as u16), Some(kind));
            let words: usize = kind.fields().iter().map(|field| most_words(field.form)).sum();
            assert!(HEAD_WORDS + words <= MAX_RECORD_WORDS, "{kind:?} may take {words} words");
            assert!(kind.fields().is_sorted_by_key(|field| order(field.form)), "words, texts, a site");
        }
    }

    /// The rows of the table of kinds, with the numbers of these.
    macro_rules! rows {
        ([] $(
            $(#[$doc:meta])*
            $number:literal: $name:ident, $probe:ident, since $since:literal {
                $($(#[$field_doc:meta])* $field:ident: $form:ident,)*
            }
        )+) => {
            [$((EventKind::$name, $since)),+]
        };
    }

    /// The table of kinds on the page of the format.
    fn table() -> String {
        let mut rows = Vec::from(with_kinds!(rows));
        rows.sort();
        let field = |field: &Field| match field.form {
            FieldForm::Site => format!("`{}`", field.name),
            form => format!("`{}` {}", field.name, format!("{form:?}").to_lowercase()),
        };
        let row = |(kind, since): &(EventKind, &str)| {
            let fields: Vec<_> = kind.fields().iter().map(field).collect();
            format!("| {} | {} | {} | {since} |\n", *kind as u16, kind.name(), fields.join(", "))
        };
        HEADING.to_string() + "|---|---|---|---|\n" + &rows.iter().map(row).collect::<String>()
    }

    const HEADING: &str = "| number | kind | fields | since |\n";

    #[test]
    #[cfg_attr(miri, ignore = "a page is read")]
    fn the_page_of_the_format_has_the_table_of_kinds() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("design/telemetry.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(HEADING).expect("the page has the table");
        let rows = rest.split_inclusive('\n').take_while(|line| line.starts_with('|'));
        let after = &rest[rows.map(str::len).sum()..];
        let made = [before, &table(), after].concat();
        if std::env::var_os("TRIPOINT_BLESS").is_some() {
            return std::fs::write(path, made).unwrap();
        }
        assert!(
            made == page,
            "design/telemetry.md has other kinds: TRIPOINT_BLESS=1 writes these\n{}",
            table()
        );
    }
}
