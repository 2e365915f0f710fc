//! Events as typed values, made of the same list of kinds as the table of the format.

use core::fmt;

use tripoint_core::internal::Json;

use crate::format::{EventKind, Field, FieldForm, HEAD_WORDS, Head, RecordKind, with_kinds};
use crate::reader::sample::RecordedSample;
use crate::reader::values::{CodeAddresses, Text, Value};
use crate::sample::{Mean, Sample};
use crate::sampled_object::ObjectKind;

/// The type of a field of each form.
macro_rules! type_of {
    (Text) => {
        Text
    };
    (Site) => {
        CodeAddresses
    };
    ($number:ident) => {
        u64
    };
}

/// Declares the events of the list of kinds.
macro_rules! declare {
    ([$(#[$about:meta])* pub enum $Fields:ident] $(
        $(#[$doc:meta])*
        $number:literal: $kind:ident, $probe:ident, since $since:literal {
            $($(#[$field_doc:meta])* $field:ident: $form:ident,)*
        }
    )+) => {
        $(#[$about])*
        pub enum $Fields {
            $(
                #[doc = concat!("See [`EventKind::", stringify!($kind), "`].")]
                $kind { $(
                    $(#[$field_doc])*
                    $field: type_of!($form),
                )* },
            )*
            /// A kind that this reader does not know, or fields that do not fit in the record.
            Unknown {
                /// The number of the kind.
                kind: u16,
                /// The words of the record.
                words: u16,
            },
        }

        impl $Fields {
            /// The fields that follow a record's head.
            fn decode(kind: EventKind, words: &[u64]) -> Option<Self> {
                let mut words = words;
                match kind {
                    $(EventKind::$kind => Some(Self::$kind { $($field: Value::take(&mut words)?),* }),)*
                }
            }

            /// The kind; `None` if this reader does not know it.
            #[must_use]
            pub const fn kind(&self) -> Option<EventKind> {
                match self {
                    $(Self::$kind { .. } => Some(EventKind::$kind),)*
                    Self::Unknown { .. } => None,
                }
            }

            fn site(&self) -> Option<&CodeAddresses> {
                match self {
                    $(Self::$kind { $($field),* } => {
                        let site = None;
                        $(let site = site.or($field.as_site());)*
                        site
                    })*
                    Self::Unknown { .. } => None,
                }
            }

            fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$kind { $($field),* } => {
                        f.write_str(EventKind::$kind.name())?;
                        $($field.show(&Field { name: stringify!($field), form: FieldForm::$form }, f)?;)*
                        Ok(())
                    })*
                    Self::Unknown { kind, words } => write!(f, "event of kind {kind}, {words} words"),
                }
            }

            fn json(&self, json: &mut Json<'_>) -> fmt::Result {
                match self {
                    $(Self::$kind { $($field),* } => {
                        json.text("event", EventKind::$kind.name())?;
                        $($field.json(&Field { name: stringify!($field), form: FieldForm::$form }, json)?;)*
                        Ok(())
                    })*
                    Self::Unknown { kind, words } => {
                        json.number("unknown_event", kind)?;
                        json.number("words", words)
                    }
                }
            }
        }
    };
}

with_kinds! {
    declare

    /// What happened, with the fields of its kind.
    ///
    /// A field that an event does not have is zero, or an empty text. Addresses are zero if they are left out. A
    /// buffer and a heap are numbers that stand for them ([design/telemetry.md `.number`](crate::design::telemetry)).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Fields
}

/// An event that another process wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// The index of the rings of its thread.
    pub ring: usize,
    /// Whether it was read from the second of them, which has what lasts.
    pub is_lasting: bool,
    /// Its number in the ring, from zero.
    pub serial: u64,
    /// The number of the thread that wrote it: the system's, if the writer has the feature `linux`.
    pub thread: u32,
    /// The time of the event, in ticks of the file's clock.
    pub ticks: u64,
    /// The time of the event, in ns of the system's monotonic clock; `None` if the file has no clock.
    pub nanoseconds: Option<u64>,
    /// Whether addresses were left out.
    pub without_addresses: bool,
    /// What happened.
    pub fields: Fields,
}

impl RecordedEvent {
    /// The event in the words of a record. The time in ns is not set.
    pub(crate) fn from_record(ring: usize, is_lasting: bool, head: Head, words: &[u64]) -> Self {
        let fields = match head.kind {
            RecordKind::Event(kind) => Fields::decode(kind, words.get(HEAD_WORDS..).unwrap_or_default()),
            _ => None,
        };
        let unknown = Fields::Unknown { kind: head.kind.number(), words: head.words };
        Self {
            ring,
            is_lasting,
            serial: head.serial,
            thread: head.thread,
            ticks: head.time,
            nanoseconds: None,
            without_addresses: head.without_addresses,
            fields: fields.unwrap_or(unknown),
        }
    }

    /// The code addresses where it happened, the innermost first; none if they are not known or were left out.
    /// [`Reader::objects`](crate::reader::Reader::objects) tells in which library each is.
    #[must_use]
    pub fn frames(&self) -> &[u64] {
        self.fields.site().map_or(&[], CodeAddresses::as_slice)
    }

    /// The sample that this event reports; `None` if it reports none, or one that cannot be: whose
    /// mean is zero, or whose byte is not in the object.
    #[must_use]
    pub fn sample(&self) -> Option<RecordedSample> {
        let Fields::Sample { arena, pool, object, size, offset, mean, kind, class, type_name, site } =
            self.fields
        else {
            return None;
        };
        let mean = Mean::new(u32::try_from(mean).ok()?)?;
        Some(RecordedSample {
            object,
            sample: Sample::new(size, offset, mean)?,
            kind: kind.as_str().and_then(ObjectKind::from_name),
            thread: self.thread,
            arena,
            pool: (pool != 0).then_some(pool),
            class,
            type_name,
            site,
        })
    }

    /// Writes the event as one line of JSON, without the end of the line. Addresses and handles are
    /// text in hexadecimal, because numbers in JSON are exact only up to 2^53.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        Json::new(out).object(|json| {
            which_ring(self.ring, self.is_lasting, json)?;
            json.number("serial", self.serial)?;
            json.number("tid", self.thread)?;
            match self.nanoseconds {
                Some(nanoseconds) => json.number("ns", nanoseconds)?,
                None => json.number("ticks", self.ticks)?,
            }
            self.fields.json(json)
        })
    }
}

impl fmt::Display for RecordedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.nanoseconds {
            Some(ns) => write!(f, "{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)?,
            None => write!(f, "tick {}", self.ticks)?,
        }
        let lasting = lasting(self.is_lasting);
        write!(f, " thread {} {lasting}ring {} #{} ", self.thread, self.ring, self.serial)?;
        self.fields.show(f)
    }
}

/// Events that a reader missed: the writer overwrote them before they were read, or they were
/// damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The index of the rings of a thread.
    pub ring: usize,
    /// Whether they are missing in the second of them, which has what lasts.
    pub is_lasting: bool,
    /// The number of the first event that was missed.
    pub first: u64,
    /// How many were missed.
    pub count: u64,
}

impl Gap {
    /// Writes the gap as one line of JSON, without the end of the line.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        Json::new(out).object(|json| {
            which_ring(self.ring, self.is_lasting, json)?;
            json.number("first", self.first)?;
            json.number("missed", self.count)
        })
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lasting = lasting(self.is_lasting);
        write!(f, "{lasting}ring {}: {} events missed, from #{}", self.ring, self.count, self.first)
    }
}

/// What is written of a ring before its index.
const fn lasting(is_lasting: bool) -> &'static str {
    if is_lasting { "lasting " } else { "" }
}

/// Writes which ring something was read from.
fn which_ring(ring: usize, is_lasting: bool, json: &mut Json<'_>) -> fmt::Result {
    json.number("ring", ring)?;
    if is_lasting { json.number("is_lasting", true) } else { Ok(()) }
}

/// What a reader returns from rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // Nearly all are events, and nothing is allocated for one.
pub enum Item {
    /// An event.
    Event(RecordedEvent),
    /// Events that were missed.
    Gap(Gap),
}

impl Item {
    /// Writes one line of JSON, without the end of the line.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        match self {
            Self::Event(event) => event.write_json(out),
            Self::Gap(gap) => gap.write_json(out),
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::Gap(gap) => gap.fmt(f),
        }
    }
}
